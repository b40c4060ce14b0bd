"""The pages: who may see what, whole pages and parts, with and without a script."""

import json
import uuid
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat.models import Conversation, Message, Owner, Role
from chat.owners import GUEST_KEY
from chat.presentation import in_words
from chat.views import PAGE_SIZE, SHOWN_AT_FIRST
from inference.models import Generation, Observation, ServedBy, Session, Status

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
NOBODYS = "3f1d7c52-8f0e-4c9b-b1a6-2d9e5a7c4e10"


@pytest.fixture
def client() -> Client:
    """A guest's browser, after its first visit."""
    return guest_client()


def guest_client() -> Client:
    client = Client()
    client.get("/")
    return client


def owner(client: Client) -> Owner:
    return Owner(guest=uuid.UUID(client.session[GUEST_KEY]))


class Talk:
    """A conversation that is built message by message, at the tip or elsewhere."""

    def __init__(self, who: Owner, title: str = "A talk") -> None:
        self.conversation = Conversation.objects.create(user_id=who.user_id, guest=who.guest, title=title)
        self.session = Session.objects.create(id=self.conversation.id)
        self.sender = who.key
        self.tip: Message | None = None

    @property
    def id(self) -> uuid.UUID:
        return self.conversation.id

    def ask(self, text: str, *, after: Message | None = None) -> Message:
        return self._add(Role.USER, after or self.tip, text=text)

    def root(self, text: str) -> Message:
        self.tip = None
        return self.ask(text)

    def answer(self, text: str, *, after: Message | None = None, **fields: Any) -> Message:
        values = {"status": Status.COMPLETE, "served_by": ServedBy.MODEL, "finish_reason": "stop"} | fields
        generation = Generation.objects.create(session=self.session, question={}, text=text, **values)
        return self._add(Role.ASSISTANT, after or self.tip, generation=generation)

    def _add(self, role: str, parent: Message | None, **fields: Any) -> Message:
        message = Message.objects.create(
            conversation=self.conversation, parent=parent, role=role, sender=self.sender, **fields
        )
        self.tip = message
        self.conversation.leaf = message
        self.conversation.save()
        return message


def url(name: str, *arguments: object) -> str:
    return reverse(name, args=arguments)


def text_of(response: Any) -> str:
    return str(response.content.decode())


# --- who may see what -----------------------------------------------------------------------------------

EVERY_ADDRESS: list[tuple[str, str, str]] = [
    ("get", "conversation", "conversation"),
    ("get", "conversation_rename", "conversation"),
    ("post", "conversation_rename", "conversation"),
    ("get", "conversation_delete", "conversation"),
    ("post", "conversation_delete", "conversation"),
    ("get", "export.md", "conversation"),
    ("get", "export.json", "conversation"),
    ("get", "message", "question"),
    ("get", "message", "answer"),
    ("post", "message_branch", "answer"),
    ("post", "message_feedback", "answer"),
]


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "part"])
@pytest.mark.parametrize("stranger", ["guest", "account", "nobody yet"])
@pytest.mark.parametrize(("method", "name", "of"), EVERY_ADDRESS)
def test_what_is_someone_elses_is_not_found(
    client: Client, method: str, name: str, of: str, stranger: str, headers: dict[str, str]
) -> None:
    talk = Talk(owner(client), title="Secret title")
    ids = {"conversation": talk.id, "question": talk.ask("Secret question").id}
    ids["answer"] = talk.answer("Secret answer").id
    if name.startswith("export."):
        address = url("conversation_export", ids[of], name.removeprefix("export."))
    else:
        address = url(name, ids[of])
    data = {"title": "Taken over", "verdict": "agree"} if method == "post" else {}

    response = getattr(a_stranger(stranger), method)(address, data, headers=headers)

    assert response.status_code == 404
    assert "Secret" not in text_of(response)
    assert Conversation.objects.get(pk=talk.id).title == "Secret title"
    assert not Observation.objects.exists()
    mine = getattr(client, method)(address, data, headers=headers)
    assert mine.status_code in (200, 302), "the same address must exist for its owner"


