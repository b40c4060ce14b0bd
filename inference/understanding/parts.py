"""What a fingerprint and a comparison of two hold; both go to the database and back."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

Verdict = Literal["agree", "unknown", "conflict"]


class Reason(str):
    """Why a comparison came out as it did: reads as "code: detail", for operators. `code` is one of a fixed
    set and can be translated, `detail` quotes the texts."""

    code: str
    detail: str

    def __new__(cls, code: str, detail: str = "") -> Self:
        reason = super().__new__(cls, f"{code}: {detail}" if detail else code)
        reason.code, reason.detail = code, detail
        return reason

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return self.code, self.detail


@dataclass(frozen=True, slots=True)
class Comparison:
    """`conflict` vetoes at every similarity; `agree` is positive evidence that nothing differs; `unknown` is
    everything else. `reasons` is empty for `agree`."""

    verdict: Verdict
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All texts in it are folded (case, width, traditional characters); tuples keep the order of the text.

    `text` is the question without marks and spaces, `language` en, zh, other or "", `mood` question,
    statement or "" (keywords), `intents` the kinds of answer asked for. `terms` are its content words,
    `light` the small words that seldom matter, `verbs` those terms known to be verbs, `actions` the sides of
    opposites they are on as (pair, "+" or "-"), `directions` what turns into or comes before what as
    (from, to), `entities` names as (kind, term), `negations` the terms denied. `quantities` are (value, unit)
    in base units, `versions` (name, number), `dates` as `take_dates` writes them, `form` (aspect, wish).
    """

    text: str = ""
    language: str = ""
    mood: str = ""
    intents: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    light: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    actions: tuple[tuple[str, str], ...] = ()
    directions: tuple[tuple[str, str], ...] = ()
    entities: tuple[tuple[str, str], ...] = ()
    quantities: tuple[tuple[str, str], ...] = ()
    dates: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    negations: tuple[str, ...] = ()
    form: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain lists and strings; empty parts are left out."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The reverse of `to_json`, also after a trip through a JSON column. Raises ValueError on anything
        that `to_json` can't have written."""
        if unknown := data.keys() - {field.name for field in fields(cls)}:
            raise ValueError(f"A fingerprint has no {', '.join(sorted(unknown))}.")
        return cls(**{name: _frozen(value) for name, value in data.items()})


def _frozen(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    raise ValueError(f"A fingerprint is made of lists and strings, not {type(value).__name__}.")
