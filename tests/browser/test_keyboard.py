"""Everything within reach of the keyboard, and the shortcuts of the help sheet."""

from playwright.sync_api import Page, expect

from tests.browser import questions
from tests.browser.chat import Chat
from tests.browser.written import Written, guest_of


def focused(page: Page) -> str:
    """The accessible name of what has the focus, as far as it is written on the element."""
    return str(
        page.evaluate(
            "() => { const it = document.activeElement; return it.getAttribute('aria-label')"
            " ?? (it.labels?.length ? it.labels[0].innerText : it.innerText).trim() }"
        )
    )


def tab_to(page: Page, name: str, backwards: bool = False, within: int = 25) -> None:
    """Press Tab until the control called `name` has the focus. Raises AssertionError."""
    passed = []
    for _ in range(within):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        passed.append(focused(page))
        if passed[-1] == name:
            return
    raise AssertionError(f"{name} not reached, only {passed}")


def test_the_keyboard_alone_is_enough(chat: Chat) -> None:
    page = chat.page
    page.evaluate("() => document.activeElement.blur()")
    tab_to(page, "Skip to the message field", within=2)
    page.keyboard.press("Enter")
    expect(chat.field).to_be_focused()
    question = questions.short()
    page.keyboard.type(question)
    tab_to(page, "Send", within=1)
    page.keyboard.press("Enter")
    chat.answer().finished()
    expect(chat.field).to_be_focused()
    tab_to(page, "Good answer", backwards=True)
    page.keyboard.press("Enter")
    expect(chat.answer().button("Good answer")).to_have_attribute("aria-pressed", "true")
    expect(chat.answer().button("Good answer")).to_be_focused()
    tab_to(page, "Answer anew", backwards=True)
    page.keyboard.press("Enter")
    expect(chat.answer().siblings).to_have_text("2/2")
    chat.answer().finished()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("searchbox")).to_be_focused()
    tab_to(page, f"Actions for “{question}”")
    page.keyboard.press("Enter")
    tab_to(page, "Rename", within=2)
    page.keyboard.press("Enter")
    expect(chat.list.get_by_role("textbox", name="Title")).to_be_focused()
    page.keyboard.type("Renamed")
    page.keyboard.press("Enter")
    expect(chat.list.get_by_role("link", name="Renamed")).to_be_focused()


def test_the_help_sheet_lists_the_shortcuts(chat: Chat) -> None:
    sheet = chat.page.get_by_role("dialog", name="Keyboard shortcuts")
    chat.field.press("?")
    expect(chat.field).to_have_value("?")
    expect(sheet).to_be_hidden()
    chat.field.press("Control+/")
    expect(sheet).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    chat.field.blur()
    chat.page.keyboard.press("?")
    expect(sheet.get_by_role("definition")).to_have_count(7)
    expect(sheet.get_by_role("button", name="Close")).to_be_focused()
    chat.page.keyboard.press("Enter")
    expect(sheet).to_be_hidden()


def test_shortcuts_search_begin_anew_and_edit(chat: Chat) -> None:
    talk = Written(guest_of(chat.page.context), "Tea").turn("How is tea made?", "With hot water.")
    chat.open_conversation(talk.id)
    chat.page.keyboard.press("Control+k")
    search = chat.page.get_by_role("searchbox", name="Search conversations")
    expect(search).to_be_focused()
    chat.field.focus()
    chat.page.keyboard.press("ArrowUp")
    expect(chat.question().get_by_role("textbox", name="Edit question")).to_have_value("How is tea made?")
    chat.page.keyboard.press("Escape")
    expect(chat.field).to_be_focused()
    chat.page.keyboard.press("Control+Shift+O")
    expect(chat.page).to_have_url(chat.url + "/")
    expect(chat.field).to_be_focused()


def test_a_list_drawn_anew_keeps_the_keyboards_place(chat: Chat) -> None:
    owner = guest_of(chat.page.context)
    Written(owner, "Tea").turn("How is tea made?", "With hot water.")
    chat.open()
    link = chat.list.get_by_role("link", name="Tea")
    link.focus()
    Written(owner, "Coffee").turn("And coffee?", "Likewise.")
    chat.page.evaluate("() => htmx.ajax('GET', '/conversations/', '#conversation-list')")
    expect(chat.list.get_by_role("link")).to_have_text(["Coffee", "Tea"])
    expect(link).to_be_focused()


def test_drawn_anew_twice_at_once_it_keeps_it_too(chat: Chat) -> None:
    Written(guest_of(chat.page.context), "Tea").turn("How is tea made?", "With hot water.")
    chat.open()
    link = chat.list.get_by_role("link", name="Tea")
    link.focus()
    # The second answer arrives before the first one has settled.
    chat.page.evaluate(
        """async () => {
            const list = document.getElementById("conversation-list");
            htmx.config.defaultSettleDelay = 500;
            await htmx.ajax("GET", "/conversations/", "#conversation-list");
            await htmx.ajax("GET", "/conversations/", { source: list, target: list, swap: "innerHTML" });
        }"""
    )
    expect(link).to_be_focused()