def a_stranger(kind: str) -> Client:
    if kind == "guest":
        return guest_client()
    client = Client()
    if kind == "account":
        client.force_login(User.objects.create_user("stranger"))
    return client


def test_lists_hold_only_what_is_ones_own(client: Client) -> None:
    Talk(owner(guest_client()), title="Theirs")
    Talk(Owner(user_id=User.objects.create_user("someone").pk), title="An account's")
    Talk(owner(client), title="Mine")
    for address in ("/", "/conversations/", "/conversations/?q=e"):
        page = text_of(client.get(address))
        assert "Mine" in page
        assert "Theirs" not in page
        assert "An account" not in page


@pytest.mark.parametrize("address", ["/", "/conversations/", f"/c/{NOBODYS}/"])
def test_without_guests_one_signs_in_first(settings: Any, address: str) -> None:
    settings.GUEST_CHAT = False
    client = Client()
    response = client.get(address)
    assert response.status_code == 302
    assert response["Location"] == f"/accounts/login/?next={address}"
    part = client.get(address, headers=HTMX)
    assert part["HX-Redirect"] == "/accounts/login/"
    client.force_login(User.objects.create_user("member"))
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("conversation_rename", "conversation"),
        ("conversation_delete", "conversation"),
        ("message_branch", "answer"),
        ("message_feedback", "answer"),
    ],
)
def test_changes_need_the_token(client: Client, name: str, of: str) -> None:
    talk = Talk(owner(client))
    talk.ask("Q")
    ids = {"conversation": talk.id, "answer": talk.answer("A").id}
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    data = {"title": "Changed", "verdict": "agree"}
    assert strict.post(url(name, ids[of]), data).status_code == 403
    assert Conversation.objects.get(pk=talk.id).title == "A talk"
    assert not Observation.objects.exists()
    data["csrfmiddlewaretoken"] = strict.cookies["csrftoken"].value
    assert strict.post(url(name, ids[of]), data).status_code == 302


@pytest.mark.parametrize("name", ["message_branch", "message_feedback"])
def test_changes_are_posted(client: Client, name: str) -> None:
    talk = Talk(owner(client))
    assert client.get(url(name, talk.ask("Q").id)).status_code == 405


def test_pages_are_nobody_elses_to_keep(client: Client) -> None:
    assert "private" in client.get("/")["Cache-Control"]


# --- a page ---------------------------------------------------------------------------------------------


