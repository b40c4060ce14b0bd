"""Do two fingerprints ask for the same thing?

Two mechanisms. What is typed (numbers, dates, directions, opposites …) is compared part by part, however
differently the texts are worded. And where the wording is nearly the same, what is left over on either side
must be the difference in meaning: a word swapped for another, a condition added, two names exchanged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Indel, Postfix, Prefix

from . import opposites
from .fillers import GENERIC
from .parts import Comparison, Fingerprint, Reason
from .tokens import stem

# From these shares on two texts are near copies, and what is left over in them counts: (edge, near) by
# language and by whether there is something left over on both sides or on one. Fitted on question groups of
# which another part was kept aside; a Chinese character says more than a Latin one.
_NEAR_COPY = {
    ("en", True): (0.3, 0.7),
    ("en", False): (0.4, 0.75),
    ("zh", True): (0.45, 0.8),
    ("zh", False): (0.5, 0.8),
}
# From this nearness on, a number in only one of the texts counts, and one kind of answer against another.
ADDITION_FROM = 0.6
CLOSE = 0.6

# Kinds of answer that one question does not ask for at once, however it is worded.
_APART = frozenset(
    frozenset(pair.split("-"))
    for pair in (
        "howto-time howto-often howto-why howto-yesno time-yesno time-why time-price time-who price-why"
        " price-who"
        " why-yesno why-amount why-who why-write where-yesno where-why often-yesno often-price compare-why"
        " write-yesno fix-write fix-time"
        " define-yesno who-amount"
    ).split()
)


# Kinds that are two ways of saying one.
_COMPATIBLE = frozenset(
    frozenset(pair.split("-"))
    for pair in (
        "where-howto amount-price amount-degree fix-howto define-why howto-write compare-which which-who"
        " which-where"
        " price-which time-which define-which price-compare"
    ).split()
)


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of their wording two texts share: `share` from 0 to 1 of all terms; `near` of all characters
    in a row; `edge` of those before and behind a single stretch; `left_a` and `left_b` the
    terms that the other one has no counterpart for."""

    share: float
    near: float
    edge: float
    left_a: tuple[str, ...]
    left_b: tuple[str, ...]
    exact: bool


def overlap_of(a: Fingerprint, b: Fingerprint) -> Overlap:
    """What the two have in common in their wording."""
    left_a = _without(a.terms, b.terms)
    left_b = _without(b.terms, a.terms)
    exact = not left_a and not left_b
    verbs = {*a.verbs, *b.verbs}
    for term in list(left_a):
        match = next((other for other in left_b if _interchangeable(term, other, verbs)), None)
        if match is not None:
            left_a.remove(term)
            left_b.remove(match)
    total = len(set(a.terms)) + len(set(b.terms))
    share = 1 - (len(left_a) + len(left_b)) / total if total else 1.0
    near = Indel.normalized_similarity(a.text, b.text)
    return Overlap(share, near, _edge(a.text, b.text), tuple(left_a), tuple(left_b), exact)


def _edge(one: str, other: str) -> float:
    """The share of the longer text that the two have in common before and behind one differing stretch."""
    shorter, longer = sorted((len(one), len(other)))
    front = int(Prefix.similarity(one, other))
    back = min(int(Postfix.similarity(one, other)), shorter - front)
    return (front + back) / longer if longer else 1.0


def _without(terms: Sequence[str], others: Sequence[str]) -> list[str]:
    """The terms that the others lack. Chinese words may be cut differently there, so their characters count
    in a row."""
    known, flat = {stem(term) for term in others}, "".join(others)
    return [
        term
        for term in dict.fromkeys(terms)
        if stem(term) not in known and (term.isascii() or len(term) < 2 or term not in flat)
    ]


