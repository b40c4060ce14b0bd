"""Questions that lean on a conversation, against stored ones that do: on real vectors and the database."""

import uuid

import pytest

from inference.cache import conversation, followup, lookup, policy, probe
from inference.cache.prints import Prints, same_moment
from inference.models import Outcome, Scope
from tests.cache.conftest import decided, stored, turns

DOVER = (
    "Tell me about the ferry from Dover to Calais.",
    "It crosses the Channel in about ninety minutes, up to fifteen times a day.",
)
DOVER_AGAIN = (
    "What should I know about the Dover to Calais ferry?",
    "The ferry crosses the Channel up to fifteen times a day and takes about ninety minutes.",
)
HARWICH = (
    "Tell me about the ferry from Harwich to Hook of Holland.",
    "It crosses the North Sea in about seven hours, twice a day.",
)
ACROSS = "Can I take my bicycle on it?"


@pytest.fixture(autouse=True)
def _fresh_rules() -> None:
    policy.forget()


class TestSameMoment:
    def test_is_known_by_all_that_was_said(self, scope: Scope) -> None:
        def read(*texts: str) -> Prints:
            return probe.read(scope, uuid.uuid4(), turns(*texts)).prints

        one = read(*DOVER, ACROSS)
        assert same_moment(one, read(DOVER[0].upper(), DOVER[1], "How long does it take?"))
        assert not same_moment(one, read(*HARWICH, ACROSS))
        assert not same_moment(one, read(*DOVER_AGAIN, ACROSS))
        assert not same_moment(read(ACROSS), read(ACROSS))
        assert Prints.from_json(one.to_json()) == one

    @pytest.mark.parametrize(
        ("history", "question", "again", "answer"),
        [
            (DOVER, ACROSS, "Could I take my bike along on it?", "Yes, for a small fee."),
            (
                ("介绍一下多佛到加来的渡轮。", "横渡海峡约九十分钟，每天最多十五班。"),
                "它的票价多少钱？",
                "它的船票要多少钱呢，贵吗",
                "大约四十英镑。",
            ),
        ],
    )
    def test_other_words_for_what_was_asked_then_are_served(
        self, scope: Scope, history: tuple[str, str], question: str, again: str, answer: str
    ) -> None:
        entry = stored(scope, *history, question, answer=answer).entry
        found = decided(scope, *history, again)
        assert found.served is not None and found.served.entry == entry.pk

    @pytest.mark.parametrize(
        "other",
        ["When does the last one leave?", "Can I take my dog on it?", "How much luggage may I bring aboard?"],
    )
    def test_another_next_question_is_not(self, scope: Scope, other: str) -> None:
        stored(scope, *DOVER, ACROSS)
        assert decided(scope, *DOVER, other).served is None

    def test_nor_is_the_question_at_another_moment(self, scope: Scope) -> None:
        stored(scope, *HARWICH, ACROSS)
        assert decided(scope, *DOVER, "Could I take my bike along on it?").served is None

    def test_without_weights_for_a_language_nothing_is_likely(self, scope: Scope) -> None:
        wording = stored(scope, *DOVER, ACROSS)
        read = probe.read(scope, wording.session_id, turns(*DOVER, "Могу я взять с собой велосипед?"))
        assert [followup.weigh(read, one) for one in lookup.nearest(read)] == [0.0]


