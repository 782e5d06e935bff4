"""Results in a notebook: as HTML they show what the text shows, harm nothing, and can be read in any theme."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deciban import BayesClassifier, Loss, Text, bayes
from deciban.datasets import weather
from deciban.util.results import Aligned, Metrics, TextTable
from deciban.web.notebook import render_result
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR
from tests.support.browser import opened

HOSTILE = '<script>alert(1)</script> & "quoted" <b>'


class Page(HTMLParser):
    """The text, the cells and the tags of a piece of HTML; tags must be closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and dict(attrs).get("aria-hidden") != "true":
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def words(text: str) -> list[str]:
    return re.findall(r"[\w.%+−-]+", text)


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    table = weather()
    plain, clf = BayesClassifier(tune=None).fit(table, "play"), BayesClassifier().fit(table, "play")
    mails = {"text": ["free pills now", "lunch at noon", "free lunch", "see you at noon"] * 5}
    texts = BayesClassifier({"text": Text()}, tune=None).fit(mails, ["spam", "ham", "spam", "ham"] * 5)
    return {
        "schema": clf.schema_,
        "tuning": clf.tuning_,
        "evaluation": clf.evaluate(table, "play", loss={("no", "yes"): 2, ("yes", "no"): 1}),
        "calibration": clf.evaluate(table, "play").calibration,
        "leave one out": clf.leave_one_out(),
        "importance": clf.importance(),
        "estimates": plain.estimates(),
        "estimates of a block": plain.estimates()["wind"],
        "decisions": clf.decide(table),
        "coverage": clf.coverage_curve(table, "play"),
        "threshold": clf.threshold(),
        "intervals": clf.predict_interval(table),
        "sample": clf.sample(30, random_state=0),
        "evidence": clf.evidence(table),
        "evidence by column": plain.evidence(table, by="column"),
        "linear form": plain.linear_form(),
        "top words": texts.top_words("spam"),
        "parameters": plain.parameter_count(),
        "belief": bayes(0.05, (0.9, 0.08), names=("ill", "well")),
        "bayes error of the model": plain.bayes_error(n_samples=500),
        "diagnosis": plain.diagnose(),
    }


def test_html_has_the_numbers_and_names_of_the_text(shown: dict[str, Any]) -> None:
    for name, result in shown.items():
        page = Page(result._repr_html_())
        missing = set(words(str(result))) - set(words(" ".join(page.texts)))
        assert missing - {">"} == set(), name
        assert repr(result) == str(result)


def test_an_explanation_is_a_sum_of_bars() -> None:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    row = [{"outlook": "sunny", "wind": "strong", "humidity": None}]
    found = clf.explain(row)
    page = Page(found._repr_html_())
    terms = {label: float(value.replace("−", "-")) for label, value in page.rows[1:]}
    expected = found.to_dict()
    assert terms.pop("sum") == pytest.approx(expected["sum"], abs=0.005)
    assert sum(terms.values()) == pytest.approx(expected["sum"], abs=0.02)
    outlook = next(term["decibans"] for term in expected["evidence"] if term["column"] == "outlook")
    assert terms["outlook = sunny"] == pytest.approx(outlook, abs=0.005)
    bars = [
        attributes["style"] for tag, attributes in page.tags if re.search("for|against", attributes.get("class") or "")
    ]
    spans = np.array([re.findall(r"[\d.]+", style or "") for style in bars], dtype=float)
    scale = spans[-1, 1] / abs(expected["sum"])
    values = [*terms.values(), expected["sum"]]
    np.testing.assert_allclose(spans[:, 1], np.abs(values) * scale, atol=0.2)
    assert spans.sum(axis=1).max() == pytest.approx(100.0, abs=0.1)
    assert page.rows[0] == [f"evidence for {expected['predicted']} against {expected['against']}", "decibans"]
    by_block = Page(clf.explain(row, by="block")._repr_html_())
    assert "posterior" in "".join(by_block.texts)
    assert "sum" in [line[0] for line in by_block.rows]


