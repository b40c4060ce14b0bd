"""A real Chromium in front of the running stack. Whatever a page complains about fails its test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.chat import Chat
from tests.browser.troubles import Troubles
from tests.stack import Stack

# A busy machine with two cores, and a model that may have to be waited for.
PATIENCE_MS = 45_000
expect.set_options(timeout=PATIENCE_MS)

NewContext = Callable[..., BrowserContext]


@pytest.fixture(autouse=True)
def troubles() -> Iterator[Troubles]:
    """What the pages of this test complained about; a test that causes trouble allows it."""
    troubles = Troubles()
    yield troubles
    troubles.check()


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "locale": "en-GB"}


@pytest.fixture
def new_context(new_context: NewContext, troubles: Troubles) -> NewContext:
    """A browser of its own for each call: another person."""

    def make(**options: Any) -> BrowserContext:
        context = new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        troubles.watch(context)
        return context

    return make


@pytest.fixture
def chat(stack: Stack, page: Page) -> Chat:
    """A guest, on the page of a new chat."""
    return Chat(page, stack.url).open()
