"""Questions that all differ, as many as one wants."""

import random

_TOPICS = (
    "parcel invoice router visa engine garden passport mortgage camera oven tent guitar train boiler carpet "
    "bicycle roof contract laptop piano sofa fridge kayak telescope hedge vineyard printer drone violin stove"
).split()
_DEEDS = (
    "return repair renew cancel move clean store insure rent sell inspect measure register replace borrow "
    "paint pack sharpen transport label photograph dismantle reserve polish install"
).split()
_PLACES = (
    "Oslo Quito Lyon Perth Graz Kobe Riga Turin Leeds Busan Malmö Porto Bergen Nantes Gdansk Cork Tartu "
    "Basel Sofia Izmir Fes Accra Hanoi Cebu Davao Lima Cusco Salta Natal Recife Tampa Boise Reno Fargo Tulsa"
).split()
# Each with another that asks the same.
_FORMS = (
    (
        "How do I {deed} a {topic} in {place} with form {at}?",
        "In what way can I {deed} a {topic} in {place} with form {at}?",
    ),
    (
        "What does it take to {deed} a {topic} in {place} by rule {at}?",
        "What do I need to {deed} a {topic} in {place} by rule {at}?",
    ),
    (
        "Who helps me {deed} a {topic} at the office {at} in {place}?",
        "At the office {at} in {place}, who can help to {deed} a {topic}?",
    ),
    (
        "Where in {place} may one {deed} a {topic} under permit {at}?",
        "I have permit {at}: where may I {deed} a {topic} in {place}?",
    ),
)


def question(at: int) -> str:
    """The one question of this number: all differ in their number and most in their words."""
    return _asked(at)[0]


def reworded(at: int) -> str:
    """The same question in other words."""
    return _asked(at)[1]


def group(at: int) -> tuple[int, str, str]:
    """What it has in common with those that differ in place and number only."""
    form, words = _picked(at)
    return form, words["deed"], words["topic"]


def _asked(at: int) -> tuple[str, str]:
    form, words = _picked(at)
    asked, other = _FORMS[form]
    return asked.format(at=at, **words), other.format(at=at, **words)


def _picked(at: int) -> tuple[int, dict[str, str]]:
    pick = random.Random(at)
    form = pick.randrange(len(_FORMS))
    return form, {"deed": pick.choice(_DEEDS), "topic": pick.choice(_TOPICS), "place": pick.choice(_PLACES)}
