"""What the cache remembers. Postgres is the truth; nothing here is derived from Redis."""

import uuid
from typing import ClassVar, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from pgvector.django import HalfVectorField


class Visibility(models.TextChoices):
    SESSION = "session"
    SHARED = "shared"


class State(models.TextChoices):
    """States of entries and of wordings; only `inference.cache.lifecycle` changes them."""

    SUSPECT = "suspect"
    ACTIVE = "active"
    FROZEN = "frozen"
    REJECTED = "rejected"


ALIVE = (State.SUSPECT, State.ACTIVE)
"""Can be served, or once what is open about it is settled."""
OVER = (State.FROZEN, State.REJECTED)


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
    embedder = models.CharField(max_length=200, default="none")
    understanding = models.CharField(max_length=100, default="", help_text="Versions of its rules.")
    sampling = models.JSONField(default=dict)
    prompt = models.JSONField(
        default=dict, help_text="Knowledge by content, task, and how many turns a prompt shows."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.app} {self.model_version} [{self.hash[:8]}]"

    @property
    def context_turns(self) -> int:
        """Exchanges that lookups and, at least, prompts read word for word: as many as when the scope came to
        be, whatever the settings of this process are."""
        return int(self.prompt.get("context_turns", settings.CONTEXT_TURNS))

    @property
    def summary_step(self) -> int:
        """Exchanges that are summarised at a time."""
        return int(self.prompt.get("summary_step", settings.SUMMARY_STEP))


class Version(models.Model):
    """What questions of an app are asked with from the moment this row is there: the newest one counts. Never
    changed, only followed by the next; while there is none, the settings say it."""

    app = models.CharField(max_length=100)
    knowledge = models.CharField(max_length=100)
    system_prompt = models.TextField(null=True, blank=True, help_text="Nothing: the one of the settings.")  # noqa: DJ001
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["app", "-id"], name="version_newest")]

    def __str__(self) -> str:
        return f"{self.app} {self.knowledge}"


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

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["last_active"], condition=Q(ended_at=None), name="session_open")
        ]

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
    answer_vector = HalfVectorField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.SUSPECT)
    # Known to Postgres too: in a rolling deploy the release before this one inserts without them.
    agreed = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Verdicts on all its pairings that agree."
    )
    disagreed = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text="Those that put the entry itself in doubt; then it is not served.",
    )
    read_only = models.BooleanField(default=False)
    epoch = models.PositiveIntegerField(default=0)
    hits = models.PositiveIntegerField(default=0)
    seconds_to_compute = models.FloatField(help_text="What one hit saves, in seconds.")
    tokens_to_compute = models.PositiveIntegerField(help_text="What one hit saves, prompt and answer.")
    last_hit_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(help_text="Sliding: a hit moves it, never past dies_at.")
    dies_at = models.DateTimeField(help_text="Absolute.")
    refreshed_at = models.DateTimeField(
        null=True, blank=True, help_text="When a fresh answer last said the same, and its life began anew."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "entries"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(expires_at__lte=F("dies_at")), name="entry_expires_before_it_dies"
            ),
            models.CheckConstraint(condition=~Q(answer=""), name="entry_answer_not_empty"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["scope", "state"], name="entry_scope_state"),
            models.Index(fields=["dies_at"], name="entry_dies_at"),
        ]

    def __str__(self) -> str:
        return f"{self.answer[:60]}"


class Origin(models.TextChoices):
    """How a wording came to its entry."""

    BIRTH = "birth"  # the entry is the answer to it
    NEAR = "near"  # its fresh answer was compared with the entry's
    HIT = "hit"  # it was served the entry for its likeness to another wording


