"""What is served for its likeness, and what never is, on real vectors and the real database."""

import uuid
from dataclasses import replace

import pytest
from django.utils import timezone

from inference import embedding
from inference.cache import decision, lookup, policy, probe
from inference.cache.policy import BUILT_IN, Thresholds
from inference.models import (
    ConfusablePair,
    Entry,
    Mode,
    Outcome,
    Policy,
    Scope,
    Session,
    State,
    Visibility,
    Wording,
)
from inference.scopes import for_measuring
from inference.understanding.fingerprint import Comparison

from .conftest import decided, stored, turns

HOURS = "When does the museum open on Sundays?"
HOURS_AGAIN = "On Sundays, when does the museum open?"
EVERYTHING = Thresholds(high=0.0, low=0.0, near=0.0, consent=0.0)


@pytest.fixture(autouse=True)
def _fresh_rules() -> None:
    policy.forget()


def always(scope: Scope, limits: Thresholds = EVERYTHING) -> None:
    """Serve whatever nothing speaks against, however unlike it is."""
    Policy.objects.create(
        scope=scope,
        version=1,
        mode=Mode.LIVE,
        high=limits.high,
        low=limits.low,
        near=limits.near,
        consent=limits.consent,
    )
    policy.forget()


class TestNeverAcross:
    """Under a policy that serves any likeness at all."""

    def test_scopes(self, scope: Scope) -> None:
        other = for_measuring("another")
        stored(scope, HOURS)
        always(other)
        assert decided(other, HOURS).outcome == Outcome.MISS
        assert decided(other, HOURS_AGAIN).found is None

    @pytest.mark.parametrize("row", [Wording, Entry])
    def test_sessions_if_private(self, scope: Scope, row: type[Wording] | type[Entry]) -> None:
        mine = uuid.uuid4()
        stored(scope, HOURS, session=mine)
        row.objects.update(visibility=Visibility.SESSION)
        always(scope)
        assert decided(scope, HOURS_AGAIN).found is None
        assert decided(scope, HOURS).found is None
        if row is Wording:
            Entry.objects.update(visibility=Visibility.SESSION)
            assert decided(scope, HOURS, session=mine).served is not None

    def test_two_owners_get_their_own(self, scope: Scope) -> None:
        ann, bob = uuid.uuid4(), uuid.uuid4()
        for owner in (ann, bob):
            # One question, so one shared pairing at a time: private before the next is stored.
            stored(scope, HOURS, answer=f"For {owner}.", session=owner)
            Wording.objects.update(visibility=Visibility.SESSION)
            Entry.objects.update(visibility=Visibility.SESSION)
        always(scope)
        for owner in (ann, bob):
            for question in (HOURS, HOURS_AGAIN):
                served = decided(scope, question, session=owner).served
                assert served is None or served.answer == f"For {owner}."
            assert decided(scope, HOURS, session=owner).served is not None

    def test_a_blocked_entry(self, scope: Scope) -> None:
        wording = stored(scope, HOURS)
        session = Session.objects.create(pk=uuid.uuid4())
        session.blocked.add(wording.entry)
        always(scope)
        assert decided(scope, HOURS, session=session.pk).found is None
        assert decided(scope, HOURS_AGAIN, session=session.pk).found is None
        assert decided(scope, HOURS).served is not None

    @pytest.mark.parametrize("state", [State.FROZEN, State.REJECTED])
    @pytest.mark.parametrize("row", [Wording, Entry])
    def test_what_is_frozen_or_rejected(
        self, scope: Scope, row: type[Wording] | type[Entry], state: State
    ) -> None:
        stored(scope, HOURS)
        row.objects.update(state=state)
        always(scope)
        assert decided(scope, HOURS_AGAIN).found is None

    def test_what_has_expired(self, scope: Scope) -> None:
        stored(scope, HOURS)
        Entry.objects.update(expires_at=timezone.now())
        always(scope)
        assert decided(scope, HOURS_AGAIN).found is None

    def test_languages(self, scope: Scope) -> None:
        stored(scope, "博物馆星期天几点开门？", answer="The museum opens at ten in the morning.")
        always(scope)
        assert decided(scope, "博物馆星期天什么时候开门呢？").served is None

    @pytest.mark.parametrize(
        ("cached", "asked"),
        [
            ("How do I turn on dark mode?", "How do I turn off dark mode?"),
            ("怎么开启夜间模式？", "怎么关闭夜间模式？"),
            ("How long is version 2 supported?", "How long is version 3 supported?"),
            ("寄5公斤的包裹多少天？", "寄5磅的包裹多少天？"),
        ],
    )
    def test_a_conflict_of_fingerprints(self, scope: Scope, cached: str, asked: str) -> None:
        stored(scope, cached, answer="…")
        always(scope)
        found = decided(scope, asked)
        assert found.served is None and found.reason

    def test_confusable_names(self, scope: Scope) -> None:
        stored(scope, "How do I renew the Alder pass?")
        always(scope)
        ConfusablePair.objects.create(scope=scope, first="Alder", second="Adler")
        policy.forget()
        found = decided(scope, "How do I renew the Adler pass?")
        assert found.served is None and "Alder / Adler" in found.reason

    def test_a_rejected_wording_and_its_neighbours(self, scope: Scope) -> None:
        wording = stored(scope, HOURS)
        always(scope)
        asked = "On Sundays, at what time does the museum open?"
        assert decided(scope, asked).served is not None
        other = stored(scope, asked)
        Wording.objects.filter(pk=other.pk).update(state=State.REJECTED, entry=wording.entry)
        found = decided(scope, asked)
        assert found.served is None and "rejected" in found.reason
        assert decided(scope, asked + "!").served is None
        assert decided(scope, HOURS).served is not None


