"""The form of a report for trying values: its data, the model, the scorer and a script."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from deciban.decisions.loss import Loss
from deciban.errors import UsageError
from deciban.explain.columns import form_cell
from deciban.export.javascript import scorer_source
from deciban.export.model_json import model_as_json
from deciban.model.conformity import lowest_posterior
from deciban.report.data import MAX_TERMS_SHOWN, OPEN_COLUMNS, ColumnData, ReportData
from deciban.report.svg import BAR_STEP, LABEL_ROOM, LETTER_WIDTH, NUMBER_ROOM, WIDE
from deciban.scoring.predict import loss_for
from deciban.tables.cells import kind_of
from deciban.util.text_tables import format_class, format_number
from deciban.web.html import Html, note, paragraph, tag
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR, class_colors
from deciban.web.scripts import bundle, data_script, form_modules

# Cells of typical rows (one row per class); more make the page too large.
MAX_TYPICAL_CELLS = 5_000

# Coverage of the prediction set below the posterior.
COVERAGE = 0.9

# Kind of form field by kind of values.
FORM_KINDS = {"categories": "category", "whole": "count", "continuous": "number"}

# Kind of form field by SQL type, which is more specific.
FORM_KINDS_OF_TYPES = {"TIMESTAMP": "date", "TIME": "time"}

# Layout and colors of the evidence chart, for the script.
CHART = {
    "label": LABEL_ROOM,
    "letter": LETTER_WIDTH,
    "number": NUMBER_ROOM,
    "wide": WIDE,
    "step": BAR_STEP,
    "for": FOR_COLOR,
    "against": AGAINST_COLOR,
}


def form_data(contents: ReportData, *, ranges: bool = True, scorer: bool = True) -> dict[str, Any]:
    """Return the data of the form as plain JSON values.

    ranges: include the usual range of each number. scorer: a scorer in the page provides kinds and levels of columns;
    otherwise they are included.
    """
    names = [format_class(label) for label in contents.fitted.classes]
    rows = [{"name": f"example: {one['why'].lower()}", "values": one["cells"]} for one in contents.data["rows"]]
    rows = [*_typical_rows(contents, names), *rows]
    loss = contents.loss
    if loss is None and contents.fitted.order is not None:
        loss = loss_for(contents.fitted, None)
    return {
        "scorer": scorer,
        "columns": [_column(contents, one, ranges, not scorer) for one in contents.columns],
        "named": contents.fitted.schema.names is not None,
        "order": [] if scorer else list(contents.fitted.schema.column_names),
        "classes": names,
        "colors": class_colors(names),
        "open": OPEN_COLUMNS,
        "terms": MAX_TERMS_SHOWN,
        "chart": CHART,
        "loss": None if loss is None else loss_data(loss, names),
        "set": _set_data(contents),
        "rows": rows,
        "start": rows[0]["values"] if rows else {},
    }


def loss_data(loss: Loss, names: list[str]) -> dict[str, Any] | None:
    """Return costs by decision and class; None if costs vary by row."""
    if loss.varies_by_row:
        return None
    return {"decisions": [format_class(one) for one in loss.decisions or names], "costs": loss.matrix.tolist()}


def _set_data(contents: ReportData) -> dict[str, Any] | None:
    """Return the coverage of prediction sets and the threshold of each class; None without conformity scores."""
    tuning = contents.fitted.tuning
    if tuning is None or tuning.conformity is None:
        return None
    thresholds = lowest_posterior(tuning.conformity.first_bins(COVERAGE)).tolist()
    return {"coverage": COVERAGE, "thresholds": thresholds, "stale": tuning.conformity.stale}


def _column(contents: ReportData, one: ColumnData, ranges: bool, kinds: bool) -> dict[str, Any]:
    """Return a column by name, with its range, kind and levels as requested."""
    values, found = one.values, dict[str, Any](name=one.name)
    numeric = values is not None and values.kind != "categories"
    types = contents.fitted.counts.schema.types or ()
    kind = FORM_KINDS_OF_TYPES.get(kind_of(types[one.column])) if one.column < len(types) else None
    if ranges and values is not None and numeric:
        found |= _range(one, kind)
    if kinds:
        found["kind"] = kind or ("unused" if one.note else "text" if values is None else FORM_KINDS[values.kind])
        if values is not None and not numeric:
            found["levels"] = [form_cell(cell) for cell in values.cells.to_pylist()]
    return found


def _range(one: ColumnData, kind: str | None) -> dict[str, Any]:
    """Return the range of a column as text, and as numbers if it is numeric."""
    assert one.values is not None, "there are values"
    places = one.values.positions
    if kind is not None:
        return {"ends": [one.values.names[0], one.values.names[-1]]}
    return {
        "ends": [format_number(float(f"{end:.3g}")) for end in (places[0], places[-1])],
        "low": float(places[0]),
        "high": float(places[-1]),
    }


def _typical_rows(contents: ReportData, names: list[str]) -> list[dict[str, Any]]:
    """Return a row of the most probable values of each class."""
    shown = [one for one in contents.columns if one.values is not None]
    if not shown or len(names) * len(shown) > MAX_TYPICAL_CELLS:
        return []
    return [
        {"name": f"typical {name}", "values": {one.name: one.typical[c] for one in shown}}
        for c, name in enumerate(names)
    ]


FORM_INTRO = (
    "Edit the values of a row to see its posterior and evidence. An empty field is a missing value. Everything runs "
    "in your browser; no data is sent."
)


@dataclass(frozen=True)
class WhatIf:
    """The form (filled by its script), the data for the script, and the script; or a note on why it is missing."""

    form: list[Html]
    data: list[Html] = field(default_factory=list)
    script: str = ""


def build_form(contents: ReportData, room: int) -> WhatIf:
    """Build the form within `room` bytes."""
    modules = [*form_modules(), files("deciban.report") / "page.js"]
    script = f"{scorer_source()}\n{bundle(modules)}"
    data = data_script("what-if-data", form_data(contents, ranges=False))
    try:
        model = data_script("model-json", model_as_json(contents.fitted))
        if count_bytes([model, data, script]) <= room:
            return WhatIf(_form(), [model, data], script)
    except UsageError as error:
        return WhatIf([note(f"This model cannot run in a page: {error}")])
    size = f"{len(model) / 1e6:.1f} MB"
    return WhatIf([note(f"The model takes {size}, too much for a report; use deciban export --to js instead.")])


def count_bytes(parts: Iterable[str]) -> int:
    """Return the number of bytes of some texts."""
    return sum(len(part.encode()) for part in parts)


def _form() -> list[Html]:
    clear = tag("button", "Clear", type="button", id="what-if-clear")
    evidence = [tag("h3", "Evidence"), tag("p", id="what-if-against"), tag("div", id="what-if-evidence")]
    return [
        paragraph(FORM_INTRO),
        tag("div", clear, class_="buttons", id="what-if-buttons"),
        paragraph(tag("strong", id="what-if-result", role="status", aria_live="polite")),
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
