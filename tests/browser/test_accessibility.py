"""What a page is to somebody who does not see it."""

import re

import pytest
from playwright.sync_api import Page, expect

from launch.process import wait_until
from tests.browser import questions
from tests.browser.chat import Chat
from tests.browser.model import let_write_until
from tests.browser.watching import watch_announcements, watch_stream
from tests.browser.written import Written, guest_of
from tests.stack import Stack

CONTROLS = "button|link|textbox|searchbox|checkbox|radio|combobox|dialog|group|region|navigation|heading"
UNNAMED = re.compile(rf"^\s*- (?:{CONTROLS})(?: \[.*\])?:?$")


def check(page: Page) -> None:
    """One page title, one h1, one main, no id twice, and a name for everything that has a role."""
    expect(page).to_have_title(re.compile(r"\w"))
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.locator("html")).to_have_attribute("lang", re.compile(r"\w"))
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(it => it.id)")
    assert len(ids) == len(set(ids)), sorted(ids)
    tree = page.locator("body").aria_snapshot()
    assert not [line for line in tree.splitlines() if UNNAMED.match(line)], tree
    levels = [int(level) for level in re.findall(r"- heading .*\[level=(\d)\]", tree)]
    steps = zip(sorted(set(levels)), sorted(set(levels))[1:], strict=False)
    assert all(deeper - level == 1 for level, deeper in steps), levels


def faint(page: Page) -> list[str]:
    """The texts that don't stand out, once scripts have drawn anew what follows the theme.

    Asked again and again: a promise of the next frame would be waited for for ever where a busy machine
    draws none.
    """
    wait_until(lambda: page.evaluate(_FAINT) == [], 5)
    return list(page.evaluate(_FAINT))


def test_everything_has_a_name_and_a_place(chat: Chat) -> None:
    check(chat.page)
    talk = Written(guest_of(chat.page.context), "Tea").turn("How?", "# Tea\n\n## Black\n\n`boil`\n\n    code")
    chat.open_conversation(talk.id)
    check(chat.page)
    for landmark in ("complementary", "main", "navigation", "search"):
        expect(chat.page.get_by_role(landmark)).to_have_count(1)
    chat.page.get_by_role("button", name="Settings").click()
    check(chat.page)
    chat.page.keyboard.press("Escape")
    chat.question().hover()
    chat.question().get_by_role("button", name="Edit question").click()
    check(chat.page)
    chat.page.keyboard.press("Escape")
    chat.page.keyboard.press("Control+/")
    check(chat.page)


@pytest.mark.parametrize("path", ["/accounts/login/", "/accounts/signup/", "/accounts/password/reset/"])
def test_the_pages_around_the_chat_too(chat: Chat, path: str) -> None:
    chat.open(path)
    check(chat.page)


def test_an_answer_is_read_out_once_and_not_by_token(chat: Chat, stack: Stack) -> None:
    said = watch_announcements(chat.page)
    shown = watch_stream(chat.page)
    with chat.halfway(stack, questions.long()):
        for _ in range(2):
            seen = len(chat.stream.inner_text())
            let_write_until(stack, lambda seen=seen: len(chat.stream.inner_text()) > seen)
        live = chat.stream.evaluate("it => it.closest('[aria-live], [role]')")
        assert live is None
        expect(chat.stream).to_have_attribute("aria-busy", "true")
    chat.answer().finished()
    region = chat.page.locator("#announcer")
    expect(region).to_have_attribute("aria-live", "polite")
    expect(region).to_contain_text("Answer finished.")
    assert len(shown()) > len(said())
    assert [text.split(".")[0] for text in said()] == ["Answer started", "Answer finished"]
    assert chat.answer().body.inner_text() in said()[-1]


def test_text_and_controls_stand_out(chat: Chat) -> None:
    """WCAG's 4.5:1 for text, in both themes."""
    talk = Written(guest_of(chat.page.context), "Tea")
    talk.turn("How?", "Boil [water](https://example.org).\n\n```python\nif True:  # so\n    x = 'a' + 1\n```")
    chat.open_conversation(talk.id)
    for scheme in ("light", "dark"):
        chat.page.emulate_media(color_scheme=scheme)
        assert faint(chat.page) == [], scheme


# Every visible text against the nearest opaque background under it.
_FAINT = """() => {
  const parse = (colour) => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) =>
    [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (it) => {
    for (; it; it = it.parentElement) {
      const colour = parse(getComputedStyle(it).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const it = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !it.checkVisibility({opacityProperty: true})) continue;
    if (it.closest(".visually-hidden, template, script, :disabled")) continue;
    const both = [luminance(parse(getComputedStyle(it).color)), luminance(ground(it))];
    const [a, b] = both.sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faint.push(`${texts.currentNode.data.trim()}: ${ratio.toFixed(2)}`);
  }
  return faint;
}"""
