"""The rows that `benchmarks.lookup` asks, written in bulk.

What is asked for is read and embedded as the product does it. All other rows of its scope are read, and have
the model's vector of a question that differs in place and number only, as far from it as such questions are
from each other; so they lie among those that are asked for. Rows of other scopes are those again with ids,
keys and vectors of their own.
"""

import hashlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import connection, models
from django.utils import timezone
from pgvector import HalfVector
from pgvector.psycopg import register_vector
from psycopg.types.json import Jsonb

from benchmarks.lookup_questions import group, question
from inference import embedding, scopes
from inference.cache import decision, lifecycle, lookup, probe
from inference.embedding import Vector
from inference.models import Entry, Scope, Session, State, Visibility, Wording

APP = "benchmark-lookup"
_OTHERS = 10
_BATCH = 2_000
# So many pairs tell how far questions of one group are from each other.
_PAIRS = 200
# How many read rows the rows of other scopes are made of.
_PATTERNS = 4_000
# Large indexes are built after loading; the others while it goes on.
_BUILT_AFTER = ("wording_question_hnsw_384", "wording_context_hnsw_384", "wording_typo_bands")
_BUILD_MEMORY, _BUILD_WORKERS = "3GB", 2


class Filled:
    """A scope with entries in a table with more; the others lie in ten more scopes."""

    def __init__(self) -> None:
        self.scopes = list(Scope.objects.filter(app=APP).order_by("pk"))
        self.rows = Entry.objects.count()
        embedding.warm_up()  # as a worker does

    @property
    def scope_rows(self) -> int:
        return Entry.objects.filter(scope=self.scopes[0]).count()

    # --- filling ----------------------------------------------------------------------------------------

    def fill(self, scope_rows: int, rows: int, asked: set[int], say: Callable[[str], None]) -> dict[str, Any]:
        """Load `scope_rows` entries into the first scope and the rest of `rows` into the others, and index
        them; returns how long that took, in seconds."""
        self.scopes = [scopes.for_measuring(APP) for _ in range(1 + _OTHERS)]
        rowmaker = _Rows(Session.objects.create(pk=uuid.uuid4()), asked)
        started = time.perf_counter()
        with _indexed_after(say) as building:
            for at in range(0, scope_rows, _BATCH):
                rowmaker.load(self.scopes[0], range(at, min(at + _BATCH, scope_rows)), read=True)
                say(f"{at}/{rows} rows")
            for at in range(scope_rows, rows, _BATCH):
                scope = self.scopes[1 + (at // _BATCH) % _OTHERS]
                rowmaker.load(scope, range(at, min(at + _BATCH, rows)), read=False)
                say(f"{at}/{rows} rows")
            loaded = time.perf_counter() - started
        self.rows = rows
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE inference_entry")
            cursor.execute("VACUUM ANALYZE inference_wording")
            cursor.execute("ANALYZE inference_session")
        return {"load_seconds": round(loaded, 1), "index_seconds": building}

    # --- asking -----------------------------------------------------------------------------------------

    def exact(self, text: str) -> None:
        """An exact decision, which must be a hit."""
        assert decision.decide(self._probe(text)).layer == "exact"

    def semantic(self, text: str) -> decision.Decided:
        """A decision that gets to the vectors."""
        return decision.decide(self._probe(text))

    def recall(self, texts: list[str]) -> float:
        """The share of the eight nearest by exact search that the index brings too, filters on."""
        found = wanted = 0
        for text in texts:
            read = self._probe(text)
            near = {one.wording for one in lookup.nearest(read)}
            best = self._nearest_exactly(read)
            found, wanted = found + len(near & best), wanted + len(best)
        return round(found / max(1, wanted), 4)

    def inserts_per_second(self, count: int) -> float:
        """How fast new answers are stored one after the other, as the product stores them: read, embedded,
        indexed. They are taken out again."""
        session = Session.objects.create(pk=uuid.uuid4())
        started = time.perf_counter()
        for at in range(count):
            text = question(10_000_000 + at)
            answer = f"Answer {at}. " * 20
            vector = embedding.embed([answer])
            lifecycle.plant(self._probe(text), session, answer, "fact", None if vector is None else vector[0])
        per_second = count / (time.perf_counter() - started)
        session.delete()
        return round(per_second, 1)

    def bytes_of(self) -> dict[str, float]:
        """Bytes an entry with its wording: tables with everything that belongs to them, and indexes of
        vectors alone."""
        sql = """
            SELECT pg_total_relation_size('inference_wording') + pg_total_relation_size('inference_entry'),
                pg_relation_size('wording_question_hnsw_384'), pg_indexes_size('inference_wording')
        """
        with connection.cursor() as cursor:
            cursor.execute(sql)
            total, hnsw, indexes = cursor.fetchone()
        rows = max(1, self.rows)
        return {
            "all": round(total / rows),
            "vector_index": round(hnsw / rows),
            "wording_indexes": round(indexes / rows),
        }

    def empty(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE inference_session, inference_scope CASCADE")

    def _probe(self, text: str) -> probe.Probe:
        return probe.read(self.scopes[0], uuid.uuid4(), [{"role": "user", "content": text}])

    def _nearest_exactly(self, read: probe.Probe) -> set[uuid.UUID]:
        assert read.question_vector is not None
        with connection.cursor() as cursor:
            cursor.cursor.execute(
                """
                    SELECT id FROM inference_wording WHERE scope_id = %s AND state = 'active'
                    ORDER BY (question_vector::halfvec(384) <#> %s::halfvec(384)) + 0 LIMIT 8
                """,
                [self.scopes[0].pk, lookup.as_text(read.question_vector)],
                prepare=False,
            )
            return {row[0] for row in cursor.fetchall()}


@contextmanager
def _indexed_after(say: Callable[[str], None]) -> Iterator[dict[str, float]]:
    """Within the block the large indexes are gone; afterwards they are built at once, with all cores."""
    seconds: dict[str, float] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE indexname = ANY(%s)", [[*_BUILT_AFTER]]
        )
        definitions = dict(cursor.fetchall())
        for name in definitions:
            cursor.execute(f"DROP INDEX {name}")
    yield seconds
    with connection.cursor() as cursor:
        cursor.execute(f"SET maintenance_work_mem = '{_BUILD_MEMORY}'")
        cursor.execute(f"SET max_parallel_maintenance_workers = {_BUILD_WORKERS}")
        for name, definition in definitions.items():
            say(f"building {name}")
            started = time.perf_counter()
            cursor.execute(definition)
            seconds[name] = round(time.perf_counter() - started, 1)


class _Rows:
    """Makes rows and copies them into the tables."""

    def __init__(self, session: Session, asked: set[int]) -> None:
        self._session, self._asked = session, asked
        self._bases: dict[tuple[int, str, str], Vector] = {}
        self._scatter: float | None = None
        self._patterns: list[dict[str, Any]] = []
        self._random = np.random.default_rng(3)

    def load(self, scope: Scope, numbers: range, *, read: bool) -> None:
        entries = [self._entry(scope, at) for at in numbers]
        rows = [self._read(scope, at) if read else self._copied(scope, at) for at in numbers]
        made = zip(entries, rows, strict=True)
        wordings = [self._wording(entry, columns) for entry, columns in made]
        _copy(Entry, entries)
        _copy(Wording, wordings)

    def _entry(self, scope: Scope, at: int) -> Entry:
        now = timezone.now()
        until = now + timedelta(days=1)
        return Entry(
            scope=scope,
            session=self._session,
            visibility=Visibility.SHARED,
            content_class="fact",
            answer=f"Answer {at}. " * 20,
            answer_vector=embedding.unit(self._random.normal(0, 1, 384)),
            state=State.ACTIVE,
            seconds_to_compute=1,
            tokens_to_compute=100,
            expires_at=until,
            dies_at=until,
            created_at=now,
        )

    def _wording(self, entry: Entry, columns: dict[str, Any]) -> Wording:
        whose = {"session": self._session, "visibility": Visibility.SHARED, "state": State.ACTIVE}
        return Wording(entry=entry, **whose, **columns, created_at=entry.created_at)

    def _read(self, scope: Scope, at: int) -> dict[str, Any]:
        text = question(at)
        read = probe.read(scope, self._session.pk, [{"role": "user", "content": text}])
        if at not in self._asked:
            read.__dict__["_vectors"] = (self._scattered(at), None)
        columns = lifecycle.columns_of(read)
        if len(self._patterns) < _PATTERNS:
            self._patterns.append(columns)
        return columns

    def _copied(self, scope: Scope, at: int) -> dict[str, Any]:
        """A row of another scope: under its keys nothing of the first scope is found."""
        pattern = self._patterns[at % len(self._patterns)]
        text = question(at)
        own = {
            "scope": scope,
            "question": text,
            "question_vector": self._scattered(at),
            "typo_bands": [
                int(band) for band in self._random.integers(-(2**31), 2**31 - 1, len(pattern["typo_bands"]))
            ],
        }
        keys = {name: _digest(name, at) for name in ("exact_key", "keyword_key", "template_key")}
        return pattern | own | keys

    def _scattered(self, at: int) -> Vector:
        base = self._base(at)
        if self._scatter is None:
            self._scatter = self._measured_scatter()
        return embedding.unit(base + self._random.normal(0, self._scatter, base.shape))

    def _base(self, at: int) -> Vector:
        key = group(at)
        if key not in self._bases:
            self._bases[key] = _embedded(question(at))
        return self._bases[key]

    def _measured_scatter(self) -> float:
        """Of each channel, so that two rows of a group are as alike as two of its questions are."""
        likeness: list[float] = []
        at = 0
        while len(likeness) < _PAIRS:
            seen = group(at) in self._bases
            base = self._base(at)
            if seen:
                likeness.append(float(base @ _embedded(question(at))))
            at += 1
        return float(np.sqrt((1 / np.mean(likeness) - 1) / len(base)))


def _embedded(text: str) -> Vector:
    found = embedding.embed([text])
    assert found is not None
    return found[0]


def _digest(name: str, at: int) -> str:
    return hashlib.sha256(f"{name} {at}".encode()).hexdigest()


# --- copying --------------------------------------------------------------------------------------------

_PLAIN: dict[str, Callable[[Any], Any]] = {
    "jsonb": Jsonb,
    "halfvec": lambda vector: None if vector is None else HalfVector(vector),
}
_TYPES = {"bigint": "int8", "integer": "int4", "integer[]": "int4[]", "double precision": "float8"}


def _copy(model: type[models.Model], rows: Iterable[models.Model]) -> None:
    """COPY in its binary form: a million vectors as text would be 3 GB."""
    fields = model._meta.concrete_fields
    types = [_type(field) for field in fields]
    columns = ", ".join(field.column for field in fields)
    connection.ensure_connection()
    register_vector(connection.connection)
    with connection.connection.cursor() as cursor:
        sql = f"COPY {model._meta.db_table} ({columns}) FROM STDIN (FORMAT BINARY)"
        with cursor.copy(sql) as copy:
            copy.set_types(types)
            for row in rows:
                values = (getattr(row, field.attname) for field in fields)
                copy.write_row(
                    [_PLAIN.get(type_, _same)(value) for type_, value in zip(types, values, strict=True)]
                )


def _same(value: Any) -> Any:
    return str(value) if isinstance(value, models.TextChoices) else value


def _type(field: "models.Field[Any, Any]") -> str:
    named = (field.db_type(connection) or "").partition("(")[0]
    if named in ("varchar", "character varying"):
        return "text"
    if named == "timestamp with time zone":
        return "timestamptz"
    return _TYPES.get(named, named.replace("boolean", "bool"))
