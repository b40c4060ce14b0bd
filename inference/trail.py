"""Which answer a log line belongs to, and which trace: through web, queue and engine.

The id of a generation travels in a header of its tasks, so that whatever is logged on its behalf names it.
Where OpenTelemetry is installed (extra `otel`) and set up (config.tracing), the trace travels along, and each
stage is a span of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import structlog

propagate: Any
trace: Any
try:
    from opentelemetry import propagate, trace
except ImportError:  # the extra is not installed
    propagate = trace = None

_HEADER = "reprise_trail"

Headers = dict[str, dict[str, str]]


def headers(subject: UUID | int | str) -> Headers:
    """For a task about `subject`: what it is about, and the trace that is going on here."""
    carried = {"generation": str(subject)}
    if propagate is not None:
        propagate.inject(carried)
    return {_HEADER: carried}


@contextmanager
def stage(name: str, generation: UUID | str, carried: Mapping[str, str] | None = None) -> Iterator[None]:
    """Within the block, what is logged names this generation; in a trace it is a span `name`, of the trace
    that was `carried` here, if one was."""
    with structlog.contextvars.bound_contextvars(generation=str(generation)):
        if trace is None or propagate is None:
            yield
            return
        context = propagate.extract(carried) if carried else None
        with trace.get_tracer("reprise").start_as_current_span(
            name, context=context, attributes={"reprise.generation": str(generation)}
        ):
            yield


def note(**attributes: str | int | float) -> None:
    """Add to the span that is going on, if there is one."""
    if trace is not None:
        trace.get_current_span().set_attributes({f"reprise.{name}": v for name, v in attributes.items()})


def carried_by(request: Any) -> dict[str, str]:
    """What `headers` had put into the message of a Celery task, of which this is the request."""
    found = getattr(request, _HEADER, None) or (getattr(request, "headers", None) or {}).get(_HEADER)
    return dict(found) if isinstance(found, Mapping) else {}
