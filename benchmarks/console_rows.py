"""The rows that `benchmarks.console` reads, multiplied by the database from a few real ones.

Vectors are as large as real ones, but only those of the real wordings are in the index by which similar ones
are found: to build it over all of them takes an hour, and `benchmarks.lookup` measures it.
"""

import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlencode

from django.db import connection, models
from django.urls import reverse
from django.utils import timezone

from benchmarks.lookup_questions import question
from cacheadmin import tallies
from cacheadmin.models import AuditRecord
from inference import scopes
from inference.cache import lifecycle, probe
from inference.models import (
    DataSource,
    Decision,
    Entry,
    Generation,
    Mode,
    Policy,
    Scope,
    Session,
    Wording,
)

_REAL = 200
_DAYS = 30
_CHINESE = "如何在第{}号表格中办理手续？"


@dataclass(frozen=True)
class Filled:
    scopes: list[Scope]
    entries: list[uuid.UUID]
    suspects: list[uuid.UUID]
    sources: list[int]
    sessions: list[uuid.UUID]
    actions: list[AuditRecord]

    def pages(self) -> dict[str, list[str]]:
        """Addresses by what is measured with them."""
        pick = random.Random(5)
        some = self.entries[:5] + pick.sample(self.entries[5:], 15)
        doubtful = self.suspects[:5] + pick.sample(self.suspects[5:], min(15, len(self.suspects) - 5))
        numbers = [pick.randrange(1_000, 9_999) for _ in range(20)]
        scope = self.scopes[0].pk
        half_way = f"{(timezone.now() - timedelta(days=_DAYS / 2)).isoformat()}_{uuid.UUID(int=0)}"
        return {
            "overview, an hour": _of("console", range="1h"),
            "overview, a day": _of("console", range="24h"),
            "overview, 7 days": _of("console", range="7d"),
            "overview, 30 days": _of("console", range="30d"),
            "overview, a scope": _of("console", range="24h", scope=scope),
            "overview, a scope and a class": _of("console", range="30d", scope=scope, **{"class": "fact"}),
            "entries": _of("console_entries"),
            "entries, rare text": [_of("console_entries", q=f"form {n}")[0] for n in numbers],
            "entries, frequent text": _of("console_entries", q="How do I") + _of("console_entries", q="in"),
            "entries, Chinese text": _of("console_entries", q="办理手续"),
            "entries, alike": _of("console_entries", like="return a parcel"),
            "entries, alike, of a scope and a class": _of(
                "console_entries", like="return a parcel", scope=scope, content_class="code"
            )
            + _of("console_entries", like="return a parcel", scope=scope, state="rejected"),
            "entries, a scope": _of("console_entries", scope=scope),
            "entries, a rare state": _of("console_entries", state="rejected"),
            "entries, a class": _of("console_entries", content_class="code"),
            "entries, many hits": _of("console_entries", hits=99) + _of("console_entries", hits=10_000),
            "entries, a language": _of("console_entries", language="zh"),
            "entries, an age": _of("console_entries", age="1d"),
            "entries, further on": _of("console_entries", after=half_way),
            "an entry": [reverse("console_entry", args=[one]) for one in some],
            "queue": _of("console_review"),
            "a pairing": [reverse("console_pairing", args=[one]) for one in doubtful],
            "versions": _of("console_versions"),
            "flush": _of("console_flush"),
            "flush, counted": _of("console_flush", content_class="code"),
            "sources": _of("console_sources") + _of("console_sources", q="doc-7"),
            "a source": [reverse("console_source", args=[one]) for one in self.sources[:20]],
            "sessions": _of("console_sessions") + _of("console_sessions", **{"is": "ended"}),
            "a session": [reverse("console_session", args=[one]) for one in self.sessions[:20]],
            "sessions, further on": _of("console_sessions", after=half_way),
            "ledger": _of("console_ledger"),
            "audit": _of("console_audit"),
            "audit, further on": _of("console_audit", before=self.actions[0].pk // 2),
            "audit, of somebody": _of("console_audit", actor="operator 7")
            + _of("console_audit", actor="nobody"),
            "audit, about an entry": [
                _of("console_audit", about=one, action="reject")[0] for one in doubtful[:5]
            ],
            "an action": [reverse("console_action", args=[one.batch]) for one in self.actions],
            "thresholds": _of("console_thresholds"),
            "thresholds, on trial": _of("console_thresholds", scope=scope, **{"class": "fact"}),
            "thresholds, moved": [
                _of("console_thresholds", scope=scope, low=low, **{"class": "fact"})[0]
                for low in (0.93, 0.95, 0.97)
            ],
            "health": _of("console_health"),
        }


def _of(name: str, **query: object) -> list[str]:
    return [f"{reverse(name)}?{urlencode(query)}"]


def fill(entries: int, decisions: int) -> Filled:
    owners = [scopes.for_measuring("benchmark") for _ in range(4)]
    session = Session.objects.create(pk=uuid.uuid4())
    real = [_real(owners[at % 4], session, at) for at in range(_REAL)]
    generation = Generation.objects.create(
        session=session,
        scope=owners[0],
        question={"turns": [{"role": "user", "content": question(1)}], "fresh": False},
        canonical_question=question(1),
        status="complete",
        text="An answer. " * 20,
        prompt_tokens=400,
        cached_tokens=300,
    )
    Decision.objects.create(
        generation=generation, layer="semantic", outcome="miss", reason="nothing like it", milliseconds=4.0
    )
    _converse(entries, session)
    _multiply(entries, decisions, generation, _on_trial(owners[0]))
    _surround(entries)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    tallies.count_hours()
    known = Entry.objects.order_by("-hits").values_list("pk", flat=True)[:10]
    suspects = Wording.objects.filter(state="suspect").values_list("pk", flat=True)[:200]
    with connection.cursor() as cursor:
        # Of all questions the first of these was asked a fifth, and most of the others hundreds of times.
        cursor.execute("SELECT id, wording FROM target ORDER BY n LIMIT 5")
        often = cursor.fetchall()
    return Filled(
        owners,
        [*(entry for entry, _wording in often), *known, *(wording.entry_id for wording in real)],
        [*(wording for _entry, wording in often), *suspects],
        list(DataSource.objects.values_list("pk", flat=True)[:20]),
        # The longest first; no other has nearly as many questions.
        [session.pk, *Session.objects.order_by("-last_active").values_list("pk", flat=True)[:19]],
        list(AuditRecord.objects.order_by("-id")[:20]),
    )


def _converse(entries: int, first: Session) -> None:
    """A conversation for every second entry; in the `first` one every hundredth question is asked."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
                INSERT INTO inference_session (id, epoch, topic, last_active, ended_at)
                SELECT gen_random_uuid(), n % 3, 'Topic ' || n, now() - random() * interval '{_DAYS} days',
                    CASE WHEN n % 2 = 0 THEN now() END
                FROM generate_series(1, {entries // 2}) AS n
            """
        )
        cursor.execute(
            f"""
                CREATE TEMP TABLE talk AS
                SELECT id, row_number() OVER () AS n FROM inference_session WHERE id <> '{first.pk}'
            """
        )


