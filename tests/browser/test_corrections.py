"""The quiet line under a question that was understood as a correction, and its Undo."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from inference.models import Invalidation
from tests.browser import questions
from tests.browser.chat import Chat
from tests.browser.conftest import NewContext
from tests.browser.watching import watch_announcements
from tests.stack import Stack

NO = "No, that's wrong. I meant another country."


def line(chat: Chat) -> Locator:
    return chat.question().locator(".correction")


def take_back(chat: Chat) -> None:
    """Ask something, and correct it."""
    chat.ask(questions.short())
    chat.ask(NO)


def test_it_appears_at_once_is_read_out_and_outlives_a_reload(chat: Chat) -> None:
    chat.ask(questions.short())
    said = watch_announcements(chat.page)
    chat.ask(NO)
    expect(line(chat)).to_contain_text("Understood as a correction; earlier cached answers of this chat")
    assert any(text.startswith("Understood as a correction") for text in said())
    expect(chat.page.locator(".correction")).to_have_count(1)
    chat.page.reload()
    expect(chat.page.locator(".correction")).to_have_count(1)
    expect(line(chat)).to_contain_text("Understood as a correction")


def test_undo_by_keyboard(chat: Chat) -> None:
    take_back(chat)
    button = chat.question().get_by_role("button", name="Undo")
    button.focus()
    chat.page.keyboard.press("Enter")
    expect(line(chat)).to_contain_text("Undone")
    expect(line(chat).locator("p")).to_be_focused()
    expect(button).to_have_count(0)
    assert Invalidation.objects.get().undone_at is not None
    chat.page.reload()
    expect(line(chat)).to_contain_text("Undone")


def test_without_a_script_undo_is_a_form(stack: Stack, chat: Chat, new_context: NewContext) -> None:
    take_back(chat)
    state: Any = chat.page.context.storage_state()
    plain = new_context(java_script_enabled=False, storage_state=state).new_page()
    plain.goto(chat.page.url)
    plain.get_by_role("button", name="Undo").click()
    expect(plain.locator(".correction")).to_contain_text("Undone")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_telephone_by_day_and_night(stack: Stack, new_context: NewContext, scheme: Any) -> None:
    page = new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme).new_page()
    chat = Chat(page, stack.url).open()
    take_back(chat)
    expect(line(chat)).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    colours = line(chat).evaluate(
        "it => [getComputedStyle(it).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert contrast(*colours) >= 4.5


def contrast(first: str, second: str) -> float:
    """Of two CSS colours, as WCAG 2 reckons it."""
    lights = sorted((luminance(colour) for colour in (first, second)), reverse=True)
    return (lights[0] + 0.05) / (lights[1] + 0.05)


def luminance(colour: str) -> float:
    parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_it_speaks_chinese(chat: Chat) -> None:
    page = chat.page
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="简体中文").click()
    field = page.get_by_role("textbox", name="消息")
    expect(field).to_be_focused()
    for number, text in enumerate(["法国的首都是哪里？请用一个词回答。", "不对，我说的是西班牙。"], 1):
        field.fill(text)
        field.press("Enter")
        expect(chat.answers).to_have_count(number)
        expect(chat.answer().article).to_have_attribute("data-status", "complete")
    expect(line(chat)).to_contain_text("已理解为更正")
    expect(chat.question().get_by_role("button", name="撤销")).to_be_visible()
