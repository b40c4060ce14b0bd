"""Markdown to HTML: what comes out is always within the allowlist, whatever goes in."""

import time
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.rendering import ATTRIBUTES, CLASSES, MAX_MARKDOWN_CHARS, TAGS, URL_SCHEMES, render

_OURS = {"rel": {"noopener nofollow"}, "target": {"_blank"}}


class Inspector(HTMLParser):
    """Reads HTML as a browser would, and collects what is not allowed in it."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            if not self._allowed(tag, name, value or ""):
                self.wrong.append(f"<{tag} {name}={value!r}>")

    def _allowed(self, tag: str, name: str, value: str) -> bool:
        if name == "class":
            return set(value.split()) <= CLASSES.get(tag, set())
        if tag == "a" and name in _OURS:
            return value in _OURS[name]
        if name == "href":
            return value.strip().split(":", 1)[0].lower() in URL_SCHEMES
        return name in ATTRIBUTES.get(tag, set())

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.wrong.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.wrong.append(f"<?{data}>")


def inspect(html: str) -> Inspector:
    inspector = Inspector()
    inspector.feed(html)
    inspector.close()
    return inspector


_PIECES = st.sampled_from(
    [
        *("<script>", "</script>", "<img src=x onerror=alert(1)>", "<svg/onload=x>", "<a href=javascript:x>"),
        *("javascript:alert(1)", "JaVaScRiPt&#58;x", "data:text/html,x", "<javascript:x>", "<https://a.b>"),
        *("[x](", "![x](", "![", ")", "](", "](javascript:x)", "[a]: /b", 'https://a.b/?q="onclick=x'),
        *("```", "~~~", "`", "|", "|---|", ":--:", ">", "- ", "1. ", "# ", "**", "__", "~~", "\\", "\t"),
        *("&lt;", "&#60;", "&amp;", "<!--", "-->", "<![CDATA[", "<?x", "?>", '"', "'", "style=", "onclick="),
        *("html", "python", "{@", "$"),
    ]
)
_HOSTILE = st.lists(st.one_of(_PIECES, st.sampled_from("\n \t"), st.text(max_size=6)), max_size=60).map(
    "".join
)


@given(_HOSTILE)
def test_only_what_is_allowed_comes_out(text: str) -> None:
    assert inspect(render(text)).wrong == []


@given(st.text(max_size=400))
def test_any_text_is_rendered(text: str) -> None:
    assert inspect(render(text)).wrong == []


@given(st.from_regex(r"[a-z]+( [a-z]+)*", fullmatch=True))
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert inspect(render(text)).text.strip() == text


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x00"), min_size=1, max_size=80))
def test_code_stays_as_it_is(line: str) -> None:
    assert inspect(render(f"```\n{line}\n```")).text.rstrip("\n") == line.rstrip("\n")


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("a **b** *c* ~~d~~", "<p>a <strong>b</strong> <em>c</em> <s>d</s></p>"),
        ("# Title", "<h3>Title</h3>"),
        ("a  \nb", "<p>a<br>\nb</p>"),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"),
        ("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"),
        ("see settings.py", "<p>see settings.py</p>"),
        (
            "https://a.example/b",
            '<p><a href="https://a.example/b" target="_blank" rel="noopener nofollow">'
            "https://a.example/b</a></p>",
        ),
        (
            "![a cat](https://a.example/cat.png)",
            '<p><a href="https://a.example/cat.png" target="_blank" rel="noopener nofollow">a cat</a></p>',
        ),
        ("3. x\n4. y", '<ol start="3">\n<li>x</li>\n<li>y</li>\n</ol>'),
    ],
)
def test_markdown(markdown: str, html: str) -> None:
    assert render(markdown).strip() == html


def test_a_link_into_this_site_leads_nowhere() -> None:
    assert "href" not in render("[log out](/accounts/logout/)")


def test_tables_align_by_class() -> None:
    html = render("| a | b |\n|:--|--:|\n| 1 | 2 |")
    assert '<td class="align-left">1</td>' in html
    assert '<td class="align-right">2</td>' in html
    assert "style" not in html


def test_code_is_highlighted_and_names_its_language() -> None:
    html = render("```python\ndef f(): pass\n```")
    assert '<span class="code-language">python</span>' in html
    assert '<span class="hl-k">def</span>' in html


@pytest.mark.parametrize("info", ["", "no-such-language", 'x" onclick="alert(1)', "<script>"])
def test_code_in_an_unknown_language(info: str) -> None:
    html = render(f"```{info}\nif a < b: pass\n```")
    assert inspect(html).wrong == []
    assert "if a &lt; b: pass" in html


def test_code_begins_where_it_begins() -> None:
    """Leading and trailing empty lines and indentation of a block are part of it."""
    html = render("```python\n\n  x = 1\n\n```")
    assert inspect(html.split("<pre>")[1].split("</pre>")[0]).text == "\n  x = 1\n\n"


_LARGE = {
    "brackets": "[" * 50_000,
    "images": "![[" * 15_000,
    "stars": "a**" * 15_000,
    "quotes": ">" * 50_000,
    "ticks": "".join("`" * n + " " for n in range(250)),
    "lists": "".join(" " * n + "- a\n" for n in range(300)),
    "table": "|a" * 20_000 + "\n" + "|-" * 20_000,
    "code": "```html\n" + "<a " * 10_000,
    "letters": "x" * (MAX_MARKDOWN_CHARS + 1),
    "too many stars": "*" * 1_000_000,
}


@pytest.mark.parametrize("name", _LARGE)
def test_large_input_is_rendered_in_time(name: str) -> None:
    started = time.process_time()
    html = render(_LARGE[name])
    # The slowest (brackets) takes 1.5 s on one idle core; quadratic behaviour would take minutes.
    assert time.process_time() - started < 15
    assert inspect(html).wrong == []


def test_what_is_too_long_is_shown_unmarked() -> None:
    text = "**a** <b>\n" * (MAX_MARKDOWN_CHARS // 5)
    html = render(text)
    assert html.startswith('<div class="plain">')
    assert unescape(html.removeprefix('<div class="plain">').removesuffix("</div>")) == text
