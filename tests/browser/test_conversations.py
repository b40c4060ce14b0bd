"""The list of conversations: rename, delete, search, export."""

import json
import re
from pathlib import Path

from playwright.sync_api import Locator, Route, expect

from chat.models import Conversation
from tests.browser import questions
from tests.browser.chat import Chat
from tests.browser.written import Written, guest_of


def menu(chat: Chat, title: str) -> Locator:
    """Opens the menu of a conversation in the list."""
    chat.list.get_by_role("link", name=title, exact=True).hover()
    chat.list.get_by_role("button", name=f"Actions for “{title}”").click()
    return chat.page.locator(".menu:popover-open")


def test_a_conversation_is_renamed(chat: Chat) -> None:
    talk = Written(guest_of(chat.page.context), "Old <name>").turn("Question", "Answer")
    chat.open_conversation(talk.id)
    menu(chat, "Old <name>").get_by_text("Rename").click()
    title = chat.list.get_by_role("textbox", name="Title")
    expect(title).to_be_focused()
    expect(title).to_have_value("Old <name>")
    title.fill("Given up")
    title.press("Escape")
    expect(chat.list.get_by_role("link", name="Old <name>")).to_be_visible()
    menu(chat, "Old <name>").get_by_text("Rename").click()
    title.fill("New “name” & more")
    title.press("Enter")
    expect(chat.list.get_by_role("link", name="New “name” & more")).to_be_visible()
    expect(chat.title).to_have_text("New “name” & more")
    chat.page.reload()
    expect(chat.title).to_have_text("New “name” & more")


def test_a_list_that_comes_late_is_not_drawn_over_somebody_who_renames(chat: Chat) -> None:
    talk = Written(guest_of(chat.page.context), "Old name").turn("Question", "Answer")
    chat.open_conversation(talk.id)
    late: list[Route] = []
    listed = re.compile(r"/conversations/\?q=")
    chat.page.route(listed, lambda route: late.append(route), times=1)
    with chat.page.expect_request(listed):
        chat.say(questions.short())
    menu(chat, "Old name").get_by_text("Rename").click()
    title = chat.list.get_by_role("textbox", name="Title")
    title.fill("New name")
    with chat.page.expect_response(listed):
        late[0].continue_()
    chat.answer().finished()
    expect(title).to_have_value("New name")
    expect(title).to_be_focused()
    with chat.page.expect_response(listed):  # what came late is fetched again, once nobody is renaming
        title.press("Enter")
    expect(chat.list.get_by_role("link", name="New name")).to_be_visible()


def test_a_menu_that_was_open_is_no_trouble_to_a_list_drawn_anew(chat: Chat) -> None:
    """Its place, written by a script, would be copied as a style attribute, which the CSP forbids."""
    talk = Written(guest_of(chat.page.context), "Old name").turn("Question", "Answer")
    chat.open_conversation(talk.id)
    expect(menu(chat, "Old name")).to_be_visible()
    chat.page.keyboard.press("Escape")
    with chat.page.expect_response(re.compile(r"/conversations/\?q=")):
        chat.ask(questions.short())
    expect(menu(chat, "Old name")).to_be_visible()


def test_deleting_asks_first(chat: Chat) -> None:
    owner = guest_of(chat.page.context)
    shown = Written(owner, "Shown").turn("Question", "Answer")
    other = Written(owner, "Other").turn("Question", "Answer")
    chat.open_conversation(shown.id)
    dialog = chat.page.get_by_role("dialog", name="Delete this conversation?")

    menu(chat, "Other").get_by_text("Delete…").click()
    expect(dialog).to_contain_text("“Other” will be gone for good")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    menu(chat, "Other").get_by_text("Delete…").click()
    expect(dialog).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert Conversation.objects.filter(pk=other.id).exists()

    menu(chat, "Other").get_by_text("Delete…").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(chat.list.get_by_role("link", name="Other")).to_have_count(0)
    expect(chat.answers).to_have_count(1)
    assert not Conversation.objects.filter(pk=other.id).exists()

    menu(chat, "Shown").get_by_text("Delete…").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(chat.page).to_have_url(chat.url + "/")
    expect(chat.list).to_contain_text("Your conversations will be listed here.")
    assert not Conversation.objects.exists()


def test_searching_finds_titles_questions_and_answers(chat: Chat) -> None:
    owner = guest_of(chat.page.context)
    Written(owner, "Bread").turn("How is it baked?", "With yeast.")
    Written(owner, "Ships").turn("Why do they float?", "They displace water.")
    chat.open()
    field = chat.page.get_by_role("searchbox", name="Search conversations")
    links = chat.list.get_by_role("link")
    for text, found in (("bread", "Bread"), ("FLOAT", "Ships"), ("yeast", "Bread")):
        field.fill(text)
        expect(links).to_have_text([found])
        expect(chat.list.get_by_role("status")).to_have_text("1 conversation")
    field.fill("100%_")
    expect(chat.list).to_contain_text("Nothing found for “100%_”.")
    field.fill("")
    expect(links).to_have_text(["Ships", "Bread"])


def test_of_a_long_conversation_the_end_comes_first(chat: Chat) -> None:
    talk = Written(guest_of(chat.page.context), "Long")
    for number in range(55):
        talk.turn(f"Question {number}", f"Answer {number}")
    chat.open_conversation(talk.id)
    expect(chat.questions).to_have_count(50)
    expect(chat.answer().body).to_be_in_viewport()
    chat.page.locator("#scroller").evaluate("it => it.scrollTo(0, 0)")
    jump = chat.page.get_by_role("button", name="Jump to the latest")
    expect(jump).to_be_visible()
    chat.page.get_by_role("link", name="Show 10 earlier messages").click()
    expect(chat.questions).to_have_count(55)
    expect(chat.question(0)).to_contain_text("Question 0")
    jump.click()
    expect(chat.answer().body).to_be_in_viewport()
    expect(jump).to_be_hidden()


def test_exports_are_downloaded(chat: Chat) -> None:
    talk = Written(guest_of(chat.page.context), "Tea: a/b").turn("How is tea made?", "With *hot* water.")
    chat.open_conversation(talk.id)

    def download(kind: str) -> tuple[str, str]:
        with chat.page.expect_download() as started:
            menu(chat, "Tea: a/b").get_by_text(f"Export as {kind}").click()
        return started.value.suggested_filename, Path(started.value.path()).read_text()

    name, text = download("Markdown")
    assert name == "Tea a b.md"
    assert text.startswith("# Tea: a/b\n\n## Question\n")
    assert "How is tea made?" in text and "With *hot* water." in text
    name, text = download("JSON")
    assert name == "Tea a b.json"
    exported = json.loads(text)
    assert exported["id"] == str(talk.id)
    assert [message["text"] for message in exported["messages"]] == ["How is tea made?", "With *hot* water."]
    expect(chat.answers).to_have_count(1)