def _surround(entries: int) -> None:
    """What else the pages read: a source for every hundredth entry, verdicts, and a month of samples."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
                INSERT INTO inference_datasource (key, version, changes)
                SELECT 'doc-' || n, '', 1 FROM generate_series(0, {entries // 100 - 1}) AS n
            """
        )
        cursor.execute(
            f"""
                INSERT INTO inference_entrysource (entry_id, source_key, version)
                SELECT id, 'doc-' || n % {max(1, entries // 100)}, '' FROM made
            """
        )
        cursor.execute(
            """
                INSERT INTO inference_observation
                    (generation_id, wording_id, verdict, source, created_at, updated_at)
                SELECT id, wording, CASE WHEN n % 50 = 0 THEN 'disagree' ELSE 'agree' END,
                    CASE WHEN kind < 6 THEN 'user' ELSE 'near' END, at, at
                FROM asked WHERE n % 40 = 0 AND kind < 7
            """
        )
        # What operators did in these days: a review for every tenth entry, a fifth of them in bulk.
        cursor.execute(
            f"""
                INSERT INTO cacheadmin_auditrecord (batch, action, actor, reason, subject, subject_id,
                    selection, before, after, entries, status, created_at, updated_at)
                SELECT CASE WHEN n % 5 = 0 THEN md5((n / 500)::text) ELSE md5('one ' || n) END::uuid,
                    CASE WHEN n % 3 = 0 THEN 'reject' ELSE 'approve' END, 'operator ' || n % 20, '',
                    'wording', id, '{{}}', '{{"state": "suspect"}}', '{{"state": "active"}}',
                    1, 'done', at, at
                FROM (
                    SELECT id, row_number() OVER () AS n, now() - random() * interval '{_DAYS} days' AS at
                    FROM inference_wording LIMIT {entries // 10}
                ) AS decided
            """
        )
        cursor.execute(
            f"""
                INSERT INTO cacheadmin_loadsample (at, waiting, suspects, kv_bytes, kv_limit)
                SELECT now() - n * interval '1 minute', n % 7, n % 90, n * 1000, 1000000000
                FROM generate_series(1, {_DAYS * 24 * 60}) AS n
            """
        )


