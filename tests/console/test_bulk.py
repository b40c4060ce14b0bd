"""Many pairings decided at once: all or none, and undone in one step."""

import uuid

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from cacheadmin import bulk, review
from cacheadmin.models import AuditRecord, ReviewClaim
from inference.cache import lifecycle
from inference.models import Entry, Scope, State, Wording

from .conftest import doubted, operator, signed_in, stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def olga(db: None) -> User:
    return operator("olga")


@pytest.fixture
def three(scope: Scope) -> list[Wording]:
    entry = stored(scope).entry
    return [doubted(entry, f"How long is the warranty of the X{n}00?", f"{n} years.") for n in (3, 4, 5)]


def states() -> set[str]:
    return set(Wording.objects.filter(origin="near").values_list("state", flat=True))


def seen(wordings: list[Wording]) -> dict[uuid.UUID, str]:
    return {one.wording.pk: one.stamp for one in bulk.look([it.pk for it in wordings], User.objects.first())}


@pytest.mark.parametrize(
    ("action", "state"), [("approve", State.ACTIVE), ("reject", State.REJECTED), ("skip", State.SUSPECT)]
)
def test_all_of_them_in_one_action_that_is_undone_in_one_step(
    three: list[Wording], olga: User, action: str, state: State
) -> None:
    batch = bulk.decide(olga, action, seen(three), "They are alike.")
    assert states() == {state}
    records = AuditRecord.objects.filter(batch=batch)
    assert {record.subject_id for record in records} == {str(one.pk) for one in three}
    assert {record.reason for record in records} == {"They are alike."} and records[0].many == 3
    assert review.claim_next(olga) is None
    review.undo(batch, olga)
    assert states() == {State.SUSPECT}
    assert review.claim_next(olga) is not None
    with pytest.raises(review.Refused, match="undone_before"):
        review.undo(batch, olga)


def test_if_one_of_them_changed_nothing_is_done(three: list[Wording], olga: User) -> None:
    stamps = seen(three)
    Wording.objects.filter(pk=three[1].pk).update(disagreed=3)
    with pytest.raises(bulk.Changed) as changed:
        bulk.decide(olga, "reject", stamps)
    assert changed.value.pks == {three[1].pk}
    assert states() == {State.SUSPECT} and not AuditRecord.objects.exists()


def test_what_somebody_else_has_open_is_theirs(three: list[Wording], olga: User) -> None:
    boris = operator("boris")
    review.claim(three[0].pk, boris)
    stamps = seen(three)
    with pytest.raises(bulk.Changed):
        bulk.decide(olga, "approve", stamps)
    assert states() == {State.SUSPECT}
    bulk.decide(boris, "approve", stamps)
    assert states() == {State.ACTIVE} and not ReviewClaim.objects.exists()


def test_two_answers_of_one_question_are_never_approved(
    scope: Scope, three: list[Wording], olga: User
) -> None:
    rival = stored(scope, three[2].question, "Another answer.")
    assert rival.exact_key == three[2].exact_key
    with pytest.raises(bulk.Changed):
        bulk.decide(olga, "approve", seen(three))
    assert states() == {State.SUSPECT}


def test_undoing_all_of_them_stops_where_one_has_changed(three: list[Wording], olga: User) -> None:
    batch = bulk.decide(olga, "approve", seen(three))
    bulk_state = Wording.objects.get(pk=three[2].pk)
    lifecycle.settle(three[2].pk, lifecycle.stamp(bulk_state), State.REJECTED)
    with pytest.raises(lifecycle.Stale):
        review.undo(batch, olga)
    assert states() == {State.ACTIVE, State.REJECTED}


@pytest.mark.parametrize(("action", "chosen"), [("edit", True), ("nonsense", True), ("approve", False)])
def test_what_needs_a_word_on_each_is_refused(
    three: list[Wording], olga: User, action: str, chosen: bool
) -> None:
    with pytest.raises(review.Refused):
        bulk.decide(olga, action, seen(three) if chosen else {})


