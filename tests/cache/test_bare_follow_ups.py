"""Follow-ups that say nothing by themselves: they ask the same in the same words only."""

import pytest

from inference.models import Outcome, Scope

from .conftest import decided, stored

pytestmark = pytest.mark.django_db

BREAD = (
    "Explain in detail how bread is made.",
    "Bread is made from flour, water, salt and yeast. The dough is kneaded, rises for an hour, and is baked.",
)
MIANBAO = ("面包是怎么做的？", "用面粉、水、盐和酵母和面，发酵一小时，再放进烤箱里烤。")


@pytest.mark.parametrize("later", [False, True], ids=["in its place", "after it"])
@pytest.mark.parametrize(
    ("before", "asked", "other"),
    [
        *(
            (BREAD, *pair)
            for pair in (
                ("And what for?", "And then?"),
                ("And then?", "And what for?"),
                ("Why?", "When?"),
                ("And why?", "And how?"),
                ("What else?", "What then?"),
                ("Really?", "Why?"),
                ("Go on.", "Why is that?"),
                ("And who?", "And where?"),
                ("So what?", "What next?"),
                ("Then what?", "For whom?"),
            )
        ),
        *(
            (MIANBAO, *pair)
            for pair in (
                ("然后呢？", "为什么呢？"),
                ("还有呢？", "为什么呢？"),
                ("为什么？", "什么时候？"),
                ("谁呢？", "哪里呢？"),
                ("真的吗？", "然后呢？"),
                ("继续。", "为什么？"),
            )
        ),
    ],
)
def test_others_are_others(
    scope: Scope, before: tuple[str, str], asked: str, other: str, later: bool
) -> None:
    answer = "Because people like to eat it with butter." if before is BREAD else "因为大家早上都喜欢吃。"
    stored(scope, *before, asked, answer=answer)
    history = (*before, asked, answer) if later else before
    found = decided(scope, *history, other)
    assert found.outcome not in (Outcome.HIT, Outcome.GRAY), found.reason
