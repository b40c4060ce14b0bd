"""Questions, each asked by one test only: the cache is shared by everyone who asks the stack."""

from itertools import count

_numbers = count(1)
_SUBJECTS = ("rain", "bread", "steel", "a bridge", "paper", "glass", "honey", "soap", "ink", "a clock")
_COUNTRIES = iter(
    "Spain Italy Japan Peru Norway Egypt Chile Kenya Greece Poland Cuba Iran Ireland Austria Denmark".split()
)


def long() -> str:
    """A general question that was not asked before, with an answer as long as answers may be here."""
    number = next(_numbers)
    subject = _SUBJECTS[number % len(_SUBJECTS)]
    return f"Explain in detail how {subject} is made, as chapter {number} of a handbook would."


def short() -> str:
    """A general question that was not asked before, whose answer ends by itself, so that it is kept."""
    return f"What is the capital of {next(_COUNTRIES)}?"