class Offences(HTMLParser):
    """What the content security policy would not let a browser carry out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if "style" in given or any(name.startswith(("on", "hx-on")) for name in given) or tag == "style":
            self.found.append(self.get_starttag_text() or tag)
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.found.append(self.get_starttag_text() or tag)


@pytest.fixture(params=["en", "zh-hans"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_pages_keep_to_the_policy(client: Client, language: str) -> None:
    talk = Talk(owner(client))
    talk.ask("Q")
    answer = talk.answer("```python\nx = 1\n```\n\n|a|b|\n|:-|-:|\n|1|2|")
    talk.ask("R")
    talk.answer("so far", status=Status.RUNNING)
    client.cookies["django_language"] = language
    addresses = ["/", url("conversation", talk.id), "/conversations/", url("message", answer.id)]
    addresses += [url("conversation_rename", talk.id), url("conversation_delete", talk.id)]
    addresses += ["/accounts/login/", "/accounts/signup/", "/accounts/password/reset/", "/nowhere/"]
    for address in addresses:
        response = client.get(address)
        offences = Offences()
        offences.feed(text_of(response))
        assert offences.found == [], address
        assert "script-src 'self'" in response["Content-Security-Policy"]


def test_an_empty_chat_explains_itself(client: Client) -> None:
    page = text_of(client.get("/"))
    assert "What would you like to know?" in page
    assert page.count('data-action="fill"') == 3


def test_the_page_speaks_chinese(client: Client) -> None:
    client.post("/i18n/setlang/", {"language": "zh-hans", "next": "/"})
    page = text_of(client.get("/"))
    assert '<html lang="zh-hans"' in page
    assert "您想了解什么？" in page
    assert json.loads(page.split('type="application/json">')[1].split("</script>")[0])["copied"] == "已复制"
    assert "What would you like" not in page


@pytest.mark.parametrize(
    ("cookie", "attribute"), [("dark", ' data-theme="dark"'), ("light", ' data-theme="light"'), ('"><x', "")]
)
def test_the_theme_is_there_from_the_first_byte(client: Client, cookie: str, attribute: str) -> None:
    client.cookies["theme"] = cookie
    assert f'<html lang="en"{attribute}>' in text_of(client.get("/"))


def test_a_transcript(client: Client) -> None:
    talk = Talk(owner(client), title="<Title>")
    talk.ask("Is 1 < 2 & <b>bold</b>?")
    talk.answer("Yes, **it is**.", total_ms=12.3, served_by=ServedBy.EXACT)
    response = client.get(url("conversation", talk.id))
    page = text_of(response)
    assert "Is 1 &lt; 2 &amp; &lt;b&gt;bold&lt;/b&gt;?" in page
    assert "<strong>it is</strong>" in page
    assert "<h1" in page and "&lt;Title&gt;</h1>" in page.replace("\n", "").replace("  ", "")
    assert f'data-conversation="{talk.id}"' in page
    assert "From the cache" in page and "12 ms" in page and "ask again?" in page


@pytest.mark.parametrize(
    ("fields", "said", "unsaid"),
    [
        ({"served_by": ServedBy.MODEL, "total_ms": 2300.0}, ["By the model", "2.3 s"], ["From the cache"]),
        ({"served_by": ServedBy.COALESCED}, ["Computed once for several people"], ["From the cache"]),
        ({"served_by": ServedBy.GRAY, "total_ms": 9.0}, ["From the cache", "9 ms"], ["By the model"]),
        ({"finish_reason": "length"}, ["cut off at the length limit"], []),
        ({"status": Status.STOPPED}, ["You stopped this answer.", "Try again"], ["length limit"]),
        ({"status": Status.INTERRUPTED}, ["The answer broke off.", "Try again"], ["By the model"]),
        (
            {"status": Status.FAILED, "error_code": "engine_unavailable"},
            ["The model can&#x27;t be reached", "Your question is kept.", "Try again"],
            ["By the model"],
        ),
        ({"status": Status.FAILED, "error_code": "a new one"}, ["Something went wrong"], []),
    ],
)
def test_how_an_answer_came_about(
    client: Client, fields: dict[str, Any], said: list[str], unsaid: list[str]
) -> None:
    talk = Talk(owner(client))
    talk.ask("Q")
    article = text_of(client.get(url("message", talk.answer("The text.", **fields).id)))
    assert "The text." in article
    for words in said:
        assert words in article
    for words in unsaid:
        assert words not in article


@pytest.mark.parametrize("status", [Status.STOPPED, Status.INTERRUPTED, Status.FAILED, Status.COMPLETE])
def test_an_answer_without_a_word(client: Client, status: Status) -> None:
    talk = Talk(owner(client))
    talk.ask("Q")
    article = text_of(client.get(url("message", talk.answer("", status=status).id)))
    assert 'class="note' in article
    assert "prose" not in article
    assert "verdict" not in article


@pytest.mark.parametrize("status", [Status.PENDING, Status.RUNNING])
def test_an_answer_being_written_is_text_only(client: Client, status: Status) -> None:
    talk = Talk(owner(client))
    talk.ask("Q")
    answer = talk.answer("**so** far <i>", status=status, served_by="", finish_reason="")
    article = text_of(client.get(url("message", answer.id)))
    assert f'data-status="{status}"' in article
    assert f'data-generation="{answer.generation_id}"' in article
    assert ">**so** far &lt;i&gt;</div>" in article
    assert "verdict" not in article


def test_a_long_transcript_opens_at_its_end(client: Client) -> None:
    talk = Talk(owner(client))
    for number in range(SHOWN_AT_FIRST):
        talk.ask(f"question {number}.")
        talk.answer(f"answer {number}.")
    page = text_of(client.get(url("conversation", talk.id)))
    assert page.count('<article class="message') - 2 == SHOWN_AT_FIRST  # two are templates for the script
    assert f"answer {SHOWN_AT_FIRST - 1}." in page
    assert "question 0." not in page
    assert f"Show {SHOWN_AT_FIRST} earlier messages" in page
    whole = text_of(client.get(url("conversation", talk.id) + "?all=1", headers=HTMX))
    assert whole.count('<article class="message') == 2 * SHOWN_AT_FIRST
    assert "<html" not in whole


def test_an_unknown_page_is_a_page_of_ours(client: Client) -> None:
    response = client.get("/nowhere/")
    assert response.status_code == 404
    assert "Go to the chat" in text_of(response)


# --- the list -------------------------------------------------------------------------------------------


def test_search(client: Client) -> None:
    first, second = Talk(owner(client), title="Rivers"), Talk(owner(client), title="Other")
    second.ask("How long is the 长江?")
    Talk(owner(client), title="Cooking")
    part = text_of(client.get("/conversations/", {"q": "长江"}, headers=HTMX))
    assert "1 conversation" in part and "Other" in part and "Rivers" not in part
    assert "<html" not in part
    assert "Rivers" in text_of(client.get("/conversations/", {"q": "river"}, headers=HTMX))
    nothing = text_of(client.get("/conversations/", {"q": "<zzz>"}, headers=HTMX))
    assert "Nothing found for “&lt;zzz&gt;”." in nothing
    assert "<html" in text_of(client.get("/conversations/", {"q": "river"}))
    assert str(first.id) in text_of(client.get("/conversations/", {"q": "river"}))


def test_the_list_comes_in_pages(client: Client) -> None:
    for number in range(PAGE_SIZE + 3):
        Talk(owner(client), title=f"Talk {number}.")
    first = text_of(client.get("/conversations/", headers=HTMX))
    assert first.count('<li class="conversation"') == PAGE_SIZE
    assert "?page=2" in first
    second = text_of(client.get("/conversations/?page=2", headers=HTMX))
    assert second.count('<li class="conversation"') == 3
    assert "Talk 0." in second
    assert "Last 24 hours" in first and "Last 24 hours" not in second
    assert client.get("/conversations/?page=nonsense", headers=HTMX).status_code == 200


def test_the_list_is_dated(client: Client) -> None:
    for days in (0, 3, 3, 12, 400):
        talk = Talk(owner(client))
        when = timezone.now() - timedelta(days=days)
        Conversation.objects.filter(pk=talk.id).update(updated_at=when)
    page = text_of(client.get("/conversations/", headers=HTMX))
    for heading in ("Last 24 hours", "Last 7 days", "Last 30 days", "Earlier"):
        assert page.count(heading) == 1


def test_the_open_conversation_is_marked(client: Client) -> None:
    shown, _other = Talk(owner(client)), Talk(owner(client))
    current = HTMX | {"HX-Current-URL": f"http://testserver/c/{shown.id}/?all=1"}
    for page in (client.get(url("conversation", shown.id)), client.get("/conversations/", headers=current)):
        marked = text_of(page).split('aria-current="page"')
        assert len(marked) == 2
        assert str(shown.id) in marked[0].rsplit("<li", 1)[1]


# --- renaming, deleting ---------------------------------------------------------------------------------


def test_renaming(client: Client) -> None:
    talk = Talk(owner(client))
    form = text_of(client.get(url("conversation_rename", talk.id), headers=HTMX))
    assert 'value="A talk"' in form and "<html" not in form
    assert "<html" in text_of(client.get(url("conversation_rename", talk.id)))
    part = client.post(url("conversation_rename", talk.id), {"title": " 新名字 "}, headers=HTMX)
    assert ">新名字</a>" in text_of(part)
    assert Conversation.objects.get(pk=talk.id).title == "新名字"
    response = client.post(url("conversation_rename", talk.id), {"title": "Again"})
    assert response["Location"] == url("conversation", talk.id)


@pytest.mark.parametrize(
    ("title", "why"), [("  ", "at least one character"), ("x" * 201, "at most 200 characters")]
)
def test_a_name_that_is_none(client: Client, title: str, why: str) -> None:
    talk = Talk(owner(client))
    for headers in ({}, HTMX):
        response = client.post(url("conversation_rename", talk.id), {"title": title}, headers=headers)
        assert why in text_of(response)
        assert 'aria-invalid="true"' in text_of(response)
    assert Conversation.objects.get(pk=talk.id).title == "A talk"


def test_deleting_asks_first(client: Client) -> None:
    talk = Talk(owner(client), title="<Doomed>")
    for headers in ({}, HTMX):
        question = client.get(url("conversation_delete", talk.id), headers=headers)
        assert "“&lt;Doomed&gt;” will be gone for good" in text_of(question)
    assert Conversation.objects.filter(pk=talk.id).exists()


def _delete(client: Client, talk: Talk, current: str | None) -> Any:
    headers = HTMX | {"HX-Current-URL": f"http://testserver{current}"} if current else {}
    response = client.post(url("conversation_delete", talk.id), headers=headers)
    assert not Conversation.objects.filter(pk=talk.id).exists()
    return response


def test_deleting(client: Client) -> None:
    doomed, shown, other = (Talk(owner(client), title=title) for title in ("Doomed", "Shown", "Other"))
    for talk in (doomed, shown, other):
        talk.ask("Q")
        talk.answer("A")
    listing = text_of(_delete(client, doomed, url("conversation", shown.id)))
    assert "Other" in listing and "Doomed" not in listing and "<html" not in listing
    assert _delete(client, shown, url("conversation", shown.id))["HX-Redirect"] == "/"
    assert _delete(client, other, None)["Location"] == "/"


# --- branches, verdicts ---------------------------------------------------------------------------------


@pytest.fixture
def forked(client: Client) -> Iterator[tuple[Talk, dict[str, Message]]]:
    """q1 → a1 → q2 → a2, and a newer a1' beside a1."""
    talk = Talk(owner(client))
    q1 = talk.ask("first question")
    a1 = talk.answer("early answer")
    talk.ask("second question")
    talk.answer("second answer")
    again = talk.answer("late answer", after=q1)
    yield talk, {"q1": q1, "a1": a1, "again": again}


