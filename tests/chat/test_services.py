"""What people do with conversations, on the real database; nobody answers here."""

import uuid

import pytest

from chat import services
from chat.models import Conversation, Message, Owner
from chat.protocol import Refused
from inference.models import Generation, Session, Status
from inference.redis import client

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_counts() -> None:
    client().flushdb()


@pytest.fixture
def owner() -> Owner:
    return Owner(guest=uuid.uuid4())


def send(owner: Owner, text: str = "Hello?", conversation: uuid.UUID | None = None, **more) -> Message:
    return services.send_message(owner, uuid.uuid4().hex, text, conversation, **more)


def answer(reply: Message, text: str, status: Status = Status.COMPLETE) -> Message:
    Generation.objects.filter(pk=reply.generation_id).update(status=status, text=text)
    reply.generation.refresh_from_db()
    return reply


def refused(code: str, act, *arguments, **named) -> Refused:
    with pytest.raises(Refused) as caught:
        act(*arguments, **named)
    assert caught.value.code == code and caught.value.message
    return caught.value


def texts(turns) -> list[str]:
    return [turn["content"] for turn in turns]


class TestSending:
    def test_opens_a_conversation(self, owner: Owner) -> None:
        reply = send(owner, "What is\n rain?")
        conversation = Conversation.objects.owned_by(owner).get()
        assert conversation.title == "What is rain?"
        assert conversation.leaf == reply
        assert reply.parent.text == "What is\n rain?"
        assert reply.generation.status == Status.PENDING
        assert reply.generation.session_id == conversation.pk
        assert texts(reply.generation.question["turns"]) == ["What is\n rain?"]

    def test_goes_on_at_the_tip(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        second = send(owner, "Two?", first.conversation_id)
        assert second.parent.parent == first
        assert texts(second.generation.question["turns"]) == ["One?", "1.", "Two?"]

    def test_a_named_parent_makes_a_branch(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        answer(send(owner, "Two?", first.conversation_id), "2.")
        other = send(owner, "Three?", first.conversation_id, parent_id=first.pk)
        assert texts(other.generation.question["turns"]) == ["One?", "1.", "Three?"]

    def test_the_same_client_id_is_one_message(self, owner: Owner) -> None:
        one = services.send_message(owner, "same", "Hello?")
        two = services.send_message(owner, "same", "Hello?")
        assert one.pk == two.pk
        assert Message.objects.count() == 2 and Generation.objects.count() == 1
        again = services.regenerate(owner, "other", one.pk)
        assert services.regenerate(owner, "other", one.pk).pk == again.pk
        someone_else = services.send_message(Owner(guest=uuid.uuid4()), "same", "Hello?")
        assert someone_else.pk != one.pk

    def test_a_failed_answer_is_left_out_of_the_history(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "", Status.FAILED)
        second = send(owner, "Two?", first.conversation_id)
        assert texts(second.generation.question["turns"]) == ["One?", "Two?"]

    def test_a_very_long_conversation_carries_its_latest_part(self, owner: Owner) -> None:
        reply = answer(send(owner, "start"), "x")
        for at in range(12):
            Message.objects.filter(pk=reply.pk).update(created_at=reply.created_at)
            reply = answer(send(owner, f"{at} " + "q" * 7000, reply.conversation_id), "y" * 1000)
        turns = send(owner, "last?", reply.conversation_id).generation.question["turns"]
        assert sum(len(text) for text in texts(turns)) <= services.HISTORY_CHARS
        assert turns[0]["role"] == "user" and turns[-1]["content"] == "last?"
        assert len(turns) > 5

    def test_of_a_very_long_conversation_the_oldest_goes_in_steps(self, owner: Owner, settings) -> None:
        """So that prompts begin alike for a while."""
        settings.SUMMARY_STEP = 4
        reply, firsts = answer(send(owner, "0 " + "q" * 7000), "y" * 1000), []
        for at in range(1, 18):
            reply = answer(send(owner, f"{at} " + "q" * 7000, reply.conversation_id), "y" * 1000)
            firsts.append(int(texts(reply.generation.question["turns"])[0].split()[0]))
        assert firsts == [0] * 7 + [4] * 4 + [8] * 4 + [12] * 2

    def test_each_answer_in_the_history_is_named(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        failed = answer(send(owner, "Two?", first.conversation_id), "", Status.FAILED)
        third = send(owner, "Three?", failed.conversation_id)
        assert texts(third.generation.question["turns"]) == ["One?", "1.", "Two?", "Three?"]
        assert third.generation.question["generations"] == [None, str(first.generation_id), None, None]

    @pytest.mark.parametrize("text", ["", "  \n ", "\u3000"])
    def test_empty(self, owner: Owner, text: str) -> None:
        refused("empty", send, owner, text)
        assert not Message.objects.exists()

    def test_too_long(self, owner: Owner) -> None:
        send(owner, "字" * 8000)
        refused("too_long", send, owner, "字" * 8001)

    def test_nul(self, owner: Owner) -> None:
        refused("invalid_frame", send, owner, "a\x00b")

    @pytest.mark.parametrize("text", ["😀", "مرحبا", "\u202eabc", "\u200b?", "a\u0301" * 4000, "\ud7ff"])
    def test_odd_unicode(self, owner: Owner, text: str) -> None:
        assert send(owner, text).parent.text == text

    def test_open_answers_are_limited(self, owner: Owner) -> None:
        replies = [send(owner) for _ in range(5)]
        assert refused("too_many_open", send, owner).retryable
        answer(replies[0], "Done.")
        send(owner)

    def test_messages_a_minute_are_limited(self, owner: Owner, settings) -> None:
        settings.MAX_MESSAGES_PER_MINUTE = 20
        for _ in range(20):
            answer(send(owner), "Yes.")
        assert refused("rate_limited", send, owner).retryable
        answer(send(Owner(guest=uuid.uuid4())), "Somebody else may.")

    def test_a_repeated_frame_does_not_count(self, owner: Owner, settings) -> None:
        settings.MAX_MESSAGES_PER_MINUTE = 1
        one = services.send_message(owner, "same", "Hello?")
        assert services.send_message(owner, "same", "Hello?").pk == one.pk


class TestBranches:
    def test_regenerating_keeps_the_earlier_answer(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        second = services.regenerate(owner, "again", first.pk)
        assert second.parent == first.parent and second.generation.question["fresh"]
        (_, row) = services.transcript(Conversation.objects.get())
        assert (row.message, row.position, len(row.siblings)) == (second, 2, 2)
        assert (row.previous, row.next) == (first.pk, None)

    def test_regenerating_by_the_question(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        assert services.regenerate(owner, "again", first.parent.pk).parent == first.parent

    def test_editing_makes_a_sibling_of_the_question(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        second = answer(send(owner, "Two?", first.conversation_id), "2.")
        edited = services.edit_message(owner, "edit", second.parent.pk, "Three?")
        assert edited.parent.parent == first
        assert texts(edited.generation.question["turns"]) == ["One?", "1.", "Three?"]
        assert not edited.generation.question["fresh"]
        shown = [row.message.pk for row in services.transcript(Conversation.objects.get())]
        assert shown == [first.parent.pk, first.pk, edited.parent.pk, edited.pk]

    def test_a_branch_can_be_shown_again(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        second = answer(send(owner, "Two?", first.conversation_id), "2.")
        services.edit_message(owner, "edit", first.parent.pk, "Other?")
        conversation = services.show_branch(owner, first.parent.pk)
        assert conversation.leaf == second
        assert len(services.transcript(Conversation.objects.get())) == 4

    def test_the_first_question_can_be_edited(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        edited = services.edit_message(owner, "edit", first.parent.pk, "Two?")
        assert edited.parent.parent is None
        assert texts(edited.generation.question["turns"]) == ["Two?"]

    def test_an_answer_cannot_be_edited(self, owner: Owner) -> None:
        first = answer(send(owner, "One?"), "1.")
        refused("invalid_frame", services.edit_message, owner, "edit", first.pk, "2.")


class TestOwnership:
    """An id of somebody else's is answered like one that does not exist."""

    @pytest.fixture(params=["guest", "user", "nobody"])
    def stranger(self, request, django_user_model) -> Owner:
        if request.param == "user":
            return Owner(user_id=django_user_model.objects.create_user("stranger").pk)
        return Owner(guest=uuid.uuid4()) if request.param == "guest" else Owner()

    def test_nothing_can_be_reached(self, owner: Owner, stranger: Owner) -> None:
        reply = answer(send(owner, "Mine?"), "Yours.")
        conversation, question = reply.conversation_id, reply.parent_id
        for act in (
            lambda: services.get_conversation(stranger, conversation),
            lambda: services.get_message(stranger, reply.pk),
            lambda: services.get_generation(stranger, reply.generation_id),
            lambda: services.send_message(stranger, "a", "Hi?", conversation),
            lambda: services.edit_message(stranger, "b", question, "Hi?"),
            lambda: services.regenerate(stranger, "c", reply.pk),
            lambda: services.stop(stranger, reply.generation_id, 0),
            lambda: services.rename(stranger, conversation, "Mine"),
            lambda: services.delete(stranger, conversation),
            lambda: services.record_feedback(stranger, reply.pk, "disagree"),
            lambda: services.show_branch(stranger, reply.pk),
        ):
            foreign = refused("not_found", act)
            assert str(conversation) not in foreign.message
        assert not services.conversations(stranger).exists()
        assert Conversation.objects.get().title == "Mine?"

    def test_a_parent_must_be_of_the_same_conversation(self, owner: Owner) -> None:
        one, two = send(owner), send(owner)
        refused("not_found", send, owner, "Hi?", one.conversation_id, parent_id=two.pk)
        refused("invalid_frame", send, owner, "Hi?", None, parent_id=two.pk)

    def test_a_guest_who_signs_up_keeps_the_conversations(self, owner: Owner, django_user_model) -> None:
        reply = send(owner, "Mine?")
        account = Owner(user_id=django_user_model.objects.create_user("zoe").pk)
        assert services.adopt_guest(owner.guest, account) == 1
        assert services.get_message(account, reply.pk) == reply
        refused("not_found", services.get_message, owner, reply.pk)


class TestKeeping:
    def test_search_finds_titles_questions_and_answers(self, owner: Owner) -> None:
        answer(send(owner, "Why is the sky blue?"), "Because of scattering.")
        answer(send(owner, "天空为什么是蓝色的？"), "因为散射。")
        for text, count in (("SKY", 1), ("scattering", 1), ("散射", 1), ("rain", 0), ("", 2), ("%", 0)):
            assert services.conversations(owner, text).count() == count, text

    def test_rename(self, owner: Owner) -> None:
        conversation = send(owner).conversation_id
        assert services.rename(owner, conversation, "  New \n name ").title == "New name"
        assert len(services.rename(owner, conversation, "x" * 500).title) == 200
        refused("empty", services.rename, owner, conversation, "  ")

    def test_deleting_takes_everything_along(self, owner: Owner) -> None:
        reply = answer(send(owner), "Yes.")
        running = send(owner, "And?", reply.conversation_id)
        services.delete(owner, reply.conversation_id)
        assert not Conversation.objects.exists() and not Message.objects.exists()
        assert not Generation.objects.filter(pk=running.generation_id).exists()
        assert not Session.objects.exists()

    def test_deleting_an_account_takes_everything_along(self, django_user_model) -> None:
        person = Owner(user_id=django_user_model.objects.create_user("ann").pk)
        reply, other = answer(send(person), "Yes."), answer(send(person, "Else?"), "No.")
        assert reply.conversation_id != other.conversation_id and Session.objects.count() == 2
        django_user_model.objects.get().delete()
        assert not Conversation.objects.exists() and not Message.objects.exists()
        assert not Generation.objects.exists() and not Session.objects.exists()

    def test_feedback_toggles(self, owner: Owner) -> None:
        reply = answer(send(owner), "Yes.")
        for verdict in ("agree", "disagree"):
            services.record_feedback(owner, reply.pk, verdict)
            assert services.feedback_of([reply]) == {reply.pk: verdict}
        services.record_feedback(owner, reply.pk, "none")
        assert services.feedback_of([reply]) == {}
        refused("invalid_frame", services.record_feedback, owner, reply.pk, "great")
        refused("invalid_frame", services.record_feedback, owner, reply.parent_id, "agree")
        refused("invalid_frame", services.record_feedback, owner, send(owner).pk, "agree")

    def test_a_thousand_messages(self, owner: Owner) -> None:
        first = answer(send(owner, "start?"), "Yes.")
        parent, rows = first, []
        for at in range(1000):
            text = f"message {at}"
            parent = Message(
                conversation=first.conversation, parent=parent, role="user", text=text, sender=owner.key
            )
            rows.append(parent)
        Message.objects.bulk_create(rows)
        Conversation.objects.update(leaf=parent)
        conversation = Conversation.objects.get()
        assert len(services.transcript(conversation)) == 1002
        turns = send(owner, "And now?", conversation.pk).generation.question["turns"]
        assert turns[-2]["content"] == "message 999"
