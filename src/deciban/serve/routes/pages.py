"""The pages that are served: that of a model, that of a folder, and the sections of a report."""

from functools import lru_cache
from typing import Any

from deciban.decisions.loss import Loss
from deciban.errors import DecibanError
from deciban.export.model_json import model_as_json
from deciban.page.build import folder_html, page_html
from deciban.report.figures import ReportFigures, report_figures
from deciban.report.form import form_data
from deciban.report.report import report_sections
from deciban.serve.reader import Reader
from deciban.util.text_tables import plain_json

# What is told in place of figures that need rows.
KEEPS_NO_ROWS = (
    "The service keeps no rows to judge the model by: deciban evaluate MODEL ROWS tells how good its predictions are, "
    "and deciban report MODEL ROWS has all figures."
)


@lru_cache(maxsize=256)
def model_page(name: str) -> tuple[str, str]:
    """The page of a model, which asks for all that changes, and its Content-Security-Policy."""
    return page_html(None, service=True, title=name)


@lru_cache(maxsize=1)
def folder_page() -> tuple[str, str]:
    """The page of a folder, which asks for the names of its models, and its Content-Security-Policy."""
    return folder_html("Models")


def report_fragment(reader: Reader, title: str, loss: Loss | None) -> str:
    """The sections of the report of a model, from its counts alone."""
    return str(report_sections(_figures(reader, title, loss)))


def form_of(reader: Reader, title: str, loss: Loss | None) -> dict[str, Any]:
    """What the page needs to make its form of, and whether it can score rows by itself."""
    try:
        model_as_json(reader.state.fitted)
    except DecibanError:
        exportable = False
    else:
        exportable = True
    found: dict[str, Any] = plain_json(form_data(_figures(reader, title, loss), scorer=exportable))
    return found


def _figures(reader: Reader, title: str, loss: Loss | None) -> ReportFigures:
    return report_figures(reader.state.fitted, title, loss=loss, keeps_no_rows=KEEPS_NO_ROWS)