class WordingQuerySet(models.QuerySet["Wording"]):
    """The one queryset that every lookup goes through."""

    def servable(self, scope: int, session: uuid.UUID) -> Self:
        """Proved pairings that `session` may be served in `scope` now, both given by id: right scope,
        visible, neither frozen nor rejected nor doubted nor blocked, of this epoch where private, and not
        expired. An entry that is merely new may be served."""
        born_here = Q(entry__session=session, entry__epoch=F("session__epoch"))
        of_all = Q(entry__visibility=Visibility.SHARED)
        mine = Q(session=session) & (born_here | of_all)
        shared = Q(visibility=Visibility.SHARED) & of_all
        return (
            self.filter(
                mine | shared,
                scope=scope,
                entry__scope=scope,
                state=State.ACTIVE,
                entry__expires_at__gt=Now(),
            )
            .filter(Q(entry__state=State.ACTIVE) | Q(entry__state=State.SUSPECT, entry__disagreed=0))
            .exclude(entry__blocked_in=session)
        )


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
    resolved = models.TextField(
        blank=True, help_text="The question with what it leans on written in; empty where it says all itself."
    )
    dependent = models.BooleanField(default=False, help_text="It leans on its context.")
    exact_key = models.CharField(max_length=64)
    keyword_key = models.CharField(max_length=64, blank=True)
    template_key = models.CharField(max_length=64, blank=True)
    parameters = models.JSONField(default=list, blank=True, help_text="What the template left out.")
    typo_bands = ArrayField(models.IntegerField(), default=list, blank=True)
    # Without a dimension: it is the embedder's. There is an index for each (see cache.vectors).
    question_vector = HalfVectorField(null=True, blank=True)
    context_vector = HalfVectorField(null=True, blank=True)
    fingerprint = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.SUSPECT)
    hits = models.PositiveIntegerField(default=0)
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.BIRTH)
    agreed = models.PositiveIntegerField(default=0)
    disagreed = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WordingQuerySet.as_manager()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["exact_key", "state"], name="wording_exact_key"),
            models.Index(
                fields=["keyword_key"],
                condition=Q(state="active") & ~Q(keyword_key=""),
                name="wording_keyword_key",
            ),
            models.Index(
                fields=["template_key"],
                condition=Q(state="active") & ~Q(template_key=""),
                name="wording_template_key",
            ),
            # Without a pending list, which a lookup would have to read from end to end.
            GinIndex(fields=["typo_bands"], fastupdate=False, name="wording_typo_bands"),
            models.Index(fields=["scope", "state"], name="wording_scope_state"),
            models.Index(fields=["entry"], condition=Q(state="rejected"), name="wording_rejected"),
        ]
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


class DataSource(models.Model):
    """Something outside that answers are made from, and how often it was said to have changed."""

    key = models.CharField(max_length=200, unique=True)
    version = models.CharField(max_length=200, blank=True, help_text="As of the last change, where told.")
    changes = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.key} {self.version}".strip()


class EntrySource(models.Model):
    """What an entry was made from: the reverse index by which a changed source finds what it spoils."""

    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="sources")
    source_key = models.CharField(max_length=200)
    version = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["source_key", "entry"], name="one_row_per_source_and_entry")
        ]

    def __str__(self) -> str:
        return f"{self.source_key} {self.version}".strip()


class Mode(models.TextChoices):
    """Live: decides. Shadow: what it would decide is written down, as long as it is newer than the live one.
    Proposed: waits for an operator's word."""

    LIVE = "live"
    SHADOW = "shadow"
    PROPOSED = "proposed"


