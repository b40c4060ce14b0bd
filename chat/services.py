"""What people do with conversations. Each function checks first, then acts, in one transaction.

All of them authorise through `Conversation.objects.owned_by`, and answer a foreign id like an unknown one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from inference import service as inference
from inference.models import OPEN, Generation, Invalidation, Observation, Status, Verdict
from inference.understanding.turns import Turn
from inference.understanding.window import left_out

from .limits import check_message_rate
from .models import Conversation, Message, Owner, Role
from .protocol import Refused

# More history than any model's window holds is not carried along with every question; the engine cuts the
# rest to its window. About 16,000 tokens of English.
HISTORY_CHARS = 64_000
TITLE_CHARS = 60


# --- finding ----------------------------------------------------------------------------------------


def _not_found(what: str) -> Refused:
    return Refused("not_found", f"This {what} does not exist, or is not yours.")


def conversations(owner: Owner, search: str = "") -> QuerySet[Conversation]:
    """The owner's conversations, latest first, with `search` in title or text."""
    return Conversation.objects.owned_by(owner).matching(search)


def get_conversation(owner: Owner, conversation_id: UUID) -> Conversation:
    """Raises Refused("not_found")."""
    found = Conversation.objects.owned_by(owner).filter(pk=conversation_id).first()
    if found is None:
        raise _not_found("conversation")
    return found


def get_message(owner: Owner, message_id: UUID) -> Message:
    """With its conversation and generation. Raises Refused("not_found")."""
    found = (
        Message.objects.select_related("conversation", "generation")
        .defer("generation__question", "generation__output_token_ids")
        .filter(pk=message_id, conversation__in=Conversation.objects.owned_by(owner))
        .first()
    )
    if found is None:
        raise _not_found("message")
    return found


def get_generation(owner: Owner, generation_id: UUID) -> Generation:
    """A generation that one of the owner's messages points to. Raises Refused("not_found")."""
    mine = Message.objects.filter(conversation__in=Conversation.objects.owned_by(owner))
    found = (
        Generation.objects.defer("question", "output_token_ids")
        .filter(pk=generation_id, messages__in=mine)
        .first()
    )
    if found is None:
        raise _not_found("answer")
    return found


# --- asking -----------------------------------------------------------------------------------------


def send_message(
    owner: Owner,
    client_id: str,
    text: str,
    conversation_id: UUID | None = None,
    parent_id: UUID | None = None,
) -> Message:
    """A new question, at the tip of the branch being shown or under `parent_id`; without a conversation it
    opens one. Returns the answer's message. The same `client_id` sent twice is one message. Raises
    Refused."""
    _check_text(text)
    if conversation_id is None:
        if parent_id is not None:
            raise Refused("invalid_frame", "parent: given without its conversation.")
        conversation = Conversation(user_id=owner.user_id, guest=owner.guest, title=_title(text))
        parent = None
    else:
        conversation = get_conversation(owner, conversation_id)
        parent = _parent_in(conversation, parent_id) if parent_id else conversation.leaf
    return _ask(owner, client_id, conversation, parent, text)


def edit_message(owner: Owner, client_id: str, message_id: UUID, text: str) -> Message:
    """Ask an earlier question differently: a sibling of it, with an answer of its own. Raises Refused."""
    original = get_message(owner, message_id)
    if original.role != Role.USER:
        raise Refused("invalid_frame", "message: only your own messages can be edited.")
    _check_text(text)
    return _ask(
        owner, client_id, original.conversation, original.parent, text, instead_of=_answers_below(original)
    )


def regenerate(owner: Owner, client_id: str, message_id: UUID) -> Message:
    """Answer a question once more, never from the cache; the earlier answer stays as a sibling. `message_id`
    is the answer or its question. Raises Refused."""
    message = get_message(owner, message_id)
    question = message if message.role == Role.USER else message.parent
    if question is None:
        raise _not_found("question")
    earlier = question.children.filter(role=Role.ASSISTANT).order_by("created_at")
    instead_of = [answer.generation_id for answer in earlier if answer.generation_id]
    return _answer(owner, client_id, question, fresh=True, instead_of=instead_of)


def _answers_below(question: Message) -> list[UUID]:
    """The generations of all answers that follow on this question, oldest first."""
    below, found = {question.pk}, list[UUID]()
    for message in _messages(question.conversation_id):
        if message.parent_id in below:
            below.add(message.pk)
            found += [message.generation_id] if message.generation_id else []
    return found


def _check_text(text: str) -> None:
    if not text.strip():
        raise Refused("empty", "There is nothing in this message.")
    if len(text) > settings.MAX_TEXT_CHARS:
        raise Refused(
            "too_long",
            f"A message may have {settings.MAX_TEXT_CHARS:,} characters; this one has {len(text):,}.",
        )
    if "\x00" in text:
        raise Refused("invalid_frame", "text: contains a NUL character.")