def _interchangeable(one: str, other: str, verbs: set[str]) -> bool:
    """May the two words stand for each other? Words on one side of a pair of opposites, shorter and longer
    forms of a Chinese verb (转, 转换成), misspellings."""
    if opposites.alike(one, other):
        return True
    if opposites.opposed(one, other):
        return False
    if not one.isascii() and not other.isascii():
        return bool({one, other} & verbs) and (set(one) <= set(other) or set(other) <= set(one))
    return (
        len(one) > 4
        and len(other) > 4
        and one.isalpha()
        and other.isalpha()
        and one[0] == other[0]
        and _misspelt(one, other)
    )


def _misspelt(one: str, other: str) -> bool:
    """One letter more, less or other, or two neighbours exchanged."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return one == other
    start = next(
        (at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), min(len(one), len(other))
    )
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def compare(a: Fingerprint, b: Fingerprint) -> Comparison:
    """Do two questions ask for the same thing? Symmetric; a question never conflicts with itself."""
    if a == b:
        return Comparison("agree" if a.terms else "unknown")
    # Terms are paired off in order: one order for both ways round makes it symmetric.
    if b.text < a.text or (b.text == a.text and repr(b) < repr(a)):
        a, b = b, a
    overlap = overlap_of(a, b)
    reasons = tuple(reason for check in _CHECKS for reason in check(a, b, overlap))
    if reasons:
        return Comparison("conflict", reasons)
    same = (
        overlap.exact
        and bool(a.terms)
        and _light(a) == _light(b)
        and _alike(a, b, "language", "intents", "directions", "negations", "form", "quantities")
        and _alike(a, b, "versions", "dates")
        and _same_order(a, b)
    )
    return Comparison("agree" if same else "unknown")


def _same_order(a: Fingerprint, b: Fingerprint) -> bool:
    """The same terms in an order that says the same: 怎么开启夜间模式 and 夜间模式怎么开启 differ only in
    where the verb stands; what is compared may be named in any order."""
    if "compare" in a.intents:
        return sorted(a.terms) == sorted(b.terms)
    verbs = set(a.verbs)
    nouns = [[term for term in x.terms if term not in verbs] for x in (a, b)]
    return nouns[0] == nouns[1] and a.verbs == b.verbs


def _light(part: Fingerprint) -> tuple[str, ...]:
    """Whether one can, must or will matters where that is the question."""
    ignored = ("will",) if "yesno" in part.intents else ("can", "must", "will")
    return tuple(word for word in part.light if word not in ignored)


def _alike(a: Fingerprint, b: Fingerprint, *parts: str) -> bool:
    return all(getattr(a, part) == getattr(b, part) for part in parts)


def _against(one: Iterable[str], other: Iterable[str]) -> str:
    """Both sides' findings for a reader, the same whichever comes first."""
    sides = sorted((" ".join(one) or "-", " ".join(other) or "-"))
    return " / ".join(sides)


# 一天 is said for every day, "a year" for a long time: one of a unit seldom counts.
_ONCE = {"time": {"60", "3600", "86400", "604800"}, "month": {"1", "12"}}