def test_two_answers_to_the_same_question_are_two_contexts(scope: Scope) -> None:
    """What was asked is the same all along; what was answered is what the last question is about."""
    stored(scope, "Name a colour.", "Red.", "Why that one?")
    always(scope)
    assert decided(scope, "Name a colour.", "Red.", "Why that one?").served is not None
    assert decided(scope, "Name a colour.", "Blue.", "Why that one?").served is None


class TestThresholds:
    def test_at_one_only_the_very_same_meaning_is_served(self, scope: Scope) -> None:
        stored(scope, HOURS)
        always(scope, Thresholds(high=1.0, low=1.0, near=1.0, consent=1.0))
        assert decided(scope, HOURS).layer == "exact"
        assert decided(scope, "At what hour can one enter the museum on a Sunday?").outcome == Outcome.MISS

    def test_at_zero_everything_that_nothing_forbids_is_served(self, scope: Scope) -> None:
        stored(scope, "Why is the sky blue?")
        always(scope)
        assert decided(scope, "Who painted the ceiling of the chapel?").outcome != Outcome.MISS

    @pytest.mark.parametrize(
        ("above", "outcome"),
        [(0.0, Outcome.HIT), (1e-6, Outcome.NEAR)],
    )
    def test_the_high_one_is_met_exactly(self, scope: Scope, above: float, outcome: Outcome) -> None:
        """A score that equals the threshold is a hit; one just below is in doubt."""
        stored(scope, "Why is the sky blue?")
        asked = "Why does the sky look so blue on some days?"
        read = probe.read(scope, uuid.uuid4(), turns(asked))
        found = lookup.nearest(read)
        assert len(found) == 1
        score = decision._score(read, found[0])
        limits = replace(
            BUILT_IN, high=min(1.0, score + above), low=min(1.0, score + above), near=0.1, consent=0.0
        )
        weighed = decision.weigh(read, found[0], policy.rules(scope))
        weighed = replace(weighed, comparison=Comparison("unknown"))
        assert decision._judge(read, weighed, limits)[0] == outcome

    def test_near_and_miss_are_told_apart_by_the_lowest(self, scope: Scope) -> None:
        stored(scope, "Why is the sky blue?")
        asked = "What makes the sky appear in that colour at noon?"
        always(scope, Thresholds(high=1.0, low=1.0, near=0.0, consent=1.0))
        found = decided(scope, asked)
        assert found.outcome == Outcome.NEAR and len(found.near) == 1 and found.served is None
        Policy.objects.update(near=1.0)
        policy.forget()
        assert decided(scope, asked).outcome == Outcome.MISS

    def test_the_newest_version_of_the_scope_counts(self, scope: Scope) -> None:
        for version, high in ((1, 0.3), (2, 0.4)):
            Policy.objects.create(
                scope=scope, version=version, mode="live", high=high, low=0.2, near=0.1, consent=0
            )
        Policy.objects.create(version=9, mode="live", high=0.9, low=0.2, near=0.1, consent=0)
        Policy.objects.create(scope=scope, version=3, mode="shadow", high=0.8, low=0.2, near=0.1, consent=0)
        policy.forget()
        assert policy.rules(scope).of("fact").high == 0.4
        assert policy.rules(for_measuring("another")).of("fact").high == 0.9


