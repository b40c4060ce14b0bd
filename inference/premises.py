"""What a question is answered on, as it is in the moment in which a worker takes it on: read by the very
statement that claims it (docs/benchmarks.md has what four small queries cost).

Nothing here is remembered from one question to the next. The one thing that a process keeps, the scope it
asked in last, is only the guess of which row to look for: that it is there, under that id, is read anew each
time.
"""

import json
from dataclasses import dataclass
from typing import Any

from django.db import connection

from .models import DETECTED, OPEN, Generation

# Of the generation `g`; the guess is the hash of a scope.
COLUMN = f"""
    jsonb_build_object(
        'version', (SELECT jsonb_build_array(v.knowledge, v.system_prompt) FROM inference_version v
            WHERE v.app = %(app)s ORDER BY v.id DESC LIMIT 1),
        'scope', (SELECT s.id FROM inference_scope s WHERE s.hash = %(guess)s),
        'unheeded', EXISTS (SELECT FROM inference_generation o
            WHERE o.session_id = g.session_id AND o.status IN ({", ".join(f"'{one}'" for one in OPEN)})
                AND NOT o.looked_up AND o.created_at < g.created_at AND o.id <> g.id),
        'misread', (SELECT jsonb_agg(m.question -> 'turns' -> -1 ->> 'content')
            FROM inference_invalidation i JOIN inference_generation m ON m.id = i.generation_id
            WHERE i.session_id = g.session_id AND i.undone_at IS NOT NULL
                AND i.cause IN ({", ".join(f"'{one}'" for one in DETECTED)}))
    )
"""


@dataclass(frozen=True)
class Premises:
    """`version`: knowledge and system prompt (None: the settings') of the newest Version, None while there
    is none; `scope`: the id of the scope that was guessed, None if it isn't there; `unheeded`: is there a
    message of this conversation from before this one that no worker has come to yet? `misread`: the messages
    of the session that were taken for corrections, and then said to be none."""

    version: tuple[str, str | None] | None = None
    scope: int | None = None
    unheeded: bool = False
    misread: frozenset[str] = frozenset()

    @classmethod
    def from_json(cls, text: str) -> "Premises":
        read: dict[str, Any] = json.loads(text)
        version = read["version"]
        return cls(
            (version[0], version[1]) if version else None,
            read["scope"],
            read["unheeded"],
            frozenset(read["misread"] or ()),
        )


_READ = f"SELECT {COLUMN}::text FROM inference_generation g WHERE g.id = %(id)s"


def now(generation: Generation, app: str, guess: str) -> Premises:
    """What holds for this generation at this moment."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, {"app": app, "guess": guess, "id": generation.pk})
        row = cursor.fetchone()
    return Premises.from_json(row[0]) if row else Premises()
