"""An answer's Markdown as HTML that is safe to show.

Two lines of defence: the parser passes no raw HTML through, and what it produced is cut down to an
allowlist. No inline style, script, image or form can come out, so that the page's content security
policy needs no exception.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from html import escape

import nh3
import structlog
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

log = structlog.get_logger(__name__)

# Beyond these an answer is shown, but not marked up: both parsers are linear on ordinary text only.
MAX_MARKDOWN_CHARS = 60_000
MAX_HIGHLIGHT_CHARS = 20_000

CODE_PREFIX = "hl-"
TAGS = frozenset(
    [
        "p",
        "br",
        "hr",
        "em",
        "strong",
        "s",
        "code",
        "pre",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "a",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "div",
        "span",
    ]
)
ATTRIBUTES: dict[str, set[str]] = {"a": {"href", "title"}, "ol": {"start"}}
_ALIGNMENTS = {"align-left", "align-center", "align-right"}
CLASSES: dict[str, set[str]] = {
    "div": {"code", "code-head", "table", "plain"},
    "span": {"code-language", *(CODE_PREFIX + name for name in STANDARD_TYPES.values() if name)},
    "th": _ALIGNMENTS,
    "td": _ALIGNMENTS,
}
URL_SCHEMES = frozenset({"http", "https", "mailto"})

_formatter = HtmlFormatter(nowrap=True, classprefix=CODE_PREFIX)
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


@lru_cache(maxsize=1024)
def render(text: str) -> SafeString:
    """`text` as sanitised HTML. Any text is accepted; one that defeats the parser is shown as it is."""
    if len(text) > MAX_MARKDOWN_CHARS:
        return _plain(text)
    try:
        html = _parser.render(text)
    except Exception:  # one odd answer must not take the whole transcript with it
        log.exception("markdown_not_rendered", characters=len(text))
        return _plain(text)
    return _sanitised(html)


def _plain(text: str) -> SafeString:
    return _sanitised(f'<div class="plain">{escape(text)}</div>')


def _sanitised(html: str) -> SafeString:
    clean = nh3.clean(
        html,
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes=set(URL_SCHEMES),
        url_relative="deny",
        link_rel="noopener nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )
    return mark_safe(clean)


# --- code ---------------------------------------------------------------------------------------


def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return None


def _code_block(code: str, language: str) -> str:
    """A block with its language's name; the page's script puts the copy button into `code-head`."""
    lexer = _lexer(language) if language and len(code) <= MAX_HIGHLIGHT_CHARS else None
    body = highlight(code, lexer, _formatter) if lexer else escape(code)
    label = f'<span class="code-language">{escape(language)}</span>'
    return f'<div class="code"><div class="code-head">{label}</div><pre><code>{body}</code></pre></div>\n'


def _fence(
    _self: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    token = tokens[index]
    found = _LANGUAGE.match(token.info.strip())
    return _code_block(token.content, found.group().lower() if found else "")


def _indented(
    _self: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    return _code_block(tokens[index].content, "")


# --- pictures, tables, headings -----------------------------------------------------------------


def _image(
    _self: RendererHTML, tokens: Sequence[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    """A link to the picture: loading it would tell its server who reads this conversation."""
    token = tokens[index]
    source = escape(str(token.attrGet("src") or ""))
    return f'<a href="{source}">{escape(token.content or "") or source}</a>'


def _table_open(*_args: object) -> str:
    return '<div class="table"><table>\n'


def _table_close(*_args: object) -> str:
    return "</table></div>\n"


def _fit_into_page(state: StateCore) -> None:
    """Alignment becomes a class (inline styles are forbidden), and headings start under the page's own."""
    for token in state.tokens:
        if token.type in ("th_open", "td_open"):
            style = str(token.attrs.pop("style", ""))
            if style.startswith("text-align:"):
                token.attrSet("class", "align-" + style.removeprefix("text-align:"))
        elif token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"


def _build() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": True, "maxNesting": 60})
    parser.enable(["table", "strikethrough", "linkify"])
    if parser.linkify is not None:
        # Only what has a scheme: "settings.py" is a file, not a site in Paraguay.
        parser.linkify.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False})
    parser.core.ruler.push("fit_into_page", _fit_into_page)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _indented)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("table_open", _table_open)
    parser.add_render_rule("table_close", _table_close)
    return parser


_parser = _build()
