"""A knowledge text of about 1,500 tokens, and ten questions about it, each in eight wordings that mean the
same. Written for these benchmarks; the island doesn't exist. Plain sentences, which a very small model can
find its answers in."""

from dataclasses import dataclass
from random import Random

KNOWLEDGE = """\
The lighthouse of Aldermere: facts for visitors

The island of Aldermere is four kilometres long. It lies in the Sound of Tarn. The only village on the
island is Ness. Eleven families live in Ness. There are a chapel, a shop and a walled garden. The northern
half of the island is a bare headland of dark rock. The southern half is low and green. There are no cars on
the island.

The lighthouse was finished in 1874. Work on the lighthouse began in 1869. It took five years, because in
most weeks the boats could not land. The engineer of the lighthouse was Hester Vane. Hester Vane was 31
years old when she drew the plans. She had built a bridge and two piers before. The lamp was lit for the
first time on the first of September 1874. Ships had been lost on the reef for as long as anyone had kept
count. In the winter of 1866 three ships went down within nine days. After that the harbour board of Tarnby
asked for plans of a lighthouse, and chose those of Hester Vane.

The lighthouse tower is 38 metres tall. It is built of grey granite. The granite came from the quarry of
Corran. Corran lies on the mainland, 19 kilometres across the water. Each block was cut and numbered in the
quarry, laid out to see that it fitted, and shipped in order. There are 2,208 blocks in the tower. The
heaviest block weighs three tonnes. The blocks lock into each other without any iron, since rusting iron
splits stone. The stair of the lighthouse has 196 steps. The keepers slept in a room halfway up the stair.
The room has one window, to the west.

The first fuel of the lamp was rapeseed oil. The oil was pressed in Tarnby and carried up the stair in cans
every evening. In 1891 the lamp was changed to paraffin. Paraffin gave three times the light from half the
fuel. The lamp has been electric since 1936, when a cable was laid through the sound. The lens was made in
Paris. The lens weighs two tonnes and floats in mercury, so that a child can turn it with one finger. The
light can be seen for 24 nautical miles. The light shows two white flashes every 15 seconds. The fog horn
was silenced in 1994.

Three keepers served at a time. They spent six weeks on the rock and three weeks ashore. They kept a log of
weather, ships and birds. The log is kept in the chapel. In November 1911 a great storm flooded the tower up
to the ninetieth step. The keepers turned the lens by hand for two nights, because the clockwork stood under
water. The light did not go out. The keeper Jonas Pell wrote it all down in the log. The window of the
keepers' room was walled up in the next summer. The last keepers left in 1988, when the light was made
automatic. Since then an engineer comes twice a year, in April and in October.

Puffins nest on the headland. The puffins arrive in April. They lay a single egg at the end of a burrow,
which both parents dig. The puffins leave in August. Storm petrels nest in the cracks of the old quay. The
storm petrels leave in October, and come to land only at night. Arctic terns nest on the shingle in some
summers. Dogs are not allowed on the path from April to August. Visitors are asked to keep to the path while
the birds nest.

The path from Ness to the lighthouse is five kilometres long. It takes an hour and a half to walk. The path
begins behind the chapel, follows the eastern shore to the old quay and climbs to the lighthouse in a wide
bend. A bench with the name of Hester Vane stands where the lighthouse first comes in sight. She came back
to the island every year until she was eighty.

The ferry from Tarnby takes 40 minutes. The ferry sails three times a day in summer, and once a day in
winter. The ferry lands at Ness. The key of the lighthouse is kept in the shop. Whoever wants to climb the
tower signs the visitors' book, and brings the key back before the last ferry. No more than eight people may
be in the lantern at once. Nobody may touch the lens.

The museum is above the shop. It is open whenever the shop is. The museum shows the old clockwork, a model
of the tower in cork, and the can in which the last rapeseed oil was carried. The shop sells bread,
postcards and a thin book with the best pages of the log. The schoolmaster of Tarnby put the book together
in 1952.

The garden was laid out by the keepers' wives. They carried the earth there in baskets. The wall of the
garden keeps out the salt wind. Figs ripen in the garden that will not ripen on the mainland. The chapel is
the oldest building on the island. The bell of the chapel came from a ship that was lost in 1866. The bell
is rung once a year, on the first of September.

The reef below the headland is called the Comb. Its rocks stand in a row and part the tide as a comb parts
hair. The Comb has eight teeth. At low water one can wade from one tooth to the next. The children of Ness
collect mussels there in calm summers. A bronze mark on the seventh tooth shows how far the sea had fallen
on the day of the first measurements.

The harbour of Ness is small. Four fishing boats lie there. The boats are painted blue, after an old custom.
The fishermen catch crabs in spring and herring in autumn. The harbour wall was built in 1890 from the stone
that was left over from the tower. A crane of wood stands at its end. The crane lifted the lens from the
ship in 1874. It is the only crane of its kind on the coast.

The school of Ness has one room and nine pupils. The teacher lives in the house beside it. The pupils paint
the name stones along the path anew every spring. There are twelve name stones, one for each ship that was
lost on the reef. The first stone bears the name of the Maria, and the last stone bears the name of the Good
Hope. A stone without a name stands beside the chapel, for those whom nobody knew.

The weather of the island is mild and wet. Snow falls on three days in a common winter. The wind blows from
the west on most days. The sea is warmest in September. The best time to visit the island is June, when the
days are long and the birds feed their young. A warm coat is needed even then.
"""


