"""The answers being produced, and (from `inference.cache.models`) what the cache remembers of them."""

import uuid
from typing import TYPE_CHECKING, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from inference.cache.models import (
    ALIVE,
    DETECTED,
    OVER,
    Cause,
    Check,
    ConfusablePair,
    DataSource,
    Decision,
    Entry,
    EntrySource,
    Invalidation,
    Mode,
    Observation,
    Origin,
    Outcome,
    Policy,
    Scope,
    Session,
    State,
    Summary,
    Verdict,
    Version,
    Visibility,
    Wording,
)

if TYPE_CHECKING:
    from .premises import Premises

__all__ = [
    "ALIVE",
    "DETECTED",
    "OVER",
    "Cause",
    "Check",
    "ConfusablePair",
    "DataSource",
    "Decision",
    "Entry",
    "EntrySource",
    "Generation",
    "Invalidation",
    "Mode",
    "Observation",
    "Origin",
    "Outcome",
    "Policy",
    "Reuse",
    "Scope",
    "ServedBy",
    "Session",
    "State",
    "Status",
    "Summary",
    "Verdict",
    "Version",
    "Visibility",
    "Wording",
]


class Status(models.TextChoices):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


OPEN = (Status.PENDING, Status.RUNNING)


class ServedBy(models.TextChoices):
    EXACT = "exact"
    FUZZY = "fuzzy"
    SEMANTIC = "semantic"
    GRAY = "gray"
    COALESCED = "coalesced"
    MODEL = "model"


class Reuse(models.TextChoices):
    """How much of a stored answer is used again: all of it, as what the model answers from in words that fit
    the question, or only what was computed for the prompt."""

    ANSWER = "answer"
    REWRITE = "rewrite"
    PREFIX = "prefix"


class Generation(models.Model):
    """One answer being produced, whoever asked.

    `question` is `{"turns": [{"role", "content"}, …], "generations": [id or null, …], "fresh": bool, "again":
    bool}`: the turns as the person sees them, the question last; for each turn the generation that it is the
    answer of (or no list at all); fresh means that the cache must not be asked, again that the same message
    was answered before. One that was asked in the background, to see whether an entry is still right, has
    that entry's id as `refreshes`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Its index, like that of the wording, has the times too.
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="generations", db_index=False)
    scope = models.ForeignKey(
        Scope, on_delete=models.PROTECT, null=True, blank=True, related_name="generations"
    )
    epoch = models.PositiveIntegerField(default=0)
    question = models.JSONField()
    # Known to Postgres too: in a rolling deploy the release before this one inserts without it.
    sources = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        blank=True,
        help_text='What it is made from: {"key", "version", "changes"} as of when it was read.',
    )
    canonical_question = models.TextField(blank=True)
    exact_key = models.CharField(max_length=64, blank=True)
    rendered = models.BooleanField(
        default=False, help_text="As part of a history the model has read this; its view no longer changes."
    )
    model_question = models.TextField(
        blank=True, help_text="The entry's wording, which the model reads instead of the question asked."
    )
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.PENDING)
    text = models.TextField(blank=True)
    served_by = models.CharField(max_length=10, choices=ServedBy.choices, blank=True)
    reuse = models.CharField(
        max_length=10,
        choices=Reuse.choices,
        blank=True,
        help_text="How the entry was used, where there was one to use.",
    )
    entry = models.ForeignKey(
        Entry, on_delete=models.SET_NULL, null=True, blank=True, related_name="generations"
    )
    wording = models.ForeignKey(
        Wording,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="generations",
        db_index=False,
    )
    leader = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="followers"
    )
    error_code = models.CharField(max_length=30, blank=True)
    finish_reason = models.CharField(max_length=12, blank=True)
    prompt_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    queue_ms = models.FloatField(null=True, blank=True)
    lookup_ms = models.FloatField(null=True, blank=True)
    first_token_ms = models.FloatField(null=True, blank=True)
    total_ms = models.FloatField(null=True, blank=True)
    output_token_ids = ArrayField(models.IntegerField(), default=list, blank=True)
    looked_up = models.BooleanField(default=False, help_text="The cache was asked; the engine is next.")
    claimed_by = models.CharField(max_length=120, blank=True)
    heartbeat_at = models.DateTimeField(auto_now_add=True)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    # No column: what it was found to be answered on, by the worker that claimed it.
    premises: "Premises | None" = None

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["heartbeat_at"],
                condition=Q(status__in=["pending", "running"]),
                name="generation_open",
            ),
            models.Index(fields=["session", "created_at"], name="generation_of_session"),
            models.Index(fields=["wording", "created_at"], name="generation_of_wording"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.status}"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def cache_salt(self) -> str:
        """Keeps what an engine computes for this apart from what it computes for other scopes."""
        return self.scope.hash if self.scope else ""
