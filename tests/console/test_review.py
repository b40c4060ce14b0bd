"""Deciding on suspect pairings: the order, who has what open, what each decision does, and taking it back."""

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from cacheadmin import review
from cacheadmin.models import AuditRecord, ReviewClaim
from cacheadmin.review import Judgement, Refused, Taken
from inference.cache import decision, lifecycle, policy, probe
from inference.cache.lifecycle import Occupied, Stale
from inference.models import ConfusablePair, Entry, Observation, Scope, State, Verdict, Wording
from tests.cache.conftest import at_once

from .conftest import (
    ANSWER,
    FRESH,
    QUESTION,
    SUSPECT,
    doubted,
    generated,
    operator,
    signed_in,
    stored,
    turn,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rows_themselves")]


@pytest.fixture
def entry(scope: Scope) -> Entry:
    return stored(scope).entry


@pytest.fixture
def olga(db: None) -> User:
    return operator()


def fresh(wording: Wording) -> Wording:
    return Wording.objects.select_related("entry").get(pk=wording.pk)


def decide(wording: Wording, who: User, action: str, **more: Any) -> uuid.UUID:
    seen = more.pop("seen", None) or lifecycle.stamp(fresh(wording))
    return review.decide(wording.pk, who, Judgement(action, seen, **more))


def asked(scope: Scope, question: str) -> decision.Decided:
    return decision.decide(probe.read(scope, uuid.uuid4(), turn(question)))


# --- the queue --------------------------------------------------------------------------------------


def test_the_most_urgent_comes_first(entry: Entry) -> None:
    quiet = doubted(entry, "Is the X300 waterproof?", "Perhaps.")
    busy = doubted(entry, "Is the X400 waterproof?", "Perhaps.", hits=50)
    wrong = doubted(entry, "Is the X500 waterproof?", "Perhaps.", hits=50, verdict=Verdict.DISAGREE)
    assert [one.pk for one in review.waiting()] == [wrong.pk, busy.pk, quiet.pk]
    risks = list(review.waiting().values_list("risk", flat=True))
    assert risks[0] == pytest.approx(2 / 3) and risks[1] == risks[2] == pytest.approx(1 / 2)


@pytest.mark.parametrize("state", [State.ACTIVE, State.REJECTED, State.FROZEN])
def test_what_is_not_suspect_does_not_wait(entry: Entry, state: State) -> None:
    wording = doubted(entry)
    Wording.objects.filter(pk=wording.pk).update(state=state)
    assert not review.waiting().exists()


def test_what_could_not_be_served_anyway_does_not_wait(entry: Entry) -> None:
    doubted(entry)
    Entry.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not review.waiting().exists()
    Entry.objects.update(expires_at=timezone.now() + timedelta(minutes=1), state=State.FROZEN)
    assert not review.waiting().exists()


# --- whose it is ------------------------------------------------------------------------------------


def test_two_people_never_get_the_same(entry: Entry, olga: User) -> None:
    first, second = doubted(entry, hits=5), doubted(entry, "Is the X400 waterproof?", "Perhaps.")
    boris = operator("boris")
    assert review.claim_next(olga) == first
    assert review.claim_next(boris) == second
    assert review.claim_next(olga) == first  # still theirs
    assert review.claim_next(operator("third")) is None
    with pytest.raises(Taken) as taken:
        review.claim(first.pk, boris)
    assert taken.value.claim.operator == olga


@pytest.mark.django_db(transaction=True)
def test_nor_when_they_ask_in_the_same_moment() -> None:
    from inference.scopes import for_measuring

    entry = stored(for_measuring("console tests")).entry
    for number in range(3):
        doubted(entry, f"Is the X{number}00 waterproof?", "Perhaps.")
    people = [operator(f"person {number}") for number in range(6)]
    got = at_once([lambda who=who: review.claim_next(who) for who in people])
    claimed = [one.pk for one in got if isinstance(one, Wording)]
    assert len(claimed) == len(set(claimed)) == 3
    connection.close()


def test_a_claim_ends_when_the_page_is_gone_or_given_back(entry: Entry, olga: User) -> None:
    wording, boris = doubted(entry), operator("boris")
    review.claim_next(olga)
    ReviewClaim.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert review.claim_next(boris) == wording
    review.release(wording.pk, olga)  # it is not hers any more
    assert review.holder(wording.pk).operator == boris
    review.release(wording.pk, boris)
    assert review.claim_next(olga) == wording


def test_the_queue_says_what_is_open_with_whom(entry: Entry, olga: User) -> None:
    doubted(entry)
    review.claim_next(olga)
    client = signed_in(operator("boris"))
    assert "open with olga" in client.get(reverse("console_review")).content.decode()
    ReviewClaim.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "open with olga" not in client.get(reverse("console_review")).content.decode()


def test_an_open_page_keeps_its_claim(entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    review.claim_next(olga)
    soon = timezone.now() + timedelta(seconds=5)
    ReviewClaim.objects.update(expires_at=soon)
    text = signed_in(olga).post(reverse("console_keep", args=[wording.pk])).content.decode()
    assert "Yours until" in text and "<html" not in text
    assert review.holder(wording.pk).expires_at > soon
    other = signed_in(operator("boris")).post(reverse("console_keep", args=[wording.pk]))
    assert "olga has this open" in other.content.decode()


def test_who_decides_on_what_somebody_else_has_open_gets_a_409(entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    review.claim_next(olga)
    response = signed_in(operator("boris")).post(
        reverse("console_decide", args=[wording.pk]),
        {"action": "approve", "seen": lifecycle.stamp(fresh(wording))},
    )
    assert response.status_code == 409 and "olga has this open" in response.content.decode()
    assert fresh(wording).state == State.SUSPECT and not AuditRecord.objects.exists()


# --- decisions --------------------------------------------------------------------------------------


def test_what_is_approved_is_served_from_then_on(scope: Scope, entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    assert asked(scope, SUSPECT).served is None
    batch = decide(wording, olga, review.APPROVE, reason="the same thing")
    served = asked(scope, SUSPECT)
    assert served.layer == "exact" and served.served.answer == ANSWER
    record = AuditRecord.objects.get(batch=batch)
    assert (record.user, record.action, record.reason) == (olga, "approve", "the same thing")
    assert (record.before, record.after) == ({"state": "suspect"}, {"state": "active"})
    assert Observation.objects.get(source="operator").verdict == Verdict.AGREE
    assert review.holder(wording.pk) is None


def test_what_is_rejected_is_a_veto(scope: Scope, entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    decide(wording, olga, review.REJECT)
    assert fresh(wording).state == State.REJECTED
    assert asked(scope, SUSPECT).served is None
    assert asked(scope, QUESTION).served is not None
    assert Observation.objects.get(source="operator").verdict == Verdict.DISAGREE


def test_an_edited_answer_is_served_to_all_wordings(scope: Scope, entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    better = "All models have a warranty of 24 months from Acme."
    batch = decide(wording, olga, review.EDIT, answer=better)
    assert {asked(scope, one).served.answer for one in (QUESTION, SUSPECT)} == {better}
    entry.refresh_from_db()
    assert entry.answer_vector is not None
    records = {one.subject: one for one in AuditRecord.objects.filter(batch=batch)}
    assert records["entry"].before == {"answer": ANSWER} and records["entry"].after == {"answer": better}
    review.undo(batch, olga)
    assert asked(scope, QUESTION).served.answer == ANSWER
    assert fresh(wording).state == State.SUSPECT


@pytest.mark.parametrize(("answer", "code"), [(" \n", "empty_answer"), (ANSWER, "same_answer")])
def test_an_edit_must_change_something(entry: Entry, olga: User, answer: str, code: str) -> None:
    wording = doubted(entry)
    with pytest.raises(Refused) as refused:
        decide(wording, olga, review.EDIT, answer=answer)
    assert refused.value.code == code
    assert fresh(wording).state == State.SUSPECT


def test_what_is_skipped_goes_to_others_and_comes_back_when_undone(entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    batch = decide(wording, olga, review.SKIP)
    assert fresh(wording).state == State.SUSPECT
    assert review.claim_next(olga) is None
    assert review.claim_next(operator("boris")) == wording
    review.release(wording.pk, User.objects.get(username="boris"))
    review.undo(batch, olga)
    assert review.claim_next(olga) == wording


NAMES = ("Aurora", "Borealis")
OF_THE_ONE, OF_THE_OTHER = (f"How do I reset the {name} speaker?" for name in NAMES)


def test_names_told_apart_veto_from_then_on(scope: Scope, olga: User) -> None:
    entry = stored(scope, OF_THE_ONE, "Hold its power button for ten seconds.").entry
    wording = doubted(entry, OF_THE_OTHER, "Hold both volume buttons.")
    batch = decide(wording, olga, review.CONFUSE, names=NAMES)
    assert fresh(wording).state == State.REJECTED
    pair = ConfusablePair.objects.get()
    assert (pair.first, pair.second, pair.scope) == (*NAMES, scope)
    found = asked(scope, "What is the way to reset the Borealis speaker?")
    assert found.served is None and "confusable: Aurora / Borealis" in found.reason
    review.undo(batch, olga)
    assert not ConfusablePair.objects.exists() and fresh(wording).state == State.SUSPECT
    assert "confusable" not in asked(scope, "What is the way to reset the Borealis speaker?").reason


def test_names_that_tell_nothing_apart_are_refused(scope: Scope, olga: User) -> None:
    entry = stored(scope, OF_THE_ONE, "Hold its power button for ten seconds.").entry
    wording = doubted(entry, OF_THE_OTHER, "Hold both volume buttons.")
    for names in [("Aurora", "speaker"), ("Aurora", ""), ("Nowhere", "Borealis"), ("Aurora", "Aurora")]:
        with pytest.raises(Refused):
            decide(wording, olga, review.CONFUSE, names=names)
    assert not ConfusablePair.objects.exists() and not AuditRecord.objects.exists()


def test_everywhere_is_in_every_scope(scope: Scope, olga: User) -> None:
    entry = stored(scope, OF_THE_ONE, "Hold its power button for ten seconds.").entry
    wording = doubted(entry, OF_THE_OTHER, "Hold both volume buttons.")
    decide(wording, olga, review.CONFUSE, names=NAMES, everywhere=True)
    assert ConfusablePair.objects.get().scope is None


def test_a_pair_that_was_known_outlives_the_undoing(scope: Scope, olga: User) -> None:
    policy.forbid(scope, *NAMES[::-1])
    entry = stored(scope, OF_THE_ONE, "Hold its power button for ten seconds.").entry
    wording = doubted(entry, OF_THE_OTHER, "Hold both volume buttons.")
    review.undo(decide(wording, olga, review.CONFUSE, names=NAMES), olga)
    assert ConfusablePair.objects.count() == 1


def test_there_is_no_other_action(entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    for action in ("", "undo", "delete", "approve "):
        with pytest.raises(Refused):
            decide(wording, olga, action)


# --- what changed meanwhile -------------------------------------------------------------------------


def _says_otherwise(wording: Wording) -> None:
    generation = generated(wording.scope, wording.question, "Something else.")
    Observation.objects.create(generation=generation, wording=wording, source="near", verdict="disagree")
    lifecycle.weigh(wording)


def _is_proved(wording: Wording) -> None:
    Wording.objects.filter(pk=wording.pk).update(state=State.ACTIVE)


def _answer_changes(wording: Wording) -> None:
    Entry.objects.filter(pk=wording.entry_id).update(answer="Another answer.")


def _is_superseded(wording: Wording) -> None:
    Entry.objects.filter(pk=wording.entry_id).update(state=State.FROZEN)


@pytest.mark.parametrize("happens", [_says_otherwise, _is_proved, _answer_changes, _is_superseded])
@pytest.mark.parametrize("action", [review.APPROVE, review.REJECT, review.EDIT])
def test_a_stale_decision_does_nothing_and_shows_what_is(
    entry: Entry, olga: User, action: str, happens: Any
) -> None:
    wording = doubted(entry)
    seen = lifecycle.stamp(fresh(wording))
    happens(wording)
    before = fresh(wording)
    response = signed_in(olga).post(
        reverse("console_decide", args=[wording.pk]), {"action": action, "seen": seen, "answer": "Typed."}
    )
    assert response.status_code == 409
    text = response.content.decode()
    assert "This changed while you looked at it" in text
    assert before.entry.answer in re.sub(r"</?mark[^>]*>", "", text)
    after = fresh(wording)
    assert (after.state, after.entry.answer) == (before.state, before.entry.answer)
    assert not AuditRecord.objects.exists()
    decidable = before.entry.state != State.FROZEN
    assert (lifecycle.stamp(after) in text) == decidable, "deciding anew, on what is there now"
    kept = decidable and action == review.EDIT
    assert ("Typed." in text) == kept, "what was typed is kept, and nothing else brought back"


def test_an_approval_never_makes_two_answers_of_one_question(scope: Scope, entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    stored(scope, SUSPECT, FRESH)
    with pytest.raises(Occupied):
        decide(wording, olga, review.APPROVE)
    assert fresh(wording).state == State.SUSPECT and not AuditRecord.objects.exists()
    assert not Observation.objects.filter(source="operator").exists()


# --- an operator's word and those of others ---------------------------------------------------------


def _thumb(wording: Wording, verdict: Verdict) -> Wording:
    generation = generated(wording.scope, wording.question, ANSWER)
    Observation.objects.create(generation=generation, wording=wording, source="user", verdict=verdict)
    lifecycle.weigh(wording)
    return fresh(wording)


@pytest.mark.parametrize("origin", ["near", "hit"])
def test_an_operator_s_word_settles_what_was_said_before(entry: Entry, olga: User, origin: str) -> None:
    wording = doubted(entry, verdict=Verdict.DISAGREE)
    Wording.objects.filter(pk=wording.pk).update(origin=origin)
    decide(wording, olga, review.APPROVE)
    assert _thumb(wording, Verdict.AGREE).state == State.ACTIVE
    assert fresh(wording).disagreed == 0
    later = _thumb(wording, Verdict.DISAGREE)
    assert (later.state, later.disagreed) == (State.SUSPECT, 1), "a new doubt is a doubt"


def test_readers_do_not_take_back_a_rejection(entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    decide(wording, olga, review.REJECT)
    assert _thumb(wording, Verdict.AGREE).state == State.REJECTED


# --- undoing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [review.APPROVE, review.REJECT])
def test_undo_puts_everything_back(entry: Entry, olga: User, action: str) -> None:
    wording = doubted(entry, verdict=Verdict.DISAGREE)
    before = fresh(wording)
    batch = decide(wording, olga, action)
    assert review.last_action(olga).batch == batch
    undone = review.undo(batch, olga)
    after = fresh(wording)
    assert (after.state, after.agreed, after.disagreed) == (before.state, before.agreed, before.disagreed)
    assert not Observation.objects.filter(source="operator").exists()
    record = AuditRecord.objects.get(batch=undone)
    assert (record.action, record.undoes, record.after) == ("undo", batch, {"state": "suspect"})
    assert review.last_action(olga) is None
    with pytest.raises(Refused):
        review.undo(batch, olga)
    with pytest.raises(Refused):
        review.undo(undone, olga)


def test_undo_brings_back_what_an_operator_had_said_before(entry: Entry, olga: User) -> None:
    wording = doubted(entry, verdict=Verdict.DISAGREE)
    decide(wording, olga, review.APPROVE)
    review.undo(decide(wording, olga, review.REJECT), olga)
    assert fresh(wording).state == State.ACTIVE
    assert _thumb(wording, Verdict.AGREE).state == State.ACTIVE, "the older doubt is settled still"


def test_undo_never_overwrites_what_came_after(entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    batch = decide(wording, olga, review.APPROVE)
    _thumb(wording, Verdict.DISAGREE)
    with pytest.raises(Stale):
        review.undo(batch, olga)
    response = signed_in(olga).post(reverse("console_undo", args=[batch]))
    assert response.status_code == 409 and "nothing was undone" in response.content.decode()
    assert fresh(wording).state == State.SUSPECT


def test_undo_of_what_is_gone_is_refused(entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    batch = decide(wording, olga, review.REJECT)
    Entry.objects.all().delete()
    with pytest.raises(Stale):
        review.undo(batch, olga)
    assert AuditRecord.objects.count() == 1, "the record outlives what it is about"


def test_the_record_outlives_the_operator(entry: Entry, olga: User) -> None:
    decide(doubted(entry), olga, review.REJECT)
    olga.delete()
    record = AuditRecord.objects.get()
    assert (record.user, record.actor) == (None, "olga")


# --- on the page ------------------------------------------------------------------------------------


def test_from_one_to_the_next(entry: Entry, olga: User) -> None:
    first = doubted(entry, hits=9)
    second = doubted(entry, "Is the X400 waterproof?", "Perhaps.")
    client: Client = signed_in(olga)
    begun = client.post(reverse("console_next"))
    assert begun.headers["Location"] == reverse("console_pairing", args=[first.pk])
    data = {"action": "approve", "seen": lifecycle.stamp(fresh(first))}
    response = client.post(reverse("console_decide", args=[first.pk]), data)
    assert response.headers["Location"] == reverse("console_pairing", args=[second.pk])
    page = client.get(response.headers["Location"]).content.decode()
    assert "Your last action:" in page and "approved" in page
    last = review.last_action(olga)
    assert client.post(reverse("console_undo", args=[last.batch]), {"to": "review"}).status_code == 302
    assert fresh(first).state == State.SUSPECT
    data = {"action": "reject", "seen": lifecycle.stamp(fresh(second))}
    client.post(reverse("console_decide", args=[second.pk]), data)
    data = {"action": "reject", "seen": lifecycle.stamp(fresh(first))}
    last_one = client.post(reverse("console_decide", args=[first.pk]), data)
    assert last_one.headers["Location"] == reverse("console_review")


def test_a_refused_decision_says_why_and_keeps_what_was_typed(entry: Entry, olga: User) -> None:
    wording = doubted(entry)
    data = {
        "action": "confuse",
        "seen": lifecycle.stamp(fresh(wording)),
        "first": "No such name",
        "second": "Nor this",
        "reason": "They differ",
    }
    response = signed_in(olga).post(reverse("console_decide", args=[wording.pk]), data)
    text = response.content.decode()
    assert response.status_code == 400
    for kept in ("No such name", "Nor this", "They differ", "tell the question from the entry"):
        assert kept in text, kept
