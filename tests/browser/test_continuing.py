"""An answer goes on whatever becomes of the page that asked for it, and ends when it is told to."""

import signal

import pytest
from playwright.sync_api import Page, WebSocket, expect

from chat.models import Message
from tests.browser import questions
from tests.browser.chat import Chat
from tests.browser.model import halted, let_write_until
from tests.browser.troubles import Troubles
from tests.browser.watching import watch_stream
from tests.stack import Stack


def test_reloaded_in_the_middle_nothing_is_doubled_and_nothing_lost(chat: Chat, stack: Stack) -> None:
    with chat.halfway(stack, questions.long()):
        before = chat.stream.inner_text()
        chat.page.reload()
        expect(chat.stream).to_have_text(before, use_inner_text=True)
        states = watch_stream(chat.page)
        let_write_until(stack, lambda: len(chat.stream.inner_text()) > len(before))
        assert chat.stream.inner_text().startswith(before)
    answer = chat.answer().finished()
    expect(chat.answers).to_have_count(1)
    assert states()[-1] == answer.source
    assert all(answer.source.startswith(state) for state in states())


def test_two_tabs_show_the_same_answer_growing(chat: Chat, stack: Stack) -> None:
    first = chat.ask(questions.short()).source
    second = chat.tab()
    with chat.halfway(stack, questions.long()):
        expect(second.questions).to_have_count(2)
        expect(second.stream).to_have_text(chat.stream.inner_text(), use_inner_text=True)
        there = watch_stream(second.page)
        seen = len(chat.stream.inner_text())
        let_write_until(stack, lambda: len(chat.stream.inner_text()) > seen)
        expect(second.stream).to_have_text(chat.stream.inner_text(), use_inner_text=True)
    answer = chat.answer().finished()
    assert second.answer().finished().source == answer.source
    assert len(there()) >= 2 and there()[-1] == answer.source
    assert second.answer(0).source == first


def test_a_tab_hears_of_a_conversation_begun_in_another(chat: Chat) -> None:
    other = Chat(chat.page.context.new_page(), chat.url).open()
    question = questions.short()
    chat.ask(question)
    expect(other.list.get_by_role("link", name=question)).to_be_visible()
    expect(other.questions).to_have_count(0)


def test_what_happens_before_a_tab_is_connected_is_on_its_page_once_it_is(chat: Chat) -> None:
    """Between a page and its connection lies a moment of which no frame tells."""
    new, held = chat.unconnected("/")
    question = questions.short()
    chat.ask(question)
    expect(new.list).to_contain_text("Your conversations will be listed here.")
    held.release()
    expect(new.list.get_by_role("link", name=question)).to_be_visible()
    expect(new.questions).to_have_count(0)

    same, held = chat.unconnected(f"/c/{chat.conversation}/")
    expect(same.questions).to_have_count(1)
    answer = chat.ask(questions.short()).source
    expect(same.questions).to_have_count(1)
    held.release()
    expect(same.questions).to_have_count(2)
    assert same.answer().finished().source == answer


@pytest.mark.parametrize("how", ["button", "Escape"])
def test_stopped_it_ends_at_what_is_shown(chat: Chat, stack: Stack, how: str) -> None:
    with chat.halfway(stack, questions.long()):
        states = watch_stream(chat.page)
        if how == "button":
            chat.stop.click()
        else:
            chat.page.keyboard.press(how)
        shown = states()[-1]
    answer = chat.answer().finished("stopped")
    assert answer.generation.text == shown == states()[-1]
    expect(answer.note).to_contain_text("You stopped this answer.")
    expect(chat.stop).to_be_hidden()
    expect(chat.send).to_be_visible()
    chat.page.reload()
    assert chat.answer().finished("stopped").source == shown


def test_stopped_before_the_first_word_it_can_be_asked_for_again(chat: Chat, stack: Stack) -> None:
    with halted(stack):
        chat.say(questions.short())
        expect(chat.stop).to_be_visible()
        chat.stop.click()
        expect(chat.answer().note).to_contain_text("before its first word")
    chat.answer().button("Try again").click()
    expect(chat.answer().siblings).to_have_text("2/2")
    chat.answer().finished()


def test_the_server_goes_away_in_the_middle_of_an_answer(
    chat: Chat, stack: Stack, troubles: Troubles
) -> None:
    troubles.allow("WebSocket connection to|ERR_EMPTY_RESPONSE|ERR_CONNECTION")
    with chat.halfway(stack, questions.long()):
        before = chat.stream.inner_text()
        stack.kill("web")
        expect(chat.status).to_contain_text("No connection. Trying again; what you type is kept.")
        chat.field.fill("Typed meanwhile")
    stack.restart("web")
    expect(chat.status).to_be_hidden()
    answer = chat.answer().finished()
    assert answer.source.startswith(before)
    expect(chat.field).to_have_value("Typed meanwhile")
    expect(chat.questions).to_have_count(1)


def test_a_server_that_hangs_is_noticed_and_left(page: Page, stack: Stack, troubles: Troubles) -> None:
    troubles.allow("WebSocket connection to")
    sockets: list[WebSocket] = []
    page.on("websocket", lambda socket: sockets.append(socket))
    page.clock.install()
    chat = Chat(page, stack.url).open()
    chat.ask(questions.short())
    stack.kill("web", signal.SIGSTOP)
    try:
        page.clock.run_for(80_000)  # the page's time: pings, the verdict, a try that leads to nothing
        expect(chat.status).to_contain_text("No connection.")
    finally:
        stack.kill("web", signal.SIGCONT)
    page.clock.run_for(60_000)
    page.clock.resume()
    expect(chat.status).to_be_hidden()
    chat.ask(questions.short())
    assert [socket.is_closed() for socket in sockets].count(False) == 1


def test_what_is_sent_without_a_server_arrives_once_when_it_is_back(
    chat: Chat, stack: Stack, troubles: Troubles
) -> None:
    troubles.allow("WebSocket connection to|ERR_EMPTY_RESPONSE|ERR_CONNECTION")
    chat.ask(questions.short())
    stack.kill("web")
    expect(chat.status).to_contain_text("No connection.")
    question = questions.short()
    chat.say(question)
    expect(chat.unsent).to_have_count(1)
    expect(chat.unsent).to_contain_text(question)
    expect(chat.unsent).to_contain_text("Waiting for the connection…")
    stack.restart("web")
    expect(chat.questions).to_have_count(2)
    expect(chat.unsent).to_have_count(0)
    chat.answer().finished()
    assert Message.objects.filter(text=question).count() == 1
    chat.page.reload()
    expect(chat.question().locator(".bubble")).to_have_text(question)