def _parent_in(conversation: Conversation, parent_id: UUID) -> Message:
    parent = conversation.messages.filter(pk=parent_id).first()
    if parent is None:
        raise _not_found("message")
    return parent


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"


def _ask(
    owner: Owner,
    client_id: str,
    conversation: Conversation,
    parent: Message | None,
    text: str,
    instead_of: Sequence[UUID] = (),
) -> Message:
    question = Message(
        conversation=conversation,
        parent=parent,
        role=Role.USER,
        text=text,
        sender=owner.key,
        client_id=client_id,
    )
    return _answer(owner, client_id, question, fresh=False, instead_of=instead_of)


def _answer(
    owner: Owner, client_id: str, question: Message, *, fresh: bool, instead_of: Sequence[UUID]
) -> Message:
    """Store `question` if it is new, and queue its answer. A frame that came before is found out by its
    `client_id` when it is stored, and gets what the first one made."""
    try:
        with transaction.atomic():
            reply = _store(owner, client_id, question, fresh, instead_of)
            _check_may_ask(owner)
            return reply
    except IntegrityError:
        earlier = _accepted_before(owner, client_id)
        if earlier is None:
            raise
        return earlier


def _store(
    owner: Owner, client_id: str, question: Message, fresh: bool, instead_of: Sequence[UUID]
) -> Message:
    conversation, opens = question.conversation, question.conversation._state.adding
    turns, generations = history(question)
    generation = inference.ask(
        conversation.pk, turns, generations=generations, fresh=fresh, opens=opens, instead_of=instead_of
    )
    reply = Message(
        conversation=conversation,
        parent=question,
        role=Role.ASSISTANT,
        generation=generation,
        sender=owner.key,
        client_id=client_id if fresh else "",
    )
    conversation.leaf = reply  # its row follows; the constraint is checked at the commit
    conversation.save(update_fields=None if opens else ["leaf", "updated_at"])
    Message.objects.bulk_create([reply] if fresh else [question, reply])
    return reply


def _check_may_ask(owner: Owner) -> None:
    """Raises Refused, which takes back what was just stored, when that was one too many."""
    open_now = (
        Message.objects.filter(
            conversation__in=Conversation.objects.owned_by(owner), generation__status__in=OPEN
        )
        .order_by()
        .count()
    )
    if open_now > settings.MAX_OPEN_GENERATIONS:
        raise Refused(
            "too_many_open",
            f"{open_now - 1} answers are still being written. Wait for one of them, or stop it.",
            retryable=True,
        )
    check_message_rate(owner)


def _accepted_before(owner: Owner, client_id: str) -> Message | None:
    message = Message.objects.filter(sender=owner.key, client_id=client_id).order_by().first()
    if message is None:
        return None
    if message.role == Role.ASSISTANT:
        return get_message(owner, message.pk)
    return get_message(owner, message.children.filter(role=Role.ASSISTANT).order_by("created_at")[0].pk)


def history(question: Message) -> tuple[list[Turn], list[UUID | None]]:
    """The turns that lead to `question`, itself last, and the generation of each answer among them. Of a very
    long conversation the latest part: as an engine does, it leaves the oldest out in steps."""
    exchanges: list[list[Message]] = []
    for message in _branch(question):
        if _content(message) and (exchanges or message.role == Role.USER):
            if message.role == Role.USER:  # an answer that failed before its first word says nothing
                exchanges.append([])
            exchanges[-1].append(message)
    sizes = [sum(len(_content(message)) for message in exchange) for exchange in exchanges]
    skipped = left_out(sizes[:-1], HISTORY_CHARS - sizes[-1], settings.SUMMARY_STEP)
    said = [message for exchange in exchanges[skipped:] for message in exchange]
    return [_turn(message) for message in said], [message.generation_id for message in said]


def _turn(message: Message) -> Turn:
    return {"role": "user" if message.role == Role.USER else "assistant", "content": _content(message)}


def _content(message: Message) -> str:
    return message.text if message.generation is None else message.generation.text


def _branch(tip: Message) -> list[Message]:
    """From the root to `tip`, which may be new."""
    path = [tip]
    if tip.parent_id is not None:
        by_id = {message.pk: message for message in _messages(tip.conversation_id)}
        at = by_id.get(tip.parent_id)
        while at is not None:
            path.append(at)
            at = by_id.get(at.parent_id) if at.parent_id else None
    return path[::-1]


def _messages(conversation_id: UUID) -> QuerySet[Message]:
    return (
        Message.objects.filter(conversation=conversation_id)
        .select_related("generation")
        .defer("generation__question", "generation__output_token_ids")
        .order_by("created_at", "pk")
    )


def stop(owner: Owner, generation_id: UUID, seen: int) -> None:
    """Stop an answer; it keeps what was seen. Raises Refused."""
    generation = get_generation(owner, generation_id)
    try:
        inference.stop(generation.pk, seen)
    except inference.Unreachable as error:
        raise Refused("unavailable", str(error), retryable=True) from error


