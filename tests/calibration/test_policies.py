"""From rows to policies: what is known of a lookup, what is written, what waits for somebody's word."""

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from cacheadmin import tuning
from cacheadmin.models import AuditRecord
from inference.cache import decision, hindsight, policy, probe, shadow
from inference.cache.measured import Measured, NotAsked, Step
from inference.cache.policy import BUILT_IN, Changed, Thresholds
from inference.calibration import pairs, refitting
from inference.calibration.fitting import Goal
from inference.models import Decision, Mode, Observation, Outcome, Policy, Scope, Verdict
from inference.scopes import for_measuring
from tests.cache.conftest import decided, stored, turns

from .rows import LIMITS, entry_of, looked_up, values

pytestmark = pytest.mark.django_db
AGREE, DISAGREE, UNCLEAR = Verdict.AGREE, Verdict.DISAGREE, Verdict.UNCLEAR
STRICT = Thresholds(high=1.0, low=1.0, near=0.5, consent=0.5)
LAX = Thresholds(high=0.5, low=0.5, near=0.5, consent=0.0)


@pytest.fixture(autouse=True)
def _fresh_rules() -> None:
    policy.forget()


@pytest.fixture
def scope() -> Scope:
    return for_measuring("calibration tests")


class TestWhatIsKnown:
    def known(self, row: Decision, entry: object) -> bool | None:
        found = hindsight.of(hindsight.lookups(Decision.objects.filter(pk=row.pk)))
        return found[row.pk].right(str(entry)) if row.pk in found else None

    @pytest.mark.parametrize(("verdict", "right"), [(AGREE, True), (DISAGREE, False), (UNCLEAR, None)])
    @pytest.mark.parametrize("outcome", [Outcome.GRAY, Outcome.NEAR])
    def test_of_the_entry_that_was_judged(
        self, scope: Scope, outcome: Outcome, verdict: Verdict, right: bool | None
    ) -> None:
        born = entry_of(scope)
        assert self.known(looked_up(born, outcome, verdict), born.entry_id) is right

    def test_a_fresh_answer_speaks_of_all_that_were_near(self, scope: Scope) -> None:
        born, other = entry_of(scope), entry_of(scope)
        row = looked_up(born, Outcome.NEAR, AGREE, compared_with=other.entry)
        assert self.known(row, other.entry_id) is True
        assert self.known(row, born.entry_id) is False

    def test_a_hit_says_nothing_of_another_entry(self, scope: Scope) -> None:
        born, other = entry_of(scope), entry_of(scope)
        assert self.known(looked_up(born, Outcome.HIT, AGREE), other.entry_id) is None

    def test_an_operator_s_word_settles_what_was_said_before_it(self, scope: Scope) -> None:
        born = entry_of(scope)
        row = looked_up(born, Outcome.GRAY, DISAGREE)
        wording = row.generation.wording
        said = Observation.objects.create(
            generation=row.generation, wording=wording, source="operator", verdict=AGREE
        )
        assert self.known(row, born.entry_id) is True
        Observation.objects.filter(pk=said.pk).update(updated_at=timezone.now() - timedelta(hours=1))
        assert self.known(row, born.entry_id) is False

    def test_only_lookups_with_a_verdict_and_each_question_once(self, scope: Scope) -> None:
        born = entry_of(scope)
        looked_up(born, Outcome.GRAY, AGREE)
        looked_up(born, Outcome.NEAR, DISAGREE)
        looked_up(born, Outcome.NEAR, UNCLEAR)
        looked_up(born, Outcome.MISS)
        again = looked_up(born, Outcome.GRAY, AGREE)
        twin = Decision.objects.get(pk=again.pk)
        twin.pk = None
        twin.save()
        found = pairs.observed()
        assert sorted(one.right for one in found) == [False, True, True]
        assert {one.decision for one in found} >= {twin.pk}
        assert pairs.observed(scope.pk, "fact") == found
        assert pairs.observed(scope.pk, "advice") == pairs.observed(scope.pk + 1) == []


