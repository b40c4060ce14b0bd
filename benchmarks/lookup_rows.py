"""The rows that `benchmarks.lookup` asks, written in bulk. Only what is asked is embedded by the model: a
row's vector is the mean of its words', scattered a little, so that a million of them take minutes and still
lie as unevenly as real ones."""

import time
import uuid
from datetime import timedelta

import numpy as np
from django.db import connection
from django.utils import timezone

from benchmarks.lookup import question
from inference import embedding, scopes
from inference.cache import decision, lookup, probe
from inference.cache.lifecycle import columns_of
from inference.models import Entry, Scope, Session, State, Visibility, Wording

_BATCH = 500


class Filled:
    """A scope with `scope_rows` entries in a table with `rows`; the others lie in ten more scopes."""

    def __init__(self, scope_rows: int, rows: int) -> None:
        self.scopes = [scopes.for_measuring("benchmark") for _ in range(11)]
        self.session = Session.objects.create(pk=uuid.uuid4())
        self._words: dict[str, np.ndarray] = {}
        self._random = np.random.default_rng(3)
        started = time.perf_counter()
        for at in range(0, scope_rows, _BATCH):
            self._insert(self.scopes[0], range(at, min(at + _BATCH, scope_rows)))
        for at in range(scope_rows, rows, _BATCH):
            self._insert(self.scopes[1 + (at // _BATCH) % 10], range(at, min(at + _BATCH, rows)))
        self.rows, self.per_second = rows, rows / (time.perf_counter() - started)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE inference_entry, inference_wording, inference_session")

    def exact(self, text: str) -> None:
        """An exact decision, which must be a hit."""
        assert decision.decide(self._probe(text)).layer == "exact"

    def semantic(self, text: str) -> None:
        """A decision that gets to the vectors."""
        decision.decide(self._probe(text))

    def recall(self, texts: list[str]) -> float:
        """The share of the eight nearest by exact search that the index brings too, filters on."""
        found = wanted = 0
        for text in texts:
            read = self._probe(text)
            near = {one.wording for one in lookup.nearest(read)}
            best = self._nearest_exactly(read)
            found, wanted = found + len(near & best), wanted + len(best)
        return round(found / max(1, wanted), 4)

    def bytes_per_entry(self) -> float:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_total_relation_size('inference_wording')"
                " + pg_total_relation_size('inference_entry')"
            )
            return round(cursor.fetchone()[0] / max(1, self.rows), 1)

    def empty(self) -> None:
        Session.objects.filter(pk=self.session.pk).delete()
        Scope.objects.filter(pk__in=[scope.pk for scope in self.scopes]).delete()

    def _probe(self, text: str) -> probe.Probe:
        return probe.read(self.scopes[0], uuid.uuid4(), [{"role": "user", "content": text}])

    def _nearest_exactly(self, read: probe.Probe) -> set[uuid.UUID]:
        vector = lookup.as_text(read.question_vector)
        with connection.cursor() as cursor:
            cursor.cursor.execute(
                """
                    SELECT id FROM inference_wording WHERE scope_id = %s AND state = 'active'
                    ORDER BY (question_vector::halfvec(384) <#> %s::halfvec(384)) + 0 LIMIT 8
                """,
                [self.scopes[0].pk, vector],
                prepare=False,
            )
            return {row[0] for row in cursor.fetchall()}

    def _insert(self, scope: Scope, numbers: range) -> None:
        until = timezone.now() + timedelta(days=1)
        entries = [
            Entry(
                scope=scope,
                session=self.session,
                visibility=Visibility.SHARED,
                content_class="fact",
                answer=f"Answer {at}. " * 20,
                state=State.ACTIVE,
                seconds_to_compute=1,
                tokens_to_compute=100,
                expires_at=until,
                dies_at=until,
            )
            for at in numbers
        ]
        Entry.objects.bulk_create(entries)
        Wording.objects.bulk_create(
            self._wording(scope, entry, question(at)) for entry, at in zip(entries, numbers, strict=True)
        )

    def _wording(self, scope: Scope, entry: Entry, text: str) -> Wording:
        read = probe.read(scope, self.session.pk, [{"role": "user", "content": text}])
        read.__dict__["_vectors"] = (self._vector(text), None)
        return Wording(
            entry=entry,
            session=self.session,
            visibility=Visibility.SHARED,
            state=State.ACTIVE,
            **columns_of(read),
        )

    def _vector(self, text: str) -> np.ndarray:
        words = [word for word in text.split() if not word[0].isdigit()]
        new = [word for word in words if word not in self._words]
        if new:
            vectors = embedding.embed(new)
            assert vectors is not None
            self._words |= dict(zip(new, vectors, strict=True))
        mean = np.mean([self._words[word] for word in words], axis=0)
        return embedding.unit(mean + self._random.normal(0, 0.01, mean.shape))
