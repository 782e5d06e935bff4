"""Build HTML and SVG. Text is escaped in one place: everything that is not `Html` is text."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

# Void elements, which have no end tag.
VOID_ELEMENTS = ("meta", "link", "line", "rect", "circle", "polyline", "input")


class Html(str):
    """Trusted markup; any other text is escaped when it is put into an element."""

    __slots__ = ()


Inside = str | Iterable["Inside"]


def tag(name: str, /, *inside: Inside, **attributes: str | float | bool | None) -> Html:
    """Return an element.

    `class_` becomes class, `aria_label` aria-label. True writes an attribute without a value, None omits it.

    >>> tag("p", "1 < 2", tag("b", "&"), class_="quiet")
    '<p class="quiet">1 &lt; 2<b>&amp;</b></p>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID_ELEMENTS:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join_markup(inside)}</{name}>")


def _attribute(name: str, value: str | float | bool | None) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def join_markup(inside: Inside) -> Html:
    """Concatenate texts and elements, escaping texts."""
    if isinstance(inside, Html):
        return inside
    if isinstance(inside, str):
        return Html(escape(inside, quote=False))
    return Html("".join(map(join_markup, inside)))


def paragraph(*inside: Inside, class_: str | None = None) -> Html:
    return tag("p", *inside, class_=class_)


def note(text: str) -> Html:
    """Return a highlighted paragraph."""
    return paragraph(text, class_="note")


def details(title: str, *inside: Inside) -> Html:
    """Return contents that unfold under a title."""
    return tag("details", tag("summary", title), *inside)


def tiles(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return numbers side by side, each with its name."""
    return tag("dl", (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="tiles")


def html_table(head: Sequence[str], lines: Iterable[Sequence[str]], caption: str, texts: Sequence[int] = ()) -> Html:
    """Return a table whose first cells are row headers; a wide table scrolls. texts: further columns of texts."""
    kinds = ["text" if k in texts else None for k in range(len(head))]
    names = (tag("th", cell, scope="col", class_=kind) for cell, kind in zip(head, kinds, strict=True))
    top = tag("thead", tag("tr", names))
    body = tag("tbody", (_line(line, kinds) for line in lines))
    inside = tag("table", tag("caption", caption), top, body)
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _line(line: Sequence[str], kinds: Sequence[str | None]) -> Html:
    cells = (tag("td", cell, class_=kind) for cell, kind in zip(line[1:], kinds[1:], strict=True))
    return tag("tr", tag("th", line[0], scope="row"), cells)


def page_head(title: str, css: str, policy: str) -> Html:
    """Return the head of a self-contained page."""
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(css)),
    )


def common_css() -> str:
    """Return the CSS that all pages share."""
    return (files("deciban.web") / "common.css").read_text("utf-8")
