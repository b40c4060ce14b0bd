"""Questions for the real model. The tables are emptied after each test, so that they may come round again,
but within a test none comes twice."""

from itertools import cycle

from tests.websocket.questions import long

__all__ = ["long", "short"]

_COUNTRIES = cycle(
    "France Germany Sweden Finland Portugal Hungary Belgium Bulgaria Romania Croatia Serbia Iceland Jordan "
    "Lebanon Nepal Mongolia Vietnam Thailand Malaysia Indonesia Mexico Argentina Colombia Bolivia".split()
)


def short() -> str:
    """Its answer ends by itself within the test suite's length limit, so that it is kept."""
    return f"What is the capital of {next(_COUNTRIES)}?"
