"""Answers as they are shown: marked up, and harmless whatever is in them."""

from playwright.sync_api import Request, expect

from tests.browser.chat import Chat
from tests.browser.written import Written, guest_of

MARKDOWN = """# First heading

## Second heading

Some **bold** text, `code`, and a [link](https://example.org/page).

| Tea | Minutes |
|-----|--------:|
| Green | 2 |

```python
def boil(water):  # comment
    return "tea"
```

1. one
2. two
"""

HOSTILE = """<script>window.broken = 1; fetch("https://evil.example/script")</script>

<img src="https://evil.example/tag.png" onerror="window.broken = 2">
<iframe src="https://evil.example/frame"></iframe>
<style>body { background: url(https://evil.example/style) }</style>
<form action="https://evil.example/form"><button>Click me</button></form>

[press](javascript:window.broken=3) [data](data:text/html,<script>window.broken=4</script>)
[odd](java&#115;cript:window.broken=5) <javascript:window.broken=6>
![picture](https://evil.example/picture.png)
![x](https://evil.example/y.png"onerror="window.broken=7)

```html
</code></pre><script>window.broken = 8</script>
```

```"><script>window.broken=9</script>
x
```
"""


def test_markdown_is_marked_up(chat: Chat) -> None:
    talk = Written(guest_of(chat.page.context), "Tea").turn("How?", MARKDOWN)
    chat.open_conversation(talk.id)
    body = chat.answer().body
    expect(body.get_by_role("heading")).to_have_text(["First heading", "Second heading"])
    expect(body.get_by_role("heading").first).to_have_js_property("tagName", "H3")
    expect(body.locator("strong")).to_have_text("bold")
    expect(body.get_by_role("cell")).to_have_text(["Green", "2"])
    assert body.get_by_role("cell").last.evaluate("it => getComputedStyle(it).textAlign") == "right"
    expect(body.get_by_role("listitem")).to_have_text(["one", "two"])
    link = body.get_by_role("link", name="link")
    expect(link).to_have_attribute("href", "https://example.org/page")
    expect(link).to_have_attribute("rel", "noopener nofollow")
    expect(link).to_have_attribute("target", "_blank")
    code = body.locator("pre code")
    expect(code).to_have_text('def boil(water):  # comment\n    return "tea"\n', use_inner_text=True)
    colours = code.locator("span").evaluate_all("all => all.map(it => getComputedStyle(it).color)")
    assert len(set(colours)) >= 3
    expect(body.locator(".code-language")).to_have_text("python")
    expect(chat.answer().button("Copy")).to_be_visible()


def test_hostile_markdown_is_harmless(chat: Chat) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith(chat.url):
            asked.append(request.url)

    chat.page.context.on("request", note)
    talk = Written(guest_of(chat.page.context), HOSTILE[:150]).turn(HOSTILE, HOSTILE)
    chat.open_conversation(talk.id)
    body = chat.answer().body
    expect(body).to_contain_text("<script>window.broken = 1;")
    assert body.locator("script, img, iframe, style, form, button:not(.copy-code)").count() == 0
    for href in body.locator("a").evaluate_all("all => all.map(it => it.href)"):
        assert href.startswith(("https://", "mailto:")), href
    assert body.evaluate(_HANDLERS) == []
    expect(body.get_by_role("link", name="picture")).to_be_visible()
    for text in ("press", "data", "odd"):
        body.get_by_text(text).first.click()
    assert chat.page.evaluate("() => window.broken") is None
    assert chat.answer().source == HOSTILE
    assert asked == []


_HANDLERS = (
    "it => [...it.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(n => /^on/.test(n))"
)