def test_impossible_rows_single_classes_and_many_rows_are_explained() -> None:
    clf = BayesClassifier(alpha=0, tune=None).fit({"a": list("uuvv"), "b": list("ppqq")}, list("kkll"))
    assert "impossible in every class" in clf.explain([{"a": "u", "b": "q"}])._repr_html_()
    assert "+∞" in clf.explain([{"a": "u"}])._repr_html_()
    one = BayesClassifier(tune=None).fit([[1.0], [2.0]], ["a", "a"])
    assert "predicted: a" in one.explain([[1.0]])._repr_html_()
    many = BayesClassifier(tune=None).fit(weather(), "play").explain(weather())
    html = many._repr_html_()
    assert html.count(">predicted:") == 5
    assert "… (9 more rows: print it" in html
    assert repr(many).count("predicted:") == 5
    assert repr(many).endswith(html.rpartition("<p>")[2].removesuffix("</p></div>"))
    assert str(many).count("predicted:") == 14


def test_evidence_that_rounds_to_zero_has_no_minus_sign_and_no_long_bar() -> None:
    clf = BayesClassifier(tune=None, prior={"a": 0.5002, "b": 0.4998})
    found = clf.fit([[0.0], [1.0], [0.0], [1.0001]] * 30, list("aabb") * 30).explain([[1.0]])
    assert -0.005 < found.terms(0)[1].decibans < 0.0
    assert "-0.0" not in str(found)
    page = Page(found._repr_html_())
    assert page.rows[-1] == ["sum", "+0.00"]
    widths = [
        float(re.findall(r"[-\d.e]+", attributes["style"] or "")[1])
        for _, attributes in page.tags
        if "style" in attributes
    ]
    assert max(widths) < 1.0


def test_an_explanation_of_no_rows_says_so() -> None:
    found = BayesClassifier(tune=None).fit([[1.0], [2.0]], ["a", "b"]).explain(np.empty((0, 1)))
    assert str(found) == repr(found) == "no rows"
    assert "<p>no rows</p>" in found._repr_html_()


def test_names_harm_nothing() -> None:
    table = pd.DataFrame({HOSTILE: [HOSTILE, "b", HOSTILE, "b"] * 3})
    clf = BayesClassifier(tune=None).fit(table, [HOSTILE, "x", HOSTILE, "x"] * 3)
    loss = Loss([[0, 1], [1, 0]], [HOSTILE, "x"], [HOSTILE, "x"])
    for result in (clf.schema_, clf.explain(table[:1]), clf.evaluate(table, clf.predict(table)), clf.estimates(),
                   clf.importance(), clf.decide(table), clf.sample(2), loss, clf.predict_interval(table)):  # fmt: skip
        page = Page(result._repr_html_())
        assert {"script", "b"} & {tag for tag, _ in page.tags} == set()
        assert "<script>" in "".join(page.texts)


