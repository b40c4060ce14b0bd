"""Finding entries: every filter, likeness, pages."""

import uuid
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from cacheadmin import search
from cacheadmin.wording_diff import compare_words
from inference.models import Entry, EntrySource, Scope, State, Wording
from inference.scopes import for_measuring

from .conftest import doubted, operator, signed_in, stored

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rows_themselves")]

KETTLE = "How do I descale a kettle?"
ROUTER = "如何重置路由器？"
PERCENT = "What is 100% of a_b?"


def found(**wanted: Any) -> list[str]:
    """The questions of the entries found, in their order."""
    filters = search.Filters(wanted)
    assert filters.is_valid(), filters.errors
    return [row.question for row in search.find(filters).rows]


@pytest.fixture
def three(scope: Scope) -> list[Entry]:
    """A kettle, a router and a percentage, oldest first."""
    texts = [(KETTLE, "Boil vinegar in it."), (ROUTER, "按住复位键 10 秒。"), (PERCENT, "All of it.")]
    entries = [stored(scope, *pair).entry for pair in texts]
    for hours, entry in zip((50, 2, 0), entries, strict=True):
        Entry.objects.filter(pk=entry.pk).update(created_at=timezone.now() - timedelta(hours=hours))
    return entries


def test_newest_first(three: list[Entry]) -> None:
    assert found() == [PERCENT, ROUTER, KETTLE]


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("kettle", [KETTLE]),
        ("KETT", [KETTLE]),
        ("a kettle?", [KETTLE]),
        ("ke", [KETTLE]),
        ("路由", [ROUTER]),
        ("0%", [PERCENT]),
        ("a_b", [PERCENT]),
        ("a b", []),
        ("%%", []),
        ("vinegar", []),
        ("e k", []),
    ],
)
def test_by_a_part_of_the_question(three: list[Entry], text: str, questions: list[str]) -> None:
    assert found(q=text) == questions


def test_any_wording_counts_and_an_entry_is_listed_once(three: list[Entry]) -> None:
    doubted(three[0], "kettle, how to descale the kettle", "Perhaps.")
    assert found(q="kettle") == [KETTLE]
    assert found(q="kettle, how") == [KETTLE]


def test_each_filter(three: list[Entry]) -> None:
    kettle, router, percent = three
    other = for_measuring("another scope")
    stored(other, "Elsewhere?", "Yes.")
    assert found(scope=other.pk) == ["Elsewhere?"]
    Entry.objects.filter(pk=router.pk).update(state=State.REJECTED, hits=7, content_class="code")
    for wanted in ({"state": "rejected"}, {"hits": 7}, {"hits": 1}, {"content_class": "code"}):
        assert found(**wanted) == [ROUTER], wanted
    assert found(language="zh") == [ROUTER]
    assert ROUTER not in found(language="en") and KETTLE in found(language="en")
    EntrySource.objects.create(entry=percent, source_key="book/1", version="2")
    assert found(source="book/1") == [PERCENT] and found(source="book") == []
    assert found(age="1h", scope=kettle.scope_id) == [PERCENT]
    assert found(age="1d", scope=kettle.scope_id) == [PERCENT, ROUTER]
    assert found(state="rejected", language="en") == []


def test_by_likeness_in_other_words_and_another_language(three: list[Entry]) -> None:
    assert found(like="reset the router")[0] == ROUTER
    assert found(like="remove limescale from a water boiler")[0] == KETTLE
    assert found(like="remove limescale", language="zh") == [ROUTER]
    doubted(three[2], "Where do penguins live?", "In the south.")
    assert found(like="the home of penguins")[0] == PERCENT, "what is in doubt is found too"


