"""Which phrase of the history a reference means: candidates, what speaks for each, and the best of them.

A linear score over features, one set of weights per kind of reference added to a shared one. The weights lie
in `antecedents.json`; they were fitted offline (see inference/evaluation/fit_understanding.py).
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .corrections import last_correction
from .dependence import topic_start
from .folding import fold
from .mentions import Mention, mentions, title
from .references import Reference
from .script import is_chinese
from .turns import Turn, Turns
from .words import content, stem

PERSON_NOUNS = frozenset(
    "mother father mom dad mum son daughter wife husband boss friend brother sister grandma grandpa "
    "mother-in-law "
    "grandmother grandfather aunt uncle cousin baby kid kids child children man woman girl boy guy "
    "teacher doctor landlord niece "
    "nephew partner girlfriend boyfriend neighbor neighbour roommate colleague author president king "
    "queen actor "
    "actress singer director player coach captain founder leader parents people "
    "妈妈 爸爸 妈 爸 儿子 女儿 老婆 老公 对象 朋友 老板 领导 哥哥 姐姐 弟弟 妹妹 奶奶 爷爷 婆婆 孩子 "
    "宝宝 作者 导演 演员 老师 医生 房东".split()
)


@dataclass
class Candidate:
    """A phrase with all its occurrences: (turn, mention)."""

    text: str
    seen: list[tuple[int, Mention]] = field(default_factory=list)
    title: bool = False

    @property
    def last(self) -> int:
        return self.seen[-1][0]

    @property
    def words(self) -> frozenset[str]:
        return key_words(self.text)


@cache
def key_words(text: str) -> frozenset[str]:
    """What two phrases are compared by: English stems, single Chinese characters."""
    text = fold(text)
    latin = {stem(word) for word in re.findall(r"[^\W\u3400-\u9fff]+(?:['’.\-]\w+)*", text)}
    return frozenset(latin | set(re.findall(r"[\u3400-\u9fff]", text)))


def candidates(history: Turns) -> list[Candidate]:
    """Everything that could be meant, once each, in order of first appearance; a part of a name ("Seagal")
    counts as the whole name ("Steven Seagal")."""
    found: dict[str, Candidate] = {}
    for turn, said in enumerate(history):
        heading = title(said["content"]) if said["role"] == "user" else None
        for mention in mentions(said["content"][:1200]):
            name = mention.text.casefold().removesuffix("'s").removesuffix("’s")
            known = found.get(name) or _whole_name(name, mention, found)
            if known is None:
                known = found[name] = Candidate(mention.text.removesuffix("'s").removesuffix("’s"))
            known.seen.append((turn, mention))
            known.title = known.title or (heading is not None and mention.start == 0)
    return list(found.values())


def _whole_name(name: str, mention: Mention, found: Mapping[str, Candidate]) -> Candidate | None:
    if not mention.text[:1].isupper() or is_chinese(name):
        return None
    for known, candidate in found.items():
        if candidate.text[:1].isupper() and (known.startswith(name + " ") or known.endswith(" " + name)):
            return candidate
    return None


@dataclass(frozen=True)
class Scene:
    """What all candidates of one message are judged before: its words, how much each exchange of the history
    shares with them, where the person last took something back, and with which turn the topic began that the
    history ended with."""

    text: str
    history: Turns
    words: frozenset[str]
    shares: Mapping[int, float]
    corrected: int
    topic: int
    stated: int
    stated_words: frozenset[str]

    @classmethod
    def of(cls, text: str, history: Turns) -> "Scene":
        own = content(text)
        rarity = {
            word: 1.0 / sum(word in content(turn["content"]) for turn in history)
            for word in own
            if any(word in content(turn["content"]) for turn in history)
        }
        total = sum(rarity.values()) or 1.0
        shares: dict[int, float] = {}
        for at in range(len(history)):
            shared = own & content(history[at]["content"])
            shares[at // 2] = shares.get(at // 2, 0.0) + sum(rarity[word] for word in shared) / total
        topic = topic_start(history)
        stated = max((at for at in range(topic, len(history)) if _states(history[at])), default=-1)
        picked = key_words(history[stated]["content"]) if stated >= 0 else frozenset()
        return cls(text, history, key_words(text), shares, last_correction(history), topic, stated, picked)


_ASKS = re.compile(
    r"[?？]|[吗呢]\s*$|什么|怎么|如何|哪|几[^乎]|多少|多久|是不是|能不能|要不要|有没有|"
    r"^\W*(?:(?:and|so|but|ok|okay)\W+)?(?:what|how|which|who|where|when|why|is|are|do|does|did|can|"
    r"could|should|"
    r"would|will|may|tell|give|show|list|explain|describe|recommend|suggest|write|name|find|any|推荐|"
    r"帮我|列|介绍)",
    re.IGNORECASE,
)


def _states(turn: Turn) -> bool:
    """Does the person say something here, rather than ask? "I went with the blue one", 那就去杭州吧."""
    return turn["role"] == "user" and bool(turn["content"].strip()) and not _ASKS.search(turn["content"])


def features(candidate: Candidate, reference: Reference, scene: Scene) -> dict[str, float]:
    """What speaks for the candidate, by name."""
    history = scene.history
    turn, mention = candidate.seen[-1]
    said = history[turn]
    distance = (len(history) - 1 - turn) // 2
    words = candidate.words
    user_turns = [at for at, _ in candidate.seen if history[at]["role"] == "user"]
    siblings = mentions(said["content"][:1200])
    order = next((at for at, each in enumerate(siblings) if each.start == mention.start), 0)
    chinese = is_chinese(candidate.text)
    clause = re.search(r"[^,.;，。；！？!?\n]*$", said["content"][: mention.start])
    sentence = (clause.group() if clause else "") + said["content"][mention.start : mention.end + 30]
    beside = scene.words & key_words(sentence) - words
    found = {
        "recent": 1.0 / (1 + distance),
        "last exchange": float(distance == 0),
        "user": float(said["role"] == "user"),
        "by user": float(bool(user_turns)),
        "by both": float(0 < len(user_turns) < len(candidate.seen)),
        "last user turn": float(len(history) - 2 in user_turns),
        "last answer": float(turn == len(history) - 1 and said["role"] == "assistant"),
        "this topic": float(turn >= scene.topic),
        "opens topic": float(turn == scene.topic),
        "first turn": float(candidate.seen[0][0] == 0),
        "title": float(candidate.title),
        "count": math.log1p(sum(candidate.text in each["content"] for each in history)),
        "introduced last": float(candidate.seen[0][0] >= len(history) - 2),
        "opens answer": float(order == 0 and turn == len(history) - 1),
        "named in answer": float(mention.proper and turn == len(history) - 1),
        "named by user": float(mention.proper and turn == len(history) - 2),
        "proper": float(any(each.proper for _, each in candidate.seen)),
        "quoted": float(any(each.quoted for _, each in candidate.seen)),
        "definite": float(mention.definite),
        "listed": float(mention.place is not None),
        "sentence": float(min(mention.sentence, 3)),
        "first of turn": float(order == 0),
        "late": order / max(1, len(siblings) - 1) if len(siblings) > 1 else 0.5,
        "ends turn": float(not re.search(r"\w", said["content"][mention.end :])),
        "opens clause": float(clause is not None and len(clause.group().strip()) <= 4),
        "length": math.log1p(len(candidate.text) / (2 if chinese else 6)),
        "long": float(len(candidate.text) > (9 if chinese else 34)),
        "digits": float(any(char.isdigit() for char in candidate.text)),
        "number first": float(candidate.text[:1].isdigit()),
        "own": len(words & scene.words) / len(words) if words else 1.0,
        "all own": float(words <= scene.words),
        "short": float(len(candidate.text) < (3 if chinese else 4)),
        "before correction": float(turn < scene.corrected),
        "in correction": float(turn == scene.corrected),
        "stated": float(turn == scene.stated),
        "before stated": float(turn < scene.stated),
        "after stated": float(turn > scene.stated >= 0),
        "picked": len(words & scene.stated_words) / len(words) if words and turn != scene.stated else 0.0,
        "requested": float(said["role"] == "user" and bool(_REQUESTS.search(said["content"]))),
        "answers request": float(
            said["role"] == "assistant" and turn > 0 and bool(_REQUESTS.search(history[turn - 1]["content"]))
        ),
        "negated": float(bool(_NEGATED.search(said["content"][max(0, mention.start - 16) : mention.start]))),
        "chosen": float(said["role"] == "user" and bool(_CHOSEN.search(said["content"]))),
        "shares": scene.shares.get(turn // 2, 0.0),
        "shares most": float(
            bool(scene.shares) and scene.shares.get(turn // 2, 0.0) >= max(scene.shares.values()) > 0
        ),
        "beside": math.log1p(len(beside)),
        "person": float(_person(candidate)),
        "plural form": float(_plural(candidate.text)),
    }
    found |= _head(candidate, reference)
    found |= _place(mention, reference, said["content"], siblings)
    return found


_REQUESTS = re.compile(
    r"\b(?:recommend|suggest|what's a good|any good|good|best|need|looking for|want|which|give me|name|"
    r"list)\b|"
    r"推荐|有什么|有哪些|哪些|哪种|哪款|什么好|列|想买|想找|有没有",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|no|without|instead of|rather than|don't|than)\s+(?:\w+\s)?$|(?:不是|不要|不用|别|没有|"
    r"除了)[^，。]{0,2}$",
    re.I,
)
_CHOSEN = re.compile(
    r"\b(?:i'll|we'll|let's|going with|go with|it is|ended up|i (?:want|bought|got|have|use|tried|chose|"
    r"picked)|decided|using|mine)\b|那(?:我|就)|就(?:选|买|用|去|做)|选了|买了|决定|我选|我用|我买",
    re.I,
)


_ORGANISATIONS = frozenset(
    "university college school city street records record band company club union museum church party "
    "league cup bowl "
    "award awards album island river lake county state states war world united american national new "
    "north south east "
    "west of the and tour series show film studio studios press times institute hospital association "
    "team park hall "
    "house road award prize festival high series season".split()
)


def _person(candidate: Candidate) -> bool:
    words = candidate.text.split()
    if candidate.text in PERSON_NOUNS or (words and words[-1].casefold().rstrip("s") in PERSON_NOUNS):
        return True
    name = 2 <= len(words) <= 4 and all(word[:1].isupper() for word in words)
    other = any(word.casefold() in _ORGANISATIONS for word in words) or any(map(str.isdigit, candidate.text))
    return name and not other


def _plural(text: str) -> bool:
    word = text.split()[-1].casefold() if text.split() else ""
    return (word.endswith("s") and not word.endswith(("ss", "us", "is"))) or " and " in text


def _head(candidate: Candidate, reference: Reference) -> dict[str, float]:
    """Does the candidate bear the noun that the reference names ("that vitamin", 那个圈)?"""
    head = reference.head
    if not head:
        return {}
    if is_chinese(head):
        text = fold(candidate.text)
        head = fold(head)
        shared = next((size for size in range(len(head), 0, -1) if head[:size] in text), 0)
        ends = next((size for size in range(len(head), 0, -1) if text.endswith(head[:size])), 0)
        return {"head": float(ends > 0), "head long": float(ends > 1), "head inside": float(shared > 0)}
    words = key_words(candidate.text)
    last = stem(candidate.text.split()[-1]) if candidate.text.split() else ""
    return {
        "head": float(last == head),
        "head inside": float(head in words),
        "head alone": float(words == {head}),
    }


def _place(
    mention: Mention, reference: Reference, said: str, siblings: Sequence[Mention]
) -> dict[str, float]:
    """Does the candidate stand where an ordinal points: in an enumeration, among names, among clauses?"""
    if reference.kind not in ("ordinal", "former", "latter"):
        return {}
    place = {"former": 0, "latter": 1}.get(reference.kind, reference.place)
    found: dict[str, float] = {}
    if mention.place is not None:
        wanted = mention.of - 1 if place < 0 else place
        found["in place" if mention.place == wanted else "out of place"] = 1.0
    else:
        found["unlisted"] = 1.0
    names = [each.start for each in siblings if each.proper]
    if mention.start in names:
        at = names.index(mention.start)
        found["name in place"] = float(at == (len(names) - 1 if place < 0 else place))
    clauses = [0, *(cut.end() for cut in re.finditer(r"[,，;；。.、\n]\s*", said))]
    leads: list[int] = []
    for start, end in zip(clauses, [*clauses[1:], len(said) + 1], strict=True):
        leads += [each.start for each in siblings if start <= each.start < end][:1]
    if mention.start in leads:
        at = leads.index(mention.start)
        found["clause in place"] = float(at == (len(leads) - 1 if place < 0 else place))
    return found


@cache
def _weights() -> Mapping[str, float]:
    stored = json.loads((Path(__file__).parent / "antecedents.json").read_text(encoding="utf-8"))
    return {name: float(weight) for name, weight in stored["weights"].items()}


# Kinds of reference that are resolved alike share their weights.
_GROUPS: Mapping[str, str] = {
    "this": "thing",
    "definite": "noun",
    "former": "ordinal",
    "latter": "ordinal",
    "more": "short",
}


def strands(kind: str, text: str, pool: Sequence[Candidate]) -> tuple[str, str]:
    """Which sets of weights are added to the shared one: that of the kind of reference, and that of the
    conversation: about a titled page, Chinese or English."""
    style = "titled" if any(each.title for each in pool) else "zh" if is_chinese(text) else "en"
    return _GROUPS.get(kind, kind), style


def score(found: Mapping[str, float], kind: str, style: str) -> float:
    """The weighted sum."""
    weights = _weights()
    return sum(
        (weights.get(name, 0.0) + weights.get(f"{kind} {name}", 0.0) + weights.get(f"{style} {name}", 0.0))
        * value
        for name, value in found.items()
    )


def ranked(reference: Reference, scene: Scene, pool: Sequence[Candidate]) -> list[tuple[float, Candidate]]:
    """The candidates for one reference, best first, each with its score."""
    kind, style = strands(reference.kind, scene.text, pool)
    scored = [(score(features(each, reference, scene), kind, style), each) for each in pool]
    return sorted(scored, key=lambda pair: -pair[0])
