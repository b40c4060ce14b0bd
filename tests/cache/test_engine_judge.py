"""What a strong engine says of answers that nothing else decides on. The engine is a third party's, behind a
network, and says what the test has it say."""

import json
import math
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from inference import engine, metrics
from inference.cache import engine_judge, gray, learning
from inference.cache.agreement import Agreement
from inference.engines.base import Request
from inference.models import (
    Check,
    Decision,
    Entry,
    Generation,
    Outcome,
    Reuse,
    ServedBy,
    State,
    Status,
    Verdict,
    Wording,
)
from tests.engines.faulty_server import Exchange, Faulty

from .conftest import Ask, turns

pytestmark = pytest.mark.django_db(transaction=True)

FIRST = "How do I renew a library card in Turin?"
# Near to it, and too far to be served: the cache can't tell whether they ask the same.
OTHERWISE = "Turin library: what does somebody do whose membership runs out?"
ANSWER = "Bring the old card and an identity document to the desk; it takes five minutes."


SALT = "scope-of-the-test"


class Model:
    """A server whose answers and whose yes are what they are set to; `yes` is None where it tells nothing."""

    def __init__(self, server: Faulty) -> None:
        self.server, self.answer = server, ANSWER
        self.yes: float | None = 0.5
        self.then: float | None = 0.5
        """What `yes` becomes once it was said."""
        self.judged: list[str] = []
        self.held: list[int] = []
        """Transactions that were open while it was asked."""
        server.faults = _Always(self.reply)

    def reply(self, exchange: Exchange) -> None:
        body = self.server.asked[-1].body
        exchange.begin()
        if "top_logprobs" in body:
            self.judged.append(body["messages"][-1]["content"])
            self.held.append(in_transaction())
            exchange.say({"choices": [self.choice()]})
            exchange.text("", "length")
            self.yes = self.then
        else:
            exchange.text(self.answer, "stop")
        exchange.say("[DONE]")

    def choice(self) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "delta": {"content": "Perhaps"}}
        if self.yes is not None:
            told = [("Yes", self.yes), ("No", 1 - self.yes), ("Perhaps", 0.0)]
            top = [{"token": token, "logprob": math.log(max(chance, 1e-9))} for token, chance in told]
            choice["logprobs"] = {"content": [{"token": "Perhaps", "top_logprobs": top}]}
        return choice


def in_transaction() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state = 'idle in transaction'"
        )
        found = int(cursor.fetchone()[0])
    connection.close()
    return found


class _Always(list[Any]):
    """The same reply for everyone who asks."""

    def __init__(self, reply: Callable[[Exchange], None]) -> None:
        super().__init__([reply])

    def pop(self, *_: Any) -> Any:
        return self[0]


@pytest.fixture
def model(server: Faulty, settings: Any) -> Model:
    settings.ENGINE_WINDOW = 4096
    settings.JUDGE = "on"
    settings.OBSERVE_PER_MINUTE = 1_000
    return Model(server)


def near(ask: Ask) -> Generation:
    """The first question, answered by the model, and stored."""
    first = ask(FIRST)
    assert (first.served_by, first.text) == (ServedBy.MODEL, ANSWER)
    return first


class TestWhatWasNear:
    def test_is_served_where_the_engine_says_that_it_fits(self, model: Model, ask: Ask) -> None:
        first = near(ask)
        model.yes, model.answer = 0.99, "Something else."
        second = ask(OTHERWISE)
        assert (second.status, second.text, second.served_by) == (Status.COMPLETE, ANSWER, ServedBy.GRAY)
        assert (second.entry_id, second.reuse) == (first.entry_id, Reuse.ANSWER)
        assert second.first_token_ms is not None and second.finish_reason == "stop"
        assert "<question>\n" + OTHERWISE in model.judged[0] and ANSWER in model.judged[0]
        row = Decision.objects.get(generation=second)
        assert (row.outcome, row.entry_id) == (Outcome.GRAY, first.entry_id)
        assert "the engine says that it fits (0.99)" in row.reason
        # As doubtful as any that was served for its likeness: to be checked, and not proved by this.
        assert second.wording.state == State.SUSPECT
        assert Check.objects.get().wording == second.wording
        assert Entry.objects.count() == 1
        assert Entry.objects.get().hits == 1

    @pytest.mark.parametrize("yes", [0.9, 0.5, 0.01, None])
    def test_is_answered_anew_where_it_is_not_sure(self, model: Model, ask: Ask, yes: float | None) -> None:
        near(ask)
        model.yes, model.answer = yes, "Ask at the town hall, they know."
        second = ask(OTHERWISE)
        assert (second.text, second.served_by) == (model.answer, ServedBy.MODEL)
        assert model.judged, "it was near, and the engine was asked"

    def test_is_not_asked_about_without_the_setting(self, model: Model, ask: Ask, settings: Any) -> None:
        for setting in ("off", "auto"):  # nobody knows how strong this one is
            settings.JUDGE = setting
            near(ask)
            model.yes = 0.99
            assert ask(OTHERWISE).served_by == ServedBy.MODEL
            assert not model.judged
            Entry.objects.all().delete()

    def test_stays_away_from_whom_it_must_not_reach(self, model: Model, ask: Ask) -> None:
        near(ask)
        model.yes = 0.99
        Wording.objects.update(visibility="session")
        assert ask(OTHERWISE).served_by == ServedBy.MODEL
        assert not model.judged

    def test_followers_get_it_too(self, model: Model, ask: Ask, queue: Ask) -> None:
        from inference import pipeline

        near(ask)
        model.yes = 0.99
        both = [queue(OTHERWISE), queue(OTHERWISE)]
        for one in both:
            pipeline.answer(str(one.pk))
        pipeline.generate(str(both[0].pk))
        for one in both:
            one.refresh_from_db()
        assert [(one.status, one.text) for one in both] == [(Status.COMPLETE, ANSWER)] * 2

    def test_a_judge_that_fails_costs_nobody_the_answer(self, model: Model, ask: Ask) -> None:
        near(ask)
        before = metrics.STAGE_ERRORS.labels(stage="judge")._value.get()
        model.yes, model.answer = 0.99, "An answer all the same."

        def refuses(exchange: Exchange) -> None:
            asks = "top_logprobs" in model.server.asked[-1].body
            exchange.refuse(400, json.dumps({"error": "no logprobs"})) if asks else model.reply(exchange)

        model.server.faults = _Always(refuses)
        assert ask(OTHERWISE).text == model.answer
        assert metrics.STAGE_ERRORS.labels(stage="judge")._value.get() == before + 1


