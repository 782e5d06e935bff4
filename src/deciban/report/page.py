"""A report as one HTML file that needs nothing else: no network, no fonts, no libraries."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from deciban.report.figures import ReportFigures
from deciban.report.html import Html, joined_markup, paragraph, tag
from deciban.report.sections import (
    columns_section,
    decisions_section,
    diagnosis_section,
    model_section,
    quality_section,
    rows_section,
)
from deciban.report.what_if import bytes_of, what_if
from deciban.text_tables import counted

# Nothing may be loaded from anywhere and nothing sent; the one script that may run is known by its hash.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

# Bytes of a page, so that it can be sent: a model that takes more is left out.
MOST_OF_A_PAGE = 980_000

# What is to be known of the figures.
UNIT = "Evidence is in decibans, ten times the log10 of an odds ratio: +10 makes the odds ten times as high, +3 twice."


def report_page(figures: ReportFigures) -> str:
    """The report as HTML."""
    data = figures.data
    sections = [
        ("model", "What the model is", model_section(data)),
        ("quality", "How good it is", quality_section(data)),
        ("columns", "What each column says", columns_section(figures)),
        ("diagnosis", "What was found and what was done", diagnosis_section(data)),
        ("decisions", "Decisions", decisions_section(data)),
        ("rows", "A few rows, explained", rows_section(data)),
    ]
    css = (files("deciban.report") / "page.css").read_text("utf-8")
    so_far = bytes_of([css, *(part for _, _, inside in sections for part in inside)])
    form = what_if(figures, MOST_OF_A_PAGE - so_far)
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
    return f"<!doctype html>\n{tag('html', _head(data['title'], css, form.script), body, lang='en')}\n"


def _head(title: str, css: str, script: str) -> Html:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=f"{POLICY}; script-src 'sha256-{digest}'"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(css)),
    )


def _section(name: str, title: str, inside: list[Html]) -> Html:
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, joined_markup(inside), id=name, aria_labelledby=f"{name}-title")


def _lead(data: dict[str, Any]) -> Html:
    """What is in the report, and what is not."""
    rows = len(data["rows"])
    said = "It is made from counts: no row of any table is in it."
    if rows:
        said = f"It shows {counted(rows, 'row')} of the table that was given; all else in it is counts and sums."
    return paragraph(f"{said} Names of columns and classes, categories and words of texts are in it.", class_="quiet")
