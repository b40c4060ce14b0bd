"""Take the pictures of docs/console.md: every page of the console, in both languages, some in the dark and on
a phone.

    .venv/bin/python docs/console_screenshots.py            # writes docs/console/*.webp
    .venv/bin/python docs/console_screenshots.py overview   # only those that begin so

With services and a made-up shop of their own (docs/console_rows.py), which are thrown away; nothing needs to
run. Needs the `test` extra, for Playwright, a Chromium (CHROMIUM, or where `make test` finds it), and a font
with Chinese characters (Debian's package `fonts-noto-cjk`).
"""

import argparse
import base64
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from launch.browser import installed
from launch.embedded import Embedded
from launch.programs import python, web

OUT = Path(__file__).with_name("console")
LANGUAGES = {"en": "en", "zh": "zh-hans"}
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
TALLEST = 1_700  # what is further down is more of the same
LARGEST = 150_000  # bytes


@dataclass(frozen=True)
class Shot:
    """One page: where it is, and what is done on it first."""

    name: str
    path: str
    dark: bool = False
    phone: bool = False
    languages: tuple[str, ...] = tuple(LANGUAGES)
    act: Any = None


@contextmanager
def shop() -> Iterator[tuple[str, dict[str, Any]]]:
    """The running console; yields its address, and the rows that pictures are taken of."""
    with tempfile.TemporaryDirectory(prefix="reprise-pictures-") as folder:
        services = Embedded(Path(folder), durable=False)
        services.start()
        os.environ |= services.environment() | {"VAR_DIR": folder, "PRICE_PER_1000_TOKENS": "0.4"}
        os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings.local", "PRICE_CURRENCY": "EUR"}
        try:
            rows = _filled()
            with _served() as url, _telling(rows):
                yield url, rows
        finally:
            services.discard()


def _filled() -> dict[str, Any]:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    import console_rows

    return console_rows.fill(random.Random(11))


@contextmanager
def _served() -> Iterator[str]:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    program = subprocess.Popen([*python("-m", "launch.tether"), *web()], stdin=listener.fileno())
    try:
        for _try in range(240):
            try:
                urllib.request.urlopen(f"{url}/accounts/login/", timeout=2)
                break
            except OSError:
                time.sleep(0.5)
        yield url
    finally:
        program.terminate()
        program.wait(20)
        listener.close()


@contextmanager
def _telling(rows: dict[str, Any]) -> Iterator[None]:
    """A worker's voice, for as long as pictures are taken."""
    import console_rows

    over = threading.Event()
    scope = rows["entry"].scope

    def talk() -> None:
        while not over.wait(2):
            console_rows.tell(rows["session"], scope)

    console_rows.tell(rows["session"], scope)
    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)


def shots(rows: dict[str, Any]) -> list[Shot]:
    review = f"review/{rows['pairing'].pk}/"
    return [
        Shot("overview", "?range=24h"),
        Shot("overview-week", "?range=7d"),
        Shot("overview-dark", "?range=24h", dark=True, languages=("en",)),
        Shot("overview-phone", "?range=24h", phone=True, languages=("zh",)),
        Shot("review", "review/"),
        Shot("pairing", review, act=_take),
        Shot("pairing-dark", review, dark=True, languages=("zh",), act=_take),
        Shot("pairing-phone", review, phone=True, languages=("en",), act=_take),
        Shot("bulk", "review/", act=lambda page: _pick(page, rows["picked"])),
        Shot("entries", "entries/?col=state&col=class&col=hits&col=age&col=saves"),
        Shot("entries-alike", "entries/?like=guarantee+period"),
        Shot("entry", f"entries/{rows['entry'].pk}/"),
        Shot("entry-phone", f"entries/{rows['entry'].pk}/", phone=True, dark=True, languages=("zh",)),
        Shot("thresholds", "thresholds/"),
        Shot("thresholds-fit", "thresholds/", act=_to_the_fit),
        Shot("thresholds-phone", "thresholds/", phone=True, languages=("zh",)),
        Shot("sessions", "sessions/"),
        Shot("session", f"sessions/{rows['session'].pk}/"),
        Shot("sources", "sources/"),
        Shot("source", f"sources/{rows['source'].pk}/?version=8"),
        Shot("versions", "versions/"),
        Shot("bump", "versions/", act=_bump),
        Shot("flush", "flush/?content_class=business"),
        Shot("flush-running", f"audit/{rows['flush'].batch}/"),
        Shot("ledger", "ledger/"),
        Shot("audit", "audit/"),
        Shot("action", f"audit/{rows['rejected']}/"),
        Shot("health", "health/"),
    ]


