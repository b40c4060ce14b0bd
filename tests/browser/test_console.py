"""The operators' console in a real browser, with two operators at once."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Locator, Page, Route, expect

from cacheadmin import audit
from cacheadmin.models import AuditRecord
from inference.cache import policy
from inference.cache.policy import Thresholds
from inference.models import ConfusablePair, DataSource, Entry, EntrySource, Mode, State, Wording
from inference.scopes import for_measuring
from tests.browser.conftest import NewContext
from tests.browser.test_accessibility import check, faint
from tests.browser.troubles import Troubles
from tests.browser.watching import watch_announcements
from tests.console.conftest import ANSWER, SUSPECT, doubted, operator, stored
from tests.console.test_thresholds import fitted
from tests.stack import Stack

LATER = "How long is the warranty of the X400?"


@pytest.fixture
def suspects(stack: Stack) -> list[Wording]:
    """Two pairings that wait, the more urgent first."""
    entry = stored(for_measuring("console browser tests")).entry
    return [doubted(entry, hits=9), doubted(entry, LATER, "The X400 has a warranty of 12 months from Acme.")]


def sit_down(new_context: NewContext, stack: Stack, user: User, **options: object) -> Page:
    """A browser in which this operator is signed in, at the queue."""
    client = Client()
    client.force_login(user)
    # A page that comes too late for its transition complains of it, which on a busy machine is most of them.
    context = new_context(reduced_motion="reduce", **options)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": stack.url}])
    page = context.new_page()
    page.goto(f"{stack.url}/console/review/")
    return page


def state(wording: Wording) -> str:
    return Wording.objects.values_list("state", flat=True).get(pk=wording.pk)


def shown(page: Page) -> Locator:
    """The question that is to be decided on."""
    return page.get_by_role("region", name="This question")


def press(page: Page, key: str) -> None:
    """Once the page listens: what it says is there to be read before its script is."""
    page.wait_for_load_state("load")
    page.keyboard.press(key)


def test_two_operators_review_by_keyboard(
    stack: Stack, new_context: NewContext, suspects: list[Wording], troubles: Troubles
) -> None:
    olga = sit_down(new_context, stack, operator("olga"))
    boris = sit_down(new_context, stack, operator("boris"))

    # Two key presses from the queue to a decision; nobody is given what the other has.
    press(olga, "Enter")
    expect(shown(olga)).to_contain_text(SUSPECT)
    press(boris, "Enter")
    expect(shown(boris)).to_contain_text(LATER)
    fresh = olga.get_by_role("region", name="Fresh answer")
    expect(fresh.locator("mark.number", has_text="36")).to_be_visible()
    press(olga, "a")
    expect(olga.get_by_role("heading", name="Nothing waits for a decision")).to_have_count(0)
    expect(olga).to_have_url(re.compile(r"/console/review/$"))
    assert state(suspects[0]) == State.ACTIVE

    # Boris has the other one open, and says so to whoever looks at it.
    olga.goto(f"{stack.url}/console/review/{suspects[1].pk}/")
    expect(olga.get_by_text("boris has this open")).to_be_visible()
    expect(olga.get_by_role("button", name="Approve")).to_have_count(0)

    # Undone with one key, and given to whoever goes on.
    press(olga, "u")
    expect(olga).to_have_url(re.compile(r"/console/review/$"))
    assert state(suspects[0]) == State.SUSPECT
    press(olga, "Enter")
    expect(shown(olga)).to_contain_text(SUSPECT)
    press(olga, "r")
    expect(olga).to_have_url(re.compile(r"/console/review/$"))
    assert state(suspects[0]) == State.REJECTED
    press(boris, "s")
    expect(boris).to_have_url(re.compile(r"/console/review/$"))
    assert state(suspects[1]) == State.SUSPECT


def test_what_changed_meanwhile_is_a_409_and_can_be_decided_anew(
    stack: Stack, new_context: NewContext, suspects: list[Wording], troubles: Troubles
) -> None:
    troubles.allow(r"status of 409")
    page = sit_down(new_context, stack, operator("olga"))
    press(page, "Enter")
    expect(shown(page)).to_contain_text(SUSPECT)
    Entry.objects.filter(pk=suspects[0].entry_id).update(answer="Another answer by now.")
    with page.expect_navigation() as navigation:
        press(page, "a")
    assert navigation.value.status == 409
    expect(page.get_by_role("alert")).to_contain_text("This changed while you looked at it")
    expect(page.get_by_role("main")).to_contain_text("Another answer by now.")
    assert state(suspects[0]) == State.SUSPECT
    press(page, "a")
    expect(shown(page)).to_contain_text(LATER)
    assert state(suspects[0]) == State.ACTIVE


def test_keys_do_nothing_while_somebody_types(
    stack: Stack, new_context: NewContext, suspects: list[Wording]
) -> None:
    page = sit_down(new_context, stack, operator("olga"))
    press(page, "Enter")
    reason = page.get_by_label("Reason (may stay empty)")
    reason.press_sequentially("a reason with r and s, and an u")
    reason.press("Enter")
    expect(shown(page)).to_contain_text(SUSPECT)
    assert state(suspects[0]) == State.SUSPECT
    expect(reason).to_have_value("a reason with r and s, and an u")
    press(page, "Escape")
    press(page, "Control+a")  # the browser's own
    press(page, "e")
    answer = page.get_by_label("Answer, for every way in which this entry is asked")
    expect(answer).to_be_focused()
    expect(answer).to_have_value(ANSWER)
    answer.fill("Every model has a warranty of 24 months from Acme.")
    page.get_by_role("button", name="Save and approve").click()
    expect(shown(page)).to_contain_text(LATER)
    assert state(suspects[0]) == State.ACTIVE
    assert Entry.objects.get().answer.startswith("Every model")


def test_names_are_told_apart(stack: Stack, new_context: NewContext, suspects: list[Wording]) -> None:
    page = sit_down(new_context, stack, operator("olga"))
    press(page, "Enter")
    expect(shown(page)).to_contain_text(SUSPECT)
    press(page, "n")
    expect(page.get_by_label("Named by the entry")).to_have_value("X200")
    expect(page.get_by_label("Named by this question")).to_have_value("X300")
    page.get_by_role("button", name="Tell them apart").click()
    expect(shown(page)).to_contain_text(LATER)
    assert state(suspects[0]) == State.REJECTED
    assert {ConfusablePair.objects.get().first, ConfusablePair.objects.get().second} == {"X200", "X300"}


def test_search_as_you_type(stack: Stack, new_context: NewContext, suspects: list[Wording]) -> None:
    stored(suspects[0].scope, "如何重置路由器？", "按住复位键 10 秒。")
    page = sit_down(new_context, stack, operator("olga"))
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Entries").click()
    rows = page.get_by_role("region", name="Entries").get_by_role("row")
    expect(rows).to_have_count(3)
    page.get_by_label("Question contains").fill("路由")
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile("q=%E8"))
    page.get_by_label("Question contains").fill("no such thing")
    expect(page.get_by_role("heading", name="No entry is like that")).to_be_visible()


def test_what_is_ticked_stays_so_when_a_newer_queue_comes_late(
    stack: Stack, new_context: NewContext, suspects: list[Wording]
) -> None:
    page = sit_down(new_context, stack, operator("olga"))
    late: list[Route] = []
    page.route(re.compile(r"/console/review/"), lambda route: late.append(route), times=1)
    with page.expect_request(re.compile(r"/console/review/")):
        page.evaluate("document.body.dispatchEvent(new Event('console:queue'))")
    page.get_by_label("All of these").check()
    with page.expect_response(re.compile(r"/console/review/")):
        late[0].continue_()
    page.wait_for_timeout(500)  # as long as drawing it anew would take
    expect(page.get_by_label("All of these")).to_be_checked()
    page.get_by_role("button", name="Reject…").click()
    expect(page.get_by_role("heading", level=1, name="Reject 2 pairings?")).to_be_visible()


def test_several_are_decided_after_a_look_and_undone_with_one_key(
    stack: Stack, new_context: NewContext, suspects: list[Wording], troubles: Troubles
) -> None:
    troubles.allow(r"status of 409")
    olga = sit_down(new_context, stack, operator("olga"))
    boris = sit_down(new_context, stack, operator("boris"))
    olga.get_by_label("All of these").check()
    olga.get_by_role("button", name="Reject…").click()
    expect(olga.get_by_role("heading", level=1, name="Reject 2 pairings?")).to_be_visible()
    assert {state(one) for one in suspects} == {State.SUSPECT}

    # Meanwhile somebody else decides on one of them: nothing is done, and it is shown as it is now.
    press(boris, "Enter")
    expect(shown(boris)).to_contain_text(SUSPECT)
    press(boris, "a")
    expect(shown(boris)).to_contain_text(LATER)
    with olga.expect_navigation() as navigation:
        olga.get_by_role("button", name="Reject them").click()
    assert navigation.value.status == 409
    expect(olga.get_by_role("alert")).to_contain_text("nothing was done")
    assert state(suspects[1]) == State.SUSPECT
    expect(olga.get_by_text("open with boris")).to_be_visible()
    press(boris, "u")
    expect(boris).to_have_url(re.compile(r"/console/review/$"))
    boris.goto(f"{stack.url}/console/review/{suspects[1].pk}/")
    boris.get_by_role("button", name="Leave it to others").click()

    olga.goto(f"{stack.url}/console/review/")
    olga.get_by_label("All of these").check()
    olga.get_by_role("button", name="Reject…").click()
    olga.get_by_label("Reason (may stay empty)").fill("Other models.")
    olga.get_by_role("button", name="Reject them").click()
    expect(olga.get_by_role("heading", name="Nothing waits for a decision")).to_be_visible()
    assert {state(one) for one in suspects} == {State.REJECTED}
    # There it is to be seen; elsewhere once more, to be heard.
    expect(olga.get_by_role("main").get_by_text("(2 pairings)")).to_be_visible()
    press(olga, "u")
    expect(olga.get_by_role("region", name="Queue").get_by_role("row")).to_have_count(3)
    assert {state(one) for one in suspects} == {State.SUSPECT}


def test_a_flush_is_counted_first_and_watched(
    stack: Stack, new_context: NewContext, suspects: list[Wording]
) -> None:
    for number in range(12):
        stored(suspects[0].scope, f"Question {number}?", f"Answer {number}.")
    Entry.objects.exclude(pk=suspects[0].entry_id).update(content_class="business")
    page = sit_down(new_context, stack, operator("olga"))
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Flush").click()
    page.get_by_label("Class").select_option("business")
    page.get_by_role("button", name="Count them").click()
    expect(page.get_by_role("heading", name="12 entries would be deleted")).to_be_visible()
    assert Entry.objects.count() == 13
    page.get_by_label("Reason (may stay empty)").fill("New hours")
    page.get_by_role("button", name="Delete them").click()
    # The worker deletes them, and the page says so without being asked again.
    expect(page.get_by_text("12 of 12 deleted")).to_be_visible()
    expect(page.get_by_role("region", name="How far it is").get_by_text("done")).to_be_visible()
    assert Entry.objects.get().pk == suspects[0].entry_id


def test_what_others_do_is_seen_without_a_reload(
    stack: Stack, new_context: NewContext, suspects: list[Wording]
) -> None:
    olga = sit_down(new_context, stack, operator("olga"))
    boris = sit_down(new_context, stack, operator("boris"))
    rows = olga.get_by_role("region", name="Queue").get_by_role("row")
    expect(rows).to_have_count(3)
    press(boris, "Enter")
    expect(olga.get_by_text("open with boris")).to_be_visible()
    press(boris, "r")
    expect(rows).to_have_count(2)
    expect(olga.locator("[data-suspects]")).to_have_text("1")
    # What somebody has ticked is not taken away under their hands.
    olga.get_by_label(f"Choose: {LATER}").check()
    press(boris, "r")
    expect(olga.locator("[data-suspects]")).to_be_hidden()
    expect(rows).to_have_count(2)


def test_figures_are_drawn_and_stand_in_tables(
    stack: Stack, new_context: NewContext, suspects: list[Wording]
) -> None:
    AuditRecord.objects.create(action="invalidate", actor="http", selection={"source": "prices"})
    page = sit_down(new_context, stack, operator("olga"))
    page.goto(f"{stack.url}/console/?range=1h")
    chart = page.get_by_role("figure", name="Who answered, as a share of all lookups")
    expect(chart.locator("canvas")).to_have_count(1)
    expect(chart.locator("canvas")).to_be_visible()
    painted = "it => [...it.getContext('2d').getImageData(0, 0, it.width, it.height).data].some(v => v)"
    assert chart.locator("canvas").evaluate(painted)
    expect(page.get_by_role("listitem").filter(has_text="source changed: prices")).to_be_visible()
    chart.get_by_text("As a table").click()
    expect(chart.get_by_role("cell", name="100.0%")).to_be_visible()
    # A range chosen is drawn anew, and what was unfolded stays so.
    page.get_by_label("Time", exact=True).select_option("7d")
    expect(page).to_have_url(re.compile("range=7d"))
    expect(chart.locator("canvas")).to_have_count(1)
    expect(chart.get_by_role("cell", name="100.0%")).to_be_visible()


def test_what_happens_is_read_out_by_a_region_that_stays(
    stack: Stack, new_context: NewContext, suspects: list[Wording], troubles: Troubles
) -> None:
    troubles.allow(r"status of 409")
    olga = sit_down(new_context, stack, operator("olga"))
    boris = sit_down(new_context, stack, operator("boris"))
    region = olga.locator("#announcer")
    expect(region).to_have_role("status")
    expect(region).to_have_text("")

    # What others do is told by the region that was there before, once.
    region.evaluate("it => { it.dataset.first = 'yes'; }")
    said = watch_announcements(olga)
    press(boris, "Enter")
    expect(shown(boris)).to_contain_text(SUSPECT)
    press(boris, "r")
    expect(shown(boris)).to_contain_text(LATER)
    expect(region).to_have_text("1 pairing waits on this page")
    olga.evaluate("document.body.dispatchEvent(new Event('console:queue'))")
    boris.get_by_role("button", name="Leave it to others").click()
    expect(olga.get_by_text("open with boris")).to_have_count(0)
    expect(region).to_have_attribute("data-first", "yes")
    assert said() == ["1 pairing waits on this page"]

    # What one has done oneself, and what went wrong with it, by that of the page that follows.
    press(olga, "Enter")
    expect(shown(olga)).to_contain_text(LATER)
    expect(region).to_have_text("")
    Entry.objects.filter(pk=suspects[1].entry_id).update(answer="Another answer by now.")
    with olga.expect_navigation() as navigation:
        press(olga, "a")
    assert navigation.value.status == 409
    expect(region).to_contain_text("This changed while you looked at it")
    press(olga, "a")
    expect(region).to_contain_text("Your last action: approved")
    press(olga, "u")
    expect(region).to_contain_text("Undone.")


@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("size", [(1280, 800), (360, 740)], ids=["desktop", "phone"])
def test_every_page_reads_well(
    stack: Stack,
    new_context: NewContext,
    suspects: list[Wording],
    size: tuple[int, int],
    language: str,
    troubles: Troubles,
) -> None:
    """Named controls, contrast in both themes, nothing wider than the screen; in both languages."""
    troubles.allow(r"status of 400")  # thresholds that serve more are asked for once more
    page = sit_down(new_context, stack, operator("olga"), viewport={"width": size[0], "height": size[1]})
    cookie = {"name": "django_language", "value": language, "url": stack.url}
    page.context.add_cookies([cookie])  # type: ignore[list-item]
    page.goto(f"{stack.url}/console/review/")
    expect(page.locator("html")).to_have_attribute("lang", re.compile(language, re.IGNORECASE))

    def reads_well() -> None:
        check(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert faint(page) == [], (page.url, scheme)

    press(page, "Enter")
    expect(page.locator("button[value=approve]")).to_be_visible()
    reads_well()
    for path in addresses(suspects[0]):
        page.goto(f"{stack.url}/console/{path}")
        reads_well()
    page.goto(f"{stack.url}/console/review/")
    page.locator("[data-all]").check()
    page.locator("button[value=reject]").click()
    expect(page).to_have_url(re.compile("/bulk/"))
    reads_well()
    page.goto(f"{stack.url}/console/versions/")
    page.locator("#b-knowledge").fill("2")
    page.locator('form[action$="/preview/"] button[type=submit]').click()
    expect(page).to_have_url(re.compile("/preview/"))
    reads_well()
    page.goto(f"{stack.url}/console/thresholds/?high=0.9&low=0.8")
    page.locator("form.save button[value=live]").click()
    expect(page.locator("#problem")).to_be_visible()
    reads_well()


def addresses(suspect: Wording) -> list[str]:
    """Every page that is read, with something on it."""
    source = DataSource.objects.create(key="prices", changes=1)
    EntrySource.objects.create(entry=suspect.entry, source_key="prices", version="1")
    decided = audit.record("a test", "reject", [audit.Change(audit.WORDING, suspect.pk)], "Another model.")
    flushed = AuditRecord.objects.create(
        action="flush", actor="olga", before={"entries": 2}, after={"entries": 1}, status="interrupted"
    )
    policy.write(None, "", Thresholds(0.985, 0.88, 0.78, 0.5), Mode.PROPOSED, seen=0, fit=fitted())
    policy.write(None, "", Thresholds(0.985, 0.85, 0.78, 0.5), Mode.SHADOW, seen=1)
    return [
        *("", "?range=1h&class=fact", "entries/", "entries/?like=warranty", f"entries/{suspect.entry_id}/"),
        *("review/", "thresholds/", "thresholds/?high=0.9&low=0.8", "audit/", f"audit/{decided}/"),
        *(f"audit/{flushed.batch}/", "health/", "ledger/", "versions/", "flush/?everything=on"),
        *("sources/", f"sources/{source.pk}/?version=", "sessions/", f"sessions/{suspect.session_id}/"),
    ]


def test_without_a_script_everything_can_be_read_and_decided(
    stack: Stack, new_context: NewContext, suspects: list[Wording]
) -> None:
    page = sit_down(new_context, stack, operator("olga"), java_script_enabled=False)
    page.get_by_role("button", name="Start with the first").click()
    expect(shown(page)).to_contain_text(SUSPECT)
    page.get_by_label("Reason (may stay empty)").press("Enter")
    assert state(suspects[0]) == State.SUSPECT
    page.get_by_role("button", name="Reject").click()
    expect(shown(page)).to_contain_text(LATER)
    assert state(suspects[0]) == State.REJECTED
    names = (
        "Overview",
        "Entries",
        "Thresholds",
        "Sessions",
        "Sources",
        "Versions",
        "Flush",
        "Ledger",
        "Audit",
    )
    for name in (*names, "Health"):
        page.get_by_role("navigation", name="Console").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
    page.goto(f"{stack.url}/console/entries/{suspects[0].entry_id}/")
    expect(page.get_by_role("main")).to_contain_text(ANSWER)
    page.goto(f"{stack.url}/console/sessions/{suspects[0].session_id}/")
    expect(page.get_by_role("region", name="How it was answered")).to_contain_text(SUSPECT)
    # Other thresholds are looked at, too.
    page.goto(f"{stack.url}/console/thresholds/")
    page.get_by_role("spinbutton", name="Lower threshold").fill("0.95")
    page.get_by_role("button", name="See what they come to").click()
    expect(page.get_by_text("Considered: 0.985 and 0.950")).to_be_visible()
