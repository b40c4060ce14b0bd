"""What was served in doubt is asked for anew by the running worker that holds the engine."""

import time
import uuid
from collections.abc import Callable

from inference import service
from inference.models import Generation, Observation, ServedBy, Verdict, Wording
from inference.understanding.turns import Turn
from tests.stack import Stack

# The others ask for other countries.
CAPITAL: list[Turn] = [{"role": "user", "content": "What is the capital of France?"}]
PATIENCE_SECONDS = 60


def test_a_running_worker_takes_it_up(stack: Stack) -> None:
    ended()
    until(lambda: Wording.objects.filter(question=CAPITAL[0]["content"]).exists())  # just after the end
    hit = ended()
    assert hit.served_by == ServedBy.EXACT
    until(lambda: Observation.objects.filter(source="gray", generation=hit).exists())
    assert Observation.objects.get(source="gray", generation=hit).verdict == Verdict.AGREE


def ended() -> Generation:
    """Somebody asks; the answer, once it is there."""
    generation = service.ask(uuid.uuid4(), CAPITAL, opens=True)
    until(lambda: not Generation.objects.get(pk=generation.pk).is_open)
    return Generation.objects.get(pk=generation.pk)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)
