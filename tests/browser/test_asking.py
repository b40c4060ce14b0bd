"""Typing, sending, watching the answer grow, and where it came from."""

from itertools import pairwise

from playwright.sync_api import CDPSession, expect

from chat.models import Message
from tests.browser import questions
from tests.browser.chat import CONVERSATION_URL, Chat
from tests.browser.watching import watch_stream
from tests.stack import Stack


def test_a_guest_asks_and_sees_the_answer_grow(chat: Chat) -> None:
    states = watch_stream(chat.page)
    question = questions.short()
    answer = chat.ask(question)
    seen = states()
    assert len(seen) >= 3, seen
    assert all(later.startswith(earlier) for earlier, later in pairwise(seen))
    assert seen[-1] == answer.generation.text
    expect(answer.provenance).to_contain_text("By the model")
    expect(answer.body).to_have_class("body prose")
    expect(answer.body.locator("p")).not_to_be_empty()
    expect(chat.page).to_have_url(CONVERSATION_URL)
    expect(chat.title).to_have_text(question)
    link = chat.list.get_by_role("link", name=question)
    expect(link).to_have_attribute("aria-current", "page")
    expect(chat.page).to_have_title(f"{question} · Reprise")


def test_asked_again_it_comes_from_the_cache_and_can_be_asked_anew(chat: Chat) -> None:
    question = questions.short()
    first = chat.ask(question).source
    chat.new_chat()
    cached = chat.ask(question.lower().replace(" ", "  "))
    assert cached.source == first
    expect(cached.provenance).to_contain_text("From the cache")
    cached.button("ask again?").click()
    fresh = chat.answer()
    expect(fresh.provenance).to_contain_text("By the model")
    fresh.finished()
    expect(chat.answers).to_have_count(1)
    expect(fresh.siblings).to_have_text("2/2")
    fresh.button("Previous version").click()
    expect(cached.siblings).to_have_text("1/2")
    expect(cached.provenance).to_contain_text("From the cache")
    expect(cached.button("Previous version")).to_be_disabled()
    cached.button("Next version").click()
    expect(fresh.siblings).to_have_text("2/2")
    expect(fresh.provenance).to_contain_text("By the model")


def test_enter_sends_and_shift_enter_breaks_the_line(chat: Chat) -> None:
    expect(chat.send).to_be_disabled()
    chat.field.press("Enter")
    chat.field.press_sequentially("What is the capital")
    chat.field.press("Shift+Enter")
    chat.field.press_sequentially("of Spain?")
    expect(chat.field).to_have_value("What is the capital\nof Spain?")
    expect(chat.questions).to_have_count(0)
    chat.field.press("Enter")
    expect(chat.question().locator(".bubble")).to_have_text("What is the capital\nof Spain?")
    expect(chat.field).to_have_value("")
    chat.answer().finished()


def test_enter_belongs_to_the_input_method_while_it_composes(chat: Chat) -> None:
    chat.field.focus()
    keyboard = chat.page.context.new_cdp_session(chat.page)
    keyboard.send("Input.imeSetComposition", {"text": "ni hao", "selectionStart": 6, "selectionEnd": 6})
    expect(chat.field).to_have_value("ni hao")
    _enter(keyboard, code=229)
    _enter(keyboard, code=13)
    keyboard.send("Input.insertText", {"text": "你好"})
    expect(chat.field).to_have_value("你好")
    assert not Message.objects.exists()
    chat.field.press("Enter")
    expect(chat.question().locator(".bubble")).to_have_text("你好")
    chat.answer().finished()


def _enter(keyboard: CDPSession, code: int) -> None:
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": code}
    keyboard.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **key})
    keyboard.send("Input.dispatchKeyEvent", {"type": "keyUp", **key})


def test_a_text_over_the_limit_is_kept_and_not_sent(chat: Chat) -> None:
    text = "😀" * 8_001
    chat.field.fill(text)
    expect(chat.page.get_by_text("1 over the limit")).to_be_visible()
    expect(chat.send).to_be_disabled()
    expect(chat.field).to_have_attribute("aria-invalid", "true")
    chat.field.press("Enter")
    expect(chat.field).to_have_value(text)
    chat.page.reload()
    expect(chat.field).to_have_value(text)
    assert not Message.objects.exists()
    chat.field.fill(text[:8_000])
    expect(chat.page.get_by_text("0 left")).to_be_visible()
    expect(chat.send).to_be_enabled()


def test_what_the_server_refuses_says_why_and_can_be_changed(chat: Chat) -> None:
    """The field of an edit knows no limit, the server does."""
    chat.ask(questions.short())
    chat.question().hover()
    chat.question().get_by_role("button", name="Edit question").click()
    editor = chat.question().get_by_role("textbox", name="Edit question")
    editor.fill("x" * 8_001)
    editor.press("Enter")
    expect(chat.question().get_by_role("alert")).to_have_text("This text is too long.")
    expect(editor).to_have_value("x" * 8_001)
    expect(editor).to_be_editable()
    assert Message.objects.filter(role="user").count() == 1


def test_a_second_question_waits_for_the_first_answer(chat: Chat, stack: Stack) -> None:
    with chat.halfway(stack, questions.long()):
        chat.say("And then?")
        expect(chat.page.locator("#hint")).to_contain_text(
            "An answer is being written. Press Esc to stop it."
        )
        expect(chat.field).to_have_value("And then?")
    chat.answer().finished()
    expect(chat.send).to_be_enabled()
    chat.field.press("Enter")
    expect(chat.questions).to_have_count(2)
    chat.answer().finished()


def test_an_example_goes_into_the_field(chat: Chat) -> None:
    example = chat.page.get_by_role("list", name="Examples").get_by_role("button").nth(1)
    text = example.inner_text()
    example.click()
    expect(chat.field).to_have_value(text)
    expect(chat.field).to_be_focused()
    expect(chat.send).to_be_enabled()
