"""The pages that are served: that of a model, that of a folder, and the sections of a report."""

from functools import lru_cache

from deciban.page.build import folder_html, page_html
from deciban.report.figures import report_figures
from deciban.report.page import report_sections
from deciban.serve.reader import Reader


@lru_cache(maxsize=256)
def model_page(name: str) -> tuple[str, str]:
    """The page of a model, which asks for all that changes, and its Content-Security-Policy."""
    return page_html(None, service=True, title=name)


@lru_cache(maxsize=1)
def folder_page() -> tuple[str, str]:
    """The page of a folder, which asks for the names of its models, and its Content-Security-Policy."""
    return folder_html("Models")


def report_fragment(reader: Reader, title: str) -> str:
    """The sections of the report of a model, from its counts alone."""
    return str(report_sections(report_figures(reader.state.fitted, title)))