class TestTwoAnswers:
    """One that is open by rules and weights: it says less, in words of its own."""

    FRESH = "You go there in person and prove who you are, then they prolong it."

    @pytest.mark.parametrize(
        ("yes", "verdict"),
        [(0.99, Verdict.AGREE), (0.01, Verdict.DISAGREE), (0.6, Verdict.UNCLEAR), (None, Verdict.UNCLEAR)],
    )
    def test_are_what_the_engine_says(self, model: Model, yes: float | None, verdict: Verdict) -> None:
        model.yes = yes
        found = Agreement(Verdict.UNCLEAR, ("alike to 0.9, worded apart",), 0.9)
        settled = engine_judge.settle(found, turns(FIRST), (ANSWER, self.FRESH), SALT)
        assert settled.verdict == verdict and settled.likeness == 0.9
        assert settled.reasons[0] == found.reasons[0]
        assert (len(settled.reasons) == 2) == (yes is not None)

    @pytest.mark.parametrize("verdict", [Verdict.AGREE, Verdict.DISAGREE])
    def test_what_is_decided_stays_so(self, model: Model, verdict: Verdict) -> None:
        found = Agreement(verdict, ("decided",), 0.9)
        assert engine_judge.settle(found, turns(FIRST), (ANSWER, self.FRESH), SALT) is found
        assert not model.judged

    @pytest.mark.parametrize("fresh", ["", "I'm sorry, I can't help with that."])
    def test_nothing_is_asked_about_no_answer(self, model: Model, fresh: str) -> None:
        found = Agreement(Verdict.UNCLEAR, ("one of them is empty",))
        assert engine_judge.settle(found, turns(FIRST), (ANSWER, fresh), SALT) is found
        assert not model.judged

    def test_a_fresh_answer_proves_what_was_near(self, model: Model, ask: Ask, settings: Any) -> None:
        first = near(ask)
        model.yes, model.answer = 0.9, self.FRESH
        settings.JUDGE_SURE = 0.95
        assert ask(OTHERWISE).served_by == ServedBy.MODEL  # not sure that it fits
        Entry.objects.exclude(pk=first.entry_id).delete()
        Wording.objects.exclude(entry=first.entry_id, origin="birth").delete()
        settings.JUDGE_SURE = 0.85
        model.judged.clear()
        model.yes, model.then = 0.5, 0.99  # open whether it fits, but they say the same
        second = ask(OTHERWISE)
        assert second.served_by == ServedBy.MODEL and len(model.judged) == 2
        assert "say the same" in model.judged[1]
        assert model.held == [0] * len(model.held), "nobody waits for a row while the engine thinks"
        pairing = Wording.objects.get(entry=first.entry_id, question=OTHERWISE)
        assert pairing.state == State.ACTIVE
        assert ask(OTHERWISE).served_by == ServedBy.EXACT

    def test_a_check_in_the_background_asks_it_too(self, model: Model, ask: Ask) -> None:
        near(ask)
        ask(FIRST)
        check = Check.objects.get()
        model.yes, model.answer = 0.99, self.FRESH
        assert learning.answer_of(ANSWER).vector is not None
        assert gray.observe(check.pk).verdict == Verdict.AGREE
        assert "<first answer>\n" + ANSWER in model.judged[-1]


def test_the_bundled_model_is_not_strong_and_so_not_asked(settings: Any) -> None:
    assert settings.JUDGE == "auto"
    assert not engine.engine().strong
    assert not engine_judge.is_asked()
    settings.JUDGE = "on"
    assert engine_judge.is_asked()


def test_of_a_long_conversation_the_end_is_shown(model: Model) -> None:
    found = Agreement(Verdict.UNCLEAR, ("open",), 0.9)
    said = [f"Turn {uuid.uuid4().hex} {at}." for at in range(31)]
    engine_judge.settle(found, turns(*said), (ANSWER, "Another one."), SALT)
    assert said[-2] in model.judged[0] and said[0] not in model.judged[0]


def test_what_it_computes_is_kept_apart_by_scope(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.JUDGE = "on"
    real, asked = engine.engine(), []
    stream = real.stream

    def told(request: Request) -> Any:
        asked.append(request.cache_salt)
        return stream(request)

    monkeypatch.setattr(real, "stream", told)
    found = Agreement(Verdict.UNCLEAR, ("open",), 0.9)
    engine_judge.settle(found, turns(FIRST), (ANSWER, "Another one."), SALT)
    assert asked == [SALT]
