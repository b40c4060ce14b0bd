"""Observers in the page: what was to be seen, or read out, in between two looks of a test."""

from collections.abc import Callable

from playwright.sync_api import Page

_WATCH = """([selector, name]) => {
  const states = (window[name] = []);
  const note = () => {
    const text = document.querySelector(selector)?.textContent;
    if (text && text !== states.at(-1)) states.push(text);
  };
  note();
  new MutationObserver(note).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


def _watch(page: Page, selector: str, name: str) -> Callable[[], list[str]]:
    page.evaluate(_WATCH, [selector, name])
    return lambda: list(page.evaluate("name => window[name]", name))


def watch_stream(page: Page) -> Callable[[], list[str]]:
    """Call what comes back for all texts that the answer being written went through, until a reload."""
    return _watch(page, "#transcript .stream", "watchedStream")


def watch_announcements(page: Page) -> Callable[[], list[str]]:
    """Call what comes back for all that the page had a screen reader read out, until a reload."""
    return _watch(page, "#announcer", "watchedAnnouncements")
