"""The pages that are served: that of a model, that of a folder, and the sections of a report."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from deciban.report.figures import report_figures
from deciban.report.page import report_sections
from deciban.serve.reader import Reader

# What a page that runs no script may do: nothing.
STILL_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@dataclass(frozen=True)
class Page:
    """A page and the policy that says what it may load and run."""

    html: str
    policy: str


def model_page(reader: Reader, name: str) -> Page:
    """The page of a model."""
    return Page(f"<!doctype html><html lang='en'><title>{html.escape(name)}</title></html>", STILL_POLICY)


def index_page(names: Sequence[str]) -> Page:
    """A page that links to the pages of models."""
    links = "".join(f'<li><a href="/models/{quote(name, safe="")}/">{html.escape(name)}</a></li>' for name in names)
    listed = f"<ul>{links}</ul>" if names else "<p>There are no models in the folder yet.</p>"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += "<title>Models</title>"
    body = f"<main><h1>Models</h1>{listed}</main>"
    return Page(f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n', STILL_POLICY)


def report_fragment(reader: Reader, title: str) -> str:
    """The sections of the report of a model, from its counts alone."""
    return report_sections(report_figures(reader.state.fitted, title))
