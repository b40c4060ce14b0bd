"""What the person sees: conversations as trees of messages. Nothing is overwritten; an edit or a
regenerated answer is a sibling."""

import uuid
from dataclasses import dataclass
from typing import ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Q


@dataclass(frozen=True)
class Owner:
    """Whose conversations: an account's, or a guest's browser session's. Exactly one is set."""

    user_id: int | None = None
    guest: uuid.UUID | None = None

    @property
    def key(self) -> str:
        """One string for rate limits, groups and idempotency."""
        return f"user-{self.user_id}" if self.user_id is not None else f"guest-{self.guest}"

    @property
    def group(self) -> str:
        """The channel layer's group of all sockets of this person."""
        return f"owner.{self.key}"


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def owned_by(self, owner: Owner) -> Self:
        """The one place that decides who may see a conversation."""
        if owner.user_id is not None:
            return self.filter(user_id=owner.user_id)
        return self.filter(guest=owner.guest, user=None) if owner.guest else self.none()

    def matching(self, text: str) -> Self:
        """Conversations with `text` in their title or in a message; all of them for an empty text."""
        if not text.strip():
            return self
        found = Message.objects.filter(
            Q(text__icontains=text) | Q(generation__text__icontains=text),
            conversation=models.OuterRef("pk"),
        )
        return self.filter(Q(title__icontains=text) | models.Exists(found))


class Conversation(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="conversations",
    )
    guest = models.UUIDField(null=True, blank=True, db_index=True)
    title = models.CharField(max_length=200, blank=True)
    leaf = models.ForeignKey(
        "Message",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The tip of the branch being shown.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        ordering: ClassVar = ["-updated_at"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(user__isnull=False) ^ Q(guest__isnull=False),
                name="conversation_has_one_owner",
            )
        ]

    def __str__(self) -> str:
        return self.title or str(self.id)


class Role(models.TextChoices):
    USER = "user"
    ASSISTANT = "assistant"


class Message(models.Model):
    """A user's text, or an assistant's answer (whose text lives in its generation)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    parent = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="children"
    )
    role = models.CharField(max_length=10, choices=Role.choices)
    text = models.TextField(blank=True)
    generation = models.ForeignKey(
        "inference.Generation",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="messages",
    )
    sender = models.CharField(max_length=60, help_text="Owner.key of who sent the frame.")
    client_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["created_at"]
        indexes: ClassVar = [
            models.Index(fields=["conversation", "created_at"], name="message_in_conversation")
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["sender", "client_id"],
                condition=~Q(client_id=""),
                name="one_message_per_client_id",
            ),
            models.CheckConstraint(
                condition=Q(role="user", generation__isnull=True)
                | Q(role="assistant", generation__isnull=False),
                name="assistant_message_has_generation",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role}: {self.text[:60]}"
