"""Questions, each asked by one test only, so that what the cache holds of one test is nothing to another."""

from tests.websocket.questions import long

__all__ = ["long", "short"]

_COUNTRIES = iter(
    "France Germany Sweden Finland Portugal Hungary Belgium Bulgaria Romania Croatia Serbia Iceland Jordan "
    "Lebanon Nepal Mongolia Vietnam Thailand Malaysia Indonesia Mexico Argentina Colombia Bolivia".split()
)


def short() -> str:
    """Its answer ends by itself within the test suite's length limit, so that it is kept."""
    return f"What is the capital of {next(_COUNTRIES)}?"
