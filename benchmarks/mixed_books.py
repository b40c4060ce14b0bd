"""What became of drawn traffic, read from the books of the stack that answered it: which answers were served,
whether they were right by the labels, what they saved, and why the others were computed."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import mean
from typing import Any

import psycopg
from psycopg.rows import dict_row

from benchmarks.mixed_questions import Question

_SQL = """
    SELECT g.id::text, g.served_by, g.status, g.finish_reason, g.entry_id::text AS entry, g.exact_key,
        g.prompt_tokens - g.cached_tokens + g.completion_tokens AS tokens, g.total_ms, g.lookup_ms, g.text,
        jsonb_array_length(g.question->'turns') / 2 AS place, g.created_at, g.finished_at,
        d.layer, d.outcome, d.reason, d.near, d.scores, o.verdict,
        w.origin = 'birth' AS birth
    FROM inference_generation g
    LEFT JOIN LATERAL (
        SELECT layer, outcome, reason, scores, ARRAY(
            SELECT entry_id::text FROM inference_wording WHERE id = ANY(near)) AS near
        FROM inference_decision WHERE generation_id = g.id ORDER BY id DESC LIMIT 1) d ON true
    LEFT JOIN inference_observation o ON o.generation_id = g.id AND o.source = 'near'
    LEFT JOIN inference_wording w ON w.id = g.wording_id
    WHERE g.id = ANY(%s::uuid[]) ORDER BY g.created_at
"""


@dataclass(frozen=True)
class Asked:
    """A question, the generation that answered it, and how long its reader waited for the whole, in ms."""

    question: Question
    generation: str
    waited: float


@dataclass(frozen=True)
class Row:
    """A question and what the books say of it. `repeated`: an answer to its label was complete by then."""

    question: Question
    waited: float
    books: Mapping[str, Any]
    repeated: bool

    @property
    def served(self) -> bool:
        return self.books["served_by"] != "model"


@dataclass(frozen=True)
class Books:
    """The questions in the order in which they were asked, and for which label each entry was produced."""

    rows: list[Row]
    born: dict[str, str]

    @property
    def wrong(self) -> list[Row]:
        """Those that got an answer that was produced for another label."""
        return [row for row in self.rows if row.served and self._origin(row) != row.question.label]

    @property
    def mispaired(self) -> int:
        """Wordings that a fresh answer has put to an entry of another label."""
        proved = [row for row in self.rows if row.books["verdict"] == "agree"]
        return sum(self._origin(row) != row.question.label for row in proved)

    def _origin(self, row: Row) -> str | None:
        """The label of what was served; a follower has no entry, but the key of whom it followed."""
        if row.books["entry"]:
            return self.born.get(row.books["entry"])
        same = (other for other in self.rows if other.books["exact_key"] == row.books["exact_key"])
        return next((other.question.label for other in same if not other.served), None)

    def why(self, row: Row) -> str:
        """In a few words, why a repeated question was computed once more."""
        books, label = row.books, row.question.label
        if books["outcome"] == "bypass":
            return f"not asked of the cache: {books['reason']}"
        stored = {entry for entry, of in self.born.items() if of == label}
        if not any(other.books["entry"] in stored for other in self._before(row)):
            return "no answer to it could be stored"
        if books["outcome"] == "near":
            right = "the right answer" if stored & set(books["near"]) else "only others"
            return f"near, {right} among them; fresh answer: {books['verdict'] or 'not compared'}"
        return "not found"

    def _before(self, row: Row) -> Iterable[Row]:
        return (other for other in self.rows if other.books["finished_at"] <= row.books["created_at"])


def read(database: str, asked: Sequence[Asked]) -> Books:
    """The books of the stack with this database."""
    by_generation = {one.generation: one for one in asked}
    with psycopg.connect(database, row_factory=dict_row) as connection:
        found = connection.execute(_SQL, [list(by_generation)]).fetchall()
    rows, first = [], _first_answers((by_generation[books["id"]].question.label, books) for books in found)
    for books in found:
        one = by_generation[books["id"]]
        before = first[one.question.label] <= books["created_at"]
        rows.append(Row(one.question, one.waited, books, before))
    born = {row.books["entry"]: row.question.label for row in rows if row.books["birth"] and not row.served}
    return Books(rows, born)


def _first_answers(found: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, datetime]:
    ends = defaultdict(list)
    for label, books in found:
        ends[label].append(books["finished_at"])
    return {label: min(each) for label, each in ends.items()}


# --- what was saved -------------------------------------------------------------------------------------


def saved(books: Books, parts: int = 6) -> dict[str, Any]:
    """Tokens and seconds of computing that were saved, as shares of what a perfect cache would have saved:
    one that serves every repeated question. A question costs what its label cost on average where it was
    computed. In all, and for each of `parts` stretches of the traffic."""
    wrong = {id(row) for row in books.wrong}
    right = [row for row in books.rows if row.served and id(row) not in wrong]
    tokens, seconds = _costs(books, "tokens", 1), _costs(books, "total_ms", 1000)
    size = -(-len(books.rows) // parts)
    stretches = [books.rows[at : at + size] for at in range(0, len(books.rows), size)]
    kept = {id(row) for row in right}

    def share(rows: Sequence[Row], cost: Mapping[str, float]) -> float:
        could = sum(cost[row.question.label] for row in rows if row.repeated)
        did = sum(cost[row.question.label] for row in rows if id(row) in kept and row.repeated)
        return round(did / could, 4) if could else 0.0

    return {
        "tokens": share(books.rows, tokens),
        "seconds": share(books.rows, seconds),
        "curve_tokens": [share(rows, tokens) for rows in stretches],
        "curve_seconds": [share(rows, seconds) for rows in stretches],
    }


def _costs(books: Books, column: str, unit: float) -> dict[str, float]:
    spent = defaultdict(list)
    for row in books.rows:
        if not row.served:
            spent[row.question.label].append((row.books[column] or 0) / unit)
    average = mean(cost for each in spent.values() for cost in each)
    labels = {row.question.label for row in books.rows}
    return {label: mean(spent[label]) if spent[label] else average for label in labels}


# --- where it falls short -------------------------------------------------------------------------------


def summary(books: Books) -> dict[str, Any]:
    """Counts: by kind and language what became of repeated questions, why they were computed, and which
    intents were computed again most often."""
    repeated = [row for row in books.rows if row.repeated]
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for row in repeated:
        groups[f"{row.question.lang}/{row.question.kind}"][row.books["served_by"]] += 1
    again = [row for row in repeated if not row.served]
    return {
        "questions": len(books.rows),
        "repeated": len(repeated),
        "served_by": dict(Counter(row.books["served_by"] for row in books.rows)),
        "repeated_by_kind": {name: dict(count) for name, count in sorted(groups.items())},
        "computed_again_because": dict(Counter(books.why(row) for row in again).most_common()),
        "most_often_computed_again": dict(Counter(row.question.label for row in again).most_common(12)),
        "cut_short": sum(row.books["finish_reason"] == "length" for row in books.rows if not row.served),
        "fresh_answers_that_agreed": sum(row.books["verdict"] == "agree" for row in books.rows),
        "put_to_a_wrong_entry": books.mispaired,
    }