# --- showing ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A message of the branch being shown, and where it stands among its siblings (from 1)."""

    message: Message
    siblings: list[UUID]
    position: int

    @property
    def previous(self) -> UUID | None:
        return self.siblings[self.position - 2] if self.position > 1 else None

    @property
    def next(self) -> UUID | None:
        return self.siblings[self.position] if self.position < len(self.siblings) else None


def transcript(conversation: Conversation, leaf: Message | None = None) -> list[Row]:
    """The branch that ends in `leaf` (the conversation's own where not given), from the root."""
    messages = list(_messages(conversation.pk))
    siblings: dict[tuple[UUID | None, str], list[UUID]] = defaultdict(list)
    for message in messages:
        siblings[message.parent_id, message.role].append(message.pk)
    by_id = {message.pk: message for message in messages}
    at = by_id.get(leaf.pk if leaf else conversation.leaf_id)  # type: ignore[arg-type]
    rows = []
    while at is not None:
        group = siblings[at.parent_id, at.role]
        rows.append(Row(at, group, group.index(at.pk) + 1))
        at = by_id.get(at.parent_id) if at.parent_id else None
    return rows[::-1]


def show_branch(owner: Owner, message_id: UUID) -> Conversation:
    """Show the branch through this message, down to its newest tip. Raises Refused."""
    message = get_message(owner, message_id)
    children: dict[UUID | None, list[Message]] = defaultdict(list)
    for other in _messages(message.conversation_id):
        children[other.parent_id].append(other)
    tip = message
    while children[tip.pk]:
        tip = children[tip.pk][-1]
    conversation = message.conversation
    Conversation.objects.filter(pk=conversation.pk).update(leaf=tip)
    conversation.leaf = tip
    return conversation


def feedback_of(messages: Iterable[Message]) -> dict[UUID, str]:
    """The reader's own verdicts, by message id."""
    by_generation = {m.generation_id: m.pk for m in messages if m.generation_id}
    given = Observation.objects.filter(generation__in=by_generation, source="user")
    return {by_generation[o.generation_id]: o.verdict for o in given}


def corrections_of(messages: Iterable[Message]) -> dict[UUID, Invalidation]:
    """What was read as taking something back, by the id of the question that did."""
    questions = [message.pk for message in messages if message.role == Role.USER]
    answers = Message.objects.filter(parent__in=questions, role=Role.ASSISTANT).order_by()
    asked = dict(answers.values_list("generation_id", "parent_id"))
    found = inference.corrections([pk for pk in asked if pk])
    return {asked[one.generation_id]: one for one in found if asked[one.generation_id]}


def undo_correction(owner: Owner, correction_id: int) -> Message:
    """The question was misread as a correction: take back what followed from that. Returns it. Raises
    Refused."""
    answer = (
        Message.objects.select_related("parent")
        .filter(
            generation__invalidations=correction_id,
            conversation__in=Conversation.objects.owned_by(owner),
        )
        .first()
    )
    if answer is None or answer.parent is None:
        raise _not_found("correction")
    inference.undo_correction(correction_id)
    return answer.parent


# --- keeping ----------------------------------------------------------------------------------------


def rename(owner: Owner, conversation_id: UUID, title: str) -> Conversation:
    """Raises Refused."""
    conversation = get_conversation(owner, conversation_id)
    title = " ".join(title.replace("\x00", "").split())
    if not title:
        raise Refused("empty", "A conversation needs a name.")
    conversation.title = title[:200]
    Conversation.objects.filter(pk=conversation.pk).update(title=conversation.title)
    return conversation


def delete(owner: Owner, conversation_id: UUID) -> None:
    """Delete a conversation, and what it alone contributed to the cache. Raises Refused."""
    get_conversation(owner, conversation_id).delete()


def record_feedback(owner: Owner, message_id: UUID, verdict: str) -> Message:
    """`verdict`: agree, disagree, or none to take it back. Raises Refused."""
    message = get_message(owner, message_id)
    if message.generation is None or message.generation.status in (Status.PENDING, Status.RUNNING):
        raise Refused("invalid_frame", "Only a finished answer can be rated.")
    if verdict not in (*Verdict.values, "none"):
        raise Refused("invalid_frame", "The verdict must be agree, disagree or none.")
    inference.feedback(message.generation.pk, None if verdict == "none" else Verdict(verdict))
    return message


def adopt_guest(guest: UUID, owner: Owner) -> int:
    """Give a guest's conversations to the account they signed up for; returns how many."""
    with transaction.atomic():
        guests = Conversation.objects.filter(guest=guest, user=None)
        # The frames of the guest's sockets are history; their ids could meet the account's own.
        Message.objects.filter(conversation__in=guests).update(sender=owner.key, client_id="")
        return guests.update(user_id=owner.user_id, guest=None)
