"""Take the README's picture of the chat page from a running Reprise.

    make run                                    # in one terminal
    .venv/bin/python docs/screenshot.py         # in another; writes docs/chat.png

One guest asks a question; another asks some of their own, then the same one, and goes on from there.
Needs the `test` extra, for Playwright, and a Chromium (CHROMIUM, or where `make test` finds it).
"""

import argparse
import os
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from launch.browser import installed

WIDTH, HEIGHT = 1280, 800
PATIENCE_MS = 120_000
EARLIER = [
    "List three benefits of walking every day.",
    "What is photosynthesis?",
    "Explain in two sentences why the sky is blue.",
]
CONVERSATION = [
    "Write a Python function that checks whether a word is a palindrome.",
    "How fast is it?",
]


def ask(page: Page, question: str) -> None:
    answers = page.locator('#transcript article[data-role="assistant"]')
    before = answers.count()
    page.get_by_role("textbox", name="Message").fill(question)
    page.keyboard.press("Enter")
    expect(answers).to_have_count(before + 1)
    expect(answers.last).to_have_attribute("data-status", "complete")


def guest(browser: Browser, url: str) -> Page:
    page = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light", locale="en-GB"
    ).new_page()
    page.goto(url)
    return page


def photograph(browser: Browser, url: str, out: Path) -> None:
    ask(guest(browser, url), CONVERSATION[0])
    page = guest(browser, url)
    for question in EARLIER:
        ask(page, question)
        page.goto(url)
    for question in CONVERSATION:
        ask(page, question)
    page.mouse.move(WIDTH / 2, HEIGHT - 20)
    page.wait_for_timeout(500)  # until the list is refreshed and nothing moves any more
    page.screenshot(path=out, animations="disabled", caret="hide")


def main() -> None:
    parser = argparse.ArgumentParser(description="Take a picture of the chat page.")
    parser.add_argument("--url", default="http://localhost:8000/")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("chat.png"))
    options = parser.parse_args()
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or installed(),
            args=["--no-sandbox"] if os.geteuid() == 0 else [],
        )
        photograph(browser, options.url, options.out)
        browser.close()
    print(f"{options.out}: {options.out.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
