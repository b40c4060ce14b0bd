"""Questions that a test has for itself, although the cache is shared by everyone who asks the stack."""

from itertools import count, cycle

_numbers = count(1)
_subjects = cycle(["rain", "bread", "steel", "a bridge", "paper", "glass", "honey", "soap", "ink", "a clock"])
_countries = cycle(
    "Spain Italy Japan Peru Norway Egypt Chile Kenya Greece Poland Cuba Iran Ireland Austria Denmark Sweden "
    "Portugal Finland Hungary Romania Bulgaria Turkey India Thailand Vietnam Nepal Cambodia Laos Jordan Iraq "
    "Lebanon Morocco Tunisia Algeria Ghana Nigeria Ethiopia Canada Australia Germany".split()
)


def long() -> str:
    """A general question with an answer as long as answers may be here."""
    return (
        f"Explain in detail how {next(_subjects)} is made, as chapter {next(_numbers)} of a handbook would."
    )


def short() -> str:
    """A general question whose answer ends by itself, so that it is kept."""
    return f"What is the capital of {next(_countries)}?"