def _numbers(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    for unit in sorted({unit for _, unit in (*a.quantities, *b.quantities)}):
        in_a = [value for value, name in a.quantities if name == unit]
        in_b = [value for value, name in b.quantities if name == unit]
        if sorted(set(in_a)) == sorted(set(in_b)):
            continue
        one_sided = not in_a or not in_b
        if one_sided and (set(in_a) | set(in_b) <= _ONCE.get(unit, {"1"}) or overlap.near < ADDITION_FROM):
            continue
        # "a" and "one" seldom count: 一个 against 两个 says something only where all else is alike.
        if unit == "" and (in_a == ["1"] or in_b == ["1"]) and overlap.near < CLOSE:
            continue
        if not one_sided and set(in_a) & set(in_b) and overlap.near < CLOSE:
            continue
        yield Reason("number", f"{_against(in_a, in_b)} {unit}".strip())
    money = [{unit for _, unit in x.quantities if unit.startswith("money")} for x in (a, b)]
    if money[0] and money[1] and not money[0] & money[1]:
        yield Reason("number", _against(sorted(money[0]), sorted(money[1])))


def _versions(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    in_a, in_b = set(a.versions), set(b.versions)
    if in_a == in_b:
        return
    same_name = {name for name, _ in in_a} & {name for name, _ in in_b}
    for name in sorted(same_name):
        one, other = ({number for named, number in found if named == name} for found in (in_a, in_b))
        if not one & other or (one != other and overlap.near >= CLOSE):
            yield Reason("version", f"{name} {_against(sorted(one), sorted(other))}")
    numbers_a, numbers_b = {number for _, number in in_a}, {number for _, number in in_b}
    if not same_name and numbers_a != numbers_b and overlap.near >= CLOSE:
        yield Reason("version", _against(map(" ".join, sorted(in_a)), map(" ".join, sorted(in_b))))


def _dates(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    in_a, in_b = set(a.dates), set(b.dates)
    kinds = {date.split(":")[0].split("=")[0] for date in in_a ^ in_b} - {"now"}
    for kind in sorted(kinds):
        one = {date for date in in_a if date.startswith(kind) and date[len(kind)] in ":="}
        other = {date for date in in_b if date.startswith(kind) and date[len(kind)] in ":="}
        if (one and other and not one & other) or overlap.near >= CLOSE:
            yield Reason("date", _against(sorted(one), sorted(other)))


def _polarity(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    in_a, in_b = set(a.negations), set(b.negations)
    if in_a == in_b and ("avoid" in a.intents) == ("avoid" in b.intents):
        return
    if ("avoid" in a.intents) != ("avoid" in b.intents) and overlap.near >= 0.4:
        yield Reason("polarity", _against(a.intents, b.intents))
        return
    asserted = (in_a - in_b) & set(b.terms) | (in_b - in_a) & set(a.terms)
    if (asserted and (overlap.near >= 0.55 or (overlap.share >= 0.75 and overlap.near >= 0.45))) or (
        overlap.near >= CLOSE and len(in_a) % 2 != len(in_b) % 2
    ):
        yield Reason(
            "polarity",
            _against(("not " + term for term in sorted(in_a)), ("not " + term for term in sorted(in_b))),
        )


def _opposites(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    for pair in sorted({pair for pair, _ in a.actions} & {pair for pair, _ in b.actions}):
        in_a = {side for name, side in a.actions if name == pair}
        in_b = {side for name, side in b.actions if name == pair}
        needed = 0.5 if pair in opposites.QUALITIES else 0.0
        if not in_a & in_b and overlap.near >= needed:
            yield Reason("opposite", pair)


def _light_opposites(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    """上一个 and 下一个: small words that are too common to count except where nothing else differs."""
    one, other = set(a.light) - set(b.light), set(b.light) - set(a.light)
    if overlap.exact and overlap.near >= 0.8:
        for word in sorted(one):
            if against := next((x for x in sorted(other) if opposites.opposed(word, x)), ""):
                yield Reason("opposite", _against([word], [against]))


def _directions(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    whole = [(pair, other) for pair in a.directions for other in b.directions if all(pair) and all(other)]
    for (source, target), (other_source, other_target) in whole:
        if _akin(source, other_target) and _akin(target, other_source):
            yield Reason(
                "direction", _against([f"{source} > {target}"], [f"{other_source} > {other_target}"])
            )
            return
    # "ship to Canada" and "ship from Canada": one end is said only.
    for one, other in ((a, b), (b, a)):
        from_one = {source for source, target in one.directions if not target}
        ends = from_one & {target for _, target in other.directions} - {
            source for source, _ in other.directions
        }
        if ends - {target for _, target in one.directions} and overlap.near >= CLOSE:
            yield Reason(
                "direction",
                _against([f"from {end}" for end in sorted(ends)], [f"to {end}" for end in sorted(ends)]),
            )
            return


def _akin(one: str, other: str) -> bool:
    """The same term, or a shorter form of it (int, integer; mongo, mongodb)."""
    return one == other or (
        min(len(one), len(other)) >= 3 and (one.startswith(other) or other.startswith(one))
    )


def _form(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    in_a, in_b = dict(a.form), dict(b.form)
    for aspect in sorted({*in_a, *in_b} - {"about"}):
        one, other = in_a.get(aspect, ""), in_b.get(aspect, "")
        # Said in passing on one side, it answers what is asked for on the other.
        if spare := {"language": "about", "shape": "made"}.get(aspect):
            one, other = one or in_a.get(spare, ""), other or in_b.get(spare, "")
        one_sided = not one or not other
        if one != other and (not one_sided or overlap.near >= _ONE_SIDED_FORM[aspect]):
            yield Reason("form", f"{aspect}: {_against([one], [other])}")
    about = in_a.get("about", ""), in_b.get("about", "")
    if "language" not in {*in_a, *in_b} and about[0] != about[1] and (all(about) or overlap.near >= 0.75):
        yield Reason("form", f"language: {_against([about[0]], [about[1]])}")
    writer, asker = (a, b) if "write" in a.intents else (b, a)
    if "write" in writer.intents and "howto" not in writer.intents and _only_asks(asker):
        yield Reason("form", _against(["write"], ["answer"]))


def _only_asks(part: Fingerprint) -> bool:
    """A question that says nothing of how the answer should come."""
    return part.mood == "question" and bool(part.intents) and "write" not in part.intents and not part.form


# How near the texts must be for a wish in only one of them to count as a difference.
_ONE_SIDED_FORM = {"language": 0.0, "audience": 0.0, "length": 0.0, "shape": 0.0, "made": 0.7}


def _intents(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    if not a.intents or not b.intents or set(a.intents) & set(b.intents):
        return
    pairs = [frozenset((one, other)) for one in a.intents for other in b.intents]
    if all(pair in _APART for pair in pairs) or (
        overlap.near >= CLOSE and not any(pair in _COMPATIBLE for pair in pairs)
    ):
        yield Reason("intent", _against(a.intents, b.intents))


def _places(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    one, other = ({term for kind, term in x.entities if kind == "place"} for x in (a, b))
    left = sorted(one & set(overlap.left_a)), sorted(other & set(overlap.left_b))
    if all(left) and overlap.near >= 0.5:
        yield Reason("entity", _against(*left))


def _quoted(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    """What stands in quotation marks is meant letter by letter."""
    one, other = ({term for kind, term in x.entities if kind == "quoted"} for x in (a, b))
    if one and other and not one & other and overlap.near >= CLOSE:
        yield Reason("entity", _against(sorted(one), sorted(other)))


def _modals(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    """Whether one can is not whether one must, where nothing else differs."""
    one, other = (set(x.light) & {"can", "must"} for x in (a, b))
    asked = "yesno" in a.intents and "yesno" in b.intents
    if asked and overlap.exact and overlap.near >= CLOSE and one and other and not one & other:
        yield Reason("opposite", _against(sorted(one), sorted(other)))


def _turned_verbs(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    """停掉已经启动的, 启动已经停掉的: the same is done to the same, the other way round."""
    turned = a.verbs != b.verbs and sorted(a.verbs) == sorted(b.verbs)
    if turned and overlap.exact and overlap.near >= ADDITION_FROM:
        yield Reason("order", _against([" ".join(a.verbs)], [" ".join(b.verbs)]))


def _leftovers(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    if not overlap.left_a and not overlap.left_b:
        return
    swapped = bool(overlap.left_a and overlap.left_b)
    if not swapped and GENERIC.issuperset(map(stem, overlap.left_a + overlap.left_b)):
        return
    edge, near = _NEAR_COPY["zh" if "zh" in (a.language, b.language) else "en", swapped]
    if overlap.edge >= edge or overlap.near >= near or _states(a, b, overlap):
        names = {term for _, term in (*a.entities, *b.entities)}
        named = names & set(overlap.left_a) and names & set(overlap.left_b)
        code = "condition" if not swapped else "entity" if named else "wording"
        yield Reason(code, _against(overlap.left_a, overlap.left_b))


def _roles(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    """Who did what to whom: the same terms, two of which have changed places."""
    in_b = {term: at for at, term in enumerate(dict.fromkeys(term for term in b.terms if term in a.terms))}
    order = [term for term in dict.fromkeys(a.terms) if term in in_b]
    moved = [term for at, term in enumerate(order) if in_b[term] != at]
    if _states(a, b, overlap):
        turned = sorted(a.quantities) == sorted(b.quantities) and a.quantities != b.quantities
        if moved or turned or (a.terms != b.terms and overlap.exact):
            yield Reason(
                "order", _against([" ".join(moved)], [" ".join(sorted(moved, key=in_b.__getitem__))])
            )
    elif len(moved) == 2 and overlap.share >= 0.6 and _exchange(a, b, moved, overlap):
        yield Reason("roles", _against([" > ".join(moved)], [" > ".join(reversed(moved))]))


def _exchange(a: Fingerprint, b: Fingerprint, moved: Sequence[str], overlap: Overlap) -> bool:
    """Have two terms changed places around something that stayed?"""
    x, y = moved
    verbs = {*a.verbs, *b.verbs}
    first_at, second_at = a.terms.index(x), a.terms.index(y)
    # English words come without a part of speech: there, any two may be names.
    if {x, y} & verbs or (a.language == "zh" and second_at - first_at < 2):
        return False
    one = a.text
    first, second = one.find(x), one.rfind(y)
    if first < 0 or second < first + len(x):
        return False
    between = one[first + len(x) : second]
    if between in _COORDINATES or _owns(between, x, y, b.text):
        return False
    turned = f"{one[:first]}{y}{between}{x}{one[second + len(y) :]}"
    around_verb = any(term in verbs for term in a.terms[first_at + 1 : second_at])
    return Indel.normalized_similarity(turned, b.text) >= 0.9 or (overlap.exact and around_verb)


def _owns(between: str, x: str, y: str, other: str) -> bool:
    """The tower of the lighthouse is the lighthouse tower."""
    if between in _OF:
        return any(f"{y}{ending}{x}" in other for ending in ("", "s"))
    return between in ("", "s") and any(f"{y}{of}{x}" in other for of in _OF)


_OF = ("of", "ofthe", "ofa", "ofan")


def _sequence(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> Iterable[Reason]:
    """The same numbers the other way round: 6 to 3 instead of 3 to 6."""
    if {"compare", "which"} & {*a.intents, *b.intents}:
        return
    if overlap.near < 0.45:
        return
    for unit in sorted({unit for _, unit in (*a.quantities, *b.quantities)} | {"version"}):
        in_a, in_b = ([value for value, name in x.quantities if name == unit] for x in (a, b))
        if unit == "version":
            in_a, in_b = ([number for _, number in x.versions] for x in (a, b))
        elif overlap.near < CLOSE:
            continue
        if len(set(in_a)) > 1 and in_a != in_b and sorted(in_a) == sorted(in_b):
            yield Reason("order", _against([" ".join(in_a)], [" ".join(in_b)]))


_COORDINATES = frozenset("and or vs versus with & 和 与 跟 及 或 还是 同".split())


def _states(a: Fingerprint, b: Fingerprint, overlap: Overlap) -> bool:
    """Are both statements, of one matter, rather than questions? There, whatever differs is a difference."""
    moods = {a.mood, b.mood}
    return "question" not in moods and "statement" in moods and overlap.share >= 0.2


_CHECKS = (
    _numbers,
    _versions,
    _dates,
    _polarity,
    _opposites,
    _light_opposites,
    _directions,
    _form,
    _intents,
    _places,
    _quoted,
    _modals,
    _turned_verbs,
    _roles,
    _sequence,
    _leftovers,
)
