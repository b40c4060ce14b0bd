"""An operator moves a threshold, and the next question in a chat is decided by it."""

import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from inference import scopes
from inference.cache import policy
from inference.models import Policy
from tests.browser.chat import Chat
from tests.browser.conftest import NewContext
from tests.browser.test_accessibility import check
from tests.browser.troubles import Troubles
from tests.console.conftest import operator, stored
from tests.stack import Stack

ASKED = "When does the museum open on Sundays?"
ANSWER = "At ten in the morning, and at noon in winter."


@pytest.fixture
def page_of(stack: Stack, new_context: NewContext) -> Page:
    """The thresholds' page, with an operator before it."""
    client = Client()
    client.force_login(operator())
    context = new_context()
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": stack.url}])
    page = context.new_page()
    page.goto(f"{stack.url}/console/thresholds/")
    return page


def put_in_force(page: Page, high: str, low: str) -> None:
    """By hand, and at once: the figures may come later."""
    page.get_by_role("spinbutton", name="Upper threshold").fill(high)
    page.get_by_role("spinbutton", name="Lower threshold").fill(low)
    save = page.locator("form.save").get_by_role("button", name="Put in force")
    save.click()


def ask(stack: Stack, new_context: NewContext, question: str) -> str:
    """What somebody who comes now is answered."""
    return Chat(new_context().new_page(), stack.url).open().ask(question).source


def test_the_next_question_is_decided_by_it(
    stack: Stack, page_of: Page, new_context: NewContext, troubles: Troubles
) -> None:
    troubles.allow(r"status of 400")
    stored(scopes.current(), ASKED, ANSWER)
    check(page_of)
    put_in_force(page_of, "0.800", "0.800")
    page_of.get_by_role("button", name="Serve more all the same").click()
    said = page_of.get_by_role("list", name="Notices")
    expect(said.get_by_text("In force. The next question is decided by them.")).to_be_visible()
    page_of.wait_for_timeout(1_000)  # what it takes to be at work everywhere
    assert ask(stack, new_context, "On Sundays, at what time does the museum open?") == ANSWER

    put_in_force(page_of, "1.000", "1.000")
    expect(page_of).to_have_url(re.compile(r"/console/thresholds/\?"))
    expect(page_of.get_by_text("In force: 1.000 and 1.000;")).to_be_visible()
    page_of.wait_for_timeout(1_000)
    assert ask(stack, new_context, "At what hour on a Sunday does the museum open?") != ANSWER
    assert [row.low for row in Policy.objects.order_by("version")] == [0.8, 1.0]
    assert policy.standing(None, "").own


def test_sliders_and_numbers_go_together(page_of: Page) -> None:
    high, low = (page_of.get_by_role("spinbutton", name=f"{name} threshold") for name in ("Upper", "Lower"))
    page_of.get_by_role("slider", name="Lower threshold").fill("0.93")
    expect(low).to_have_value("0.930")
    expect(page_of.get_by_role("status").filter(has_text="Considered")).to_contain_text("0.985 and 0.930")
    expect(page_of).to_have_url(re.compile("low=0.930"))
    page_of.get_by_role("slider", name="Upper threshold").fill("0.9")
    expect(low).to_have_value("0.900")
    expect(page_of.get_by_role("status").filter(has_text="Considered")).to_contain_text("0.900 and 0.900")
    low.fill("0.95")
    expect(high).to_have_value("0.95")
    # What the address says is what the page shows when it is opened again.
    expect(page_of).to_have_url(re.compile("low=0.95&"))
    page_of.reload()
    expect(low).to_have_value("0.950")


def test_on_a_phone_nothing_is_cut_off(page_of: Page) -> None:
    policy.write(None, "", policy.Thresholds(0.99, 0.95, 0.78, 0.5), "live", seen=0, author="olga")
    page_of.set_viewport_size({"width": 360, "height": 740})
    page_of.reload()
    width = page_of.evaluate("document.documentElement.scrollWidth")
    assert width <= 360
    check(page_of)
