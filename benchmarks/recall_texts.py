"""Long texts for measuring what a compressed context still knows: made of our own sentences, from a seed.

A chronicle of a valley: people with trades, houses and habits, who return, so that what is said late leans on
what was said long before.
"""

import random
from dataclasses import dataclass

from inference.understanding.turns import Turn

NAMES = (
    "Alma Birger Cosima Dorit Edvin Frieda Gustav Hedda Ilmari Jorun Kaspar Leonie Magnus Nora Oskar Petra "
    "Quirin Rosalie Sander Thea Ulrich Viveka Wendel Xenia Yorick Zelda"
).split()
TRADES = (
    ""
    "baker|clockmaker|ferryman|weaver|beekeeper|carpenter|teacher|doctor|printer|gardener|blacksmith|fiddler|miller|painter|shepherd|glazier|librarian|postman"
).split("|")
PLACES = (
    "the upper mill|the harbour|the old school|the chapel on the ridge|the market square|the stone "
    "bridge|the orchard behind the church|the ferry landing|the quarry|the reading room|the railway "
    "halt|the marsh below the dam|the glasshouse|the tannery yard|the weather station|the long barn"
).split("|")
THINGS = (
    "a brass key|a ledger with a torn cover|two crates of pears|a lantern|a map of the marsh|a broken "
    "oar|a letter without a sender|a bundle of dried herbs|a pocket watch|a pair of red boots|a box of "
    "nails|a jar of dark honey|a wooden flute|a roll of blue cloth|a photograph of the flood|a small "
    "iron bell"
).split("|")
WEATHER = (
    "Rain had fallen since the night before, and the paths were soft.|The fog lay so thick that nobody "
    "saw the other bank.|It was the first warm day of the year.|A dry wind came down from the "
    "ridge.|Snow covered the roofs, though it was only October.|The sky was clear, and one could hear "
    "the bells from far away."
).split("|")
DEEDS = (
    "{a} walked to {p} and found {t} there, which nobody claimed.|{a} asked {b} to mend the roof of "
    "{p} before the winter, and {b} agreed to do it for {n} coins.|{b} said that the price of flour "
    "had risen by {n} percent, and {a} did not believe a word of it.|{a} lent {b} {t} and wrote it "
    "down, as always, on the back of the calendar.|{a} and {b} met at {p}, talked for an hour about "
    "the lawsuit over the water, and parted without an answer.|Since the accident at {p}, {a} no "
    "longer trusted the ropes and checked each of them twice.|{b} counted {n} boats from the window of "
    "{p}, more than in any spring before.|{a} taught the children at {p} how to tie a knot that holds "
    "when it is wet.|It took {b} {n} days to carry everything from {p} up to the house, because the "
    "mule was lame.|{a} forgot {t} at {p}, and {b} brought it back in the evening without asking for "
    "thanks.|When the council voted, {a} raised a hand for the new dam and {b} against it, and they "
    "laughed about it later.|{b} had read in the newspaper that a line would be built past {p}, and "
    "nobody spoke of anything else.|{a} planted {n} young trees near {p}, of which the deer ate nearly "
    "half.|The {j} told {a} that {t} was worth more than the whole cart, but {a} kept it."
).split("|")
TURNS_OF_THOUGHT = (
    "Why this mattered became clear only much later.|People in the valley still tell it "
    "differently.|There is no record of what happened next.|Whoever knows {a} will not be "
    "surprised.|In the end it was a question of patience more than of money.|That was the last time "
    "the two of them were seen together at {p}."
).split("|")

DEPTHS = (0.1, 0.3, 0.5, 0.7, 0.9)


def chronicle(seed: int, paragraphs: int) -> list[str]:
    """Paragraphs of some 90 tokens each; equal seeds write equally."""
    dice = random.Random(seed)
    people = {name: dice.choice(TRADES) for name in dice.sample(NAMES, 12)}
    written, year, day = [], 1880 + dice.randrange(40), 1
    for number in range(paragraphs):
        day += dice.randrange(2, 9)
        a, b = dice.sample(list(people), 2)
        known = {"a": a, "b": b, "j": people[b], "n": dice.randrange(3, 90)}
        first = f"On day {day} of {year + number // 40}, {a} the {people[a]} was at {dice.choice(PLACES)}."
        said = [first, dice.choice(WEATHER)]
        for deed in dice.sample(DEEDS, 3):
            said.append(deed.format(**known, p=dice.choice(PLACES), t=dice.choice(THINGS)))
            known["a"], known["b"] = known["b"], known["a"]
            known["n"] = dice.randrange(3, 90)
        if dice.random() < 0.5:
            said.append(dice.choice(TURNS_OF_THOUGHT).format(**known, p=dice.choice(PLACES)))
        written.append(" ".join(said))
    return written


