"""The ledger of keys and values as lines of text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def card_lines(card: Row) -> Iterator[str]:
    """What a card without the store would need."""
    yield (
        f"2 × {card['layers']} layers × {card['kv_heads']} heads × {card['head_dim']} × "
        f"{card['item_bytes']} bytes = {card['bytes_per_token']:,} bytes per token"
    )
    sessions = card["sessions"]
    whose = "1 session" if sessions == 1 else f"{sessions} sessions that share nothing"
    for need in card["needs"]:
        yield f"  {need['tokens']:>9,} tokens: {_mib(need['bytes']):>12} MiB for {whose}"


def worker_lines(worker: Row) -> Iterator[str]:
    """What one worker holds: its totals, and a table for each of scopes, sessions and requests."""
    yield f"{worker['seat']} ({worker['engine']}), {worker['age_seconds']:.0f} s ago"
    yield from _totals(worker["totals"])
    yield from _table("scope", worker["scopes"], ("stored_bytes", "live_bytes", "sessions"))
    yield from _table("session", worker["sessions"], ("bytes", "shared_bytes", "unique_bytes", "tokens"))
    requests = [{**row, "is": _state(row)} for row in worker["requests"]]
    yield from _table("request", requests, ("bytes", "tokens", "is"))


def _totals(totals: Row) -> Iterator[str]:
    if not totals:
        yield "  this engine doesn't tell what it holds"
    for name, value in totals.items():
        yield f"  {_title(name):<30}{_shown(name, value):>14}"


def _state(request: Row) -> str:
    if not request["running"]:
        return "over"
    return "killer" if request["killer"] else "running"


def _table(what: str, rows: Sequence[Row], columns: Sequence[str]) -> Iterator[str]:
    if rows:
        yield f"  {what:<66}" + "".join(f"{_title(column):>13}" for column in columns)
    for row in rows:
        cells = "".join(f"{_shown(column, row[column]):>13}" for column in columns)
        yield f"  {row[what] or '-':<66}{cells}"


def _title(name: str) -> str:
    """Bytes are shown in MiB; a token's bytes as they are."""
    if name == "bytes":
        return "MiB"
    stem = name.removesuffix("_bytes")
    return stem.replace("_", " ") + (" MiB" if stem != name else "")


def _shown(name: str, value: Any) -> str:
    if name == "bytes" or name.endswith("_bytes"):
        return _mib(value)
    if name.endswith("_ratio"):
        return f"{value:.1%}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _mib(count: int) -> str:
    return f"{count / 2**20:,.1f}"
