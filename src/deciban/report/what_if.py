"""The form of a report in which values are tried: the model itself, a scorer and a script, all in the page."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from deciban.errors import UsageError
from deciban.export.javascript import embedded_json, scorer_source
from deciban.export.model_json import model_as_json
from deciban.palette import AGAINST_COLOUR, FOR_COLOUR, class_colours
from deciban.report.figures import OPEN_COLUMNS, ReportFigures
from deciban.report.html import Html, note, paragraph, tag
from deciban.report.rows import MOST_TERMS_TOLD
from deciban.report.svg import BAR_STEP, LABEL_ROOM, NUMBER_ROOM, WIDE
from deciban.text_tables import class_name

# Cells of typical rows, one for each class, that are kept.
MOST_TYPICAL_CELLS = 5_000

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
    script = f"{scorer_source()}\n{(files('deciban.report') / 'page.js').read_text('utf-8')}"
    data = _data_script("what-if-data", embedded_json(_form_data(figures)))
    try:
        for small in (False, True):
            model = _data_script("model-json", embedded_json(model_as_json(figures.fitted, small)))
            if bytes_of([model, data, script]) <= room:
                return WhatIf(_form(small), [model, data], script)
    except UsageError as error:
        return WhatIf([note(f"This model cannot be tried in a page: {error}")])
    size = f"{len(model) / 1e6:.1f} MB"
    return WhatIf([note(f"The model takes {size}, too much for a report; deciban export --to js writes it apart.")])


def bytes_of(parts: Iterable[str]) -> int:
    """How many bytes texts take."""
    return sum(len(part.encode()) for part in parts)


def _data_script(name: str, json: str) -> Html:
    """JSON that a script reads; `embedded_json` has no sign that could end it."""
    return Html(f'<script type="application/json" id="{name}">{json}</script>')


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


def _form_data(figures: ReportFigures) -> dict[str, Any]:
    """What the form needs beside the model: the order of the columns, colours, losses, and rows to begin with."""
    names = [class_name(label) for label in figures.fitted.classes]
    rows = [{"name": f"row above: {one['why']}", "values": one["cells"]} for one in figures.data["rows"]]
    rows = [*_typical_rows(figures, names), *rows]
    return {
        "columns": [one.name for one in figures.columns],
        "classes": names,
        "colours": class_colours(names),
        "for": FOR_COLOUR,
        "against": AGAINST_COLOUR,
        "open": OPEN_COLUMNS,
        "terms": MOST_TERMS_TOLD,
        "chart": {"label": LABEL_ROOM, "number": NUMBER_ROOM, "wide": WIDE, "step": BAR_STEP},
        "loss": _losses(figures, names),
        "rows": rows,
        "start": rows[0]["values"] if rows else {},
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


def _losses(figures: ReportFigures, names: list[str]) -> dict[str, Any] | None:
    if figures.loss is None:
        return None
    decisions = [class_name(one) for one in figures.loss.decisions or names]
    return {"matrix": figures.loss.matrix.tolist(), "decisions": decisions}
