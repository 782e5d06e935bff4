"""`Report`: a model as one HTML file that needs no network, no fonts and no libraries, with its metrics as data."""

import os
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from deciban.report.figures import ReportFigures
from deciban.report.form import bytes_of, what_if
from deciban.report.sections import (
    columns_section,
    decisions_section,
    diagnosis_section,
    model_section,
    quality_section,
    rows_section,
)
from deciban.sources.write import replace_file
from deciban.util.text_tables import count_noun, to_json
from deciban.web.html import Html, common_css, joined_markup, page_head, paragraph, tag
from deciban.web.scripts import content_policy

# Bytes of a page, so that it can be sent: a model that takes more is left out.
MAX_BYTES_OF_A_PAGE = 980_000

# What is to be known of the figures.
UNIT = "Evidence is in decibans, ten times the log10 of an odds ratio: +10 makes the odds ten times as high, +3 twice."


@dataclass(frozen=True, repr=False)
class Report:
    """A report on a model: one HTML page that needs nothing else, and its figures as data.

    `BayesClassifier.report` makes it.

    Parameters
    ----------
    found : ReportFigures
        What was found.

    Attributes
    ----------
    figures : dict
        All figures, as JSON has them.
    html : str
        The page.

    See Also
    --------
    BayesClassifier.evaluate : The figures of rows that were held out.
    """

    found: ReportFigures

    @property
    def figures(self) -> dict[str, Any]:
        """All figures, as JSON has them."""
        return to_json(self.found.data)  # type: ignore[no-any-return]  # a dict stays one

    @property
    def html(self) -> str:
        """The page."""
        return report_page(self.found)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path-like
            The file; one that is there is replaced when all is written.
        """
        page = self.html.encode()
        with replace_file(os.fspath(path)) as file:
            file.write(page)

    def __repr__(self) -> str:
        return f"Report({self.figures['title']!r})"


def report_page(figures: ReportFigures) -> str:
    """The report as HTML."""
    data = figures.data
    sections = _sections(figures)
    css = report_css()
    so_far = bytes_of([css, *(part for _, _, inside in sections for part in inside)])
    form = what_if(figures, MAX_BYTES_OF_A_PAGE - so_far)
    sections.append(("what-if", "What if", form.form))
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in sections]
    body = tag(
        "body",
        tag("a", "Skip to the report", class_="skip", href="#main"),
        tag("header", tag("h1", data["title"]), _lead(data), tag("nav", tag("ul", links), aria_label="Sections")),
        tag("main", (_section(*section) for section in sections), id="main"),
        tag("footer", paragraph(f"deciban {data['deciban']}. {UNIT}"), class_="quiet"),
        form.data,
        tag("script", Html(form.script)) if form.script else Html(),
    )
    head = page_head(data["title"], css, content_policy([form.script], [css]))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def report_sections(figures: ReportFigures) -> Html:
    """The sections of the report without its form, for a page that has one already and the styles of `common_css`."""
    return joined_markup(_section(*section) for section in _sections(figures))


def report_css() -> str:
    """The styles of a report."""
    return common_css() + (files("deciban.report") / "page.css").read_text("utf-8")


def _sections(figures: ReportFigures) -> list[tuple[str, str, list[Html]]]:
    """The sections by name, with their titles."""
    data = figures.data
    return [
        ("model", "What the model is", model_section(data)),
        ("quality", "How good it is", quality_section(data)),
        ("columns", "What each column says", columns_section(figures)),
        ("diagnosis", "What was found and what was done", diagnosis_section(data)),
        ("decisions", "Decisions", decisions_section(data)),
        ("rows", "A few rows, explained", rows_section(data)),
    ]


def _section(name: str, title: str, inside: list[Html]) -> Html:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, joined_markup(inside), id=name, aria_labelledby=f"{name}-title")


def _lead(data: dict[str, Any]) -> Html:
    """What is in the report, and what is not."""
    rows = len(data["rows"])
    said = "It is made from counts: no row of any table is in it."
    if rows:
        said = f"It shows {count_noun(rows, 'row')} of the table that was given; all else in it is counts and sums."
    return paragraph(f"{said} Names of columns and classes, categories and words of texts are in it.", class_="quiet")
