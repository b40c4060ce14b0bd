"""A question as the layers look it up, and as it is stored with its answer: read once, on first need."""

import hashlib
import json
from collections.abc import Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import UUID

from inference import knowledge
from inference.embedding import Vector, embed, identity
from inference.models import Scope
from inference.understanding import keys, standalone
from inference.understanding.context import (
    Context,
    careful,
    context_text,
    exact_key,
    likely_alone,
    read_context,
)
from inference.understanding.fingerprint import fingerprint
from inference.understanding.grounding import NOTHING, Ground, ground
from inference.understanding.turns import Turns

from .prints import Prints, digest


@dataclass(frozen=True)
class Probe:
    """One question of one session, in its context. What costs nothing is an attribute, the rest is found out
    when asked for: an exact hit needs neither keys nor vectors. `alone`: the context of a question that is
    taken to lean on its history in doubt only, as if it stood alone."""

    scope: Scope
    session: UUID
    turns: Turns
    context: Context
    alone: Context | None = None
    said: dict[UUID, float] = field(default_factory=dict, compare=False, repr=False)
    """What the verifier gave this question and a wording, once it was asked."""

    @cached_property
    def exact_key(self) -> str:
        return exact_key(self.scope.hash, self.context)

    @cached_property
    def alone_key(self) -> str:
        """The exact key of the same words asked first thing; "" where they are not taken for that."""
        return exact_key(self.scope.hash, self.alone) if self.alone else ""

    @property
    def question(self) -> str:
        return self.context.question

    @property
    def resolved(self) -> str:
        """The question with what it leans on written in; as asked, where it says all itself."""
        return self.context.resolved or self.context.question

    @property
    def dependent(self) -> bool:
        """Does it lean on its history?"""
        return self.context.dependence.dependent

    @cached_property
    def leaned(self) -> str:
        """What was said that a dependent question leans on; "" for one that leans on nothing."""
        return context_text(self.context)

    @cached_property
    def told(self) -> list[str]:
        """The answers that it leans on."""
        window = [self.context.window[at] for at in self.context.dependence.leans_on]
        return [turn["content"] for turn in window if turn["role"] == "assistant"]

    @cached_property
    def prints(self) -> Prints:
        meaning = fingerprint(self.resolved)
        if not self.dependent:
            return Prints(meaning)
        taking_back = [self.question] if self.context.takes_back else []
        corrected = digest([*self.context.corrections, *taking_back])
        heard = digest(turn["content"] for turn in self.turns[:-1])
        return Prints(
            meaning, fingerprint(self.question), fingerprint(self.leaned), digest(self.told), corrected, heard
        )

    # --- keys ---------------------------------------------------------------------------------------

    @cached_property
    def _where(self) -> str:
        """What must be equal besides the words: the scope, and what a dependent question leans on."""
        return exact_key(self.scope.hash, replace(self.context, question=""))

    def _key(self, kind: str, *parts: str) -> str:
        plain = json.dumps([kind, self._where, *parts], ensure_ascii=False)
        return hashlib.sha256(plain.encode()).hexdigest()

    @cached_property
    def keyword_key(self) -> str:
        """Of the set of its words without courtesies; "" where there are none."""
        words = keys.keywords(self.question)
        return self._key("keywords", *sorted(words)) if words else ""

    @cached_property
    def template(self) -> tuple[str, tuple[str, ...]]:
        return keys.template(self.question)

    @cached_property
    def template_key(self) -> str:
        """Of the numbers and identifiers, and of what is left without them; "" where there are none to leave
        out. Those of another order are in no key of this one: of thousands of questions from one template
        there is one to weigh."""
        text, parameters = self.template
        return self._key("template", text, *parameters) if parameters else ""

    @cached_property
    def typo_bands(self) -> list[int]:
        """A digit is never a typo, so questions with other numbers share no band."""
        return keys.bands(self.question, json.dumps([self._where, *self.template[1]], ensure_ascii=False))

    # --- vectors ------------------------------------------------------------------------------------

    # Whoever types a question in small letters asks the same; to the embedder it is far away.
    @cached_property
    def _vectors(self) -> tuple[Vector | None, Vector | None]:
        texts = [self.resolved, self.leaned] if self.leaned else [self.resolved]
        vectors = embed([text.casefold() for text in texts])
        if vectors is None:
            return None, None
        return vectors[0], vectors[1] if self.leaned else None

    @property
    def question_vector(self) -> Vector | None:
        """Of the resolved question; None while there is no embedder."""
        return self._vectors[0]

    @property
    def context_vector(self) -> Vector | None:
        """Of what a dependent question leans on; None for one that leans on nothing."""
        return self._vectors[1]


def vectors() -> standalone.Vectors | None:
    """What understanding asks where words leave something open; None with an embedder that it was not fitted
    to."""
    return embed if standalone.knows(identity()) else None


def read(scope: Scope, session: UUID, turns: Turns, misread: Set[int] = frozenset()) -> Probe:
    """The probe for the last of `turns`; those of `misread` only look like corrections. Raises ValueError
    when the last is no question."""
    named = _ground(scope) if len(turns) > 1 else NOTHING
    context = read_context(turns, scope.context_turns, misread=misread, vectors=vectors(), ground=named)
    cautious = careful(context)
    doubted = cautious.dependence.dependent and likely_alone(context)
    return Probe(scope, session, turns, cautious, context if doubted else None)


def _ground(scope: Scope) -> Ground:
    """What is said to everybody who asks in this scope."""
    return ground("\n\n".join((scope.system_prompt, knowledge.read().text)))
