"""Entries that many ask for are asked anew in the background before they die, so that their death doesn't
send everyone to the engine at once. An answer never lives longer for it than a fresh one would: either the
fresh one says the same, or it takes the old one's place.
"""

from collections.abc import Iterator
from uuid import UUID

from django.db import transaction
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Coalesce, Now

from inference import dispatch, scopes
from inference.history import born_wordings
from inference.models import ALIVE, OPEN, Entry, Generation, Verdict, Visibility, Wording
from inference.understanding.cacheability import Cacheability

from . import agreement, learning, lifecycle, provenance
from .probe import Probe

# In the last tenth of its life an entry is refreshed, if it was hit so often, and once in that time.
_SHARE_LEFT = 0.1
_HOT_HITS = 3
# At a time; and only while no person waits for an engine.
AT_ONCE = 4


def refresh() -> int:
    """Ask anew for what is hot and about to die; returns for how many entries."""
    if dispatch.is_anyone_waiting():
        return 0
    return sum(1 for entry in _due() if _ask(entry))


def _due() -> Iterator[Entry]:
    """The hottest first; none that is being refreshed already."""
    lived_from = Coalesce("refreshed_at", "created_at")
    life = ExpressionWrapper(F("dies_at") - lived_from, output_field=DurationField())
    asked = Generation.objects.filter(status__in=OPEN, question__has_key="refreshes")
    under_way = {UUID(row["refreshes"]) for row in asked.values_list("question", flat=True)}
    hot = (
        Entry.objects.filter(
            visibility=Visibility.SHARED,
            read_only=False,
            state__in=ALIVE,
            hits__gte=_HOT_HITS,
            expires_at__gt=Now(),
            dies_at__lt=Now() + life * _SHARE_LEFT,
            last_hit_at__gt=Now() - life * _SHARE_LEFT,
        )
        .select_related("scope", "session")
        .defer("answer", "answer_vector")
    )
    yield from hot.exclude(pk__in=under_way).order_by("-hits")[:AT_ONCE]


def _ask(entry: Entry) -> bool:
    """Queue the question that this entry answers, to be answered without the cache. False where nobody could
    ask it so any more: another version counts by now, or a source has changed."""
    born = born_wordings([entry.pk]).get(entry.pk)
    made = provenance.read_now(entry.sources.values_list("source_key", "version"))
    if born is None or not scopes.is_current(entry.scope, made):
        return False
    turns = [*born.context, {"role": "user", "content": born.question}]
    generation = Generation.objects.create(
        session=entry.session,
        epoch=entry.session.epoch,
        sources=provenance.named(made),
        question={"turns": turns, "generations": [], "fresh": True, "refreshes": str(entry.pk)},
    )
    transaction.on_commit(lambda: dispatch.answer(generation.pk))
    return True


def conclude(probe: Probe, generation: Generation, cacheability: Cacheability) -> Wording | None:
    """What a fresh answer, asked for in the background, does to the entry that it was asked for. Returns the
    wording that stands for it now."""
    entry_id = UUID(generation.question["refreshes"])
    entry = Entry.objects.filter(pk=entry_id).first()
    born = born_wordings([entry_id]).get(entry_id)
    if entry is None or born is None or born.exact_key != probe.exact_key:
        return None
    fresh = learning.answer_of(generation.text)
    same = agreement.judge(learning.stored_answer(entry), fresh, learning.asked(probe, probe))
    if same.verdict == Verdict.AGREE:
        return born if lifecycle.renew(entry_id, generation, cacheability) else None
    return lifecycle.succeed(entry_id, probe, generation, cacheability, fresh.vector)