def _on_trial(scope: Scope) -> Policy:
    """Thresholds in force for the facts of a scope, and others on trial there."""
    rows = [
        Policy.objects.create(
            scope=scope,
            content_class="fact",
            version=at,
            mode=mode,
            high=0.985,
            low=low,
            near=0.9,
            consent=0.5,
        )
        for at, (mode, low) in enumerate([(Mode.LIVE, 0.96), (Mode.SHADOW, 0.94)], 1)
    ]
    return rows[1]


def _real(scope: Scope, session: Session, at: int) -> Wording:
    text = question(at) if at % 4 else _CHINESE.format(at)
    read = probe.read(scope, session.pk, [{"role": "user", "content": text}])
    return lifecycle.plant(read, session, f"Answer {at}. " * 20, "fact", read.question_vector)


# What a threshold was compared with: half of the questions agree with the wording that they are near to.
_MEASURED = """
    jsonb_build_object(
        'wording', asked.wording, 'entry', asked.entry, 'content_class', 'fact',
        'score', 0.9 + random() * 0.1, 'strict', 0.9 + random() * 0.1, 'nearness', 0.9 + random() * 0.1,
        'provable', 0.95, 'verifier', random(), 'evidence', random(), 'complete', 0.9,
        'agrees', asked.n % 2 = 0
    )
"""