class TestKinds:
    def labelled(self, **given: object) -> pairs.Labelled:
        measured = Measured(uuid.uuid4(), uuid.uuid4(), "fact", 0.95, 0.95, 0.95)
        return pairs.Labelled("x", replace(measured, **given), True)

    LIMITS = Thresholds(0.985, 0.9, 0.1, 0.5)

    @pytest.mark.parametrize(
        ("given", "kind"),
        [
            ({"agrees": True, "verifier": 0.9}, "low"),
            ({"agrees": True, "verifier": 0.1}, "high"),
            ({"agrees": False, "verifier": 0.9}, "high"),
            ({"agrees": False, "verifier": 0.1}, None),
            ({"agrees": False, "verifier": 0.9, "doubted": True}, None),
            ({"agrees": True, "verifier": 0.9, "objected": True}, None),
            ({"agrees": True, "verifier": 0.9, "otherwise": True}, None),
            ({"agrees": False, "verifier": 0.1, "evidence": 0.98}, "likely"),
        ],
    )
    def test_which_threshold_decides(self, given: dict[str, object], kind: str | None) -> None:
        pair = self.labelled(**given).pair(self.LIMITS)
        assert (pair and pair.kind) == kind

    def test_a_fitted_pair_is_served_exactly_from_its_threshold_on(self) -> None:
        """`pair` and the live rule mean the same."""
        for agrees in (True, False):
            for said in (0.9, 0.1):
                for sure in (None, 0.95):
                    one = self.labelled(agrees=agrees, verifier=said, evidence=sure)
                    pair = one.pair(self.LIMITS)
                    for high, low in ((0.94, 0.94), (0.96, 0.94), (0.96, 0.96)):
                        for likely in (0.94, 0.96):
                            limits = Thresholds(high, low, 0.1, 0.5, likely=likely)
                            served = one.measured.outcome(limits) in decision.SERVED
                            enough = pair is not None and pair.score >= getattr(limits, pair.kind)
                            if sure is None:
                                assert served == enough
                            else:
                                assert served or not enough

    def test_what_hangs_on_a_silent_verifier_can_t_be_told(self) -> None:
        one = self.labelled(agrees=True, verifier=None).measured
        assert one.outcome(Thresholds(0.9, 0.9, 0.1, 0.5)) == Outcome.HIT
        with pytest.raises(NotAsked):
            one.outcome(Thresholds(0.99, 0.9, 0.1, 0.5))
        assert one.step(Thresholds(0.99, 0.96, 0.1, 0.5), one._asked) == Step.BELOW


