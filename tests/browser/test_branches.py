"""Asking differently, asking again: nothing is overwritten, arrows lead from one version to the other."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, expect

from chat.models import Message
from inference.models import Generation, Observation, Status
from tests.browser import questions
from tests.browser.chat import Chat
from tests.browser.written import Written, guest_of
from tests.stack import Stack


def edit(question: Locator) -> Locator:
    """Opens the editor of a question; returns its field."""
    question.hover()
    question.get_by_role("button", name="Edit question").click()
    return question.get_by_role("textbox", name="Edit question")


def test_an_edited_question_is_a_branch_of_its_own(chat: Chat) -> None:
    first, other, third = questions.short(), questions.short(), questions.short()
    answered = chat.ask(first).source
    chat.ask(third)
    editor = edit(chat.question(0))
    expect(editor).to_have_value(first)
    editor.fill(other)
    editor.press("Enter")
    expect(chat.questions).to_have_count(1)
    expect(chat.question()).to_contain_text(other)
    elsewhere = chat.answer().finished().source
    assert elsewhere != answered
    versions = chat.question(0).get_by_role("group", name="Versions of this question")
    expect(versions).to_have_text("2/2")
    versions.get_by_role("button", name="Previous version").click()
    expect(chat.questions).to_have_count(2)
    expect(versions).to_have_text("1/2")
    expect(chat.question(0).locator(".bubble")).to_have_text(first)
    assert chat.answer(0).source == answered
    expect(chat.question(1).locator(".bubble")).to_have_text(third)
    chat.page.reload()
    expect(chat.questions).to_have_count(2)
    versions.get_by_role("button", name="Next version").click()
    expect(chat.questions).to_have_count(1)
    assert chat.answer().source == elsewhere


def test_an_edit_can_be_given_up(chat: Chat) -> None:
    question = questions.short()
    chat.ask(question)
    editor = edit(chat.question())
    editor.fill("Something else")
    editor.press("Escape")
    expect(editor).to_have_count(0)
    expect(chat.question().locator(".bubble")).to_have_text(question)
    chat.field.press("ArrowUp")
    expect(editor).to_be_focused()
    chat.question().get_by_role("button", name="Cancel").click()
    expect(editor).to_have_count(0)
    assert Message.objects.filter(role="user").count() == 1


def test_answered_anew_the_earlier_answer_stays_beside_it(chat: Chat) -> None:
    chat.ask(questions.short())
    earlier = chat.answer().generation
    chat.answer().button("Answer anew").click()
    fresh = chat.answer()
    expect(fresh.siblings).to_have_text("2/2")
    fresh.finished()
    assert fresh.generation.pk != earlier.pk
    assert (earlier.served_by, fresh.generation.served_by) == ("model", "model")
    fresh.button("Previous version").click()
    expect(fresh.siblings).to_have_text("1/2")
    assert fresh.generation.pk == earlier.pk
    chat.page.reload()
    expect(chat.answer().siblings).to_have_text("1/2")


@pytest.mark.parametrize(
    ("status", "text", "says"),
    [
        (Status.INTERRUPTED, "Once upon a", "The answer broke off. What was written until then is kept."),
        (Status.INTERRUPTED, "", "The answer broke off before its first word."),
        (Status.FAILED, "", "Something went wrong while answering. Your question is kept."),
    ],
)
def test_what_went_wrong_is_said_and_tried_again(chat: Chat, status: Status, text: str, says: str) -> None:
    talk = Written(guest_of(chat.page.context), "Trouble").turn(questions.short(), text, status, "internal")
    chat.open_conversation(talk.id)
    answer = chat.answer()
    expect(answer.note).to_contain_text(says)
    expect(answer.body).to_have_count(1 if text else 0)
    answer.button("Try again").click()
    expect(answer.siblings).to_have_text("2/2")
    answer.finished()
    answer.button("Previous version").click()
    expect(answer.note).to_contain_text(says)


def test_an_answer_that_fell_silent_ends_by_itself(chat: Chat, stack: Stack) -> None:
    with chat.halfway(stack, questions.long()) as answer:
        shown = chat.stream.inner_text()
        long_ago = timezone.now() - timedelta(minutes=3)
        Generation.objects.filter(pk=answer.generation.pk).update(heartbeat_at=long_ago)
        expect(answer.note).to_contain_text("The answer broke off.")
        answer.finished("interrupted")
        assert answer.source.startswith(shown)  # a word may have been on its way when the page was read
    answer.button("Try again").click()
    expect(answer.siblings).to_have_text("2/2")
    answer.finished()


def test_thumbs_are_remembered_and_can_be_taken_back(chat: Chat) -> None:
    answer = chat.ask(questions.short())
    good, bad = answer.button("Good answer"), answer.button("Bad answer")

    def pressed(agree: bool, disagree: bool) -> None:
        expect(good).to_have_attribute("aria-pressed", str(agree).lower())
        expect(bad).to_have_attribute("aria-pressed", str(disagree).lower())

    pressed(False, False)
    good.click()
    pressed(True, False)
    bad.click()
    pressed(False, True)
    chat.page.reload()
    pressed(False, True)
    assert Observation.objects.get(source="user").verdict == "disagree"
    bad.click()
    pressed(False, False)
    assert not Observation.objects.exists()


def test_copying_gives_what_was_written(chat: Chat) -> None:
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=chat.url)
    markdown = "Some *words* & <b>:\n\n```python\nif a < b:\n    print('&')\n```\n\n- one\n- two"
    talk = Written(guest_of(chat.page.context), "Copying").turn("A & <b>?\n  Second line", markdown)
    chat.open_conversation(talk.id)
    chat.question().hover()
    for button, text in (
        (chat.answer().button("Copy answer"), markdown),
        (chat.question().get_by_role("button", name="Copy question"), "A & <b>?\n  Second line"),
        (chat.answer().button("Copy"), "if a < b:\n    print('&')\n"),
    ):
        button.click()
        expect(chat.toasts).to_have_text("Copied")
        assert _clipboard(chat) == text


def _clipboard(chat: Chat) -> str:
    return str(chat.page.evaluate("() => navigator.clipboard.readText()"))
