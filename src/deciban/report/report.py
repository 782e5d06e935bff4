"""`Report`: a model as one self-contained HTML file, and its contents as data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from deciban.report.data import ReportData
from deciban.report.form import build_form, count_bytes
from deciban.report.sections import (
    columns_section,
    decisions_section,
    diagnosis_section,
    drift_section,
    model_section,
    quality_section,
    rows_section,
)
from deciban.sources.write import replace_file
from deciban.util.text_tables import count_noun, to_json
from deciban.web.html import Html, common_css, join_markup, page_head, paragraph, tag
from deciban.web.scripts import content_policy

# Bytes of a page, small enough for an email: the form of a larger model is left out.
MAX_BYTES_OF_A_PAGE = 980_000

# Explains the unit at the foot of every page.
UNIT = "Evidence is measured in decibans: +10 multiplies the odds of a class by 10, +3 by 2, −10 divides them by 10."


@dataclass(frozen=True, repr=False)
class Report:
    """A report on a model: one self-contained HTML page, and its contents as data.

    Made by `BayesClassifier.report`.

    Parameters
    ----------
    contents : ReportData
        Everything that the page shows.

    Attributes
    ----------
    data : dict
        Contents of the report as plain JSON values.
    html : str
        The page.

    See Also
    --------
    BayesClassifier.evaluate : Metrics on held-out rows.
    """

    contents: ReportData

    @property
    def data(self) -> dict[str, Any]:
        """Contents of the report as plain JSON values; infinite numbers are None."""
        return to_json(self.contents.data)  # type: ignore[no-any-return]  # a dict stays one

    @property
    def html(self) -> str:
        """The page as HTML."""
        return render_report(self.contents)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : str or path-like
            The file. An existing file is replaced once the page is complete.
        """
        page = self.html.encode()
        with replace_file(os.fspath(path)) as file:
            file.write(page)

    def __repr__(self) -> str:
        return f"Report({self.data['title']!r})"


def render_report(contents: ReportData) -> str:
    """Render the whole report as an HTML document."""
    data = contents.data
    sections = _sections(contents)
    css = report_css()
    so_far = count_bytes([css, *(part for _, _, inside in sections for part in inside)])
    form = build_form(contents, MAX_BYTES_OF_A_PAGE - so_far)
    sections.append(("what-if", "What if", form.form))
    links = [tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in sections]
    body = tag(
        "body",
        tag("a", "Skip to content", class_="skip", href="#main"),
        tag("header", tag("h1", data["title"]), _lead(data), tag("nav", tag("ul", links), aria_label="Sections")),
        tag("main", (_section(*section) for section in sections), id="main"),
        tag("footer", paragraph(f"deciban {data['deciban']}. {UNIT}"), class_="quiet"),
        form.data,
        tag("script", Html(form.script)) if form.script else Html(),
    )
    head = page_head(data["title"], css, content_policy([form.script], [css]))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def render_sections(contents: ReportData) -> Html:
    """Render the sections without the form, for a page that has its own form and the styles of `common_css`."""
    return join_markup(_section(*section) for section in _sections(contents))


def report_css() -> str:
    """Return the CSS of a report."""
    return common_css() + (files("deciban.report") / "page.css").read_text("utf-8")


def _sections(contents: ReportData) -> list[tuple[str, str, list[Html]]]:
    """Return the id, title and contents of each section."""
    data = contents.data
    return [
        ("model", "Model", model_section(data)),
        ("quality", "Quality", quality_section(data)),
        *([("drift", "Drift", drift_section(data["drift"]))] if data["drift"] else []),
        ("columns", "Columns", columns_section(contents)),
        ("diagnosis", "Diagnosis", diagnosis_section(data)),
        ("decisions", "Decisions", decisions_section(data)),
        ("rows", "Examples", rows_section(data)),
    ]


def _section(name: str, title: str, inside: list[Html]) -> Html:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, join_markup(inside), id=name, aria_labelledby=f"{name}-title")


def _lead(data: dict[str, Any]) -> Html:
    """Return the sentence about the data that the report contains."""
    rows = len(data["rows"])
    shown = f"{count_noun(rows, 'row')} of your table" if rows else "no rows of any table"
    rest = "Everything else is aggregated, but names of columns and classes, categories and words are visible."
    return paragraph(f"This report shows {shown}. {rest}", class_="quiet")