def test_on_the_page_one_looks_first(three: list[Wording], olga: User) -> None:
    client = signed_in(olga)
    review.claim(three[2].pk, operator("boris"))
    picked = [str(one.pk) for one in three]
    looked = client.post(reverse("console_bulk"), {"action": "reject", "pick": picked})
    text = looked.content.decode()
    assert looked.status_code == 200 and "Reject 3 pairings?" in text and "open with boris" in text
    assert text.count("checked") == 2 and text.count("disabled") == 1
    assert states() == {State.SUSPECT}, "a look changes nothing"

    stale = {"action": "reject", "pick": [f"{pk}:{'0' * 16}" for pk in picked[:2]], "reason": "Alike."}
    refused = client.post(reverse("console_decide_bulk"), stale)
    again = refused.content.decode()
    assert refused.status_code == 409 and "nothing was done" in again and "Alike." in again

    stamps = seen(three[:2])
    good = {"action": "reject", "pick": [f"{pk}:{stamp}" for pk, stamp in stamps.items()]}
    assert client.post(reverse("console_decide_bulk"), good).status_code == 302
    queue = client.get(reverse("console_review")).content.decode()
    assert "(2 pairings)" in queue and queue.count('name="pick"') == 1
    batch = review.last_action(olga).batch
    client.post(reverse("console_undo", args=[batch]), {"to": "review"})
    assert states() == {State.SUSPECT}


@pytest.mark.parametrize(
    "sent", [{}, {"action": "approve"}, {"action": "approve", "pick": "nonsense"}, {"pick": "PK"}]
)
def test_nonsense_is_explained(three: list[Wording], olga: User, sent: dict[str, str]) -> None:
    sent = {name: value.replace("PK", str(three[0].pk)) for name, value in sent.items()}
    for name in ("console_bulk", "console_decide_bulk"):
        response = signed_in(olga).post(reverse(name), sent)
        assert response.status_code == 400 and 'role="alert"' in response.content.decode()
    assert states() == {State.SUSPECT} and Entry.objects.count() == 1


def test_pages_of_the_queue_hold_everything_once_and_any_of_it_can_be_chosen(
    scope: Scope, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cacheadmin.pages.review.PAGE", 2)
    entry = stored(scope).entry
    hits = (5, 5, 5, 9, 0, 0)
    waiting = [doubted(entry, f"Is the X{n}00 waterproof?", "Perhaps.", hits=n) for n in range(6)]
    for row, n in zip(waiting, hits, strict=True):
        Wording.objects.filter(pk=row.pk).update(hits=n)
    # Those of the same urgency by their age, and of the same age by their id.
    Wording.objects.filter(pk__in=[waiting[0].pk, waiting[1].pk]).update(created_at=waiting[0].created_at)
    client, seen_so, after = signed_in(olga), [], ""
    for _page in range(3):
        response = client.get(reverse("console_review"), {"after": after})
        text = response.content.decode()
        seen_so += [row.pk for row in response.context["waiting"]]
        assert ("Less urgent" in text) == bool(response.context["more"])
        assert ("Most urgent" in text) == bool(after) != ("Start with the first" in text)
        after = response.context["more"]
    assert not after and seen_so == [row.pk for row in review.waiting()] and len(seen_so) == 6
    response = client.post(reverse("console_bulk"), {"pick": [str(seen_so[-1])], "action": "reject"})
    assert [one.wording.pk for one in response.context["chosen"]] == [seen_so[-1]]


@pytest.mark.parametrize("after", ["x", "1_x_y", "1.0_2026-01-01_x", "nan_", "1_2026-01-01T00:00:00Z_1"])
def test_a_cursor_that_is_none_shows_the_first_page(three: list[Wording], olga: User, after: str) -> None:
    shown = signed_in(olga).get(reverse("console_review"), {"after": after}).context["waiting"]
    assert len(shown) == 3


def test_behind_the_last_page_the_way_back_is_shown(three: list[Wording], olga: User) -> None:
    last = list(review.waiting())[-1]
    text = signed_in(olga).get(reverse("console_review"), {"after": review.cursor_of(last)}).content.decode()
    assert "Nothing less urgent waits" in text and "Most urgent" in text
