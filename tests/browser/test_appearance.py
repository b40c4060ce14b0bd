"""Languages, themes, and a narrow screen."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser import questions
from tests.browser.chat import Chat
from tests.browser.conftest import NewContext
from tests.browser.written import Written, guest_of
from tests.stack import Stack

MARKDOWN = (
    """A paragraph with a-very-long-word-"""
    + "x" * 200
    + """ in it.

| A table | that is | much wider | than any | telephone |
|---|---|---|---|---|
| with words | that do not | break | anywhere | unfortunately |

```python
print("a line of code that is a lot longer than a telephone is wide, and goes on and on and on")
```
"""
)


def test_the_page_speaks_chinese(chat: Chat) -> None:
    page = chat.page
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("html")).to_have_attribute("lang", re.compile("zh-hans", re.IGNORECASE))
    field = page.get_by_role("textbox", name="消息")
    expect(field).to_be_focused()
    page.get_by_role("button", name="设置").click()
    expect(page.get_by_role("button", name="简体中文")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    field.fill(questions.short())
    field.press("Enter")
    chat.answer().finished()
    expect(chat.answer().provenance).to_contain_text("模型")
    assert not re.search("[a-z]{4}", chat.answer().provenance.inner_text())
    page.get_by_role("button", name="设置").click()
    page.get_by_role("button", name="English").click()
    expect(chat.answer().provenance).to_contain_text("By the model")


def test_a_theme_is_remembered(chat: Chat) -> None:
    page = chat.page

    def background() -> str:
        return str(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))

    page.emulate_media(color_scheme="light")
    light = background()
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    dark = background()
    assert dark != light
    page.reload()
    assert background() == dark
    page.goto(chat.url + "/accounts/login/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="System").click()
    page.goto(chat.url)
    assert background() == light
    page.emulate_media(color_scheme="dark")
    assert background() == dark


@pytest.fixture
def phone(stack: Stack, new_context: NewContext) -> Chat:
    context = new_context(viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True)
    return Chat(context.new_page(), stack.url).open()


def width(chat: Chat) -> int:
    return int(chat.page.evaluate("() => document.scrollingElement.scrollWidth"))


def test_a_telephone_scrolls_up_and_down_only(phone: Chat) -> None:
    assert width(phone) == 360
    talk = Written(guest_of(phone.page.context), "A title that is wider than a telephone " * 4)
    talk.turn("https://example.org/" + "y" * 300, MARKDOWN)
    phone.open_conversation(talk.id)
    expect(phone.answers).to_have_count(1)
    assert width(phone) == 360
    wide = phone.page.evaluate(
        "() => [...document.querySelectorAll('#main *')].filter(it => it.getBoundingClientRect().right > 361"
        " && !it.closest('pre, .table')).map(it => it.outerHTML.slice(0, 80))"
    )
    assert wide == []
    for path in ("/accounts/login/", "/accounts/signup/"):
        phone.open(path)
        assert width(phone) == 360


def test_a_telephone_has_the_list_in_a_drawer(phone: Chat) -> None:
    page = phone.page
    owner = guest_of(page.context)
    Written(owner, "Tea").turn("How is tea made?", "With hot water.")
    coffee = Written(owner, "Coffee").turn("And coffee?", "Likewise.")
    phone.open_conversation(coffee.id)
    opener = page.get_by_role("link", name="Conversations")
    link = phone.list.get_by_role("link", name="Tea")
    expect(link).to_have_count(0)  # put away, it is not there for anybody
    opener.tap()
    expect(link).to_be_visible()
    expect(page.get_by_role("button", name="Close the list")).to_be_focused()
    page.keyboard.press("Escape")
    expect(link).to_have_count(0)
    expect(opener).to_be_focused()
    opener.tap()
    expect(link).to_be_visible()
    page.touchscreen.tap(350, 300)
    expect(link).to_have_count(0)
    opener.tap()
    link.tap()
    expect(phone.title).to_have_text("Tea")
    phone.ask(questions.short())
    assert width(phone) == 360