class TestConversationsThatWentAlike:
    def test_the_same_words_are_served_after_one(self, scope: Scope) -> None:
        entry = stored(scope, *DOVER, ACROSS).entry
        found = decided(scope, *DOVER_AGAIN, ACROSS)
        assert found.served is not None and found.served.entry == entry.pk
        assert found.outcome in (Outcome.HIT, Outcome.GRAY)

    @pytest.mark.parametrize(
        ("opening", "other", "answer", "asked"),
        [
            (
                "What are the main elements of a suspension bridge?",
                "What are the features of a suspension bridge?",
                "A suspension bridge hangs its deck from vertical cables, held by two main cables that run"
                " over towers and end in heavy anchorages on either shore. The towers carry the load down to"
                " the ground, and a stiffening girder keeps the deck from swinging in the wind.",
                "What is an anchorage?",
            ),
            (
                "Explain the principles of beekeeping.",
                "What are the basic principles of beekeeping?",
                "Beekeeping means giving colonies a dry hive, leaving them enough honey for the winter, and"
                " checking for mites and for a laying queen. Whoever opens a hive does so"
                " on a warm day, moves slowly and uses a little smoke, so that the bees stay calm.",
                "What does the queen do?",
            ),
        ],
    )
    def test_in_whatever_words_that_was_opened(
        self, scope: Scope, opening: str, other: str, answer: str, asked: str
    ) -> None:
        entry = stored(scope, opening, answer, asked).entry
        found = decided(scope, other, answer, asked)
        assert found.served is not None and found.served.entry == entry.pk, found.reason
        elsewhere = "It is a word that people use for many things, most of them at sea."
        assert decided(scope, other, elsewhere, asked).served is None

    @pytest.mark.parametrize(
        ("opening", "other", "answer", "asked"),
        [
            (
                "I bought the basic plan of the streaming service.",
                "I bought the family plan of the streaming service.",
                "It is billed at the start of every month and can be cancelled at any time.",
                "Can I use it abroad?",
            ),
            ("我买了轮渡的年票。", "我买了轮渡的季票。", "两条线都能坐。", "狗能带吗？"),
            ("我有轮渡公司的年票。", "我有轮渡公司的月票。", "南线、北线通用。", "自行车能带吗？"),
            ("我买了城铁的年票。", "我买了城铁的月票。", "南线、北线通用。", "小狗能带吗？"),
            ("我订了早班的船。", "我订了晚班的船。", "好的，已经记下了。", "几点到？"),
        ],
    )
    def test_but_not_where_only_the_opening_tells_what_it_is_about(
        self, scope: Scope, opening: str, other: str, answer: str, asked: str
    ) -> None:
        stored(scope, opening, answer, asked)
        assert decided(scope, other, answer, asked).served is None

    def test_but_not_after_one_about_something_else(self, scope: Scope) -> None:
        stored(scope, *HARWICH, ACROSS)
        assert decided(scope, *DOVER, ACROSS).served is None

    def test_nor_where_something_else_was_answered(self) -> None:
        told = [*turns(DOVER[0], "I don't know that line, but there is a tunnel under the Channel, too.")]
        assert conversation.likeness(turns(*DOVER), told) < conversation.likeness(
            turns(*DOVER), turns(*DOVER_AGAIN)
        )
        assert conversation.likeness(turns(*DOVER)[:1], turns(*DOVER_AGAIN)[:1]) == 0.0

    def test_nor_where_what_was_asked_before_differs_in_what_was_meant(self) -> None:
        there, back = "I'm flying from London to Oslo.", "I'm flying from Oslo to London."
        assert conversation.needed(turns(there, "Have a good trip!"), turns(back, "Have a good trip!")) > 1
        assert conversation.needed(turns("Three laws?", "Yes."), turns("Two laws?", "Yes.")) > 1
        same, reworded = turns("What is the Magna Carta?", "A charter."), turns("Explain it.", "A charter.")
        assert conversation.needed(same, same) <= conversation.needed(same, reworded) <= 1


class TestTheAnswerThatIsFollowed:
    FOLLOWING = (
        (DOVER, "What should I know about its crossing of the Channel?"),
        (DOVER, "Can you tell me about that ferry's crossing times?"),
        (
            ("介绍一下多佛到加来的渡轮。", "横渡海峡约九十分钟，每天最多十五班。"),
            "那再介绍一下它的价格吧。",
        ),
    )

    @pytest.mark.parametrize(("before", "asked"), FOLLOWING)
    def test_is_not_what_is_asked_for_next(self, scope: Scope, before: tuple[str, str], asked: str) -> None:
        entry = stored(scope, before[0], answer=before[1]).entry
        found = decided(scope, *before, asked)
        assert found.served is None
        assert entry.pk not in {one.entry for one in found.near}

    def test_answers_whoever_asks_for_it_first(self, scope: Scope) -> None:
        entry = stored(scope, DOVER[0], answer=DOVER[1]).entry
        found = decided(scope, "Please tell me about the ferry from Dover to Calais.")
        assert found.served is not None
        assert found.served.entry == entry.pk


class TestWhatIsWrittenOut:
    KEPLER = ("Who was Johannes Kepler?", "An astronomer.", "what was one of his discoveries?")
    SHIBA = ("介绍一下柴犬。", "日本的一种犬。", "那它一天要遛几次？")

    def test_asks_what_is_asked_in_nearly_the_same_words(self, scope: Scope) -> None:
        entry = stored(scope, "What did Johannes Kepler discover?").entry
        found = decided(scope, *self.KEPLER)
        assert found.served is not None and found.served.entry == entry.pk, found.reason

    @pytest.mark.parametrize(
        ("asked", "other"),
        [
            (KEPLER, "What was one of Johannes Kepler's books?"),
            (KEPLER, "Who was one of Johannes Kepler's teachers?"),
            (KEPLER, "What did Galileo Galilei discover?"),
            (SHIBA, "柴犬一天要喂几次？"),
            (SHIBA, "柴犬一天要洗几次？"),
            (SHIBA, "秋田犬一天要遛几次？"),
        ],
    )
    def test_but_not_what_only_sounds_alike(
        self, scope: Scope, asked: tuple[str, str, str], other: str
    ) -> None:
        stored(scope, other, answer="三次。" if asked is self.SHIBA else "The one about the planets.")
        found = decided(scope, *asked)
        assert found.served is None, found.reason