def test_switching_branches(client: Client, forked: tuple[Talk, dict[str, Message]]) -> None:
    talk, messages = forked
    page = text_of(client.get(url("conversation", talk.id)))
    assert "late answer" in page and "second answer" not in page and "2/2" in page
    part = text_of(client.post(url("message_branch", messages["a1"].id), headers=HTMX))
    assert "<html" not in part and "1/2" in part
    assert "early answer" in part and "second answer" in part and "late answer" not in part
    assert "second answer" in text_of(client.get(url("conversation", talk.id))), "the choice is kept"
    response = client.post(url("message_branch", messages["again"].id))
    assert response["Location"] == f"{url('conversation', talk.id)}#m-{messages['again'].id}"


def test_one_message_with_its_siblings(client: Client, forked: tuple[Talk, dict[str, Message]]) -> None:
    _talk, messages = forked
    article = text_of(client.get(url("message", messages["a1"].id)))
    assert article.count("<article") == 1
    assert "1/2" in article
    assert url("message_branch", messages["again"].id) in article
    assert text_of(client.get(url("message", messages["q1"].id))).count("<article") == 1


def test_verdicts(client: Client) -> None:
    talk = Talk(owner(client))
    talk.ask("Q")
    answer = talk.answer("A")

    def give(verdict: str) -> str:
        return text_of(client.post(url("message_feedback", answer.id), {"verdict": verdict}, headers=HTMX))

    part = give("agree")
    assert "<article" not in part
    assert part.count('aria-pressed="true"') == 1 and 'value="none"' in part
    assert Observation.objects.get().verdict == "agree"
    assert 'value="disagree"' in part
    give("disagree")
    assert Observation.objects.get().verdict == "disagree"
    assert 'aria-pressed="true"' in text_of(client.get(url("conversation", talk.id)))
    assert 'aria-pressed="true"' not in give("none")
    assert not Observation.objects.exists()
    response = client.post(url("message_feedback", answer.id), {"verdict": "agree"})
    assert response["Location"] == f"{url('conversation', talk.id)}#m-{answer.id}"