def _multiply(entries: int, decisions: int, generation: Generation, trial: Policy) -> None:
    ago = f"now() - random() * interval '{_DAYS} days'"
    wide = "array_fill(0.05, ARRAY[383])::halfvec"
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE template AS SELECT id, row_number() OVER () AS n FROM inference_entry"
        )
        cursor.execute(
            f"""
                CREATE TEMP TABLE made AS
                SELECT gen_random_uuid() AS id, {ago} AS at, n, 1 + n % {_REAL} AS like_n
                FROM generate_series(1, {entries}) AS n
            """
        )
        cursor.execute(
            _copied(
                Entry,
                "made JOIN template ON template.n = made.like_n"
                " JOIN inference_entry old ON old.id = template.id",
                {
                    "id": "made.id",
                    "created_at": "made.at",
                    "hits": "floor(random() ^ 8 * 200)",
                    "state": "CASE made.n % 100 WHEN 0 THEN 'rejected' WHEN 1 THEN 'frozen' "
                    "ELSE 'active' END",
                    "content_class": "CASE made.n % 10 WHEN 0 THEN 'code' ELSE 'fact' END",
                    "answer_vector": wide,
                },
            )
        )
        form = "regexp_replace(old.question, '[0-9]+', made.n::text)"
        for way, (words, state) in enumerate(
            [
                (form, "'active'"),
                (f"'please: ' || {form}", "CASE made.n % 20 WHEN 0 THEN 'suspect' ELSE 'active' END"),
            ]
        ):
            cursor.execute(
                _copied(
                    Wording,
                    "made JOIN template ON template.n = made.like_n"
                    " JOIN inference_wording old ON old.entry_id = template.id",
                    {
                        "id": "gen_random_uuid()",
                        "entry_id": "made.id",
                        "created_at": f"made.at + {way} * interval '1 hour'",
                        "question": words,
                        "exact_key": f"md5(made.n::text || '/{way}')",
                        "keyword_key": "''",
                        "template_key": "''",
                        "typo_bands": "'{}'",
                        "state": state,
                        "hits": "floor(random() ^ 8 * 100)",
                        "question_vector": wide,
                    },
                )
            )
        cursor.execute(
            """
                CREATE TEMP TABLE target AS
                SELECT made.id, row_number() OVER () AS n, (
                    SELECT w.id FROM inference_wording w WHERE w.entry_id = made.id LIMIT 1
                ) AS wording FROM made LIMIT 5000
            """
        )
        cursor.execute(
            f"""
                CREATE TEMP TABLE asked AS
                SELECT gen_random_uuid() AS id, {ago} AS at, made.n, target.id AS entry, target.wording,
                    floor(random() * 10)::int AS kind,
                    CASE WHEN made.n % 100 > 0 THEN talk.id
                        ELSE '{generation.session_id}'::uuid END AS session
                FROM generate_series(1, {decisions}) AS made(n)
                LEFT JOIN talk ON talk.n = 1 + made.n % {max(1, entries // 2)}
                LEFT JOIN target
                    ON target.n = 1 + floor(power(made.n % 1000 / 1000.0, 4) * {min(5000, entries)})
            """
        )
        served = "CASE WHEN asked.kind < 3 THEN 'exact' WHEN asked.kind < 4 THEN 'fuzzy'" + (
            " WHEN asked.kind < 6 THEN 'semantic' ELSE 'model' END"
        )
        scopes_of = "(SELECT array_agg(id ORDER BY id) FROM inference_scope)[1 + asked.n % 4]"
        cursor.execute(
            _copied(
                Generation,
                f"asked CROSS JOIN inference_generation old WHERE old.id = '{generation.pk}'",
                {
                    "id": "asked.id",
                    "created_at": "asked.at",
                    "served_by": served,
                    "entry_id": "CASE WHEN asked.kind < 6 THEN asked.entry END",
                    "wording_id": "CASE WHEN asked.kind < 6 THEN asked.wording END",
                    "exact_key": "md5((asked.n % 5000)::text)",
                    "scope_id": scopes_of,
                    "session_id": "asked.session",
                    "first_token_ms": "5 + random() * CASE WHEN asked.kind < 6 THEN 20 ELSE 2000 END",
                },
            )
        )
        cursor.execute(
            _copied(
                Decision,
                f"asked CROSS JOIN inference_decision old WHERE old.generation_id = '{generation.pk}'",
                {
                    "id": "nextval(pg_get_serial_sequence('inference_decision', 'id'))",
                    "generation_id": "asked.id",
                    "created_at": "asked.at",
                    "layer": "CASE WHEN asked.kind < 3 THEN 'exact' WHEN asked.kind < 4 THEN 'fuzzy' "
                    "ELSE 'semantic' END",
                    "outcome": "CASE WHEN asked.kind < 6 THEN 'hit' WHEN asked.kind < 7 THEN 'near' "
                    "ELSE 'miss' END",
                    "entry_id": "CASE WHEN asked.kind < 7 THEN asked.entry END",
                    "wording_id": "CASE WHEN asked.kind < 7 THEN asked.wording END",
                    "measured": f"CASE WHEN asked.kind > 3 THEN {_MEASURED} END",
                    "shadow_id": f"CASE WHEN asked.kind > 3 AND asked.n % 4 = 0 THEN {trial.pk} END",
                    "shadowed": "CASE WHEN asked.kind > 3 AND asked.n % 4 = 0 THEN jsonb_build_object("
                    "'outcome', 'hit', 'wording', asked.wording, 'entry', asked.entry) END",
                },
            )
        )


def _copied(model: type[models.Model], source: str, changed: Mapping[str, str]) -> str:
    """The statement that copies a row of `model`, here called `old`, once for each row of `source`."""
    columns = [field.column for field in model._meta.concrete_fields]
    values = [changed.get(column, f"old.{column}") for column in columns]
    return (
        f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {source}"
    )