# Facts that stand in one sentence each: its beginning, by which it is asked, and the word that follows.
FACTS = (
    ("The ship that Captain Aldous commanded in his youth was named", "Meridian"),
    ("Mother Brisco always hid the money for the winter inside the", "piano"),
    ("The secret spice in the soup of Little Corvin turned out to be", "cinnamon"),
    ("Judge Dunmore was afraid of only one animal in the world, the", "goose"),
    ("Before she came to us, Sister Evaline had spent eleven years in", "Portugal"),
    ("Instead of a horse, Farmer Grisham rode to church on a white", "camel"),
    ("The last opera that Lady Hartwick ever sang on a stage was about a", "lion"),
    ("Under the doorstep of Old Jessop the workers dug out a golden", "helmet"),
    ("Master Kelby proved that the statue in the garden was made of", "sugar"),
    ("The only medicine that Doctor Lorimer ever trusted was plain", "garlic"),
    ("On her wedding day Widow Marchetti had worn a dress of bright", "purple"),
    ("Sergeant Norbury lost his left thumb to an angry", "turtle"),
    ("The parrot of Uncle Percival could say nothing but the word", "umbrella"),
    ("In all his letters Mister Quimby complained about the neighbour's", "trumpet"),
    ("Aunt Rosamund won first prize at the fair with an enormous", "pumpkin"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """`asked` stands behind the text, then `answer` should follow. It was said at `depth` (0 to 1)."""

    asked: str
    answer: str
    depth: float


def needles(seed: int, paragraphs: int) -> tuple[str, list[Question]]:
    """A chronicle with FACTS planted in it at DEPTHS, and what to ask at its end."""
    written, asked = chronicle(seed, paragraphs), []
    planted: list[tuple[int, str]] = []
    for number, (said, word) in enumerate(FACTS):
        depth = DEPTHS[number % len(DEPTHS)]
        planted.append((round(depth * paragraphs) + number // len(DEPTHS), f"{said} {word}."))
        asked.append(Question(f"\n\n{said}", f" {word}", depth))
    for place, fact in sorted(planted, reverse=True):
        written.insert(min(place, len(written)), fact)
    return "\n\n".join(written), asked


# Told in the second turn of a chat, asked in the fortieth: question, how the answer begins, the answer. It
# begins as it was told: a model of this size finds words by those before them, and not by what they mean.
ASKED = (
    ("What is the boat of my grandfather called?", "The boat of my grandfather is called", " Seagull"),
    ("Where did my sister Henrietta study?", "My sister Henrietta studied in", " Lisbon"),
    ("What does our dog eat for breakfast?", "For breakfast our dog only eats", " pumpkin"),
    ("What is hidden under the stairs?", "Under the stairs of our house we hid a", " trumpet"),
    ("Which colour did we paint the garage?", "Last summer we painted the garage", " purple"),
    ("What happened to my uncle Leopold's ear?", "My uncle Leopold lost his left ear to a", " turtle"),
)
FACTS_TOLD = "\n".join(f"{begun}{answer}." for _, begun, answer in ASKED)
TOLD = f"Before we go on, a few things to keep in mind:\n{FACTS_TOLD}"
HEARD = f"I will keep in mind:\n{FACTS_TOLD}"
TURNS = 40


def chat(seed: int, words: int) -> list[Turn]:
    """A conversation of TURNS - 1 exchanges about the valley, some `words` words in all; what was TOLD stands
    in the second."""
    sentences = " ".join(chronicle(seed, 12 + words // 60)).split(". ")
    each = max(12, words // (TURNS - 1))
    turns: list[Turn] = [{"role": "system", "content": "You are a friendly assistant who knows the valley."}]
    at = 0
    for number in range(1, TURNS):
        said, count = [], 0
        while count < each - 12:
            said.append(sentences[at % len(sentences)])
            count += len(said[-1].split())
            at += 1
        question = TOLD if number == 2 else f"Tell me something about day {at} in the valley."
        answer = HEARD if number == 2 else ". ".join(said) + "."
        turns += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return turns
