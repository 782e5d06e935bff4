"""The form of a report in which values are tried: the data it needs, the model, the scorer and a script."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from deciban.decisions.loss import Loss
from deciban.errors import UsageError
from deciban.explain.columns import form_cell
from deciban.export.javascript import scorer_source
from deciban.export.model_json import model_as_json
from deciban.report.figures import MAX_TERMS_TOLD, OPEN_COLUMNS, ColumnFigures, ReportFigures
from deciban.report.svg import BAR_STEP, LABEL_ROOM, NUMBER_ROOM, WIDE
from deciban.tables.cells import kind_of
from deciban.util.text_tables import format_class, format_number
from deciban.web.html import Html, note, paragraph, tag
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR, class_colors
from deciban.web.scripts import assembled, data_script, form_modules

# Cells of typical rows, one for each class, that are kept.
MAX_TYPICAL_CELLS = 5_000

# What columns are to people, by how their values are shown, and where their type says more.
FORM_KINDS = {"categories": "category", "whole": "count", "continuous": "number"}
FORM_KINDS_OF_TYPES = {"TIMESTAMP": "date", "TIME": "time"}

# The picture of the evidence: its width, the room of labels and numbers, the height of a bar, and its colors.
CHART = {
    "label": LABEL_ROOM,
    "number": NUMBER_ROOM,
    "wide": WIDE,
    "step": BAR_STEP,
    "for": FOR_COLOR,
    "against": AGAINST_COLOR,
}


def form_data(figures: ReportFigures, *, ranges: bool = True, scorer: bool = True) -> dict[str, Any]:
    """Plain JSON for the form.

    ranges: with the usual values of each number. scorer: there is a scorer, which knows what columns are and their
    levels; else these are in it.
    """
    names = [format_class(label) for label in figures.fitted.classes]
    rows = [{"name": f"row above: {one['why']}", "values": one["cells"]} for one in figures.data["rows"]]
    rows = [*_typical_rows(figures, names), *rows]
    return {
        "scorer": scorer,
        "columns": [_column(figures, one, ranges, not scorer) for one in figures.columns],
        "named": figures.fitted.schema.names is not None,
        "order": [] if scorer else list(figures.fitted.schema.column_names),
        "classes": names,
        "colors": class_colors(names),
        "open": OPEN_COLUMNS,
        "terms": MAX_TERMS_TOLD,
        "chart": CHART,
        "loss": None if figures.loss is None else loss_data(figures.loss, names),
        "rows": rows,
        "start": rows[0]["values"] if rows else {},
    }


def loss_data(loss: Loss, names: list[str]) -> dict[str, Any] | None:
    """What each decision costs under each class, by their names; None where costs differ from row to row."""
    if loss.varies_by_row:
        return None
    return {"decisions": [format_class(one) for one in loss.decisions or names], "costs": loss.matrix.tolist()}


def _column(figures: ReportFigures, one: ColumnFigures, ranges: bool, kinds: bool) -> dict[str, Any]:
    """A column by its name; with its range, what it is and its levels, as far as these are asked for."""
    values, found = one.values, dict[str, Any](name=one.name)
    numeric = values is not None and values.kind != "categories"
    types = figures.fitted.counts.schema.types or ()
    kind = FORM_KINDS_OF_TYPES.get(kind_of(types[one.column])) if one.column < len(types) else None
    if ranges and values is not None and numeric:
        found |= _range(one, kind)
    if kinds:
        found["kind"] = kind or ("unused" if one.note else "text" if values is None else FORM_KINDS[values.kind])
        if values is not None and not numeric:
            found["levels"] = [form_cell(cell) for cell in values.cells.to_pylist()]
    return found


def _range(one: ColumnFigures, kind: str | None) -> dict[str, Any]:
    """From where to where the values of a column lie: for people, and as numbers where it holds numbers."""
    assert one.values is not None, "there are values"
    places = one.values.positions
    if kind is not None:
        return {"ends": [one.values.names[0], one.values.names[-1]]}
    return {
        "ends": [format_number(float(f"{end:.3g}")) for end in (places[0], places[-1])],
        "low": float(places[0]),
        "high": float(places[-1]),
    }


def _typical_rows(figures: ReportFigures, names: list[str]) -> list[dict[str, Any]]:
    """For each class a row of its most probable values."""
    shown = [one for one in figures.columns if one.values is not None]
    if not shown or len(names) * len(shown) > MAX_TYPICAL_CELLS:
        return []
    return [
        {"name": f"typical of {name}", "values": {one.name: one.typical[c] for one in shown}}
        for c, name in enumerate(names)
    ]


FORM_TOLD = (
    "Change what is known of a row, and see what the model makes of it. An empty field is a missing cell. All of it is "
    "computed in this page."
)
FORM_ROUNDED = (
    " (The corrections of this model are many, and rounded here: probabilities may differ in the fifth digit.)"
)


@dataclass(frozen=True)
class WhatIf:
    """The form, which its script fills, data that the script reads, and the script; or why there is no form."""

    form: list[Html]
    data: list[Html] = field(default_factory=list)
    script: str = ""


def what_if(figures: ReportFigures, room: int) -> WhatIf:
    """The form in a page that has so many bytes left for it."""
    modules = [*form_modules(), files("deciban.report") / "page.js"]
    script = f"{scorer_source()}\n{assembled(modules)}"
    data = data_script("what-if-data", form_data(figures, ranges=False))
    try:
        for small in (False, True):
            model = data_script("model-json", model_as_json(figures.fitted, small))
            if bytes_of([model, data, script]) <= room:
                return WhatIf(_form(small), [model, data], script)
    except UsageError as error:
        return WhatIf([note(f"This model cannot be tried in a page: {error}")])
    size = f"{len(model) / 1e6:.1f} MB"
    return WhatIf([note(f"The model takes {size}, too much for a report; deciban export --to js writes it apart.")])


def bytes_of(parts: Iterable[str]) -> int:
    """How many bytes texts take."""
    return sum(len(part.encode()) for part in parts)


def _form(rounded: bool) -> list[Html]:
    clear = tag("button", "nothing known", type="button", id="what-if-clear")
    evidence = [tag("h3", "Evidence"), tag("p", id="what-if-against"), tag("div", id="what-if-evidence")]
    return [
        paragraph(FORM_TOLD, FORM_ROUNDED if rounded else ""),
        tag("div", clear, class_="buttons", id="what-if-buttons"),
        paragraph(tag("strong", id="what-if-said", role="status", aria_live="polite")),
        tag("p", id="what-if-problem", class_="wrong", role="alert"),
        tag(
            "div",
            tag("div", tag("h3", "Posterior"), tag("ul", id="what-if-posterior", class_="bars"), class_="card"),
            tag("div", evidence, class_="card"),
            class_="answer",
        ),
        tag(
            "form",
            tag("div", id="what-if-form", class_="fields"),
            tag("details", id="what-if-more", hidden=True),
            autocomplete="off",
            aria_labelledby="what-if-title",
        ),
        tag("noscript", paragraph("This part needs JavaScript.")),
    ]
