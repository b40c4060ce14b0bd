"""Of two workers one wins, and a generation ends once."""

from collections import Counter
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from inference import claims, pipeline, reaper, stream, workers
from inference.ending import Ending
from inference.models import Generation, ServedBy, Status

from .conftest import Ask, at_once

QUESTION = "What is the capital of Spain?"


@pytest.mark.django_db(transaction=True)
def test_a_generation_is_claimed_once(queue: Ask) -> None:
    generation = queue(QUESTION)
    won = at_once([lambda: claims.for_lookup(generation.pk)] * 8)
    assert len([one for one in won if one is not None]) == 1


def test_the_engine_waits_for_the_lookup(queue: Ask) -> None:
    generation = queue(QUESTION)
    assert claims.for_engine(generation.pk) is None
    looked_up = claims.for_lookup(generation.pk)
    assert looked_up is not None and claims.hand_over(looked_up)
    assert claims.for_lookup(generation.pk) is None
    assert claims.for_engine(generation.pk) is not None


def silence(generation: Generation, seconds: float) -> None:
    Generation.objects.filter(pk=generation.pk).update(
        heartbeat_at=timezone.now() - timedelta(seconds=seconds)
    )


def running(queue: Ask) -> Generation:
    looked_up = claims.for_lookup(queue(QUESTION).pk)
    assert looked_up is not None and claims.hand_over(looked_up)
    claimed = claims.for_engine(looked_up.pk)
    assert claimed is not None
    return claimed


def test_a_silent_worker_is_given_up_and_what_it_streamed_is_kept(queue: Ask) -> None:
    generation = running(queue)
    stream.Writer(generation.pk).append(["Mad", "rid"])
    silence(generation, settings.SILENT_SECONDS - 5)
    assert reaper.reap() == Counter()
    silence(generation, settings.SILENT_SECONDS + 1)
    assert reaper.reap() == Counter(interrupted=1)
    reaped = Generation.objects.get(pk=generation.pk)
    assert (reaped.status, reaped.text) == (Status.INTERRUPTED, "Madrid")
    assert reaped.finished_at is not None


def test_a_worker_that_wakes_up_too_late_changes_nothing(queue: Ask) -> None:
    generation = running(queue)
    silence(generation, settings.SILENT_SECONDS + 1)
    reaper.reap()
    generation.text = "Madrid, at last"
    assert not claims.heartbeat(generation, "Madrid")
    assert not claims.finish(generation, Status.COMPLETE)
    assert Generation.objects.get(pk=generation.pk).text == ""


def test_a_heartbeat_in_time_saves_it(queue: Ask) -> None:
    generation = running(queue)
    silence(generation, settings.SILENT_SECONDS + 1)
    assert claims.heartbeat(generation, "Mad")
    assert reaper.reap()["interrupted"] == 0


def test_a_dead_worker_that_was_asked_to_stop_has_stopped(queue: Ask) -> None:
    generation = running(queue)
    stream.Writer(generation.pk).append(["Mad", "rid", "."])
    stream.request_stop(generation.pk, 2)
    silence(generation, settings.SILENT_SECONDS + 1)
    reaper.reap()
    reaped = Generation.objects.get(pk=generation.pk)
    assert (reaped.status, reaped.text) == (Status.STOPPED, "Madrid")


def test_a_lost_task_is_sent_again(queue: Ask) -> None:
    generation = queue(QUESTION)
    silence(generation, settings.REDISPATCH_SECONDS + 1)
    assert reaper.reap() == Counter(resent=1)
    assert reaper.reap() == Counter()


def test_a_lookup_whose_end_a_crash_took_back_is_done_again(queue: Ask) -> None:
    """The row says that a lookup is under way, at a worker that is alive and knows nothing of it."""
    generation = claims.for_lookup(queue(QUESTION).pk)
    assert generation is not None
    silence(generation, settings.REDISPATCH_SECONDS - 5)
    assert reaper.reap() == Counter()
    silence(generation, settings.REDISPATCH_SECONDS + 1)
    assert reaper.reap() == Counter(resent=1)
    assert not claims.hand_over(generation)  # should that worker come back to it after all
    assert Generation.objects.get(pk=generation.pk).status == Status.PENDING


@pytest.mark.parametrize("status", [Status.COMPLETE, Status.STOPPED, Status.FAILED])
def test_an_end_that_a_crash_took_back_stays_what_readers_were_told(queue: Ask, status: Status) -> None:
    generation = running(queue)
    lost = {"status": Status.RUNNING, "text": "", "finished_at": None, "completion_tokens": 0}
    writer = stream.Writer(generation.pk)
    writer.append(["Mad", "rid"])
    generation.text, generation.completion_tokens, generation.served_by = "Madrid", 2, ServedBy.MODEL
    assert claims.finish(generation, status)
    writer.done(Ending.of(generation))
    Generation.objects.filter(pk=generation.pk).update(**lost)
    silence(generation, settings.REDISPATCH_SECONDS + 1)
    assert reaper.reap() == Counter(resent=1)
    written = Generation.objects.get(pk=generation.pk)
    assert (written.status, written.text, written.completion_tokens) == (status, "Madrid", 2)
    assert Ending.of(written) == Ending.of(generation)
    assert written.finished_at is not None


def test_the_reaper_runs_often_enough_for_its_promise() -> None:
    assert settings.SILENT_SECONDS + settings.REAP_EVERY_SECONDS <= 100


def test_a_worker_that_is_told_to_go_gives_its_work_back(queue: Ask) -> None:
    """Between two tokens; the next worker begins anew, and readers get its text in place of the first's."""
    generation = queue("Explain in detail how rain forms.")
    pipeline.answer(str(generation.pk))
    workers.leaving.set()
    try:
        pipeline.generate(str(generation.pk))
    finally:
        workers.leaving.clear()
    given_back = Generation.objects.get(pk=generation.pk)
    assert (given_back.status, given_back.looked_up, given_back.claimed_by) == (Status.PENDING, True, "")
    pipeline.generate(str(generation.pk))
    finished = Generation.objects.get(pk=generation.pk)
    assert finished.status == Status.COMPLETE
    assert finished.text and stream.text_until(generation.pk) == finished.text
