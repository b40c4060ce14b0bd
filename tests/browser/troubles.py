"""What goes wrong on a page without anybody seeing it: script errors, violations of the content security
policy, files that could not be loaded."""

import re

from playwright.sync_api import BrowserContext, ConsoleMessage, WebError


class Troubles:
    def __init__(self) -> None:
        self._seen: list[str] = []
        self._allowed: list[str] = []

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", self._error)

    def allow(self, pattern: str) -> None:
        """This test causes messages that match `pattern`, and means to."""
        self._allowed.append(pattern)

    def check(self) -> None:
        """Raises: AssertionError, with what nobody allowed."""
        unexpected = [
            text for text in self._seen if not any(re.search(pattern, text) for pattern in self._allowed)
        ]
        assert not unexpected, "\n".join(unexpected)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._seen.append(f"{message.type}: {message.text} ({message.location['url']})")

    def _error(self, error: WebError) -> None:
        self._seen.append(f"uncaught: {error.error}")
