"""What was answered from an entry the model reads in the entry's words; the person's view stays."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from inference import history, pipeline, prompting, service
from inference.engine import engine
from inference.engines.tokenizer import ChatTokenizer
from inference.models import Entry, Generation, Reuse, ServedBy, State, Wording
from inference.understanding.turns import Turn

from .conftest import turns, work

CAPITAL = "What is the capital of France?"
SPELLED = "what is the  capital of FRANCE"
REWORDED = "What city is France's capital?"


class Talk:
    """One conversation, as the chat would carry it on."""

    def __init__(self) -> None:
        self.session = uuid.uuid4()
        self.turns: list[Turn] = []
        self.generations: list[uuid.UUID | None] = []

    def queue(self, text: str) -> Generation:
        asked: list[Turn] = [*self.turns, {"role": "user", "content": text}]
        return service.ask(self.session, asked, generations=[*self.generations, None])

    def ask(self, text: str) -> Generation:
        answered = work(self.queue(text))
        self.turns += [
            {"role": "user", "content": text},
            {"role": "assistant", "content": answered.text},
        ]
        self.generations += [None, answered.pk]
        return answered


@pytest.fixture
def served() -> Callable[[str], Talk]:
    """A conversation whose first question was answered from an entry that CAPITAL gave birth to."""
    assert Talk().ask(CAPITAL).served_by == ServedBy.MODEL

    def act(text: str) -> Talk:
        talk = Talk()
        assert talk.ask(text).served_by == ServedBy.EXACT
        return talk

    return act


def contents(view: list[Turn]) -> list[str]:
    return [turn["content"] for turn in view]


def test_the_model_reads_the_words_that_the_entry_was_born_with(served) -> None:
    talk = served(SPELLED)
    follow_up = talk.queue("Why is that so?")
    answer = talk.turns[-1]["content"]
    assert contents(history.model_view(follow_up)) == [CAPITAL, answer, "Why is that so?"]
    assert contents(follow_up.question["turns"]) == [SPELLED, answer, "Why is that so?"]


def test_other_words_share_one_prompt_and_then_one_answer(served) -> None:
    one, other = served("What is the capital of France"), served(SPELLED)
    first = one.ask("Name one thing that one can see in that city.")
    prompt = prompting.build(one.queue("Thanks?")).turns
    second = other.ask("Name one thing that one can see in that city.")
    assert first.served_by == ServedBy.MODEL and first.finish_reason == "stop"
    assert second.served_by == ServedBy.EXACT and second.text == first.text
    assert prompting.build(other.queue("Thanks?")).turns == prompt


@pytest.mark.parametrize("canonical", [True, False], ids=["the entry's words", "the person's own"])
def test_after_a_semantic_hit_the_model_goes_on_from_what_it_read_for_somebody_else(
    monkeypatch: pytest.MonkeyPatch, canonical: bool
) -> None:
    """By token ids, and by what the engine did not compute again; without the entry's words it would have had
    to read the turn anew."""
    if not canonical:
        monkeypatch.setattr(history, "adds_nothing", lambda asked, born: False)
    engine().reset()
    first = Talk().ask(CAPITAL)
    read = first.prompt_tokens + first.completion_tokens - 1  # the token that ends it was never computed
    assert first.served_by == ServedBy.MODEL and first.finish_reason == "stop"

    talk = Talk()
    assert talk.ask(REWORDED).served_by == ServedBy.SEMANTIC
    follow_up = talk.ask("Name one thing that one can see in that city.")
    assert follow_up.served_by == ServedBy.MODEL
    tokenizer = ChatTokenizer(Path(settings.MODEL_DIR))
    before = [*tokenizer.encode(prompting.build(first).turns), *first.output_token_ids]
    prompt = tokenizer.encode(prompting.build(follow_up).turns)
    assert len(before) == read + 1
    assert (prompt[: len(before)] == before) == canonical
    assert follow_up.cached_tokens == read if canonical else follow_up.cached_tokens < first.prompt_tokens


def test_a_view_holds_once_the_model_has_read_it(served) -> None:
    talk = served(SPELLED)
    before = history.model_view(talk.queue("Why is that so?"))
    Wording.objects.update(question="Something else?", state=State.REJECTED)
    assert history.model_view(talk.queue("Why is that so?")) == before
    Entry.objects.all().delete()
    assert history.model_view(talk.queue("Why is that so?")) == before


def test_what_the_model_read_as_it_was_asked_stays_so(served) -> None:
    talk = served(SPELLED)
    Wording.objects.update(question="Quite another question?")
    assert contents(history.model_view(talk.queue("Why?")))[0] == SPELLED
    Wording.objects.update(question=CAPITAL)
    assert contents(history.model_view(talk.queue("Why?")))[0] == SPELLED


def test_of_two_prompts_at_once_the_first_settles_the_view(served) -> None:
    talk = served(SPELLED)
    follow_up = talk.queue("Why?")
    late = history._past(follow_up)  # read before the other one settled it
    before = history.model_view(talk.queue("How so?"))[:-1]
    Wording.objects.update(question="Quite another question?")
    history._decide(late)
    assert history._seen(follow_up, late)[:-1] == before


def test_generations_are_named_for_all_turns_or_none() -> None:
    with pytest.raises(ValueError, match="1 generations for 3 turns"):
        service.ask(uuid.uuid4(), turns("a", "b", "c"), generations=[None])


def test_other_words_than_the_entrys_stay_when_they_say_more(served) -> None:
    """Learned wordings of an entry need not be the one it was born with."""
    talk = Talk()
    generation = talk.queue("What is the capital of France, apart from its suburbs?")
    entry = Entry.objects.get()
    Generation.objects.filter(pk=generation.pk).update(
        status="complete", text=entry.answer, entry=entry, served_by=ServedBy.SEMANTIC
    )
    asked = [*generation.question["turns"], {"role": "assistant", "content": entry.answer}]
    follow_up = service.ask(talk.session, [*asked, *turns("Why?")], generations=[None, generation.pk, None])
    assert history.model_view(follow_up) == follow_up.question["turns"]


def test_a_personal_wording_is_read_by_nobody_else(served) -> None:
    talk = served(SPELLED)
    Wording.objects.update(visibility="session")
    assert contents(history.model_view(talk.queue("Why?")))[0] == SPELLED


def test_words_that_leaned_on_another_history_do_not_stand_for_these(served) -> None:
    talk = served(SPELLED)
    Wording.objects.update(dependent=True, exact_key="another")
    assert contents(history.model_view(talk.queue("Why?")))[0] == SPELLED


def test_an_answer_that_went_on_after_it_was_quoted_is_what_the_person_saw(served) -> None:
    talk = served(SPELLED)
    talk.turns[-1] = {"role": "assistant", "content": talk.turns[-1]["content"][:3]}
    assert history.model_view(talk.queue("Why?"))[0]["content"] == SPELLED


def test_both_views_and_nothing_decided_by_looking(served) -> None:
    talk = served(SPELLED)
    follow_up = talk.queue("Why is that so?")
    unread = history.both_views(follow_up)
    assert not any(row.differs for row in unread) and not unread[0].read
    assert not Generation.objects.filter(rendered=True).exists()
    pipeline.answer(str(follow_up.pk))
    rows = history.both_views(follow_up)
    assert (rows[0].person["content"], rows[0].model["content"]) == (SPELLED, CAPITAL)
    assert [row.differs for row in rows] == [True, False, False]
    assert [row.read for row in rows] == [True, True, False]


def test_served_as_it_is_it_says_so(served) -> None:
    talk = served(SPELLED)
    assert Generation.objects.get(pk=talk.generations[-1]).reuse == Reuse.ANSWER


class TestPage:
    """An operator sees a conversation both ways; nobody else does."""

    def address(self, generation: Generation) -> str:
        return reverse("admin:inference_generation_both_ways", args=[generation.pk])

    def test_shows_both_ways(self, served, admin_client: Client) -> None:
        talk = served(SPELLED)
        talk.ask("Name <b>one</b> thing that one can see there.")
        page = admin_client.get(self.address(Generation.objects.get(pk=talk.generations[-1])))
        text = page.content.decode()
        assert page.status_code == 200
        assert SPELLED in text and f"<strong>{CAPITAL}</strong>" in text
        assert "<b>one</b>" not in text

    def test_needs_the_permission_to_see_generations(self, served, client: Client, django_user_model) -> None:
        generation = served(SPELLED).queue("Why?")
        assert client.get(self.address(generation)).status_code == 302
        client.force_login(django_user_model.objects.create_user("staff", is_staff=True))
        assert client.get(self.address(generation)).status_code == 403

    def test_is_linked_from_the_generation(self, served, admin_client: Client) -> None:
        generation = served(SPELLED).queue("Why?")
        page = admin_client.get(reverse("admin:inference_generation_change", args=[generation.pk]))
        assert self.address(generation) in page.content.decode()

    def test_of_nothing_there_is_no_page(self, admin_client: Client) -> None:
        assert admin_client.get(self.address(Generation())).status_code == 404