def test_what_is_nearer_elsewhere_hides_nothing(three: list[Entry]) -> None:
    """Whatever the other filters are: they are no sieve for what was found without them."""
    kettle, router, percent = three
    near = Wording.objects.get(entry=kettle)
    copied = {name: getattr(near, name) for name in ("question", "fingerprint", "session", "scope")}
    # A little apart: the dead of a test stay in the index, where many that are the same hide what is new.
    pick, vector = np.random.default_rng(7), np.array(near.question_vector)
    for state in (State.ACTIVE, State.SUSPECT):
        beside = vector + pick.normal(scale=0.004, size=(250, len(vector)))
        beside /= np.linalg.norm(beside, axis=1, keepdims=True)
        Wording.objects.bulk_create(
            Wording(
                entry=kettle,
                state=state,
                exact_key=f"{state}{number}",
                question_vector=one.tolist(),
                **copied,
            )
            for number, one in enumerate(beside)
        )
    other = for_measuring("another scope")
    elsewhere = stored(other, "Where do penguins live?", "In the south.").entry
    EntrySource.objects.create(entry=router, source_key="book/1", version="2")
    Entry.objects.filter(pk=percent.pk).update(content_class="code", hits=7)
    assert found(like=KETTLE)[0] == KETTLE
    assert found(like=KETTLE, scope=other.pk) == ["Where do penguins live?"]
    assert found(like=KETTLE, source="book/1") == [ROUTER]
    assert found(like=KETTLE, content_class="code") == found(like=KETTLE, hits=5) == [PERCENT]
    assert found(like=KETTLE, language="zh") == found(like=KETTLE, q="路由") == [ROUTER]
    assert KETTLE not in found(like=KETTLE, age="1h") and PERCENT in found(like=KETTLE, age="1h")
    for state in (State.REJECTED, State.FROZEN):
        Entry.objects.filter(pk=elsewhere.pk).update(state=state)
        for of_wording in State:
            Wording.objects.filter(entry=elsewhere).update(state=of_wording)
            assert found(like=KETTLE, state=state) == ["Where do penguins live?"], (state, of_wording)