def test_parts_are_paragraphs_numbers_and_tables() -> None:
    table = TextTable([("a", "1"), ("b", "−2")], ("name", "value"), [1], "title", ["note"], [(0.0, 1.0), (0.0, -2.0)])
    page = Page(
        render_result(["one\ntwo", Aligned("x   y"), Metrics("3 rows", [("accuracy", "0.5")], ["so so"]), table])
    )
    assert "".join(page.texts) == "onetwox   y3 rowsaccuracy0.5so sotitlenamevaluea1b−2note"
    assert [tag for tag, _ in page.tags if tag in ("p", "pre", "dl", "table")] == [
        "p",
        "p",
        "pre",
        "p",
        "dl",
        "p",
        "p",
        "table",
        "p",
    ]
    scopes = [attributes["scope"] for tag, attributes in page.tags if tag == "th"]
    assert scopes == ["col", "col", "row", "row"]
    assert [attributes["colspan"] for tag, attributes in page.tags if "colspan" in attributes] == ["2"]
    hidden = [tag for tag, attributes in page.tags if attributes.get("aria-hidden") == "true"]
    assert hidden == ["td", "td"]


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_results_are_readable_in_light_and_dark_and_change_nothing_else(
    dark: bool, tmp_path: Path, shown: dict[str, Any]
) -> None:
    """Jupyter's own rules for tables, loaded after the results, do not win; text contrasts with the page."""
    theme = ("#111111", "#eeeeee") if dark else ("#ffffff", "#111111")
    rules = (
        "table td, table th { text-align: right; } .jp-RenderedHTMLCommon tbody tr:nth-child(odd) { background: #888; }"
    )
    results = "".join(shown[name]._repr_html_() for name in ("schema", "evaluation", "importance", "tuning"))
    path = tmp_path / "page.html"
    path.write_text(
        f"<!doctype html><meta charset=utf-8><body style='background:{theme[0]};color:{theme[1]}'>"
        f"<table id=own><tr><td>own</table><div class=jp-RenderedHTMLCommon>{results}</div><style>{rules}</style>"
    )
    with opened(path, width=1000, dark=dark) as page:
        page.check_quiet()
        look = "node => ['color', 'backgroundColor', 'textAlign'].map(name => getComputedStyle(node)[name])"
        color, background, side = page.page.locator(".deciban-result tbody th").first.evaluate(look)
        assert color == ("rgb(238, 238, 238)" if dark else "rgb(17, 17, 17)")
        assert background == "rgba(0, 0, 0, 0)"
        assert side == "left"
        row = page.page.locator(".deciban-result tbody tr").first.evaluate(look)
        assert row[1] == "rgba(0, 0, 0, 0)"
        assert page.page.locator("#own td").evaluate(look)[2] == "right"
        bar = page.page.locator(".deciban-for").first
        assert bar.bounding_box()["height"] > 8
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 1000
    for bar_color in (FOR_COLOR, AGAINST_COLOR):
        assert contrast(bar_color, theme[0]) >= 3.0


@pytest.mark.browser
def test_tables_break_no_names_hide_no_bars_and_let_no_headers_overlap(tmp_path: Path) -> None:
    long, family = "a class with a long name " * 4, "JointGaussian(covariance=Pooled(shrinkage=0.2))"
    why = "log-loss 0.5330, best of 10 (next: LogNormal(variance=Pooled()) 0.5332) " * 2
    schema = TextTable([("dependents", family, why), ("x", family, why)], ("column", "family", "why"))
    bars = TextTable([("a", "+9.00"), ("b", "+0.01")], (long, "decibans"), [1], bars=[(0.0, 9.0), (9.0, 9.01)])
    wide = TextTable([("two words " * 4,) * 12], tuple(f"column {k}" for k in range(12)))
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{render_result([schema, bars, wide])}")
    with opened(path, width=700) as page:
        line = page.page.get_by_text("x", exact=True).bounding_box()["height"]
        for name in ("dependents", family):
            cell = page.page.get_by_text(name, exact=True).first
            lines = cell.evaluate("node => { const all = document.createRange(); all.selectNodeContents(node); "
                                  "return new Set([...all.getClientRects()].map(box => box.top)).size }")  # fmt: skip
            assert lines == 1, name
        assert line > 10
        first, second = (page.page.get_by_text(name.strip(), exact=True).bounding_box() for name in (long, "decibans"))
        assert first["height"] > 30  # wrapped
        texts = (
            page.page.locator("thead")
            .nth(1)
            .evaluate("node => [...node.querySelectorAll('th')].map(cell => [cell.scrollWidth, cell.clientWidth])")
        )
        assert all(inside <= space for inside, space in texts)
        assert first["x"] + first["width"] > second["x"] or second["x"] > first["x"]
        last = page.page.locator(".deciban-for").nth(1)
        box = last.bounding_box()
        hit = "([x, y]) => document.elementFromPoint(x, y).className"
        assert page.page.evaluate(hit, [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]) == "deciban-for"
        assert page.page.locator("table").nth(2).locator("td").first.bounding_box()["height"] < 2 * line
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 700


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colors, by WCAG's formula."""

    def luminance(color: str) -> float:
        parts = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