class Policy(models.Model):
    """Thresholds of one scope (or, without one, of all) and one content class (or, without one, of all).
    Never changed, only followed by the next version; the live one is the newest of its kind."""

    scope = models.ForeignKey(Scope, on_delete=models.CASCADE, null=True, blank=True, related_name="policies")
    content_class = models.CharField(max_length=20, blank=True)
    version = models.PositiveIntegerField()
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.SHADOW)
    high = models.FloatField(help_text="At or above: a hit, unless something conflicts.")
    low = models.FloatField(help_text="At or above: a gray hit, if all agrees and the verifier consents.")
    near = models.FloatField(help_text="At or above: worth proving by the fresh answer. Below: a miss.")
    consent = models.FloatField(help_text="What the verifier must give a pair in between, from 0 to 1.")
    likely = models.FloatField(
        default=0.97, db_default=0.97, help_text="In other words: at or above a gray hit by all evidence."
    )
    note = models.TextField(blank=True)
    author = models.CharField(
        max_length=200, blank=True, db_default="", help_text="A user or a command; empty: a fit by itself."
    )
    fit = models.JSONField(
        null=True,
        blank=True,
        help_text="The fit: target, confidence, data, bounds and curves.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "policies"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["scope", "content_class", "version"],
                nulls_distinct=False,
                name="one_policy_per_version",
            ),
            models.CheckConstraint(
                condition=Q(near__lte=F("low"), low__lte=F("high")), name="policy_thresholds_in_order"
            ),
        ]

    def __str__(self) -> str:
        return f"v{self.version} {self.mode} {self.content_class or 'all'}: {self.low}–{self.high}"


class ConfusablePair(models.Model):
    """Two names that must never be taken for each other, in one scope or (without one) in all."""

    scope = models.ForeignKey(
        Scope, on_delete=models.CASCADE, null=True, blank=True, related_name="confusable_pairs"
    )
    first = models.CharField(max_length=200)
    second = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["scope", "first", "second"], nulls_distinct=False, name="one_row_per_confusable_pair"
            ),
            models.CheckConstraint(condition=~Q(first=F("second")), name="confusable_names_differ"),
        ]

    def __str__(self) -> str:
        return f"{self.first} / {self.second}"


class Source(models.TextChoices):
    EXTRACT = "extract"
    ENGINE = "engine"


