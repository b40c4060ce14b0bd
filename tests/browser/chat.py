"""The chat page as a person uses it. Locators are by role and name wherever a person would go by these."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from playwright.sync_api import Locator, Page, Route, expect

from inference.models import Generation
from tests.browser.model import halted, let_write_until
from tests.stack import Stack

CONVERSATION_URL = re.compile(r"/c/[0-9a-f-]{36}/$")
OPEN = re.compile("pending|running")


class Answer:
    """One answer in the transcript, and its row in the database."""

    def __init__(self, article: Locator) -> None:
        self.article = article
        self.body = article.locator(".body")
        self.note = article.locator(".note")
        self.provenance = article.locator(".provenance")
        self.siblings = article.get_by_role("group", name="Versions of this answer")

    def button(self, name: str) -> Locator:
        return self.article.get_by_role("button", name=name, exact=True)

    @property
    def generation(self) -> Generation:
        return Generation.objects.get(pk=self.article.get_attribute("data-generation"))

    @property
    def source(self) -> str:
        """The whole text that the page holds, as Markdown (a page shows it without its marks)."""
        return str(self.article.locator("template.source").evaluate("it => it.content.textContent"))

    def finished(self, status: str = "complete") -> "Answer":
        """Once it is rendered by the server; what the page holds is then what is stored."""
        expect(self.article).to_have_attribute("data-status", status)
        assert self.source == self.generation.text != ""
        return self


class Held:
    """The script that connects a page, kept back from it until it is released."""

    def __init__(self, page: Page) -> None:
        self._routes: list[Route] = []
        page.route("**/socket*.js", lambda route: self._routes.append(route))

    def release(self) -> None:
        [route] = self._routes
        route.continue_()


class Chat:
    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.field = page.get_by_role("textbox", name="Message")
        self.send = page.get_by_role("button", name="Send", exact=True)
        self.stop = page.get_by_role("button", name="Stop", exact=True)
        self.questions = page.locator('#transcript article[data-role="user"]')
        self.answers = page.locator('#transcript article[data-role="assistant"]')
        self.unsent = page.get_by_role("region", name="Not sent yet").get_by_role("article")
        self.stream = page.locator("#transcript .stream")
        self.list = page.get_by_role("navigation", name="Conversations")
        self.title = page.get_by_role("heading", level=1)
        self.status = page.locator("#connection")
        self.toasts = page.locator("#toasts")

    def open(self, path: str = "/") -> "Chat":
        self.page.goto(self.url + path)
        return self

    def open_conversation(self, conversation: UUID) -> "Chat":
        return self.open(f"/c/{conversation}/")

    def tab(self) -> "Chat":
        """Another tab of the same browser, with the same conversation."""
        page = self.page.context.new_page()
        page.goto(self.page.url)
        return Chat(page, self.url)

    def unconnected(self, path: str) -> "tuple[Chat, Held]":
        """Another tab of the same browser, with `path`, as it is before its connection stands."""
        page = self.page.context.new_page()
        held = Held(page)
        page.goto(self.url + path, wait_until="commit")
        return Chat(page, self.url), held

    def new_chat(self) -> None:
        self.page.get_by_role("link", name="New chat").first.click()
        expect(self.page).to_have_url(self.url + "/")

    def say(self, text: str) -> None:
        """Type and send, without waiting for anything."""
        self.field.fill(text)
        self.field.press("Enter")

    def ask(self, text: str) -> Answer:
        """Type, send, and wait for the whole answer."""
        before = self.questions.count()
        self.say(text)
        expect(self.questions).to_have_count(before + 1)
        return self.answer().finished()

    def answer(self, position: int = -1) -> Answer:
        return Answer(self.answers.nth(position))

    def question(self, position: int = -1) -> Locator:
        return self.questions.nth(position)

    @property
    def conversation(self) -> UUID:
        expect(self.page).to_have_url(CONVERSATION_URL)
        return UUID(self.page.url.rstrip("/").rpartition("/")[2])

    @contextmanager
    def halfway(self, stack: Stack, text: str) -> Iterator[Answer]:
        """Ask; within the block the model stands still, after the first words and before the last."""
        with halted(stack):
            self.say(text)
            let_write_until(stack, lambda: len(self.stream.inner_text()) > 5)
            expect(self.answer().article).to_have_attribute("data-status", OPEN)
            assert self.answer().generation.is_open
            yield self.answer()