def test_what_is_no_verdict(client: Client) -> None:
    talk = Talk(owner(client))
    question = talk.ask("Q")
    answer = talk.answer("A")
    for message, verdict in ((answer, "perhaps"), (answer, ""), (question, "agree")):
        response = client.post(url("message_feedback", message.id), {"verdict": verdict})
        assert response.status_code == 400
    assert not Observation.objects.exists()


# --- exports --------------------------------------------------------------------------------------------


def test_export_as_markdown(client: Client, forked: tuple[Talk, dict[str, Message]]) -> None:
    talk, _messages = forked
    response = client.get(url("conversation_export", talk.id, "md"))
    assert response["Content-Type"].startswith("text/markdown")
    assert response["Content-Disposition"] == 'attachment; filename="A talk.md"'
    text = text_of(response)
    assert text.startswith("# A talk\n\n## Question\n")
    assert text.index("first question") < text.index("## Answer") < text.index("late answer")
    assert "early answer" not in text, "the branch being shown, and no other"


def test_export_as_json(client: Client, forked: tuple[Talk, dict[str, Message]]) -> None:
    talk, messages = forked
    client.post(url("message_feedback", messages["a1"].id), {"verdict": "agree"})
    response = client.get(url("conversation_export", talk.id, "json"))
    data = json.loads(text_of(response))
    assert data["format"] == "reprise.conversation" and data["version"] == 1
    assert data["shown"] == [str(messages["q1"].id), str(messages["again"].id)]
    by_text = {message["text"]: message for message in data["messages"]}
    assert len(data["messages"]) == 5
    assert by_text["early answer"]["feedback"] == "agree"
    assert by_text["second question"]["parent"] == str(messages["a1"].id)
    assert by_text["late answer"]["status"] == "complete"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("长江有多长？", "长江有多长.md"),
        ('../../etc/"passwd"\r\nX: y', "etc passwd X y.md"),
        ("e" * 200, "e" * 80 + ".md"),
    ],
)
def test_an_export_is_named_after_its_title(client: Client, title: str, name: str) -> None:
    talk = Talk(owner(client), title=title)
    disposition = client.get(url("conversation_export", talk.id, "md"))["Content-Disposition"]
    assert (
        unquote(disposition.removeprefix("attachment; ")).split("=", 1)[1].removeprefix("utf-8''").strip('"')
        == name
    )


def test_an_export_without_a_title(client: Client) -> None:
    talk = Talk(owner(client), title="")
    response = client.get(url("conversation_export", talk.id, "md"))
    assert "conversation 20" in response["Content-Disposition"]
    assert text_of(response).startswith("# Untitled")


def test_an_unknown_kind_of_export(client: Client) -> None:
    assert client.get(url("conversation_export", Talk(owner(client)).id, "exe")).status_code == 404


# --- words ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0.2, "1 ms"),
        (12.4, "12 ms"),
        (999.4, "999 ms"),
        (999.6, "1.0 s"),
        (2345, "2.3 s"),
        (59_949, "59.9 s"),
        (59_951, "1 min 0 s"),
        (65_000, "1 min 5 s"),
    ],
)
def test_durations(milliseconds: float, words: str) -> None:
    assert in_words(milliseconds) == words
