"""What the console knows besides the cache's own tables: who may do what, who did what, who looks at what."""

import uuid
from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from inference.models import Scope, Wording


class Console(models.Model):
    """No table: what the permissions to use the console hang on."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions: ClassVar = [
            ("view", "Can look at the cache in the console"),
            ("review", "Can approve, edit and reject what is suspect"),
            ("tune", "Can change thresholds"),
            ("flush", "Can flush entries and bump versions"),
        ]

    def __str__(self) -> str:
        return "console"


class Action(models.TextChoices):
    FLUSH = "flush"
    BUMP = "bump"
    INVALIDATE = "invalidate"
    APPROVE = "approve"
    REJECT = "reject"
    EDIT = "edit"
    SKIP = "skip"
    CONFUSE = "confuse"  # two names that never are to be confused again
    UNDO = "undo"
    TUNE = "tune"  # thresholds put in force, on trial, or proposed


class Status(models.TextChoices):
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    DONE = "done"


class AuditRecord(models.Model):
    """Who did what to which entries, what was there before and after, and why. All that one action did has
    the same `batch`, by which it is undone.

    What is about one row says which (`subject`, `subject_id`); what is about many says which were meant
    (`selection`) and how many they were (`entries`).
    """

    batch = models.UUIDField(default=uuid.uuid4, editable=False, db_index=True)
    action = models.CharField(max_length=20, choices=Action.choices)
    actor = models.CharField(max_length=200, help_text="Name of the user as it was then, or of a command.")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="cache_actions",
    )
    reason = models.TextField(blank=True)
    subject = models.CharField(max_length=30, blank=True)
    subject_id = models.CharField(max_length=64, blank=True)
    selection = models.JSONField(default=dict, blank=True, help_text="Which entries were meant, and how.")
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    entries = models.PositiveIntegerField(default=0, help_text="How many it came to so far.")
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.DONE)
    undoes = models.UUIDField(null=True, blank=True, help_text="The batch that this action took back.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["subject", "subject_id"], name="audit_subject"),
            models.Index(fields=["user", "-id"], name="audit_user"),
            models.Index(fields=["-created_at"], name="audit_newest"),
            models.Index(fields=["batch"], condition=~Q(status="done"), name="audit_unfinished"),
        ]
        constraints: ClassVar = [
            # Two people who undo the same action at once undo it once.
            models.UniqueConstraint(
                fields=["undoes", "subject", "subject_id"],
                condition=Q(undoes__isnull=False),
                name="an_action_is_undone_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"

    @property
    def just_now(self) -> bool:
        """Is the page that is drawn now the first after it?"""
        return timezone.now() - self.created_at < timedelta(seconds=5)

    @property
    def many(self) -> int:
        """How many rows of this kind the whole action was about."""
        return AuditRecord.objects.filter(batch=self.batch, subject=self.subject).count()


class ReviewClaim(models.Model):
    """Somebody has this pairing open; until `expires_at` nobody else is given it."""

    wording = models.OneToOneField(Wording, on_delete=models.CASCADE, related_name="claim")
    operator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="review_claims"
    )
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.operator}: {self.wording}"

    @property
    def holds(self) -> bool:
        """Is it somebody's still? A claim that ended is cleared away when the next one is made."""
        return self.expires_at > timezone.now()


class Cut(models.TextChoices):
    """What a count is of. All four are kept, so that no figure is summed from more rows than it shows."""

    EACH = "each"  # one scope and one class
    SCOPE = "scope"  # one scope, all classes
    CLASS = "class"  # one class, all scopes
    ALL = "all"


class _Hour(models.Model):
    """What happened in one hour that is over, counted: of that much the figures can be read at once."""

    hour = models.DateTimeField()
    cut = models.CharField(max_length=5, choices=Cut.choices)
    scope = models.ForeignKey(Scope, on_delete=models.CASCADE, null=True, related_name="+", db_index=False)
    content_class = models.CharField(max_length=20, blank=True, help_text="Empty without an entry.")
    n = models.PositiveIntegerField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}h: {self.n}"


class LookupHour(_Hour):
    """Lookups that ended in one layer with one outcome."""

    layer = models.CharField(max_length=20)
    outcome = models.CharField(max_length=10)
    milliseconds = models.FloatField(help_text="Of all of them together.")

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["cut", "scope", "content_class", "hour"], name="lookup_hour_cut")
        ]


class AnswerHour(_Hour):
    """Answers that were served one way, of which the first words came equally soon (see `tallies.EDGES`)."""

    served_by = models.CharField(max_length=10)
    bucket = models.PositiveSmallIntegerField()
    tokens_saved = models.BigIntegerField()
    seconds_saved = models.FloatField()
    prompt_tokens = models.BigIntegerField(help_text="Of those that the model read.")
    cached_tokens = models.BigIntegerField(help_text="Those among them that were not read anew.")

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["cut", "scope", "content_class", "hour"], name="answer_hour_cut")
        ]


class LoadSample(models.Model):
    """How much waited and was held at one moment. What engines hold is known only while they say it."""

    at = models.DateTimeField(unique=True)
    waiting = models.PositiveIntegerField(help_text="Answers being written, or waiting for an engine.")
    suspects = models.PositiveIntegerField(help_text="Pairings in review, counted to a thousand.")
    kv_bytes = models.BigIntegerField(null=True, help_text="Keys and values held by all engines.")
    kv_limit = models.BigIntegerField(null=True, help_text="What they may hold at most.")

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M}: {self.waiting}"


class SavedSearch(models.Model):
    """Filters of the entries page that an operator gave a name."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_searches"
    )
    name = models.CharField(max_length=60)
    query = models.TextField(help_text="As it stands in the address.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "name"], name="one_saved_search_per_name")
        ]

    def __str__(self) -> str:
        return self.name
