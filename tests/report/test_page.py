"""The report in a real browser: quiet, without network, usable by keyboard, and its form says what the model says."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deciban import BayesClassifier, Gaussian, Pooled
from tests.support.browser import AXE, needs_axe, opened
from tests.support.models import HOSTILE, hostile_table, mixed_model, mixed_table

COSTS = {"yes": {"yes": 0.0, "no": 1.0}, "no": {"yes": 5.0, "no": 0.0}}

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[BayesClassifier, Path]:
    clf, path = mixed_model(), tmp_path_factory.mktemp("report") / "report.html"
    clf.report(path, X=mixed_table(200, seed=5), loss=COSTS)
    return clf, path


def test_typed_values_move_the_bars_to_the_posterior_of_the_model(report: tuple[BayesClassifier, Path]) -> None:
    clf, path = report
    row: dict[str, object] = dict.fromkeys(("age", "income", "town", "member", "visits", "note"))
    with opened(path) as it:
        it.page.get_by_role("button", name="Clear").click()
        empty = it.posterior()
        for column, entered, value in (
            ("age", "61.5", 61.5), ("town", "Ulm", "Ulm"), ("member", "true", True), ("visits", "7", 7),
            ("note", "good offer, überhaupt", "good offer, überhaupt"), ("income", "1e9", 1e9), ("age", "", None),
        ):  # fmt: skip
            it.enter(column, entered)
            row[column] = value
            frame = pd.DataFrame([row]).astype({"age": float, "income": float})
            posterior = dict(zip(clf.classes_, clf.predict_proba(frame)[0], strict=True))
            assert it.posterior() == pytest.approx(posterior, abs=1e-9), column
        assert it.posterior() != empty
        said = it.page.locator("#what-if-result").text_content()
        assert "least-cost decision: " in said
        it.check_quiet()


def test_the_evidence_is_that_of_explain(report: tuple[BayesClassifier, Path]) -> None:
    clf, path = report
    with opened(path) as it:
        it.page.get_by_role("button", name="Clear").click()
        it.enter("age", "61.5")
        it.enter("town", "Ulm")
        label = it.page.locator("#what-if-evidence svg").get_attribute("aria-label")
    frame = pd.DataFrame([{"age": 61.5, "town": "Ulm", "income": None, "member": None, "visits": None, "note": None}])
    terms = clf.explain(frame.astype({"income": float})).to_dict(0)
    told = {
        part.rsplit(" ", 1)[0].strip(): float(part.rsplit(" ", 1)[1].replace("−", "-"))
        for part in label.split(": ", 1)[1].split(",")
    }
    assert told["sum"] == pytest.approx(terms["sum"], abs=0.06)
    for term in terms["evidence"]:
        if abs(term["decibans"]) > 0.05:
            assert told[term.get("column") or term["term"]] == pytest.approx(term["decibans"], abs=0.06)


def test_a_value_that_cannot_be_is_told_and_changes_nothing(report: tuple[BayesClassifier, Path]) -> None:
    with opened(report[1]) as it:
        before = it.posterior()
        it.enter("age", "old")
        assert 'age: "old" is not a number' in it.page.locator("#what-if-problem").text_content()
        assert it.posterior() == before
        it.enter("age", "40")
        assert it.page.locator("#what-if-problem").text_content() == ""
        it.check_quiet()


def test_it_works_by_keyboard(report: tuple[BayesClassifier, Path]) -> None:
    with opened(report[1]) as it:
        it.page.keyboard.press("Tab")
        assert it.page.evaluate("document.activeElement.textContent") == "Skip to content"
        it.page.keyboard.press("Enter")
        it.page.get_by_label("town", exact=True).focus()
        before = it.posterior()
        it.page.keyboard.press("Home")
        assert it.posterior() != before
        it.page.locator("summary").first.focus()
        it.page.keyboard.press("Enter")
        assert it.page.locator("details").first.get_attribute("open") is not None


@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False)])
def test_it_fits_the_screen_and_charts_are_drawn(report: tuple[BayesClassifier, Path], width: int, dark: bool) -> None:
    with opened(report[1], width, dark) as it:
        assert it.page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = it.page.evaluate("[...document.querySelectorAll('section:not(#what-if) > svg, .card svg')].map("
                                 "svg => svg.getBoundingClientRect()).map(box => [box.width, box.height])")  # fmt: skip
        assert len(boxes) > 8
        assert np.min(boxes) > 20
        background = it.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(22, 24, 26)" if dark else "rgb(255, 255, 255)")
        it.check_quiet()


@needs_axe
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_no_serious_fault(report: tuple[BayesClassifier, Path], dark: bool) -> None:
    with opened(report[1], dark=dark) as it:
        it.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        it.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = it.page.evaluate("axe.run().then(found => found.violations.map(one => [one.id, one.impact, "
                                 "one.nodes.map(node => node.html)]))")  # fmt: skip
        assert [one for one in found if one[1] in ("serious", "critical")] == []


def test_hostile_names_neither_break_the_page_nor_run(tmp_path: Path) -> None:
    table = hostile_table()
    clf = BayesClassifier().fit(table, "class")
    clf.report(tmp_path / "report.html", X=table)
    with opened(tmp_path / "report.html") as it:
        assert it.page.title() == "Report on class"
        it.page.get_by_role("button", name="Clear").click()
        it.page.get_by_label(HOSTILE["script"], exact=True).fill("2.5")
        it.page.get_by_label(HOSTILE["arabic"], exact=True).select_option(label=HOSTILE["markup"])
        row = pd.DataFrame([dict.fromkeys(table.columns.drop("class"))]).astype(dict.fromkeys(table.columns[:4], float))
        row[HOSTILE["script"]], row[HOSTILE["arabic"]] = 2.5, HOSTILE["markup"]
        posterior = dict(zip(clf.classes_, clf.predict_proba(row)[0], strict=True))
        assert it.posterior() == pytest.approx(posterior, abs=1e-9)
        it.check_quiet()


def test_many_columns_are_folded_and_can_be_changed(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    y = np.arange(400) % 2
    X = pd.DataFrame(rng.normal(0.3 * y[:, None], 1.0, (400, 60)), columns=[f"c{k}" for k in range(60)])
    clf = BayesClassifier(tune=None).fit(X, y)
    clf.report(tmp_path / "report.html")
    with opened(tmp_path / "report.html") as it:
        last = it.page.evaluate("JSON.parse(document.getElementById('what-if-data').textContent).columns.at(-1).name")
        assert not it.page.get_by_label(last, exact=True).is_visible()
        it.page.locator("#what-if-more summary").click()
        it.page.get_by_role("button", name="Clear").click()
        it.enter(last, "3")
        row = pd.DataFrame([dict.fromkeys(X.columns, np.nan)])
        row[last] = 3.0
        assert it.posterior() == pytest.approx(dict(zip("01", clf.predict_proba(row)[0], strict=True)), abs=1e-9)
        it.check_quiet()


def test_columns_called_as_what_every_object_has(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    y = np.arange(200) % 2
    X = pd.DataFrame(rng.normal(y[:, None], 1.0, (200, 4)), columns=["constructor", "__proto__", "valueOf", "prior"])
    clf = BayesClassifier(tune=None).fit(X, y)
    clf.report(tmp_path / "report.html")
    with opened(tmp_path / "report.html") as it:
        it.page.get_by_role("button", name="Clear").click()
        assert [field.input_value() for field in it.page.locator("#what-if-form input").all()] == [""] * 4
        for name in X.columns:
            it.enter(name, "0.5")
        row = pd.DataFrame([dict.fromkeys(X.columns, 0.5)])
        assert it.posterior() == pytest.approx(dict(zip("01", clf.predict_proba(row)[0], strict=True)), abs=1e-9)
        it.enter("valueOf", "1,234")
        assert '"1,234" is not a number' in it.page.locator("#what-if-problem").text_content()
        it.check_quiet()


def test_what_is_impossible_is_drawn_as_infinite(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": list("uuuvvv"), "b": list("pqpqpq")})
    clf = BayesClassifier(alpha=0, tune=None).fit(table, list("kkklll"))
    clf.report(tmp_path / "report.html")
    with opened(tmp_path / "report.html") as it:
        it.enter("a", "u")
        assert it.posterior() == {"k": 1.0, "l": 0.0}
        label = it.page.locator("#what-if-evidence svg").get_attribute("aria-label")
        assert "a +∞" in label
        assert label.endswith("sum +∞")
        assert it.page.locator("#what-if-evidence svg path").count() == 2, "arrows"
        it.check_quiet()


# Words in the first column of a table that are broken.
WORDS_ON_TWO_LINES = """[...document.querySelectorAll("tbody th")].flatMap((cell) => {
  const text = cell.firstChild;
  return [...text.data.matchAll(/[^ ]+/g)].filter((word) => {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return range.getClientRects().length > 1;
  }).map(([word]) => word);
})"""


def test_names_in_tables_are_not_broken_letter_by_letter(tmp_path: Path) -> None:
    """On the screen of a phone, where a table is wider than it."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    table = pd.DataFrame({name: rng.exponential(1.0 + y) for name in ("dependents_of_the_applicant", "expenditure")})
    families = {name: Gaussian(variance=Pooled()) for name in table}
    BayesClassifier(families, tune=None).fit(table, np.where(y, "yes", "no")).report(tmp_path / "report.html")
    with opened(tmp_path / "report.html", width=390) as it:
        found = it.page.locator("#diagnosis table", has_text="Kolmogorov").locator("tbody th").all()
        assert len(found) == 4
        for cell in found:
            assert cell.bounding_box()["height"] < 60.0, "at most two lines"
        words = it.page.evaluate(WORDS_ON_TWO_LINES)
        assert words == []
        assert it.page.evaluate("document.documentElement.scrollWidth") <= 390