class Summary(models.Model):
    """A few exchanges of a session in short, for prompts that no longer show them. Written by the engine when
    it comes to it, else an extract; once a prompt held it, it stays as it is."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="summaries")
    covered = models.CharField(max_length=64, db_index=True, help_text="Hash of the turns.")
    turns = models.JSONField(help_text="As the model sees them.")
    text = models.TextField()
    source = models.CharField(max_length=10, choices=Source.choices, default=Source.EXTRACT)
    used = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "summaries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "covered"], name="one_summary_of_the_same_turns")
        ]

    def __str__(self) -> str:
        return self.text[:60]


class Outcome(models.TextChoices):
    HIT = "hit"
    GRAY = "gray"
    NEAR = "near"
    MISS = "miss"
    BYPASS = "bypass"


class Decision(models.Model):
    """One lookup: what was found, what came of it, and why in words."""

    generation = models.ForeignKey("inference.Generation", on_delete=models.CASCADE, related_name="decisions")
    layer = models.CharField(max_length=20)
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    wording = models.ForeignKey(
        Wording, on_delete=models.SET_NULL, null=True, blank=True, related_name="decisions", db_index=False
    )
    entry = models.ForeignKey(
        Entry, on_delete=models.SET_NULL, null=True, blank=True, related_name="decisions"
    )
    reason = models.TextField()
    scores = models.JSONField(
        default=dict, blank=True, help_text="By channel and in all, from 0 to 1; what the verifier said."
    )
    verdict = models.CharField(max_length=10, blank=True, help_text="Of the fingerprints.")
    near = ArrayField(
        models.UUIDField(), default=list, blank=True, help_text="Wordings worth proving, likest first."
    )
    policy = models.ForeignKey(
        Policy, on_delete=models.SET_NULL, null=True, blank=True, related_name="decisions"
    )
    measured = models.JSONField(
        null=True,
        blank=True,
        help_text="What the thresholds were compared with: see `measured`.",
    )
    shadow = models.ForeignKey(
        Policy,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="shadow_decisions",
        db_index=False,
        help_text="The policy that was tried without effect.",
    )
    shadowed = models.JSONField(
        null=True, blank=True, help_text="What that one would have done: outcome, wording, entry."
    )
    milliseconds = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["shadow", "-id"], condition=Q(shadow__isnull=False), name="decision_shadowed"
            ),
            models.Index(fields=["wording", "-id"], name="decision_of_wording"),
        ]

    def __str__(self) -> str:
        return f"{self.layer}: {self.outcome}"


class Verdict(models.TextChoices):
    AGREE = "agree"
    DISAGREE = "disagree"
    UNCLEAR = "unclear"


class Observation(models.Model):
    """A verdict on an answer: of the person who read it, and on the pairing that served it if one did."""

    generation = models.ForeignKey(
        "inference.Generation", on_delete=models.CASCADE, related_name="observations"
    )
    wording = models.ForeignKey(
        Wording, on_delete=models.CASCADE, null=True, blank=True, related_name="observations"
    )
    verdict = models.CharField(max_length=10, choices=Verdict.choices)
    source = models.CharField(max_length=20, default="user", help_text="See inference.cache.standing.")
    # Known to Postgres too: in a rolling deploy the release before this one inserts without them.
    reasons = models.JSONField(
        default=list, db_default=models.Value([], models.JSONField()), blank=True, help_text="Why, in words."
    )
    fresh = models.TextField(
        default="",
        db_default="",
        blank=True,
        help_text="The answer that was compared, where it is not the generation's own.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["generation", "source"], name="one_verdict_per_answer_and_source")
        ]

    def __str__(self) -> str:
        return f"{self.source}: {self.verdict}"


class Check(models.Model):
    """A stored answer that somebody was given and that is to be asked for anew in the background. It is no
    Generation: nobody reads, follows, counts or keeps what comes of it. Gone when that is done."""

    generation = models.ForeignKey(
        "inference.Generation", on_delete=models.CASCADE, related_name="checks", help_text="What was served."
    )
    wording = models.OneToOneField(
        Wording,
        on_delete=models.CASCADE,
        related_name="open_check",
        help_text="One at a time for each pairing.",
    )
    claimed_by = models.CharField(max_length=120, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"check of {self.wording_id}"


class Cause(models.TextChoices):
    """By what a person took back what their conversation had said before."""

    CORRECTION = "correction"
    REJECTION = "rejection"
    RESTATEMENT = "restatement"
    EDIT = "edit"
    REGENERATE = "regenerate"
    THUMBS_DOWN = "thumbs_down"


# Read off a message, and so perhaps misread: these can be undone by the person.
DETECTED = (Cause.CORRECTION, Cause.REJECTION, Cause.RESTATEMENT)


class Invalidation(models.Model):
    """What somebody took back, and what followed from it: enough to undo it. The lists hold ids of
    entries."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="invalidations")
    generation = models.ForeignKey(
        "inference.Generation",
        on_delete=models.CASCADE,
        related_name="invalidations",
        help_text="The answer to the message that took it back, or the answer judged.",
    )
    cause = models.CharField(max_length=12, choices=Cause.choices)
    confidence = models.FloatField(default=1.0, help_text="Of the detection, from 0 to 1.")
    reasons = ArrayField(models.CharField(max_length=60), default=list, blank=True)
    epoch = models.PositiveIntegerField(
        null=True, blank=True, help_text="To which it raised the session's; empty where it left that alone."
    )
    frozen = models.JSONField(default=dict, blank=True, help_text="State before, by entry.")
    read_only = ArrayField(models.UUIDField(), default=list, blank=True)
    blocked = ArrayField(models.UUIDField(), default=list, blank=True)
    doubted = models.JSONField(default=dict, blank=True, help_text="State before, by entry.")
    observation = models.ForeignKey(
        Observation,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="invalidations",
        help_text="What it says of the pairing that had served the answer it took back.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["generation", "cause"],
                condition=Q(undone_at=None),
                name="one_standing_invalidation_per_generation_and_cause",
            )
        ]

    def __str__(self) -> str:
        return f"{self.cause} [{self.session_id}]"

    @property
    def entries(self) -> int:
        """How many entries it touched."""
        return len({*self.frozen, *map(str, self.read_only), *map(str, self.blocked)})
