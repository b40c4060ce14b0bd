"""What a question stands in: the topic, the last few turns, which of them it leans on, and what it means
written out.

Self-contained questions are compared by themselves, dependent ones together with the turns they lean on.
Greetings, thanks and other topics count for neither.
"""

import hashlib
import json
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from .chitchat import is_chitchat
from .corrections import corrections, replaced, takes_back, what_holds
from .dependence import LEANS, Dependence, likelihood, topic_start
from .folding import fold
from .grounding import NOTHING, Ground
from .mentions import title
from .normalise import normalise
from .references import references
from .resolution import Resolved, Resolver, resolve
from .standalone import Vectors
from .turns import Turn, Turns
from .words import content


@dataclass(frozen=True)
class Context:
    """`topic`: what the conversation opened with, greetings aside. `window`: the last turns before the
    question; `older`: all before those. `resolved`: the question with what it leans on written in; the
    question itself when it leans on nothing. `corrections`: what took something back since the beginning, as
    it was said, and `holds`, what each put in its place; `replaced`: the turns of the window that were taken
    back; `takes_back`: the question takes something back itself; `entangled`: it does, or shares words with
    what was taken back."""

    question: str
    topic: str
    window: tuple[Turn, ...]
    older: tuple[Turn, ...] = ()
    dependence: Dependence = field(default_factory=Dependence)
    resolved: str = ""
    corrections: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    replaced: frozenset[int] = frozenset()
    takes_back: bool = False
    entangled: bool = False

    @property
    def history(self) -> tuple[Turn, ...]:
        return self.window


def read_context(
    turns: Turns,
    exchanges: int = 5,
    resolver: Resolver | None = None,
    misread: Set[int] = frozenset(),
    vectors: Vectors | None = None,
    ground: Ground = NOTHING,
) -> Context:
    """The context of the last turn, which must be a user's. `exchanges` is how many question-and-answer
    pairs the window holds. `resolver` writes dependent questions out in place of the rules, where an engine
    is strong enough to; what it returns None for, the rules write. The turns of `misread` are no corrections,
    whatever they look like. `vectors` tell whether a question stands alone where its words don't (see
    standalone.py); what the `ground` names needs no history. Raises ValueError when there is no question."""
    if not turns or turns[-1]["role"] != "user":
        raise ValueError("The last turn must be the user's question.")
    before = tuple(turns[:-1])
    window, older = before[-2 * exchanges :], before[: -2 * exchanges]
    question = turns[-1]["content"]
    taken_back = corrections(before, misread, vectors)
    holds = {at: what_holds(before, at) for at in taken_back}
    gone = replaced(before, taken_back)
    said = [
        Turn(role=turn["role"], content="" if at in gone else holds.get(at, turn["content"]))
        for at, turn in enumerate(before)
    ][len(older) :]
    own = takes_back(turns, len(before), vectors)
    # Whoever has just put something right goes on with it, unless the words say otherwise.
    just_corrected = _last_asked(before) in taken_back
    by = _Reading(None if just_corrected else vectors, ground)
    dependence, resolved = _read(question, window, said, by)
    if dependence.dependent and resolver is not None:
        resolved = resolver(question, window) or resolved
    return Context(
        question,
        _topic(turns),
        window,
        older,
        dependence,
        resolved,
        tuple(before[at]["content"] for at in taken_back),
        tuple(holds.values()),
        frozenset(at - len(older) for at in gone if at >= len(older)),
        own,
        own or _shares_words(turns, (*gone, *taken_back)),
    )


def _last_asked(before: Turns) -> int:
    """The person's last turn, -1 for none."""
    return max((at for at, turn in enumerate(before) if turn["role"] == "user"), default=-1)


# A question that is only likely to say all itself is not shared across conversations: of those in doubt, a
# third turned out to lean on theirs.
_SURE = 0.97


def careful(context: Context) -> Context:
    """In doubt a question leans on its whole window; where it takes something back, or speaks of what was,
    there always is one."""
    found = context.dependence
    sure = found.confidence >= _SURE and not context.entangled
    if found.dependent or not context.window or sure:
        return context
    everything = tuple(range(len(context.window)))
    doubtful = replace(found, dependent=True, confidence=1 - found.confidence, leans_on=everything)
    return replace(context, dependence=doubtful)


