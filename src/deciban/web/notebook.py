"""Results as HTML for notebooks: paragraphs, numbers and tables, with bars.

The styles apply to results only. Text has the color of the notebook, and lines are a shade of it, so that results are
readable in any theme, light or dark. All text is escaped. Without styles (GitHub removes them) tables remain tables.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from deciban.util.results import Aligned, Metrics, Part, TextTable
from deciban.web.html import Html, Inside, join_markup, paragraph, tag, tiles
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR

# Tables with more columns are scrolled. Cells of others are wrapped first, to fit into the page.
MAX_COLUMNS_FITTED = 8


def render_result(parts: Iterable[Part]) -> str:
    """Return the parts of a result as one HTML element with its styles.

    >>> "<p>1 &lt; 2</p>" in render_result(["1 < 2"])
    True
    """
    return tag("div", tag("style", _css()), [_render_part(part) for part in parts], class_="deciban-result")


@cache
def _css() -> Html:
    text = (files("deciban.web") / "notebook.css").read_text("utf-8")
    lines = (line.strip() for line in text.splitlines() if not line.startswith("/*"))
    return Html("".join(lines).replace("FOR_COLOR", FOR_COLOR).replace("AGAINST_COLOR", AGAINST_COLOR))


def _render_part(part: Part) -> Html:
    if isinstance(part, TextTable):
        return _render_table(part)
    if isinstance(part, Metrics):
        return join_markup([paragraph(part.title), tiles(part.values), map(paragraph, part.notes)])
    if isinstance(part, Aligned):
        return tag("pre", str(part))
    return join_markup(paragraph(line) for line in part.splitlines())


def _render_table(table: TextTable) -> Html:
    """Return a table; each bar has a cell of its own, before the number that it shows."""
    marks = _render_bars(table.bars, table.bar_reach)
    place = table.bar_column if marks else None
    head: Inside = ()
    if any(table.head):
        head = tag("thead", tag("tr", (_head_cell(name, k, table, place) for k, name in enumerate(table.head))))
    lines = [
        tag("tr", ([marks[row] if k == place else "", _cell(cell, k, table)] for k, cell in enumerate(line)))
        for row, line in enumerate(table.lines)
    ]
    body, foot = (lines[:-1], tag("tfoot", lines[-1:])) if table.total else (lines, "")
    title = table.title.removesuffix(":")
    wide = "deciban-wide" if max(map(len, (table.head, *table.lines)), default=0) > MAX_COLUMNS_FITTED else None
    notes = [paragraph(note, class_="deciban-note") for note in "\n".join(table.notes).splitlines()]
    return tag(
        "div",
        paragraph(title, class_="deciban-title") if title else "",
        tag("table", head, tag("tbody", body), foot, aria_label=title or None, class_=wide),
        notes,
        class_="deciban-table",
    )


def _head_cell(name: str, column: int, table: TextTable, place: int | None) -> Html:
    span = 2 if column == place else None
    if not name and span is None:
        return tag("td")
    return tag("th", name, scope="col", colspan=span, class_=_side(column, table))


def _cell(text: str, column: int, table: TextTable) -> Html:
    return tag("td" if column else "th", text, scope=None if column else "row", class_=_side(column, table))


def _side(column: int, table: TextTable) -> str | None:
    return "deciban-right" if column and column in table.right else None  # names of lines stay on the left


def _render_bars(bars: Sequence[tuple[float, float]], reach: float) -> list[Html]:
    """Return a cell with a bar for each (start, end), around a common zero."""
    if not bars:
        return []
    low, high = min(0.0, *map(min, bars)), max(reach, *map(max, bars))
    scale = 100.0 / ((high - low) or 1.0)

    def cell(start: float, end: float) -> Html:
        left, width = (min(start, end) - low) * scale, abs(end - start) * scale
        side = "for" if end >= start else "against"
        bar = tag("span", class_=f"deciban-{side}", style=f"left:{left:.4g}%;width:{width:.4g}%")
        zero = tag("span", class_="deciban-zero", style=f"left:{-low * scale:.4g}%")
        return tag("td", tag("span", zero, bar, class_="deciban-track"), class_="deciban-bar", aria_hidden="true")

    return [cell(*bar) for bar in bars]
