"""What the cache remembers. Postgres is the truth; nothing here is derived from Redis."""

import uuid
from typing import ClassVar, Self

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class Visibility(models.TextChoices):
    SESSION = "session"
    SHARED = "shared"


class State(models.TextChoices):
    """States of entries and of wordings; only `inference.cache.lifecycle` changes them."""

    SUSPECT = "suspect"
    ACTIVE = "active"
    FROZEN = "frozen"
    REJECTED = "rejected"


class Scope(models.Model):
    """Everything an answer depends on besides the conversation. A changed part is a new scope, so that
    entries of the old one are unreachable the instant it changes."""

    hash = models.CharField(max_length=64, unique=True)
    app = models.CharField(max_length=100)
    system_prompt = models.TextField()
    prompt_template = models.CharField(max_length=200)
    knowledge_version = models.CharField(max_length=200)
    model_version = models.CharField(max_length=200)
    tokenizer_version = models.CharField(max_length=200)
    sampling = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.app} {self.model_version} [{self.hash[:8]}]"


class Session(models.Model):
    """A conversation as the cache sees it; its id is given by whoever asks."""

    id = models.UUIDField(primary_key=True)
    epoch = models.PositiveIntegerField(default=0)
    topic = models.TextField(blank=True)
    blocked: "models.ManyToManyField[Entry, Entry]" = models.ManyToManyField(
        "Entry", related_name="blocked_in", blank=True
    )
    last_active = models.DateTimeField(auto_now=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return str(self.id)


class Entry(models.Model):
    """One reusable answer."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    scope = models.ForeignKey(Scope, on_delete=models.CASCADE, related_name="entries")
    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="entries", help_text="The session it was born in."
    )
    visibility = models.CharField(max_length=10, choices=Visibility.choices, default=Visibility.SESSION)
    content_class = models.CharField(max_length=20)
    answer = models.TextField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.SUSPECT)
    read_only = models.BooleanField(default=False)
    epoch = models.PositiveIntegerField(default=0)
    hits = models.PositiveIntegerField(default=0)
    seconds_to_compute = models.FloatField(help_text="What one hit saves, in seconds.")
    tokens_to_compute = models.PositiveIntegerField(help_text="What one hit saves, prompt and answer.")
    last_hit_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(help_text="Sliding: a hit moves it, never past dies_at.")
    dies_at = models.DateTimeField(help_text="Absolute.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "entries"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(expires_at__lte=F("dies_at")), name="entry_expires_before_it_dies"
            ),
            models.CheckConstraint(condition=~Q(answer=""), name="entry_answer_not_empty"),
        ]

    def __str__(self) -> str:
        return f"{self.answer[:60]}"


class WordingQuerySet(models.QuerySet["Wording"]):
    """The one queryset that every lookup goes through."""

    def servable(self, scope: int, session: uuid.UUID) -> Self:
        """Proved pairings that `session` may be served in `scope` now, both given by id: right scope,
        visible, neither frozen nor rejected nor blocked, of this epoch where private, and not expired."""
        mine = Q(session=session, entry__session=session, entry__epoch=F("session__epoch"))
        shared = Q(visibility=Visibility.SHARED, entry__visibility=Visibility.SHARED)
        return self.filter(
            mine | shared,
            scope=scope,
            entry__scope=scope,
            state=State.ACTIVE,
            entry__state__in=[State.SUSPECT, State.ACTIVE],
            entry__expires_at__gt=Now(),
        ).exclude(entry__blocked_in=session)


class Wording(models.Model):
    """One way in which an entry has been asked: the pairing of a question in a context with that answer.
    A wrong hit is a wrong pairing, so a pairing is what is proved, suspect or rejected."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="wordings")
    scope = models.ForeignKey(Scope, on_delete=models.CASCADE, related_name="wordings")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="wordings")
    visibility = models.CharField(max_length=10, choices=Visibility.choices, default=Visibility.SESSION)
    question = models.TextField()
    context = models.JSONField(default=list, help_text="The turns before the question.")
    exact_key = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=State.choices, default=State.SUSPECT)
    hits = models.PositiveIntegerField(default=0)
    agreed = models.PositiveIntegerField(default=0)
    disagreed = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WordingQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["exact_key", "state"], name="wording_exact_key")]
        constraints: ClassVar = [
            # Two workers that finish the same question at once store it once.
            models.UniqueConstraint(
                fields=["exact_key"],
                condition=Q(visibility="shared", state="active"),
                name="one_active_shared_wording_per_key",
            ),
            models.UniqueConstraint(
                fields=["exact_key", "session"],
                condition=Q(visibility="session", state="active"),
                name="one_active_private_wording_per_key",
            ),
        ]

    def __str__(self) -> str:
        return self.question[:60]


class Outcome(models.TextChoices):
    HIT = "hit"
    MISS = "miss"
    BYPASS = "bypass"


class Decision(models.Model):
    """One lookup: what was found, what came of it, and why in words."""

    generation = models.ForeignKey("inference.Generation", on_delete=models.CASCADE, related_name="decisions")
    layer = models.CharField(max_length=20)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    wording = models.ForeignKey(
        Wording, on_delete=models.SET_NULL, null=True, blank=True, related_name="decisions"
    )
    entry = models.ForeignKey(
        Entry, on_delete=models.SET_NULL, null=True, blank=True, related_name="decisions"
    )
    reason = models.TextField()
    milliseconds = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.layer}: {self.outcome}"


class Verdict(models.TextChoices):
    AGREE = "agree"
    DISAGREE = "disagree"


class Observation(models.Model):
    """A verdict on an answer: of the person who read it, and on the pairing that served it if one did."""

    generation = models.ForeignKey(
        "inference.Generation", on_delete=models.CASCADE, related_name="observations"
    )
    wording = models.ForeignKey(
        Wording, on_delete=models.CASCADE, null=True, blank=True, related_name="observations"
    )
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    source = models.CharField(max_length=20, default="user")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["generation", "source"], name="one_verdict_per_answer_and_source")
        ]

    def __str__(self) -> str:
        return f"{self.source}: {self.verdict}"
