"""Conversations that are there before a test begins, written into the database."""

import uuid
from dataclasses import dataclass, field

from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import BrowserContext

from chat.models import Conversation, Message, Owner, Role
from chat.owners import GUEST_KEY
from inference.models import Generation, ServedBy, Session, Status


def guest_of(context: BrowserContext) -> Owner:
    """The guest that a browser is, after its first visit."""
    cookie = next(cookie for cookie in context.cookies() if cookie.get("name") == "sessionid")
    return Owner(guest=uuid.UUID(SessionStore(cookie.get("value"))[GUEST_KEY]))


@dataclass
class Written:
    """A conversation of `owner`, added to at its end."""

    owner: Owner
    title: str
    conversation: Conversation = field(init=False)
    session: Session = field(init=False)

    def __post_init__(self) -> None:
        self.conversation = Conversation.objects.create(
            user_id=self.owner.user_id, guest=self.owner.guest, title=self.title
        )
        self.session = Session.objects.create(id=self.id, topic=self.title)

    @property
    def id(self) -> uuid.UUID:
        return self.conversation.pk

    def turn(
        self, question: str, answer: str, status: Status = Status.COMPLETE, error: str = ""
    ) -> "Written":
        asked = self._add(Message(role=Role.USER, text=question))
        generation = Generation.objects.create(
            session=self.session,
            question={"turns": [{"role": "user", "content": question}], "fresh": False},
            status=status,
            text=answer,
            error_code=error,
            served_by=ServedBy.MODEL,
            total_ms=1_234,
        )
        self._add(Message(role=Role.ASSISTANT, generation=generation, parent=asked))
        return self

    def _add(self, message: Message) -> Message:
        message.conversation, message.sender = self.conversation, self.owner.key
        message.parent = message.parent or self.conversation.leaf
        message.save()
        self.conversation.leaf = message
        self.conversation.save()
        return message
