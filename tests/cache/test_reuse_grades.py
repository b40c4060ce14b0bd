"""A class of answers is served as stored, rewritten for the wording, or computed anew."""

import pytest

from inference import history, prompting, service
from inference.cache import reuse
from inference.models import Decision, Entry, Generation, Outcome, Reuse, ServedBy, Status, Wording

from .conftest import Ask, turns

CAPITAL = "What is the capital of France?"
OTHER = "France's capital is which city?"


@pytest.fixture
def learned(ask: Ask) -> Generation:
    """The answer to CAPITAL, which can be asked as OTHER as well."""
    answered = ask(CAPITAL)
    asked_otherwise = ask(OTHER, fresh=True)
    Entry.objects.exclude(pk=answered.entry_id).delete()
    wording = Wording.objects.get()
    wording.pk, wording.question, wording.exact_key = None, OTHER, asked_otherwise.exact_key
    wording._state.adding = True
    wording.save()
    return answered


def test_as_it_is(ask: Ask, learned: Generation) -> None:
    again = ask(OTHER)
    assert (again.served_by, again.reuse, again.text) == (ServedBy.EXACT, Reuse.ANSWER, learned.text)


def test_rewritten_for_other_words(ask: Ask, learned: Generation, settings) -> None:
    settings.REUSE_GRADES = {"fact": "rewrite"}
    again = ask(OTHER)
    assert (again.status, again.served_by) == (Status.COMPLETE, ServedBy.MODEL)
    assert (again.reuse, again.entry_id) == (Reuse.REWRITE, learned.entry_id)
    assert again.text and again.completion_tokens
    assert Entry.objects.count() == 1  # what was rewritten is no entry of its own
    hit = Decision.objects.get(generation=again)
    assert hit.outcome == Outcome.HIT and "rewrites" in hit.reason
    prompt = prompting.build(again).turns
    assert [turn["content"] for turn in prompt[1:3]] == [CAPITAL, learned.text]
    assert prompt[-1]["content"].endswith(OTHER)


def test_in_the_words_it_was_given_to_it_fits_as_it_is(ask: Ask, learned: Generation, settings) -> None:
    settings.REUSE_GRADES = {"fact": "rewrite"}
    again = ask(CAPITAL)
    assert (again.served_by, again.text) == (ServedBy.EXACT, learned.text)


def test_a_rewrite_is_not_the_entrys_answer_and_reads_as_it_was_asked(
    ask: Ask, learned: Generation, settings
) -> None:
    settings.REUSE_GRADES = {"fact": "rewrite"}
    again = ask(OTHER)
    said = [*turns(OTHER), {"role": "assistant", "content": again.text}, *turns("Why?")]
    follow_up = service.ask(again.session_id, said, generations=[None, again.pk, None])
    assert history.model_view(follow_up) == said


def test_only_keys_and_values(ask: Ask, settings) -> None:
    settings.REUSE_GRADES = {"fact": "prefix"}
    first, again = ask(CAPITAL), ask(CAPITAL)
    assert first.served_by == again.served_by == ServedBy.MODEL
    assert not Entry.objects.exists()
    assert Decision.objects.get(generation=again).outcome == Outcome.BYPASS
    assert again.cached_tokens > first.prompt_tokens - 3


@pytest.mark.parametrize("text", ["What is the weather in Paris?", "Tell me a joke", "My name is Zoe."])
def test_a_grade_never_stores_what_must_not_be(text: str, settings) -> None:
    settings.REUSE_GRADES = {"live": "answer", "creative": "answer", "personal": "answer"}
    judged = reuse.judge(turns(text))
    assert not judged.stored or (judged.content_class == "personal" and not judged.shareable)