class TestLikeness:
    def test_is_a_similarity_and_not_a_distance(self, scope: Scope) -> None:
        stored(scope, HOURS)
        stored(scope, "Which fish can live in a pond through the winter?")
        found = lookup.nearest(probe.read(scope, uuid.uuid4(), turns("When does the museum open on Sunday?")))
        likeness = {one.question: one.likeness or 0.0 for one in found}
        assert len(likeness) == 2 and max(likeness, key=lambda text: likeness[text]) == HOURS
        assert 0.9 < likeness[HOURS] <= 1.0

    def test_texts_that_share_their_first_512_tokens_stay_apart(self, scope: Scope) -> None:
        start = "We looked at the harbour and counted boats again and again. " * 60
        a, b = start + "How deep is the harbour?", start + "Who owns the lighthouse?"
        vectors = embedding.embed([a, b])
        assert vectors is not None and float(vectors[0] @ vectors[1]) < 1 - 1e-5
        stored(scope, a)
        assert decided(scope, b).served is None

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "a",
            "?",
            "🙂🙃",
            "\u200b\u200d",
            "مرحبا كيف الحال",
            "שלום, איפה הספרייה?",
            "mixed 混合 текст عربي 🙂",
            "word " * 1_600,
            "长" * 8_000,
            "👩\u200d👩\u200d👧 family",
        ],
        ids=[
            "empty",
            "letter",
            "mark",
            "emoji",
            "zero-width",
            "arabic",
            "hebrew",
            "mixed",
            "8000",
            "8000-zh",
            "nul",
        ],
    )
    def test_any_text_is_looked_up(self, scope: Scope, text: str) -> None:
        stored(scope, HOURS)
        assert decided(scope, text).served is None
        stored(scope, text)
        assert decided(scope, text).layer == "exact"


def test_a_small_scope_is_found_in_a_large_table(scope: Scope) -> None:
    """The index brings other scopes' rows first; the search goes on behind them."""
    other = for_measuring("crowd")
    for at in range(120):
        stored(other, f"When does museum number {at} open on Sundays?")
    stored(scope, HOURS)
    found = lookup.nearest(probe.read(scope, uuid.uuid4(), turns(HOURS_AGAIN)))
    assert [one.question for one in found] == [HOURS]


class TestFaults:
    def test_without_an_embedder_there_is_no_semantic_layer(self, scope: Scope, settings) -> None:
        stored(scope, HOURS)
        settings.EMBEDDER, settings.EMBEDDING_URL = "openai", "http://127.0.0.1:9"
        assert decided(scope, HOURS).layer == "exact"
        assert decided(scope, "When exactly does that museum open on Sundays?").outcome == Outcome.MISS
        assert stored(scope, "Something new?").question_vector is None

    def test_an_entry_deleted_between_search_and_serving(self, scope: Scope) -> None:
        stored(scope, HOURS)
        always(scope)
        found = decided(scope, HOURS_AGAIN)
        Entry.objects.all().delete()
        assert found.served is not None and found.served.answer
        assert decided(scope, HOURS_AGAIN).outcome == Outcome.MISS
