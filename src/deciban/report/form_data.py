"""What a form needs beside the scorer: columns in their order, colours of classes, losses, and rows to begin with."""

from typing import Any

from deciban.decisions.loss import Loss
from deciban.explain.cells import form_cell
from deciban.report.columns import ColumnFigures
from deciban.report.figures import OPEN_COLUMNS, ReportFigures
from deciban.report.rows import MOST_TERMS_TOLD
from deciban.report.svg import BAR_STEP, LABEL_ROOM, NUMBER_ROOM, WIDE
from deciban.tables.text_types import kind_of
from deciban.util.text_tables import as_written, class_name
from deciban.web.palette import AGAINST_COLOUR, FOR_COLOUR, class_colours

# Cells of typical rows, one for each class, that are kept.
MOST_TYPICAL_CELLS = 5_000

# What columns are to people, by how their values are shown, and where their type says more.
FORM_KINDS = {"categories": "category", "whole": "count", "continuous": "number"}
FORM_KINDS_OF_TYPES = {"TIMESTAMP": "date", "TIME": "time"}

# The picture of the evidence: its width, the room of labels and numbers, the height of a bar, and its colours.
CHART = {
    "label": LABEL_ROOM,
    "number": NUMBER_ROOM,
    "wide": WIDE,
    "step": BAR_STEP,
    "for": FOR_COLOUR,
    "against": AGAINST_COLOUR,
}


def form_data(figures: ReportFigures, *, ranges: bool = True, scorer: bool = True) -> dict[str, Any]:
    """Plain JSON for the form.

    ranges: with the usual values of each number. scorer: there is a scorer, which knows what columns are and their
    levels; else these are in it.
    """
    names = [class_name(label) for label in figures.fitted.classes]
    rows = [{"name": f"row above: {one['why']}", "values": one["cells"]} for one in figures.data["rows"]]
    rows = [*_typical_rows(figures, names), *rows]
    return {
        "scorer": scorer,
        "columns": [_column(figures, one, ranges, not scorer) for one in figures.columns],
        "named": figures.fitted.schema.names is not None,
        "order": [] if scorer else list(figures.fitted.schema.column_names),
        "classes": names,
        "colours": class_colours(names),
        "open": OPEN_COLUMNS,
        "terms": MOST_TERMS_TOLD,
        "chart": CHART,
        "loss": None if figures.loss is None else loss_data(figures.loss, names),
        "rows": rows,
        "start": rows[0]["values"] if rows else {},
    }


def loss_data(loss: Loss, names: list[str]) -> dict[str, Any] | None:
    """What each decision costs under each class, by their names; None where costs differ from row to row."""
    if loss.varies:
        return None
    return {"decisions": [class_name(one) for one in loss.decisions or names], "costs": loss.matrix.tolist()}


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
        "ends": [as_written(float(f"{end:.3g}")) for end in (places[0], places[-1])],
        "low": float(places[0]),
        "high": float(places[-1]),
    }


def _typical_rows(figures: ReportFigures, names: list[str]) -> list[dict[str, Any]]:
    """For each class a row of its most probable values."""
    shown = [one for one in figures.columns if one.values is not None]
    if not shown or len(names) * len(shown) > MOST_TYPICAL_CELLS:
        return []
    return [
        {"name": f"typical of {name}", "values": {one.name: one.typical[c] for one in shown}}
        for c, name in enumerate(names)
    ]
