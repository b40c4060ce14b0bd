"""What a question stands in: the topic, the last few turns, which of them it leans on, and what it means
written out.

Self-contained questions are compared by themselves, dependent ones together with the turns they lean on.
Greetings, thanks and other topics count for neither.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .corrections import corrects
from .dependence import LEANS, Dependence, likelihood, topic_start
from .folding import fold
from .mentions import title
from .normalise import normalise
from .references import references
from .resolution import Resolved, Resolver, resolve
from .turns import Turn, Turns


@dataclass(frozen=True)
class Context:
    """`topic`: what the conversation opened with, greetings aside. `window`: the last turns before the
    question; `older`: all before those. `resolved`: the question with what it leans on written in; the
    question itself when it leans on nothing."""

    question: str
    topic: str
    window: tuple[Turn, ...]
    older: tuple[Turn, ...] = ()
    dependence: Dependence = field(default_factory=Dependence)
    resolved: str = ""

    @property
    def history(self) -> tuple[Turn, ...]:
        return self.window


def read_context(turns: Turns, exchanges: int = 5, resolver: Resolver | None = None) -> Context:
    """The context of the last turn, which must be a user's. `exchanges` is how many question-and-answer
    pairs the window holds. `resolver` writes dependent questions out in place of the rules, where an engine
    is strong enough to; what it returns None for, the rules write. Raises ValueError when there is no
    question."""
    if not turns or turns[-1]["role"] != "user":
        raise ValueError("The last turn must be the user's question.")
    before = tuple(turns[:-1])
    window, older = before[-2 * exchanges :], before[: -2 * exchanges]
    question = turns[-1]["content"]
    dependence, resolved = _read(question, window)
    if dependence.dependent and resolver is not None:
        resolved = resolver(question, window) or resolved
    return Context(question, _topic(turns), window, older, dependence, resolved)


def exact_key(scope_hash: str, context: Context) -> str:
    """Hex SHA-256 over scope and question and, if the question is dependent, the turns it leans on: the same
    words after another history are another question."""
    parts: list[object] = [scope_hash, _folded(context.question)]
    if context.dependence.dependent:
        leaned = context.dependence.leans_on
        parts.append([_plain(context.window[at]) for at in leaned])
        if context.older and (not leaned or leaned[0] <= 1):
            # What the window's first turn means may lie before the window.
            parts.append([_plain(turn) for turn in context.older])
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def context_text(context: Context) -> str:
    """What the context channel embeds: the person's turns that a dependent question leans on, and the topic
    where they belong to it; "" for a self-contained question. What a later turn corrected is left out."""
    if not context.dependence.dependent:
        return ""
    said = [context.window[at] for at in context.dependence.leans_on if context.window[at]["role"] == "user"]
    texts = [turn["content"].strip() for turn in _uncorrected(said)]
    if title(context.topic) and context.topic not in texts:
        texts.insert(0, context.topic)
    return "\n".join(text for text in texts if text)


def _folded(text: str) -> str:
    return fold(normalise(text))


def _plain(turn: Turn) -> list[str]:
    return [turn["role"], _folded(turn["content"])]


# --- which turns count ------------------------------------------------------------------------------

_CHITCHAT = re.compile(
    r"(?:(?:hi|hello|hey|good (?:morning|evening|afternoon)|thanks?(?: you)?(?: so much| a lot)?|ty|thx|"
    r"great|cool|nice|ok(?:ay)?|"
    r"got it|perfect|awesome|good|sure|yes|no|alright|bye|see you|wow|lol|haha|there|you|very much|"
    r"你好|您好|嗨|哈喽|在吗|早上好|晚上好|谢谢(?:你|您|啦)?|多谢|感谢|好的?|好吧|嗯+|哦+|知道了|明白了?|"
    r"懂了|收到|可以|行|不错|再见|拜拜)"
    r"[\s,.!?，。！？~～👍🙏😊]*)+",
    re.IGNORECASE,
)


def is_chitchat(text: str) -> bool:
    """Greetings, thanks and nods: turns that nothing leans on."""
    return not text.strip() or _CHITCHAT.fullmatch(text.strip()) is not None


def _topic(turns: Turns) -> str:
    said = [turn["content"] for turn in turns if turn["role"] == "user"]
    return next((text for text in said if not is_chitchat(text)), said[0] if said else "")


def _uncorrected(said: Sequence[Turn]) -> list[Turn]:
    """Without the turn right before a correction: the correction says it anew."""
    return [
        turn for at, turn in enumerate(said) if at + 1 == len(said) or not corrects(said[at + 1]["content"])
    ] or list(said)


# --- dependence -------------------------------------------------------------------------------------


def _read(question: str, window: Turns) -> tuple[Dependence, str]:
    chance = likelihood(question, window)
    if chance < LEANS:
        return Dependence(False, None, 1 - chance, ("it says itself what it is about",)), question
    relevant = [at for at in range(len(window)) if not _idle(window, at)]
    resolved = resolve(question, [window[at] for at in relevant])
    turns = tuple(relevant[at] for at in resolved.turns)
    leans_on = _leaned(question, window, turns)
    on = turns[0] if turns else (leans_on[-1] if leans_on else None)
    return Dependence(True, on, chance, _reasons(question, resolved), leans_on), resolved.text


def _idle(window: Turns, at: int) -> bool:
    """Does the exchange of this turn consist of a greeting or thanks?"""
    asked = at if window[at]["role"] == "user" else at - 1
    return asked >= 0 and window[asked]["role"] == "user" and is_chitchat(window[asked]["content"])


def _leaned(question: str, window: Turns, turns: tuple[int, ...]) -> tuple[int, ...]:
    """All turns that the meaning of the question may rest on: from the earliest that it points to, or that
    those lean on in turn, to the last; without greetings. A question that names an earlier topic leans on
    that one alone."""
    asked = [at for at, turn in enumerate(window) if turn["role"] == "user" and not _idle(window, at)]
    if not asked:
        return tuple(range(len(window)))
    back = any(each.kind == "back" for each in references(question))
    latest = asked[-1]
    earliest = min((_asked_at(asked, at) for at in turns), default=latest)
    first = topic_start(window[: earliest + 1])
    last = max((_asked_at(asked, at) for at in turns), default=latest) if back else latest
    chosen = {at for at in asked if first <= at <= last}
    return tuple(at for at in range(len(window)) if _asked_at(asked, at) in chosen and not _idle(window, at))


def _asked_at(asked: Sequence[int], at: int) -> int:
    """The user turn that a turn belongs to."""
    return max((each for each in asked if each <= at), default=asked[0])


def _reasons(question: str, resolved: Resolved) -> tuple[str, ...]:
    named = {
        "person": "a person named before", "plural": "things named before", "thing": "a thing named before",
        "this": "a demonstrative", "noun": "a demonstrative", "definite": "something known already",
        "ordinal": "a place in a list", "former": "the first of two", "latter": "the second of two",
        "place": "a place named before", "which": "a choice between things named before",
        "more": "more of what was said", "and": "an earlier question about something else",
        "short": "too little to stand alone", "back": "an earlier turn",
    }  # fmt: skip
    found = [
        f"“{question[each.start : each.end]}”: {named[each.kind]}"
        if each.end > each.start
        else named[each.kind]
        for each in references(question)
        if not each.inside
    ]
    return tuple(dict.fromkeys(found)) or ("it shares its subject with what was said",)