class TestPolicies:
    def test_a_version_follows_the_one_that_was_seen(self, scope: Scope) -> None:
        first = policy.write(scope, "", STRICT, Mode.LIVE, seen=0)
        assert first.version == 1 and policy.rules(scope).of("fact").high == 1.0
        with pytest.raises(Changed):
            policy.write(scope, "", LAX, Mode.LIVE, seen=0)
        second = policy.write(scope, "", LAX, Mode.LIVE, seen=1)
        assert second.version == 2 and policy.rules(scope).of("fact").high == 0.5

    def test_thresholds_out_of_order_are_refused(self, scope: Scope) -> None:
        for wrong in (
            Thresholds(0.8, 0.9, 0.1, 0.5),
            Thresholds(0.9, 0.8, 0.85, 0.5),
            replace(LAX, consent=2),
        ):
            with pytest.raises(ValueError, match="near"):
                policy.write(scope, "", wrong, Mode.LIVE, seen=0)

    def test_another_process_s_change_is_seen_within_a_second(
        self, scope: Scope, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [100.0]
        monkeypatch.setattr("inference.cache.policy.time.monotonic", lambda: now[0])
        assert policy.rules(scope).of("") == BUILT_IN
        Policy.objects.create(scope=scope, version=1, mode=Mode.LIVE, **LIMITS | {"high": 0.999})
        now[0] += 0.5
        assert policy.rules(scope).of("") == BUILT_IN
        now[0] += 0.51
        assert policy.rules(scope).of("").high == 0.999

    def test_a_trial_is_over_when_a_live_one_follows(self, scope: Scope) -> None:
        policy.write(scope, "fact", STRICT, Mode.SHADOW, seen=0)
        tried = policy.shadow_rules(scope)
        assert tried and tried.of("fact").trial and not tried.of("advice").trial
        assert policy.rules(scope).of("fact") == BUILT_IN
        policy.write(scope, "fact", BUILT_IN, Mode.LIVE, seen=1)
        assert policy.shadow_rules(scope) is None

    def test_a_general_trial_does_not_show_where_a_scope_has_its_own(self, scope: Scope) -> None:
        policy.write(scope, "fact", LAX, Mode.LIVE, seen=0)
        policy.write(None, "fact", STRICT, Mode.SHADOW, seen=0)
        assert policy.shadow_rules(scope) is None
        tried = policy.shadow_rules(for_measuring("another"))
        assert tried and tried.of("fact").trial

    def test_what_stands_is_what_decides(self, scope: Scope) -> None:
        policy.write(None, "", replace(BUILT_IN, high=0.99), Mode.LIVE, seen=0)
        policy.write(scope, "", replace(BUILT_IN, high=0.98), Mode.LIVE, seen=0)
        policy.write(None, "fact", replace(BUILT_IN, high=0.97), Mode.LIVE, seen=0)
        rules = policy.rules(scope)
        for content_class in ("", "fact", "advice"):
            assert policy.standing(scope, content_class).live == rules.of(content_class)
        assert not policy.standing(scope, "fact").own and policy.standing(scope, "").own


class TestShadow:
    HOURS, AGAIN = "When does the museum open on Sundays?", "On Sundays, at what time does the museum open?"

    def tried(self, scope: Scope, limits: Thresholds) -> tuple[Decision, Policy]:
        """A lookup, decided by the live rules, with `limits` on trial, as its row."""
        born = stored(scope, self.HOURS)
        policy.write(scope, "", LAX, Mode.LIVE, seen=0)
        row = policy.write(scope, "", limits, Mode.SHADOW, seen=1)
        generation = looked_up(born, Outcome.MISS).generation
        found = decided(scope, self.AGAIN)
        decision.record(generation, found, 1.0)
        return Decision.objects.filter(generation=generation).latest("id"), row

    def test_it_decides_nothing_and_is_written_down(self, scope: Scope) -> None:
        row, tried = self.tried(scope, STRICT)
        assert row.outcome in decision.SERVED
        assert row.shadow_id == tried.pk and row.shadowed == {
            "outcome": "near",
            "wording": values(row.measured)["wording"],
            "entry": values(row.measured)["entry"],
        }

    def test_it_searches_nothing_anew(self, scope: Scope, django_assert_max_num_queries: Any) -> None:
        stored(scope, self.HOURS)
        policy.write(scope, "", STRICT, Mode.SHADOW, seen=0)
        found = decided(scope, self.AGAIN)
        policy.rules(scope)
        with django_assert_max_num_queries(0):
            assert shadow.try_on(scope, found).policy

    def test_without_a_trial_nothing_is_noted(self, scope: Scope) -> None:
        born = stored(scope, self.HOURS)
        generation = looked_up(born, Outcome.MISS).generation
        decision.record(generation, decided(scope, self.AGAIN), 1.0)
        row = Decision.objects.filter(generation=generation).latest("id")
        assert (
            row.shadow is None
            and row.shadowed is None
            and values(row.measured)["entry"] == str(born.entry_id)
        )

    def test_whatever_fails_in_it_changes_nothing(
        self, scope: Scope, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(_scope: Scope) -> None:
            raise RuntimeError("broken")

        monkeypatch.setattr(shadow, "shadow_rules", broken)
        stored(scope, self.HOURS)
        assert shadow.try_on(scope, decided(scope, self.AGAIN)) == shadow.Tried()

    def test_what_is_measured_says_what_was_decided(self, scope: Scope) -> None:
        """The row alone gives the same outcome as the live decision, whatever the thresholds."""
        stored(scope, self.HOURS)
        for limits in (BUILT_IN, STRICT, LAX, Thresholds(0.99, 0.5, 0.3, 0.5), Thresholds(1, 0.95, 0.9, 1)):
            newest = policy.standing(scope, "").newest
            policy.write(scope, "", limits, Mode.LIVE, seen=newest)
            for asked in (self.AGAIN, "When is the museum closed?", "How do I cook rice?"):
                found = decided(scope, asked)
                assert found.measured
                again = Measured.from_json(found.measured.to_json())
                assert again == found.measured and again.outcome(limits) == found.outcome, (asked, limits)

    def test_the_report_counts_what_would_have_been(self, scope: Scope) -> None:
        born, other = entry_of(scope), entry_of(scope)
        row = policy.write(scope, "", LAX, Mode.SHADOW, seen=0)
        hit = {"outcome": "hit", "entry": str(born.entry_id)}
        none = {"outcome": "near"}
        looked_up(born, Outcome.GRAY, AGREE, shadow=row, shadowed=hit)
        looked_up(born, Outcome.GRAY, DISAGREE, shadow=row, shadowed=none)
        looked_up(born, Outcome.NEAR, AGREE, shadow=row, shadowed=hit)
        looked_up(born, Outcome.NEAR, DISAGREE, shadow=row, shadowed=hit)
        looked_up(born, Outcome.NEAR, UNCLEAR, shadow=row, shadowed=hit)
        looked_up(other, Outcome.GRAY, None, shadow=row, shadowed=hit)
        looked_up(born, Outcome.MISS, None, shadow=row, shadowed={"outcome": "miss"})
        looked_up(born, Outcome.GRAY, AGREE)  # not tried on this one
        found = shadow.report(row)
        assert found.lookups == 7
        counted = {name: (one.n, one.right, one.wrong) for name, one in found.groups.items()}
        assert counted == {
            "live": (3, 1, 1),
            "shadow": (5, 2, 1),
            "added": (3, 1, 1),
            "lost": (1, 0, 1),
            "changed": (1, 0, 0),
        }
        assert len(found.examples) == 5
        assert found.added.wrong_share is not None
        share, low, high = found.added.wrong_share
        assert low < share == 0.5 < high
        assert found.to_json()["added"]["unknown"] == 1


class TestEvidence:
    """In other words: what all evidence came to, and what other thresholds would have made of it."""

    def test_what_it_came_to_is_measured(self, scope: Scope) -> None:
        stored(scope, "What is the boiling point of water at sea level?", answer="It boils at 100 °C there.")
        asked = "At which temperature does water start to boil by the sea?"
        policy.write(scope, "", replace(BUILT_IN, consent=0.0), Mode.LIVE, seen=0)
        found = decided(scope, asked)
        read = probe.read(scope, uuid.uuid4(), turns(asked))
        weighed = decision.judged_by_thresholds(read)
        assert weighed.evidence is not None and 0 < weighed.evidence < 1
        assert weighed.complete == 0.0 and found.measured.complete == BUILT_IN.likely
        assert weighed.candidate == found.measured.entry
        for likely in (0.0, 1.0):
            limits = replace(BUILT_IN, likely=likely, consent=0.0)
            policy.write(scope, "", limits, Mode.LIVE, seen=policy.standing(scope, "").newest)
            again = decided(scope, asked)
            assert (again.outcome == Outcome.GRAY) == (likely == 0.0)
            assert again.measured.outcome(limits) == again.outcome

    def test_more_evidence_is_asked_for_where_too_much_of_it_is_wrong(self) -> None:
        served = [
            pairs.Labelled(
                str(at),
                Measured(
                    uuid.uuid4(), uuid.uuid4(), "fact", 0.9, 0.9, 0.9, evidence=0.975, likeliest=uuid.uuid4()
                ),
                at % 10 > 0,
            )
            for at in range(800)
        ]
        proposal = refitting.proposals(served, "a test", Goal())[0]
        assert proposal.fit.kinds["likely"].refuted and proposal.fitted.likely > 0.975
        assert tuning.apply(proposal, "test", lambda _one: False).did == "put in force"
        assert policy.standing(None, "").live.likely > 0.975


class TestApplying:
    def labelled(self, n: int, score: float, wrong_every: int = 0, **given: object) -> list[pairs.Labelled]:
        measured = Measured(
            uuid.uuid4(), uuid.uuid4(), "fact", score, score, score, agrees=True, verifier=0.9
        )
        return [
            pairs.Labelled(
                f"{score} {at}", replace(measured, **given), not wrong_every or at % wrong_every > 0
            )
            for at in range(n)
        ]

    def proposal(self, labelled: list[pairs.Labelled]) -> refitting.Proposal:
        return refitting.proposals(labelled, "a test", Goal())[0]

    def test_what_serves_more_waits_for_a_word(self) -> None:
        applied = tuning.apply(self.proposal(self.labelled(1_000, 0.85)), "test", lambda _one: False)
        assert applied.did == "proposed" and [row.mode for row in applied.rows] == [Mode.PROPOSED]
        standing = policy.standing(None, "")
        assert standing.live == BUILT_IN and standing.proposed == applied.rows[0]
        assert applied.rows[0].low == 0.85 and values(applied.rows[0].fit)["data"]["lookups"] == 1_000
        assert AuditRecord.objects.get().action == "tune"

    def test_with_a_word_it_is_put_in_force(self) -> None:
        applied = tuning.apply(self.proposal(self.labelled(1_000, 0.85)), "test", lambda _one: True)
        assert applied.did == "put in force" and policy.standing(None, "").live.low == 0.85

    def test_what_serves_less_is_put_in_force_at_once(self) -> None:
        bad = self.labelled(1_000, 0.91, wrong_every=5)
        applied = tuning.apply(self.proposal(bad), "test", lambda _one: False)
        assert applied.did == "put in force" and policy.standing(None, "").live.low > 0.91

    def test_one_may_rise_while_the_other_waits(self) -> None:
        bad = self.labelled(1_000, 0.987, wrong_every=5, agrees=False)
        applied = tuning.apply(self.proposal([*bad, *self.labelled(1_000, 0.85)]), "test", lambda _one: False)
        assert applied.did == "proposed" and [row.mode for row in applied.rows] == ["live", "proposed"]
        live = policy.standing(None, "").live
        assert live.high > 0.987 and live.low == BUILT_IN.low and applied.rows[1].low == 0.85

    def test_little_says_nothing(self) -> None:
        applied = tuning.apply(self.proposal(self.labelled(50, 0.95)), "test", lambda _one: True)
        assert applied.did == "too little is known" and not Policy.objects.exists()

    def test_the_same_once_more_is_no_version(self) -> None:
        labelled = self.labelled(1_000, 0.95)
        first = tuning.apply(self.proposal(labelled), "test", lambda _one: False)
        last = tuning.last_fit(None, "")
        again = tuning.apply(self.proposal(labelled), "test", lambda _one: False, last)
        assert len(first.rows) == 1 and again.did == "kept" and not again.rows

    def test_every_class_that_has_enough_has_its_own(self, scope: Scope) -> None:
        facts = self.labelled(600, 0.95)
        few = self.labelled(20, 0.95, content_class="advice")
        of_scope = [replace(one, scope=scope.pk) for one in facts]
        found = refitting.proposals([*of_scope, *few], "a test", Goal())
        kinds = [(one.scope, one.content_class) for one in found]
        assert kinds == [(None, ""), (None, "fact"), (scope, "fact")]

    def test_beat_fits_what_was_observed(self, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tuning, "goal", lambda: Goal(target=0.3, confidence=0.9))
        born = entry_of(scope)
        for at in range(40):
            looked_up(born, Outcome.GRAY if at % 2 else Outcome.NEAR, AGREE, score=0.95 if at % 2 else 0.85)
        applied = tuning.recalibrate()
        assert {one.did for one in applied} == {"proposed"}
        assert all(row.author == tuning.ITSELF for one in applied for row in one.rows)
        assert policy.standing(None, "").proposed.low == 0.85
        assert all(one.did == "kept" for one in tuning.recalibrate())


def test_the_verifier_s_word_is_asked_for_once_and_kept(scope: Scope) -> None:
    born = stored(scope, TestShadow.HOURS)
    row = looked_up(born, Outcome.NEAR, AGREE, verifier=None)
    row.generation.question = {"turns": turns(TestShadow.AGAIN)}
    row.generation.save()
    silent = pairs.observed()
    assert silent[0].measured.verifier is None
    assert pairs.convinced(silent, most=0) == []
    asked = pairs.convinced(silent, most=5)
    assert asked[0].measured.verifier is not None and asked[0].measured.verifier > 0.5
    assert pairs.observed()[0].measured.verifier == asked[0].measured.verifier


def test_many_decisions_are_read_with_few_queries(scope: Scope, django_assert_max_num_queries: Any) -> None:
    born = entry_of(scope)
    for _at in range(30):
        looked_up(born, Outcome.GRAY, AGREE)
        looked_up(born, Outcome.NEAR, DISAGREE)
    assert connection.vendor == "postgresql"
    with django_assert_max_num_queries(4):
        assert len(pairs.observed()) == 60
