"""Lookups whose truth is known, as rows: without texts that anything is computed from."""

import uuid
from typing import Any

from inference.cache.measured import Measured
from inference.models import (
    Decision,
    Entry,
    Generation,
    Observation,
    Origin,
    Outcome,
    Scope,
    Session,
    State,
    Status,
    Verdict,
    Visibility,
    Wording,
)

LIMITS = {"high": 0.985, "low": 0.9, "near": 0.78, "consent": 0.5}


def values(stored: dict[str, Any] | None) -> dict[str, Any]:
    """A column of JSON that is not empty."""
    assert stored is not None
    return stored


def entry_of(scope: Scope) -> Wording:
    """An entry with its one proved wording."""
    from tests.cache.conftest import stored

    return stored(scope, f"What is {uuid.uuid4().hex[:8]}?")


def looked_up(
    born: Wording,
    outcome: Outcome,
    verdict: Verdict | None = None,
    *,
    score: float = 0.95,
    agrees: bool = True,
    verifier: float | None = 0.9,
    compared_with: Entry | None = None,
    source: str = "",
    **columns: Any,
) -> Decision:
    """A lookup whose likest candidate was `born`. With a verdict: of the pairing that served the hit, or of
    the one that the fresh answer was compared with (another entry's, if `compared_with`)."""
    session = Session.objects.create(pk=uuid.uuid4())
    key, near = uuid.uuid4().hex, outcome == Outcome.NEAR
    pairing = Wording.objects.create(
        entry=compared_with or born.entry,
        scope=born.scope,
        session=session,
        visibility=Visibility.SHARED,
        question=f"Asked {key}",
        exact_key=key,
        dependent=False,
        state=State.SUSPECT,
        origin=Origin.NEAR if near else Origin.HIT,
        fingerprint={},
    )
    generation = Generation.objects.create(
        session=session,
        scope=born.scope,
        question={"turns": [{"role": "user", "content": f"Asked {key}"}]},
        canonical_question=f"asked {key[:6]}",
        exact_key=key,
        status=Status.COMPLETE,
        text="An answer.",
        wording=None if near else pairing,
    )
    if verdict:
        Observation.objects.create(
            generation=generation,
            wording=pairing,
            verdict=verdict,
            source=source or ("near" if near else "user"),
        )
    measured = Measured(
        wording=born.pk,
        entry=born.entry_id,
        content_class="fact",
        score=score,
        strict=score,
        nearness=score,
        agrees=agrees,
        verifier=verifier,
        provable=score,
    )
    served = outcome in (Outcome.HIT, Outcome.GRAY)
    return Decision.objects.create(
        generation=generation,
        layer="semantic",
        outcome=outcome,
        wording=born if served else None,
        entry=born.entry if served else None,
        reason="",
        measured=measured.to_json(),
        milliseconds=1.0,
        **columns,
    )