# Where somebody asked the very same words first thing, that they stand alone is that much surer.
_LIKELY = 0.7


def likely_alone(context: Context) -> bool:
    """May the question be taken for one that stands alone, if its words are known to?"""
    found = context.dependence
    if context.entangled or context.corrections:
        return False
    return not found.dependent and found.confidence >= _LIKELY


def exact_key(scope_hash: str, context: Context) -> str:
    """Hex SHA-256 over scope and question and, if the question is dependent, the turns it leans on and what
    was taken back, however long ago: the same words after another history are another question."""
    parts: list[object] = [scope_hash, _folded(context.question)]
    if context.dependence.dependent:
        leaned = context.dependence.leans_on
        parts.append([_plain(context.window[at]) for at in leaned])
        if context.older and (not leaned or leaned[0] <= 1):
            # What the window's first turn means may lie before the window.
            parts.append([_plain(turn) for turn in context.older])
        parts += [["taken back", _folded(text)] for text in context.corrections]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).hexdigest()


def context_text(context: Context) -> str:
    """What the context channel embeds: the person's turns that a dependent question leans on, and the topic
    where they belong to it; "" for a self-contained question. What took something back leads, however long
    ago it was said; what it took back is left out."""
    if not context.dependence.dependent:
        return ""
    said = [
        context.window[at]["content"]
        for at in context.dependence.leans_on
        if context.window[at]["role"] == "user" and at not in context.replaced
    ]
    if title(context.topic) and not context.corrections:
        said.insert(0, context.topic)
    lead = reversed(context.holds)
    texts = dict.fromkeys([*lead, *(text.strip() for text in said if text not in context.corrections)])
    return "\n".join(text for text in texts if text)


def _folded(text: str) -> str:
    return fold(normalise(text))


def _plain(turn: Turn) -> list[str]:
    return [turn["role"], _folded(turn["content"])]


# --- which turns count ------------------------------------------------------------------------------


def _topic(turns: Turns) -> str:
    said = [turn["content"] for turn in turns if turn["role"] == "user"]
    return next((text for text in said if not is_chitchat(text)), said[0] if said else "")


# --- dependence -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """By what it is told whether a message leans."""

    vectors: Vectors | None
    ground: Ground


def _read(question: str, window: Turns, said: Turns, by: _Reading) -> tuple[Dependence, str]:
    """`said`: the window as it holds now, without the words of what was taken back."""
    chance = likelihood(question, window, by.vectors, by.ground)
    if chance < LEANS:
        return Dependence(False, None, 1 - chance, ("it says itself what it is about",)), question
    relevant = [at for at in range(len(window)) if said[at]["content"] and not _idle(window, at)]
    resolved = resolve(question, [said[at] for at in relevant])
    turns = tuple(relevant[at] for at in resolved.turns)
    leans_on = _leaned(question, window, turns, by)
    on = turns[0] if turns else (leans_on[-1] if leans_on else None)
    return Dependence(True, on, chance, _reasons(question, resolved), leans_on), resolved.text


def _shares_words(turns: Turns, about: Sequence[int]) -> bool:
    """Does the question share words with the turns `about`?"""
    own = content(turns[-1]["content"])
    return any(own & content(turns[at]["content"]) for at in about)


def _idle(window: Turns, at: int) -> bool:
    """Does the exchange of this turn consist of a greeting or thanks?"""
    asked = at if window[at]["role"] == "user" else at - 1
    return asked >= 0 and window[asked]["role"] == "user" and is_chitchat(window[asked]["content"])


def _leaned(question: str, window: Turns, turns: tuple[int, ...], by: _Reading) -> tuple[int, ...]:
    """All turns that the meaning of the question may rest on: from the earliest that it points to, or that
    those lean on in turn, to the last; without greetings. A question that names an earlier topic leans on
    that one alone."""
    asked = [at for at, turn in enumerate(window) if turn["role"] == "user" and not _idle(window, at)]
    if not asked:
        return tuple(range(len(window)))
    back = any(each.kind == "back" for each in references(question))
    latest = asked[-1]
    earliest = min((_asked_at(asked, at) for at in turns), default=latest)
    first = topic_start(window[: earliest + 1], by.vectors, by.ground)
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