@dataclass(frozen=True)
class Question:
    """`wordings` all ask for the same; one that `follows` leans on the question before it."""

    wordings: tuple[str, ...]
    follows: bool = False


QUESTIONS = (
    Question(
        (
            "In which year was the lighthouse finished?",
            "The lighthouse was finished in which year?",
            "When was the lighthouse finished?",
            "Tell me when the lighthouse was finished.",
            "In which year did they finish the lighthouse?",
            "When did they finish the lighthouse?",
            "When was the lighthouse completed?",
            "In which year was the lighthouse completed?",
        ),
    ),
    Question(
        (
            "How tall is the lighthouse tower?",
            "What is the height of the lighthouse tower?",
            "How many metres tall is the lighthouse tower?",
            "How high is the lighthouse tower?",
            "How tall is the tower of the lighthouse?",
            "What is the height of the tower of the lighthouse?",
            "Tell me how tall the lighthouse tower is.",
            "How many metres high is the lighthouse tower?",
        ),
    ),
    Question(
        (
            "And what is it built of?",
            "What is it built of?",
            "Of what is it built?",
            "And what is it made of?",
            "What is it made of?",
            "What was it built of?",
            "And which stone is it built of?",
            "Which stone is it built of?",
        ),
        follows=True,
    ),
    Question(
        (
            "How many steps does the stair of the lighthouse have?",
            "How many steps are there in the stair of the lighthouse?",
            "What number of steps does the stair of the lighthouse have?",
            "The stair of the lighthouse has how many steps?",
            "How many steps does the lighthouse stair have?",
            "What is the number of steps of the lighthouse stair?",
            "How many steps has the stair of the lighthouse?",
            "Tell me how many steps the stair of the lighthouse has.",
        ),
    ),
    Question(
        (
            "What was the first fuel of the lamp?",
            "Which was the first fuel of the lamp?",
            "What was the lamp's first fuel?",
            "Tell me what the first fuel of the lamp was.",
            "What fuel did the lamp have at first?",
            "What was the fuel of the lamp at first?",
            "Which fuel was the first fuel of the lamp?",
            "What did the lamp burn as its first fuel?",
        ),
    ),
    Question(
        (
            "How long is the path from Ness to the lighthouse?",
            "What is the length of the path from Ness to the lighthouse?",
            "How many kilometres long is the path from Ness to the lighthouse?",
            "Tell me how long the path from Ness to the lighthouse is.",
            "The path from Ness to the lighthouse is how long?",
            "What length does the path from Ness to the lighthouse have?",
            "How long is the path that leads from Ness to the lighthouse?",
            "Please say how long the path from Ness to the lighthouse is.",
        ),
    ),
    Question(
        (
            "And how long does it take to walk?",
            "How long does it take to walk?",
            "How long does one take to walk it?",
            "And how long does one take to walk it?",
            "How long does it take to walk it?",
            "And how long does it take on foot?",
            "How long does it take on foot?",
            "How long is one on foot there?",
        ),
        follows=True,
    ),
    Question(
        (
            "How many minutes does the ferry from Tarnby take?",
            "How long does the ferry from Tarnby take?",
            "The ferry from Tarnby takes how many minutes?",
            "The ferry from Tarnby takes how long?",
            "Tell me how long the ferry from Tarnby takes.",
            "How many minutes does the ferry take from Tarnby?",
            "How long does the ferry take from Tarnby?",
            "Please say how many minutes the ferry from Tarnby takes.",
        ),
    ),
    Question(
        (
            "What is the name of the reef?",
            "What is the reef called?",
            "What name does the reef have?",
            "Please say what the reef is called.",
            "By what name is the reef called?",
            "Which name does the reef have?",
            "What do they call the reef?",
            "How is the reef called?",
        ),
    ),
    Question(
        (
            "How many teeth does it have?",
            "And how many teeth does it have?",
            "How many teeth has it?",
            "And how many teeth are there?",
            "How many teeth are there?",
            "What number of teeth does it have?",
            "It has how many teeth?",
            "And what number of teeth does it have?",
        ),
        follows=True,
    ),
)


WORDINGS = min(len(question.wordings) for question in QUESTIONS)

# What those who never spell a question like anybody else say before it.
_BEFORE = ("", "Please tell me: ", "I would like to know: ", "One more question: ", "Can you say: ")


def asked(session: int, place: int, wordings: int) -> str:
    """The wording in which a session asks question number `place`. As people do, most say it in one way, half
    as many in the next, a third as many in the one after (Zipf), out of `wordings` ways; 0: no two sessions
    out of 40 spell it alike."""
    question = QUESTIONS[place].wordings
    if not wordings:
        before, at = divmod(session, len(question))
        return _BEFORE[before % len(_BEFORE)] + question[(3 * at + 5 * place) % len(question)]
    ways = list(question[:wordings])
    Random(place).shuffle(ways)  # the one said most is not always the one written first
    odds = [1 / rank for rank in range(1, len(ways) + 1)]
    return Random(f"{session} {place}").choices(ways, odds)[0]
