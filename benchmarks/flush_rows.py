"""The rows that `benchmarks.flush` deletes, written by Postgres itself, and the real ones that are served
meanwhile.

What is deleted is as large as a real entry and as deep in every index: keys, typo bands, a vector of its own.
The index of vectors is built once all are there, which takes a minute where one by one takes an hour."""

import uuid
from typing import Any

import numpy as np
from django.db import connection
from django.db.backends.utils import CursorWrapper

from benchmarks.lookup_questions import question
from inference import scopes
from inference.cache import decision, lifecycle, lookup, probe, vectors
from inference.embedding import unit
from inference.models import Entry, Scope, Session
from inference.understanding.turns import Turn

_CENTRES = 1_000
_DIMENSION = 384

_ENTRIES = """
    INSERT INTO inference_entry (id, scope_id, session_id, visibility, content_class, answer, state,
    read_only,
        epoch, hits, seconds_to_compute, tokens_to_compute, expires_at, dies_at, created_at)
    SELECT md5('flush' || n)::uuid, %s, %s, 'shared', 'fact', repeat('Answer ' || n || '. ', 20), 'active',
        false, 0, 0, 1, 100, now() + interval '1 day', now() + interval '1 day', now()
    FROM generate_series(1, %s) n
"""
# Each vector is the middle of two of a thousand: all differ, and they lie as unevenly as real ones.
_WORDINGS = """
    INSERT INTO inference_wording (id, entry_id, scope_id, session_id, visibility, question, context,
    resolved,
        dependent, exact_key, keyword_key, template_key, parameters, typo_bands, question_vector, fingerprint,
        state, hits, origin, agreed, disagreed, created_at)
    SELECT md5('w' || n)::uuid, md5('flush' || n)::uuid, %s, %s, 'shared', 'What is number ' || n || '?',
    '[]',
        '', false, md5('e' || n), md5('k' || n), md5('t' || n), '[]',
        ARRAY[hashint4(n), hashint4(n + 1), hashint4(n + 2), hashint4(n + 3), hashint4(n + 4), hashint4(n +
        5)], l2_normalize(a.vector + b.vector), '{}', 'active', 0, 'birth', 0, 0, now()
    FROM generate_series(1, %s) n
    JOIN centre a ON a.id = n %% %s JOIN centre b ON b.id = (n / %s * 7 + n * 3 + 1) %% %s
"""
# A lighter graph than the cache's own (m 24, ef_construction 200), which takes ten minutes for 200,000.
_HNSW = (
    vectors.index_sql("question", _DIMENSION)
    .replace("m = 24", "m = 16")
    .replace("ef_construction = 200", "ef_construction = 40")
)


class Flushed:
    """A scope with `doomed` entries and one with `kept`."""

    def __init__(self, doomed: int, kept: int) -> None:
        self.doomed, self.kept = (scopes.for_measuring("benchmark") for _ in range(2))
        self.session = Session.objects.create(pk=uuid.uuid4())
        for at in range(kept):
            read = probe.read(self.kept, self.session.pk, _turns(question(at)))
            read.__dict__["_vectors"] = (None, None)  # exact hits need none
            lifecycle.plant(read, self.session, f"Answer {at}. " * 20, "fact", None)
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX IF EXISTS wording_question_hnsw_384, wording_typo_bands")
            self._centres(cursor)
            owner: list[Any] = [self.doomed.pk, self.session.pk, doomed]
            cursor.execute(_ENTRIES, owner)
            cursor.execute(_WORDINGS, [*owner, _CENTRES, _CENTRES, _CENTRES])
            cursor.execute("SET maintenance_work_mem = '1GB'")
            cursor.execute(_HNSW)
            cursor.execute(
                "CREATE INDEX wording_typo_bands ON inference_wording USING gin (typo_bands)"
                " WITH (fastupdate = off)"
            )
            cursor.execute("ANALYZE inference_entry, inference_wording, inference_session")

    def hit(self, text: str) -> None:
        """An exact decision in the kept scope, which must be a hit."""
        read = probe.read(self.kept, uuid.uuid4(), _turns(text))
        assert decision.decide(read).layer == "exact"

    def count(self) -> dict[str, int]:
        return {
            name: Entry.objects.filter(scope=scope).count()
            for name, scope in (("doomed", self.doomed), ("kept", self.kept))
        }

    def empty(self) -> None:
        """If it failed half-way there are a great many: they go without Django's looking at each."""
        mine = [self.doomed.pk, self.kept.pk]
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM inference_wording WHERE scope_id = ANY(%s)", [mine])
            cursor.execute("DELETE FROM inference_entry WHERE scope_id = ANY(%s)", [mine])
        self.session.delete()
        Scope.objects.filter(pk__in=mine).delete()

    @staticmethod
    def _centres(cursor: CursorWrapper) -> None:
        points = unit(np.random.default_rng(3).normal(0, 1, (_CENTRES, _DIMENSION)))
        cursor.execute(f"CREATE TEMPORARY TABLE centre (id int PRIMARY KEY, vector halfvec({_DIMENSION}))")
        for at, point in enumerate(points):
            cursor.execute("INSERT INTO centre VALUES (%s, %s::halfvec)", [at, lookup.as_text(point)])


def _turns(text: str) -> list[Turn]:
    return [{"role": "user", "content": text}]
