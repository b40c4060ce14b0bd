"""Guests, accounts, and what nobody sees of another."""

import re

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from chat.models import Conversation, Message
from tests.browser import questions
from tests.browser.chat import Chat
from tests.browser.conftest import NewContext
from tests.browser.troubles import Troubles
from tests.browser.written import Written, guest_of
from tests.stack import Stack

PASSWORD = "correct-horse-battery"


def sign_up(page: Page, name: str) -> None:
    page.get_by_role("link", name="Create an account").click()
    page.get_by_label("Username").fill(name)
    page.get_by_label(re.compile("^Password:?$")).fill(PASSWORD)
    page.get_by_label("Password (again)").fill(PASSWORD)
    page.get_by_role("button", name="Sign Up").click()


def test_a_guest_who_signs_up_keeps_the_conversations(chat: Chat) -> None:
    question = questions.short()
    answer = chat.ask(question).source
    chat.field.fill("Not sent yet")
    chat.field.press("End")
    sign_up(chat.page, "ada")
    expect(chat.page.get_by_role("button", name="ada")).to_be_visible()
    chat.list.get_by_role("link", name=question).click()
    assert chat.answer().finished().source == answer
    expect(chat.field).to_have_value("Not sent yet")
    chat.ask(questions.short())

    chat.page.get_by_role("button", name="ada").click()
    chat.page.get_by_role("button", name="Sign out").click()
    expect(chat.page.get_by_text("You chat as a guest.")).to_be_visible()
    expect(chat.list).to_contain_text("Your conversations will be listed here.")

    chat.page.get_by_role("link", name="sign in").click()
    chat.page.get_by_label("Login").fill("ada")
    chat.page.get_by_label("Password").fill(PASSWORD)
    chat.page.get_by_role("button", name="Sign In").click()
    expect(chat.list.get_by_role("link", name=question)).to_be_visible()


def test_another_browser_sees_nothing_of_it(
    chat: Chat, stack: Stack, new_context: NewContext, troubles: Troubles
) -> None:
    troubles.allow(r"status of 404")
    talk = Written(guest_of(chat.page.context), "Private matters").turn("Secret question", "Secret answer")
    chat.open_conversation(talk.id)
    expect(chat.answers).to_have_count(1)
    stranger = Chat(new_context().new_page(), stack.url).open()
    expect(stranger.list).to_contain_text("Your conversations will be listed here.")
    for path in ("", "export.md", "export.json", "rename/", "delete/"):
        response = stranger.page.goto(f"{stack.url}/c/{talk.id}/{path}")
        assert response and response.status == 404, path
        assert "Secret" not in response.text() and "Private" not in response.text()
    message = chat.answer().article.get_attribute("data-message")
    response = stranger.page.goto(f"{stack.url}/messages/{message}/")
    assert response and response.status == 404


def test_signed_out_in_another_tab_a_page_says_so_and_sends_nothing(chat: Chat) -> None:
    sign_up(chat.page, "grace")
    other = chat.tab()
    other.page.get_by_role("button", name="grace").click()
    other.page.get_by_role("button", name="Sign out").click()
    expect(other.page.get_by_text("You chat as a guest.")).to_be_visible()
    expect(chat.status).to_have_text("You are signed out. Sign in")
    chat.say("Whose is this?")
    expect(chat.field).to_have_value("Whose is this?")
    other.open()
    expect(other.field).to_have_value("")
    expect(other.unsent).to_have_count(0)
    other.ask(questions.short())
    assert not Message.objects.filter(text="Whose is this?").exists()


def test_a_guests_other_tab_goes_on_as_the_account(chat: Chat) -> None:
    question = questions.short()
    chat.ask(question)
    chat.field.fill("Not sent yet")
    other = chat.tab()
    expect(other.field).to_have_value("Not sent yet")
    sign_up(other.page, "linus")
    expect(chat.page.get_by_role("button", name="linus")).to_be_visible()
    expect(chat.question().locator(".bubble")).to_have_text(question)
    expect(chat.field).to_have_value("Not sent yet")
    chat.ask(questions.short())
    assert Conversation.objects.get().user == User.objects.get(username="linus")
