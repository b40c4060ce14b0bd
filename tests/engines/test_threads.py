"""How many threads a pass is computed with."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from inference.engines import threads
from inference.engines.forward import Model
from inference.engines.threads import FAR, FEW_ROWS, Threads, candidates, fewest, measured


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("most", "tried"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (8, [1, 2, 4, 8]), (12, [1, 2, 4, 8, 12])]
)
def test_powers_of_two_are_tried_and_all_there_are(most: int, tried: list[int]) -> None:
    assert candidates(most) == tried


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 1.0, 2: 1.8}, 1),
        ({1: 1.0, 2: 0.95}, 1),
        ({1: 1.0, 2: 0.5, 4: 0.47}, 2),
        ({1: 1.0, 2: 0.6, 4: 0.3}, 4),
    ],
)
def test_the_fewest_that_are_about_as_fast(seconds: dict[int, float], best: int) -> None:
    assert fewest(seconds) == best


def test_each_kind_of_pass_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that takes longer on more threads, a prompt that takes less, a chunk far into one that takes
    longer. Measured once."""
    monkeypatch.setattr(threads, "_known", {})
    torch.set_num_threads(2)
    goes: list[int] = []

    def few() -> None:
        goes.append(torch.get_num_threads())
        time.sleep(0.004 * torch.get_num_threads())

    def many() -> None:
        time.sleep(0.04 / torch.get_num_threads())

    def far() -> None:
        time.sleep(0.04 * torch.get_num_threads())

    found = measured("a model", few, many, far)
    assert found == Threads(few=1, many=2, far=1)
    assert set(goes) == {1, 2} and torch.get_num_threads() == 2
    goes.clear()
    assert measured("a model", few, few, few) == found and not goes
    measured("another", few, few, few)
    assert goes


def test_a_pass_uses_what_its_rows_ask_for() -> None:
    chosen = Threads(few=1, many=2, far=1)
    passes = (
        (1, 0, 1),
        (FEW_ROWS, FAR, 1),
        (FEW_ROWS + 1, 0, 2),
        (256, FAR - 1, 2),
        (256, FAR, 1),
        (8, 0, 1),
    )
    for rows, pairs, wanted in passes:
        chosen.use(rows, pairs)
        assert torch.get_num_threads() == wanted
    seen: list[int] = []

    def elsewhere() -> None:
        chosen.use(256, 0)
        seen.append(torch.get_num_threads())

    other = threading.Thread(target=elsewhere)
    other.start()
    other.join()
    assert seen == [2] and torch.get_num_threads() == 1, "each thread has its own"


def test_threads_to_come_have_what_they_had() -> None:
    def of_a_new_one() -> int:
        found: list[int] = []
        new = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
        new.start()
        new.join()
        return found[0]

    before = of_a_new_one()
    Threads(few=before + 1, many=1, far=1).use(1, 0)
    assert torch.get_num_threads() == before + 1
    assert of_a_new_one() == before


def test_what_comes_out_is_the_same_in_every_bit(model_dir: Path) -> None:
    model = Model(model_dir, "bfloat16", None)
    ids = [5 + at * 37 % 9000 for at in range(340)]

    def computed(reading: int, writing: int) -> tuple[torch.Tensor, torch.Tensor]:
        model._threads = Threads(few=writing, many=reading, far=reading)
        alone = model.new_buffer(512)
        model.step([(alone, ids[:256])])
        model.step([(alone, ids[256:300])])
        logits = [model.step([(alone, [token])]) for token in ids[300:320]]
        several = [model.new_buffer(64) for _ in range(8)]
        model.step([(one, ids[at * 20 : at * 20 + 30]) for at, one in enumerate(several)])
        logits.append(model.step([(one, [7 + at]) for at, one in enumerate(several)]))
        return alone.kv[..., :320, :].clone(), torch.cat(logits)

    kv, logits = computed(1, 1)
    for reading, writing in ((2, 2), (2, 1), (1, 2)):
        others = computed(reading, writing)
        assert torch.equal(others[0], kv) and torch.equal(others[1], logits)


def test_a_setting_is_what_it_says(model_dir: Path) -> None:
    assert Model(model_dir, "bfloat16", 2)._threads == Threads(2, 2, 2)
