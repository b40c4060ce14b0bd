"""A conversation as the person saw it, and as the model sees it.

When a question was answered from an entry, the model reads it in the wording that the entry was born with, if
the person's own wording added nothing to that. So sessions that asked the same thing in other words have the
same tokens behind them, and share what was computed for those.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from .models import Generation, Origin, ServedBy, Status, Visibility, Wording
from .understanding.canonical import adds_nothing
from .understanding.turns import Turn

_COLUMNS = ("entry", "status", "served_by", "text", "session_id", "exact_key", "rendered", "model_question")


def model_view(generation: Generation) -> list[Turn]:
    """The turns of `generation` as the model reads them, the question last and as it was asked. How it reads
    a past turn is decided here when it does for the first time, and holds from then on."""
    past = _past(generation)
    _decide(past)
    return _seen(generation, past)


@dataclass(frozen=True)
class BothWays:
    """One turn: as the person saw it, and as the model does. `read` is false while no prompt has held it, so
    that the model's view of it is still open."""

    person: Turn
    model: Turn
    read: bool

    @property
    def differs(self) -> bool:
        return self.person != self.model


def both_views(generation: Generation) -> list[BothWays]:
    """The conversation up to the answer that `generation` is, both ways. Decides nothing."""
    past = _past(generation)
    person = list(generation.question["turns"])
    read = {place: answer.generation.rendered for place, answer in past.items()}
    rows = [
        BothWays(one, other, read.get(at, read.get(at + 1, True)))
        for at, (one, other) in enumerate(zip(person, _seen(generation, past), strict=True))
    ]
    rows[-1] = BothWays(rows[-1].person, rows[-1].model, generation.rendered)
    if generation.text:
        answer: Turn = {"role": "assistant", "content": generation.text}
        rows.append(BothWays(answer, answer, generation.rendered))
    return rows


@dataclass(frozen=True)
class _Answer:
    """A past answer and the question it was given to."""

    asked: str
    generation: Generation


def _past(generation: Generation) -> dict[int, _Answer]:
    """The finished answers among the turns, by their place. A turn whose generation reads otherwise by now
    (it was still being written when this question was asked) is what the person saw, and no more."""
    turns, ids = generation.question["turns"], generation.question.get("generations") or []
    places = {at: id for at, id in enumerate(ids) if id and at and turns[at - 1]["role"] == "user"}
    if not places:
        return {}
    rows = Generation.objects.filter(pk__in=places.values()).select_related("entry")
    found = {str(row.pk): row for row in rows.only(*_COLUMNS, "entry__answer")}
    return {
        at: _Answer(turns[at - 1]["content"], found[id])
        for at, id in places.items()
        if id in found and found[id].status == Status.COMPLETE and found[id].text == turns[at]["content"]
    }


def _seen(generation: Generation, past: Mapping[int, _Answer]) -> list[Turn]:
    turns: list[Turn] = list(generation.question["turns"])
    for at, answer in past.items():
        if answer.generation.model_question:
            turns[at - 1] = {"role": "user", "content": answer.generation.model_question}
    return turns


def _decide(past: Mapping[int, _Answer]) -> None:
    """Settle how the model reads what it hasn't read yet. Of two prompts at once the first one settles it."""
    open_ones = [answer for answer in past.values() if not answer.generation.rendered]
    served = (one.generation for one in open_ones if one.generation.served_by != ServedBy.MODEL)
    born = born_wordings({row.entry_id for row in served if row.entry_id})
    for answer in open_ones:
        row = answer.generation
        row.rendered, row.model_question = True, _canonical(answer, born)
        undecided = Generation.objects.filter(pk=row.pk, rendered=False)
        if not undecided.update(rendered=True, model_question=row.model_question):
            row.refresh_from_db(fields=["model_question"])


def born_wordings(entries: Iterable[UUID]) -> dict[UUID, Wording]:
    """The wording that each of `entries` was born with, by the entry's id."""
    if not entries:
        return {}
    born = Wording.objects.filter(entry__in=entries, origin=Origin.BIRTH)
    oldest = born.order_by("entry", "created_at").distinct("entry")
    return {wording.entry_id: wording for wording in oldest}


def may_read(wording: Wording, session: UUID) -> bool:
    """Someone's personal way of asking stays theirs, even where the answer is everyone's."""
    return wording.visibility == Visibility.SHARED or wording.session_id == session


def _canonical(answer: _Answer, wordings: Mapping[UUID, Wording]) -> str:
    """The wording in whose place `answer`'s question may stand; "" when it stays as it was asked."""
    row = answer.generation
    born = wordings.get(row.entry_id) if row.entry_id else None
    if born is None or row.entry is None or row.text != row.entry.answer:
        return ""  # not answered from an entry, or not with its answer as it is
    # Words that lean on what was said before them mean something else behind other turns.
    stands = not born.dependent or born.exact_key == row.exact_key
    if stands and may_read(born, row.session_id) and adds_nothing(answer.asked, born.question):
        return born.question
    return ""
