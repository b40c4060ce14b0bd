"""What the running stack tells of itself: figures that add up over its processes, and logs that name the
answer on whose behalf they were written."""

import re
from contextlib import suppress
from uuid import UUID

import httpx
from prometheus_client.parser import text_string_to_metric_families

from chat import protocol
from inference.models import Generation, ServedBy
from tests.deploy.expressions import expressions, scraped_for, series
from tests.stack import Stack
from tests.websocket import questions, records
from tests.websocket.client import Person, Tab, guest, stack_client

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


async def told(stack: Stack) -> str:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False) as http:
        answer = await http.get("/metrics")
    assert answer.status_code == 200, answer.text
    return answer.text


async def scrape(stack: Stack) -> Samples:
    """All samples, by name and labels. A name that comes twice with the same labels is told twice."""
    found: Samples = {}
    for family in text_string_to_metric_families(await told(stack)):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, key
            found[key] = sample.value
    return found


def total(samples: Samples, name: str, **labels: str) -> float:
    return sum(v for (n, have), v in samples.items() if n == name and labels.items() <= dict(have).items())


def asked_by_seat(samples: Samples) -> dict[str, float]:
    """Tokens of prompts that each engine has looked for so far."""
    named = [
        (dict(labels), value) for (name, labels), value in samples.items() if name == "reprise_engine_kv"
    ]
    return {labels["seat"]: value for labels, value in named if labels["what"] == "stored_asked"}


async def hear(tab: Tab, text: str, conversation: UUID | None = None) -> protocol.Accepted:
    accepted = await tab.say(text, conversation)
    await tab.whole(accepted.generation)
    return accepted


async def vote(person: Person, reply: UUID) -> None:
    headers = {"X-CSRFToken": person.http.cookies["csrftoken"], "Referer": person.stack.url}
    path = f"/messages/{reply}/feedback/"
    (await person.http.post(path, data={"verdict": "agree"}, headers=headers)).raise_for_status()


async def test_what_was_asked_is_counted_once(stack: Stack) -> None:
    question = questions.short()
    async with stack_client(stack) as tab, guest(stack) as person, person.tab() as other:
        await tab.is_open()
        before = await scrape(stack)
        first = await hear(tab, question)
        hits = [await hear(other, question) for _ in range(3)]
        await hear(tab, "No, that's wrong, I meant Mongolia.", first.conversation)
        await vote(person, hits[0].reply)
        ids = [one.generation for one in (first, *hits)]
        rows = await records.look(lambda: list(Generation.objects.filter(pk__in=ids)))
        assert sorted(row.served_by for row in rows) == [ServedBy.EXACT] * 3 + [ServedBy.MODEL]
        after = await scrape(stack)

    def rose(name: str, **labels: str) -> float:
        return total(after, name, **labels) - total(before, name, **labels)

    assert rose("reprise_lookups_total") == rose("reprise_lookup_seconds_count") == 5
    assert rose("reprise_lookups_total", layer="exact", outcome="hit") == 3
    assert rose("reprise_answers_total", served_by="exact", status="complete") == 3
    assert rose("reprise_answers_total", served_by="model", status="complete") == 2
    assert rose("reprise_first_token_seconds_count") == 5
    model = next(row for row in rows if row.served_by == ServedBy.MODEL)
    assert rose("reprise_tokens_total", kind="answer") > model.completion_tokens > 0
    kinds = ("prompt_computed", "prompt_reused")
    assert sum(rose("reprise_tokens_total", kind=kind) for kind in kinds) > model.prompt_tokens > 0
    detected = ("correction", "rejection", "restatement")
    assert sum(rose("reprise_invalidations_total", cause=cause) for cause in detected) == 1
    assert rose("reprise_observations_total", source="user", verdict="agree") == 1


async def test_everything_that_dashboard_and_rules_ask_for_is_told(stack: Stack) -> None:
    asked = scraped_for(set().union(*(series(one) for one in expressions())))
    assert len(asked) > 15
    missing = asked
    async with guest(stack) as person, person.tab() as tab:
        question = questions.short()
        replies = [(await hear(tab, question)).reply for _ in range(2)]
        await vote(person, replies[1])

        async def all_told() -> bool:
            nonlocal missing
            text = await told(stack)
            # A gauge may have nothing to say yet, such as the share of wrong hits before any was judged.
            declared = set(re.findall(r"^# TYPE (\S+) gauge$", text, re.MULTILINE))
            missing = asked - declared - {name for name, _ in await scrape(stack)}
            return not missing

        with suppress(AssertionError):
            await records.eventually(all_told, within=30)
    assert not missing


async def test_what_the_engine_reports_is_told_though_it_is_in_another_process(stack: Stack) -> None:
    async with stack_client(stack) as tab:
        before = asked_by_seat(await scrape(stack))
        first = await hear(tab, questions.short())
        row = await records.look(lambda: Generation.objects.get(pk=first.generation))
        assert row.prompt_tokens > 0

        async def told_of_the_prompt() -> bool:
            after = asked_by_seat(await scrape(stack))
            rises = [asked - before.get(seat, 0) for seat, asked in after.items()]
            # All but the last, which is computed whatever is stored.
            return any(rise >= row.prompt_tokens - 1 for rise in rises)

        await records.eventually(told_of_the_prompt, within=30)


async def test_logs_name_the_answer_through_web_queue_and_engine(stack: Stack) -> None:
    async with stack_client(stack) as tab:
        question = questions.short()
        computed, served = [(await hear(tab, question)).generation for _ in range(2)]
    for generation, event, program in (
        (computed, "asked", "web"),
        (computed, "answered", "generate"),
        (served, "asked", "web"),
        (served, "answered", "answer"),
    ):
        lines = [line for line in stack.log(program).splitlines() if str(generation) in line]
        assert any(re.search(rf"\b{event}\b", line) for line in lines), (program, event, lines)
