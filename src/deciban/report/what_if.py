"""The form of a report in which values are tried: the model itself, a scorer and a script, all in the page."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from deciban.errors import UsageError
from deciban.export.javascript import embedded_json, scorer_source
from deciban.export.model_json import model_as_json
from deciban.report.figures import ReportFigures
from deciban.report.form_data import form_data
from deciban.report.html import Html, note, paragraph, tag
from deciban.web.assemble import assembled

# The modules that forms are made of.
FORM_MODULES = ("dom", "form", "posterior", "evidence", "risk")

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


def form_modules() -> list[Traversable]:
    """The modules that forms are made of."""
    return [files("deciban.web") / f"{name}.js" for name in FORM_MODULES]


def data_script(name: str, value: Any) -> Html:
    """Data that a script reads; `embedded_json` has no sign that could end it."""
    return Html(f'<script type="application/json" id="{name}">{embedded_json(value)}</script>')


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
