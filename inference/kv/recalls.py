"""The sequences of an engine that are recalled: switching them on, and what they tell."""

import logging
import weakref
from collections.abc import Callable, Sequence
from functools import partial

from inference.kv.buffers import Buffer
from inference.kv.ledger import Ledger
from inference.kv.recall_policy import RecallPolicy
from inference.kv.recallable import Recallable

log = logging.getLogger(__name__)

SHARES = (0.5, 0.9, 0.99)

# Clusters of each head that are logged, the first by rank.
LOGGED = 8


class Recalls:
    """Those that `policy` chooses, booked in `ledger`. Thread-safe."""

    def __init__(self, policy: RecallPolicy, ledger: Ledger) -> None:
        self._policy, self._ledger = policy, ledger
        self._known: weakref.WeakSet[Recallable] = weakref.WeakSet()
        self._switched_on = 0
        if policy.on:
            from inference.kv.recall_kernel import warm  # loads a compiler: only for who recalls

            warm()

    def settle(self, request: str, scope: str, buffer: Buffer, tokens: int) -> Callable[[], None] | None:
        """What is to be done once the prompt of a request, computed in `buffer` with room for `tokens`, is
        read; None: nothing."""
        return partial(self._settle, request, scope, buffer, tokens) if self._policy.on else None

    def _settle(self, request: str, scope: str, buffer: Buffer, tokens: int) -> None:
        if buffer.plug is None:
            held = self._ledger.cost(tokens)
            how = self._policy.chosen(scope, buffer.length, held, self._ledger)
            if how is None:
                return
            self._switch_on(buffer, Recallable(buffer, how), request)
        plug = buffer.plug
        if isinstance(plug, Recallable):
            plug.booked, plug.tokens = partial(self._ledger.resize, request), tokens

    def _switch_on(self, buffer: Buffer, plug: Recallable, request: str) -> None:
        with buffer.guard:
            buffer.plug = plug
        self._known.add(plug)
        self._switched_on += 1
        log.info(
            "Request %s: the keys and values of %d tokens are archived, and %d recalled at each step, with a "
            "cluster for %d tokens.",
            request,
            buffer.length,
            plug.how.budget,
            plug.ratio,
        )

    def ended(self, request: str, buffer: Buffer) -> None:
        """A request computed in `buffer` is over: what recalling did for it is logged."""
        plug = buffer.plug
        if not isinstance(plug, Recallable) or (order := plug.figures.order) is None:
            return
        figures, steps = plug.figures, sorted(plug.figures.steps)
        log.info(
            "Request %s: %d clusters; %d tokens recalled so far, %d of them decompressed (%.0f%% were there "
            "still); %d bytes at hand, %d archived, %d saved; choosing took %s ms (P50, P90, P99).",
            request,
            plug.clusters,
            figures.recalled,
            figures.decompressed,
            100 * figures.hit_ratio,
            plug.device_bytes,
            plug.host_bytes,
            plug.saved_bytes,
            ", ".join(f"{_at(steps, share):.1f}" for share in SHARES) if steps else "no",
        )
        log.debug("Request %s: last recalled clusters, by rank: %s", request, order[:, :LOGGED].tolist())

    def report(self) -> dict[str, int]:
        """Of the sequences that are recalled now, running or waiting for their next turn: `recall_sequences`,
        `recall_clusters`, bytes held at hand (`recall_device_bytes`) and in archives (`recall_host_bytes`),
        and saved against keeping them whole (`recall_saved_bytes`); tokens recalled and those of them that
        had to be decompressed, the share that hadn't in thousandths (`recall_hits_per_mille`), and the
        microseconds that recalling added to the last steps at three percentiles (`recall_p50_us` …). Nothing
        while none ever was."""
        if not self._switched_on:
            return {}
        plugs = list(self._known)
        recalled = sum(one.figures.recalled for one in plugs)
        decompressed = sum(one.figures.decompressed for one in plugs)
        steps = sorted(step for one in plugs for step in list(one.figures.steps))
        found = {
            "recall_sequences": len(plugs),
            "recall_switched_on": self._switched_on,
            "recall_clusters": sum(one.clusters for one in plugs),
            "recall_device_bytes": sum(one.device_bytes for one in plugs),
            "recall_host_bytes": sum(one.host_bytes for one in plugs),
            "recall_saved_bytes": sum(one.saved_bytes for one in plugs),
            "recall_tokens": recalled,
            "recall_decompressed": decompressed,
            "recall_hits_per_mille": round(1000 * (1 - decompressed / recalled)) if recalled else 0,
        }
        for share in SHARES if steps else ():
            found[f"recall_p{round(share * 100)}_us"] = round(_at(steps, share) * 1000)
        return found


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