def _take(page: Page) -> None:
    button = page.locator('[data-key="Enter"]')
    if button.count():
        button.click()
        page.wait_for_load_state()


def _to_the_fit(page: Page) -> None:
    page.locator("#fit").evaluate("it => it.scrollIntoView()")


def _pick(page: Page, wordings: list[Any]) -> None:
    for wording in wordings:
        page.locator(f'input[value="{wording.pk}"]').check()
    page.locator('button[name="action"][value="approve"]').click()
    page.wait_for_load_state()


def _bump(page: Page) -> None:
    page.locator("#b-knowledge").fill("2026-12")
    page.locator("#b-system_prompt").fill(
        "You help customers of a shop. Be brief, and say where it is written."
    )
    page.locator('form[action$="/preview/"] button[type="submit"]').click()
    page.wait_for_load_state()


def photograph(browser: Browser, url: str, rows: dict[str, Any], wanted: list[str]) -> None:
    OUT.mkdir(exist_ok=True)
    for short, language in LANGUAGES.items():
        for shot in shots(rows):
            if short in shot.languages and (not wanted or shot.name.startswith(tuple(wanted))):
                _photograph(browser, url, rows["operator"], shot, OUT / f"{shot.name}-{short}.webp", language)


def _photograph(browser: Browser, url: str, operator: Any, shot: Shot, out: Path, language: str) -> None:
    context = browser.new_context(
        viewport=PHONE if shot.phone else DESKTOP,  # type: ignore[arg-type]
        color_scheme="dark" if shot.dark else "light",
        locale="zh-CN" if language == "zh-hans" else "en-GB",
        device_scale_factor=1.5 if shot.phone else 1,
    )
    context.add_cookies(
        [
            {"name": "sessionid", "value": _session_of(operator), "url": url},
            {"name": "django_language", "value": language, "url": url},
        ]
    )
    page = context.new_page()
    page.goto(f"{url}/console/{shot.path}")
    if shot.act:
        shot.act(page)
    page.wait_for_timeout(700)  # until charts are drawn and nothing moves any more
    out.write_bytes(_picture(context, page))
    size = out.stat().st_size
    print(f"{out.name}: {size // 1024} KiB", flush=True)
    assert size < LARGEST, f"{out.name} has {size} bytes"
    context.close()


def _picture(context: BrowserContext, page: Page) -> bytes:
    """As WebP, which Playwright itself does not write."""
    height = min(TALLEST, int(page.evaluate("document.documentElement.scrollHeight")))
    width = page.viewport_size["width"] if page.viewport_size else DESKTOP["width"]
    page.set_viewport_size({"width": width, "height": max(height, 400)})
    page.wait_for_timeout(300)
    # Two of the same size as one sees them; text stays sharp at this quality.
    options = {"format": "webp", "quality": 72, "captureBeyondViewport": False}
    taken = context.new_cdp_session(page).send("Page.captureScreenshot", options)
    return base64.b64decode(taken["data"])


_sessions: dict[Any, str] = {}


def _session_of(operator: Any) -> str:
    """The cookie of whoever is signed in as this operator."""
    from django.test import Client

    if operator.pk not in _sessions:
        client = Client()
        client.force_login(operator)
        _sessions[operator.pk] = client.cookies["sessionid"].value
    return _sessions[operator.pk]


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of docs/console.md.")
    parser.add_argument("names", nargs="*", help="only pictures whose names begin so")
    options = parser.parse_args()
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright's loop stays in this thread
    with shop() as (url, rows), sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or installed(),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        photograph(browser, url, rows, options.names)
        browser.close()


if __name__ == "__main__":
    main()
