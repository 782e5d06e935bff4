"""HTML and SVG, escaped in one place: anything but markup made here is text, whatever characters it has."""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

# Elements that have no end.
WITHOUT_END = ("meta", "link", "line", "rect", "circle", "polyline", "input")


class Html(str):
    """Markup that was made here; any other text is escaped when it is put into an element."""

    __slots__ = ()


Inside = str | Iterable["Inside"]


def tag(name: str, /, *inside: Inside, **attributes: str | float | bool | None) -> Html:
    """An element; `class_` is class, `aria_label` is aria-label; True stands for an attribute without a value, None for
    none.

    >>> tag("p", "1 < 2", tag("b", "&"), class_="quiet")
    '<p class="quiet">1 &lt; 2<b>&amp;</b></p>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in WITHOUT_END:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{joined_markup(inside)}</{name}>")


def _attribute(name: str, value: str | float | bool | None) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def joined_markup(inside: Inside) -> Html:
    """Texts and elements, one after another."""
    if isinstance(inside, Html):
        return inside
    if isinstance(inside, str):
        return Html(escape(inside, quote=False))
    return Html("".join(map(joined_markup, inside)))


def paragraph(*inside: Inside, class_: str | None = None) -> Html:
    return tag("p", *inside, class_=class_)


def note(text: str) -> Html:
    """What a reader should not miss."""
    return paragraph(text, class_="note")


def folded(title: str, *inside: Inside) -> Html:
    """What is seen when its title is chosen."""
    return tag("details", tag("summary", title), *inside)


def tiles(pairs: Iterable[tuple[str, str]]) -> Html:
    """Figures side by side, each with its name."""
    return tag("dl", (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="tiles")


def html_table(head: Sequence[str], lines: Iterable[Sequence[str]], caption: str) -> Html:
    """A table whose first cells head their lines; a wide one scrolls."""
    top = tag("thead", tag("tr", (tag("th", cell, scope="col") for cell in head)))
    body = tag("tbody", (_line(line) for line in lines))
    inside = tag("table", tag("caption", caption), top, body)
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _line(line: Sequence[str]) -> Html:
    return tag("tr", tag("th", line[0], scope="row"), (tag("td", cell) for cell in line[1:]))


def page_head(title: str, css: str, policy: str) -> Html:
    """The head of a page that is one file."""
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
    """The styles that all pages share."""
    return (files("deciban.web") / "common.css").read_text("utf-8")