def test_what_is_alike_is_paged_too(three: list[Entry], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PAGE", 2)
    monkeypatch.setattr(search, "OFTEN", 3)
    for number in range(4):
        doubted(three[0], f"kettle, how to descale the kettle {number}", "Perhaps.")
        stored(three[0].scope, f"Question {number}?", f"Answer {number}.")
    client, seen, after = signed_in(operator()), [], ""
    for _page in range(4):
        response = client.get(reverse("console_entries"), {"like": KETTLE, "after": after})
        page = response.context["page"]
        seen += [(row.likeness, row.entry.pk) for row in page.rows]
        assert ("Less alike" in response.content.decode()) == bool(page.after)
        after = page.after
    assert not after and len({pk for _likeness, pk in seen}) == len(seen) == 7
    assert [likeness for likeness, _pk in seen] == sorted((one for one, _pk in seen), reverse=True)
    assert seen[0][1] == three[0].pk


def test_where_only_the_nearest_are_looked_at_it_is_said(
    three: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = signed_in(operator())
    asked = {"like": KETTLE, "state": "rejected"}
    assert "were looked at" not in client.get(reverse("console_entries"), asked).content.decode()
    monkeypatch.setattr(search, "NEAREST", 2)
    assert (
        "The nearest 2 questions were looked at"
        in client.get(reverse("console_entries"), asked).content.decode()
    )


def test_the_page_says_that_only_questions_are_searched(three: list[Entry]) -> None:
    text = signed_in(operator()).get(reverse("console_entries"), {"q": "vinegar"}).content.decode()
    assert "not looked for in answers" in text and "No entry is like that" in text


def test_pages_hold_everything_once(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PAGE", 2)
    first = stored(scope, "Question 0?", "Answer 0.").entry
    for number in range(1, 7):
        stored(scope, f"Question {number}?", f"Answer {number}.")
    Entry.objects.update(created_at=first.created_at)  # all in the same moment
    filters = search.Filters({})
    assert filters.is_valid()
    seen, after = [], ""
    while True:
        page = search.find(filters, after)
        seen += [row.entry.pk for row in page.rows]
        if not page.after:
            break
        after = page.after
    assert len(seen) == len(set(seen)) == 7


def test_a_search_that_looks_far_says_how_far_and_goes_on(
    three: list[Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LOOKED_AT", 2)
    Entry.objects.filter(pk=three[0].pk).update(hits=5)
    filters = search.Filters({"hits": 5})
    assert filters.is_valid()
    page = search.find(filters)
    assert page.rows == [] and page.looked_back_to is not None and page.after
    assert [row.question for row in search.find(filters, page.after).rows] == [KETTLE]
    text = signed_in(operator()).get(reverse("console_entries"), {"hits": 5}).content.decode()
    assert "Looked through everything back to" in text and "Look further back" in text


def test_too_many_matches_are_said_to_be(three: list[Entry], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MATCHES", 1)
    client = signed_in(operator())
    assert "Many questions" not in client.get(reverse("console_entries"), {"q": "kettle"}).content.decode()
    doubted(three[0], "kettle, how to descale the kettle", "Perhaps.")
    assert "Many questions" in client.get(reverse("console_entries"), {"q": "kettle"}).content.decode()


@pytest.mark.parametrize(
    "query",
    [
        {"q": "x"},
        {"state": "nonsense"},
        {"hits": "-1"},
        {"hits": "many"},
        {"scope": "999999"},
        {"age": "yesterday"},
        {"like": "x" * 501},
        {"after": "nonsense"},
        {"after": "2026-01-01T00:00:00_x"},
        {"q": "\x00\x00"},
        {"col": "nonsense"},
    ],
)
def test_nonsense_is_answered_with_a_page(three: list[Entry], query: dict[str, str]) -> None:
    response = signed_in(operator()).get(reverse("console_entries"), query)
    assert response.status_code == 200
    valid = "after" in query
    assert ('role="alert"' in response.content.decode()) != valid


def test_an_id_leads_to_its_entry(three: list[Entry]) -> None:
    client = signed_in(operator())
    response = client.get(reverse("console_entries"), {"q": str(three[0].pk)})
    assert response.headers["Location"] == reverse("console_entry", args=[three[0].pk])
    assert client.get(reverse("console_entries"), {"q": str(uuid.uuid4())}).status_code == 200


def test_columns_are_chosen(three: list[Entry]) -> None:
    client = signed_in(operator())
    text = client.get(reverse("console_entries"), {"col": ["scope", "saves"]}).content.decode()
    head = text[text.index("<thead>") : text.index("</thead>")]
    assert "Scope" in head and "A hit saves" in head and "Hits" not in head


def test_no_page_of_entries_reads_a_vector(three: list[Entry]) -> None:
    client = signed_in(operator())
    pairing = Wording.objects.values_list("pk", flat=True)[0]
    with connection.execute_wrapper(_no_vectors):
        client.get(reverse("console_entries"))
        client.get(reverse("console_entry", args=[three[0].pk]))
        client.get(reverse("console_review"))
        client.get(reverse("console_pairing", args=[pairing]))


def _no_vectors(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    assert '_vector"' not in sql, sql
    return execute(sql, params, many, context)


# --- word by word -----------------------------------------------------------------------------------


def marked(left: str, right: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    sides = compare_words(left, right)
    assert "".join(run.text for run in sides.left) == left
    assert "".join(run.text for run in sides.right) == right
    marks: list[list[tuple[str, str]]] = [
        [(run.text, run.kind) for run in side if run.kind != "same"] for side in (sides.left, sides.right)
    ]
    return marks[0], marks[1]


def test_words_numbers_and_names_are_told_apart() -> None:
    left, right = marked("It costs 1,200 euros at Acme today.", "It costs 1,300 euros at Globex now.")
    assert left == [("1,200", "number"), ("Acme", "name"), ("today", "word")]
    assert right == [("1,300", "number"), ("Globex", "name"), ("now", "word")]


def test_chinese_is_compared_by_words_and_its_numerals_are_numbers() -> None:
    left, right = marked("保修期为二十四个月。", "保修期为36个月。")
    assert left[0][1] == right[0][1] == "number"
    assert left[0][0].startswith("二十四") and right[0][0].startswith("36")


@pytest.mark.parametrize("text", ["", "\n\n", "a", "<b>&amp;</b>", "x " * 4_000])
def test_the_same_text_has_no_marks(text: str) -> None:
    assert marked(text, text) == ([], []) or len(text) > 3_000


def test_texts_are_never_markup(scope: Scope) -> None:
    entry = stored(scope, "What is <b>bold</b>?", "<script>alert(1)</script> it is.").entry
    wording = doubted(entry, "What is <i>italic</i>?", "<img src=x onerror=alert(1)> is it.")
    client = signed_in(operator())
    for name, pk in (("console_entry", entry.pk), ("console_pairing", wording.pk)):
        text = client.get(reverse(name, args=[pk])).content.decode()
        for raw in ("<script>alert", "<img", "<b>", "<i>"):
            assert raw not in text, (name, raw)
