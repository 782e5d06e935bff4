"""What a column says, as a card: a picture, how much it matters, and the table behind."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.explain.column_values import ColumnValues
from deciban.explain.terms import signed
from deciban.report.columns import MANY_LINES, MOST_CATEGORIES_SHOWN, ColumnFigures
from deciban.report.html import Html, folded, html_table, paragraph, tag
from deciban.report.svg import bar_chart, line_chart
from deciban.util.arrays import Floats, Integers

# Evidence beyond this is cut off in a picture: odds of a million to 1. So is a density that is so many times as high as
# nearly all others, which it would flatten.
MOST_EVIDENCE_DRAWN = 60.0
MOST_PEAK_DRAWN = 5.0

# Lines of the table behind a picture, and classes that have a column there or are named in a title.
LINES_BEHIND = 13
CLASSES_BEHIND = 6
CLASSES_NAMED = 4


def column_card(data: dict[str, Any], figures: ColumnFigures, names: Sequence[str], colours: Sequence[str]) -> Html:
    """A column whose picture is open."""
    inside = [_facts(data), _words(figures)]
    if figures.values is not None:
        inside += [
            _evidence_picture(figures, figures.values, names, colours),
            _density_picture(figures, figures.values, names, colours),
            folded("as a table", _table_behind(figures, figures.values, names)),
        ]
    return tag("article", tag("h3", figures.name), inside, class_="card")


def folded_card(data: dict[str, Any], figures: ColumnFigures, names: Sequence[str], colours: Sequence[str]) -> Html:
    """A column of less importance: a small picture, of few classes."""
    picture = Html()
    if figures.values is not None and len(names) <= MANY_LINES:
        picture = _evidence_picture(figures, figures.values, names, colours)
    return tag("article", tag("h3", figures.name), _facts(data, short=True), picture, class_="card")


def _facts(data: dict[str, Any], short: bool = False) -> Html:
    """How much the column matters, how it is modelled and how it weighs."""
    if data["note"]:
        return paragraph(data["note"])
    known = ""
    if "decibans" in data:
        size = f"{data['decibans']:.1f} decibans"
        if np.isinf(data["decibans"]):
            own = np.isinf([data["least"], data["most"]]).any()
            why = "a value that a class never has" if own else "a value that only the left-out row of a class has"
            size = f"∞ decibans ({why} rules the class out)"
        known = f"on average {size}, {data['bits']:+.3f} bits"
    reach = f"from {signed(data['least'])} to {signed(data['most'])} decibans" if "values" in data else ""
    weights = "; ".join(
        f"{_together(one['columns'])} as {one['family'].split('(')[0]}, weight {one['weight']:.2g}"
        for one in data["blocks"]
    )
    return tag(
        "div",
        paragraph("; ".join(filter(None, (known, reach))), class_="quiet"),
        [] if short else paragraph(weights, class_="quiet"),
    )


def _together(columns: int) -> str:
    return "alone" if columns == 1 else f"{columns} columns together"


def _evidence_picture(
    figures: ColumnFigures, values: ColumnValues, names: Sequence[str], colours: Sequence[str]
) -> Html:
    """Of two classes the evidence for the second, which says all."""
    shown = slice(1, 2) if len(names) == 2 else slice(None)
    evidence = figures.evidence[:, shown]
    title = f"evidence of {figures.name} for {', '.join(names[shown][:CLASSES_NAMED])}, in decibans"
    if values.kind == "categories":
        places = _telling(evidence)
        told = [f"{values.names[k]} {signed(evidence[k, 0])}" for k in places] if evidence.shape[1] == 1 else []
        return bar_chart([values.names[k] for k in places], evidence[places], colours[shown], "; ".join([title, *told]))
    ends = _ends(values)
    title = f"{title}, from {ends[0]} to {ends[1]}"
    if np.abs(evidence[np.isfinite(evidence)]).max(initial=0.0) > MOST_EVIDENCE_DRAWN:
        title += f", cut off at {MOST_EVIDENCE_DRAWN:.0f}"
    if np.isinf(evidence).any():
        title += ", infinite where a triangle is marked ∞"
    return line_chart(values.positions, evidence, colours[shown], _limits(evidence), ends, title)


def _ends(values: ColumnValues) -> tuple[str, str]:
    """The first and the last value, in few digits."""
    if values.dates:
        return values.names[0], values.names[-1]
    return f"{values.positions[0]:.4g}", f"{values.positions[-1]:.4g}"


def _limits(evidence: Floats) -> tuple[float, float]:
    """From where to where a picture of evidence reaches."""
    finite = evidence[np.isfinite(evidence)]
    low, high = finite.min(initial=-1.0), finite.max(initial=1.0)
    return max(float(low), -MOST_EVIDENCE_DRAWN), min(float(high), MOST_EVIDENCE_DRAWN)


def _density_picture(
    figures: ColumnFigures, values: ColumnValues, names: Sequence[str], colours: Sequence[str]
) -> Html:
    """How numbers are distributed within each class; nothing for categories, whose evidence tells as much."""
    if values.kind == "categories":
        return Html()
    density = np.where(np.isfinite(figures.density), figures.density, 0.0)
    title = f"how {figures.name} is distributed in {', '.join(names[:CLASSES_NAMED])}"
    highest = density.max(axis=1)
    top = max(float(highest.max()), 1e-300)
    usual = MOST_PEAK_DRAWN * _height_of_most(values.positions, highest)
    if 0.0 < usual < top:
        title += f", cut off at {usual:.3g} below a peak of {top:.3g}"
        top = usual
    return line_chart(values.positions, density, colours, (0.0, top), _ends(values), title)


def _height_of_most(x: Floats, height: Floats) -> float:
    """The height that a curve has over less than a twentieth of its reach."""
    order = np.argsort(-height, kind="stable")
    along = np.cumsum(np.gradient(x)[order]) if x.size > 1 else np.ones(1)
    return float(height[order[np.searchsorted(along, 0.05 * along[-1])]])


def _telling(evidence: Floats) -> Integers:
    """The places of the categories that say most, in their order."""
    size = np.abs(np.nan_to_num(evidence, posinf=1e300, neginf=-1e300)).max(axis=1)
    return np.sort(np.argsort(-size, kind="stable")[:MOST_CATEGORIES_SHOWN])


def _table_behind(figures: ColumnFigures, values: ColumnValues, names: Sequence[str]) -> Html:
    places = _telling(figures.evidence)
    if values.kind != "categories":
        places = np.unique(np.linspace(0, len(values.cells) - 1, LINES_BEHIND).astype(np.int64))
    lines = [
        (values.names[k], *(signed(said, 2) for said in figures.evidence[k, :CLASSES_BEHIND].tolist())) for k in places
    ]
    caption = f"what {figures.name} says for each class, in decibans"
    return html_table(("value", *names[:CLASSES_BEHIND]), lines, caption)


def _words(figures: ColumnFigures) -> list[Html]:
    """The words of a text that are typical of each class."""
    return [
        paragraph(tag("strong", label), ": ", ", ".join(f"{word} {signed(decibans)}" for word, decibans in words))
        for label, words in figures.words
    ]
