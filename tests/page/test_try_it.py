"""What is entered in the page gives what the model gives, whatever it is made of and whatever its names are."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deciban import BayesClassifier
from deciban.datasets import weather
from tests.classifier.test_ordered import as_grades, draw_table
from tests.page.pages import told_terms, written_page
from tests.support.browser import opened
from tests.support.models import HOSTILE, hostile_table, mixed_model

pytestmark = pytest.mark.browser

COLUMNS = ("age", "income", "town", "member", "visits", "note")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[BayesClassifier, Path]:
    clf = mixed_model()
    return clf, written_page(tmp_path_factory.mktemp("page"), clf.fitted_)


def frame_of(**cells: object) -> pd.DataFrame:
    return pd.DataFrame([{**dict.fromkeys(COLUMNS), **cells}]).astype({"age": float, "income": float})


def posterior_of(clf: BayesClassifier, rows: object) -> dict[str, float]:
    return dict(zip(map(str, clf.classes_), clf.predict_proba(rows)[0], strict=True))


def test_typed_values_give_the_posterior_of_a_mixed_model(mixed: tuple[BayesClassifier, Path]) -> None:
    clf, path = mixed
    cells: dict[str, object] = {}
    with opened(path) as it:
        it.page.get_by_role("button", name="Clear").click()
        for column, entered, value in (
            ("age", "61.5", 61.5), ("town", "Ulm", "Ulm"), ("member", "true", True), ("visits", "7", 7),
            ("note", "good offer, überhaupt", "good offer, überhaupt"), ("income", "1e9", 1e9), ("age", "", None),
        ):  # fmt: skip
            it.enter(column, entered)
            cells[column] = value
            assert it.posterior() == pytest.approx(posterior_of(clf, frame_of(**cells)), abs=1e-9), column
        it.check_quiet()


def test_the_page_predicts_the_median_of_ordered_classes(tmp_path: Path) -> None:
    X, y = draw_table()
    clf = BayesClassifier(ordered=True).fit(X, as_grades(y))
    likely = clf.classes_[clf.predict_proba(X).argmax(axis=1)]
    row = int(np.flatnonzero((likely != clf.predict(X)) & X.notna().all(axis=1))[0])
    clf.report(tmp_path / "report.html")
    for path, result in (
        (written_page(tmp_path, clf.fitted_), "#result"),
        (tmp_path / "report.html", "#what-if-result"),
    ):
        with opened(path) as it:
            for column, value in X.iloc[row].items():
                it.enter(str(column), str(value))
            assert it.page.locator(result).inner_text().startswith(clf.predict(X)[row])
            assert it.page.locator("li.best").first.get_attribute("data-class") == clf.predict(X)[row]
            assert it.posterior() == pytest.approx(posterior_of(clf, X.iloc[[row]]), abs=1e-9)
            it.check_quiet()


def test_every_day_of_the_weather_gives_the_posterior_of_the_tuned_model(tmp_path: Path) -> None:
    clf = BayesClassifier().fit(pa.concat_tables([weather()] * 20), "play")
    assert clf.fitted_.is_tuned
    with opened(written_page(tmp_path, clf.fitted_)) as it:
        for row in weather().drop_columns("play").to_pylist()[:6]:
            for column, value in row.items():
                it.enter(column, value)
            assert it.posterior() == pytest.approx(posterior_of(clf, [row]), abs=1e-9)
            labels = ", ".join(clf.predict_set([row], 0.9)[0])
            assert it.page.locator("#set").inner_text() == f"Prediction set with 90% coverage: {{{labels}}}"
        it.check_quiet()


def test_the_evidence_and_the_shares_of_columns_are_those_of_explain(mixed: tuple[BayesClassifier, Path]) -> None:
    clf, path = mixed
    with opened(path) as it:
        it.page.get_by_role("button", name="Clear").click()
        it.enter("age", "61.5")
        it.enter("town", "Ulm")
        told = told_terms(it.page.locator("#evidence svg").get_attribute("aria-label"))
        bars = it.page.locator("#shares li").all()
        said = {bar.get_attribute("data-column"): float(bar.get_attribute("data-decibans")) for bar in bars}
        shares = [float(bar.get_attribute("data-share")) for bar in bars]
    reasons = clf.explain(frame_of(age=61.5, town="Ulm")).to_dict(0)
    terms = {term["column"]: term["decibans"] for term in reasons["evidence"] if term["column"]}
    assert told["sum"] == pytest.approx(reasons["sum"], abs=0.06)
    assert said == pytest.approx({name: value for name, value in terms.items() if value}, abs=1e-8)
    assert shares == pytest.approx(np.abs(list(said.values())) / np.abs(list(said.values())).sum())


def test_a_slider_moves_its_field_and_the_posterior(mixed: tuple[BayesClassifier, Path]) -> None:
    clf, path = mixed
    with opened(path) as it:
        it.page.get_by_role("button", name="Clear").click()
        it.page.get_by_label("age, slider").focus()
        it.page.keyboard.press("End")
        entered = float(it.page.get_by_label("age", exact=True).input_value())
        assert entered > 60
        assert it.posterior() == pytest.approx(posterior_of(clf, frame_of(age=entered)), abs=1e-9)


def test_what_cannot_be_read_is_told_and_changes_nothing(mixed: tuple[BayesClassifier, Path]) -> None:
    with opened(mixed[1]) as it:
        before = it.posterior()
        it.enter("age", "old")
        assert 'age: "old" is not a number' in it.page.locator("#problem").text_content()
        assert it.posterior() == before
        it.enter("age", "40")
        assert it.page.locator("#problem").text_content() == ""
        it.check_quiet()


def test_a_pinned_row_is_compared_with(mixed: tuple[BayesClassifier, Path]) -> None:
    with opened(mixed[1]) as it:
        assert not it.page.get_by_role("region", name="Against the pinned row").is_visible()
        it.page.get_by_role("button", name="Clear").click()
        it.enter("age", "30")
        before = it.posterior()
        it.page.get_by_role("button", name="Pin this row").click()
        it.enter("age", "65")
        it.enter("town", "Ulm")
        now = it.posterior()
        changes = dict(zip(now, it.page.locator("#posterior .change").all_text_contents(), strict=True))
        points = {name: float(text.split()[0].replace("−", "-")) for name, text in changes.items()}
        assert points == pytest.approx({name: 100 * (now[name] - before[name]) for name in now}, abs=0.051)
        told = told_terms(it.page.locator("#compared svg").get_attribute("aria-label"))
        odds = [10 * np.log10(one["yes"] / one["no"]) for one in (before, now)]
        sign = 1 if now["yes"] > now["no"] else -1
        assert told["sum"] == pytest.approx(sign * (odds[1] - odds[0]), abs=0.06)
        cells = it.page.locator("#compared .changes li").all_text_contents()
        assert sorted(cells) == ["age: 30 → 65", "town: missing → Ulm"]
        it.page.get_by_role("button", name="Back to the pinned row").click()
        assert it.posterior() == before
        it.page.get_by_role("button", name="Unpin").click()
        assert it.page.locator("#posterior .change").all_text_contents() == ["", ""]
        it.check_quiet()


def test_hostile_names_neither_break_the_page_nor_run(tmp_path: Path) -> None:
    clf = BayesClassifier().fit(hostile_table(), "class")
    path = written_page(tmp_path, clf.fitted_, title=HOSTILE["script"])
    with opened(path, width=390) as it:
        assert it.page.title() == HOSTILE["script"]
        it.page.get_by_role("button", name="Clear").click()
        it.page.get_by_label(HOSTILE["script"], exact=True).fill("2.5")
        it.page.get_by_label(HOSTILE["arabic"], exact=True).select_option(label=HOSTILE["markup"])
        it.page.get_by_label(HOSTILE["proto"], exact=True).select_option(label=HOSTILE["quotes"])
        row = dict.fromkeys(hostile_table().columns.drop("class")) | {HOSTILE["script"]: 2.5}
        row |= {HOSTILE["arabic"]: HOSTILE["markup"], HOSTILE["proto"]: HOSTILE["quotes"]}
        frame = pd.DataFrame([row]).astype(dict.fromkeys(hostile_table().columns[:4], float))
        expected = posterior_of(clf, frame)
        assert it.posterior() == pytest.approx(expected, abs=1e-9)
        assert it.page.evaluate("document.documentElement.scrollWidth") <= 390
        it.page.goto(it.page.url)
        it.page.reload()
        assert it.posterior() == pytest.approx(expected, abs=1e-9)
        chosen = it.page.get_by_label(HOSTILE["proto"], exact=True).locator("option:checked")
        assert chosen.text_content() == HOSTILE["quotes"]
        it.page.get_by_role("tab", name="Model").click()
        assert it.page.locator("#report svg").count() > 4
        assert it.page.evaluate("document.documentElement.scrollWidth") <= 390
        it.check_quiet()


def test_a_model_that_cannot_be_exported_says_so(tmp_path: Path) -> None:
    from deciban import Text

    columns = {"text": Text(tokenizer=str.split)}
    with pytest.warns(UserWarning, match="runs in Python"):
        clf = BayesClassifier(families=columns, tune=None).fit({"text": ["a b", "c d", "a c", "d d"]}, [0, 1, 0, 1])
    path = written_page(tmp_path, clf.fitted_)
    with opened(path) as it:
        assert "This model needs deciban serve" in it.page.locator("#try").text_content()
        it.check_quiet()


def test_many_classes_and_columns_without_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    y = np.arange(600) % 20
    X = rng.normal(0.1 * y[:, None], 1.0, (600, 34))
    clf = BayesClassifier(tune=None).fit(X, y)
    with opened(written_page(tmp_path, clf.fitted_), width=390) as it:
        it.page.get_by_role("button", name="Clear").click()
        it.page.locator("#try").get_by_text("4 more columns").click()
        row = np.full((1, 34), np.nan)
        for column in range(34):
            it.enter(f"x{column}", "1.5")
            row[0, column] = 1.5
        expected = posterior_of(clf, row)
        shown = it.posterior()
        assert list(shown) == sorted(expected, key=lambda name: -expected[name])[:12]
        assert shown == pytest.approx({name: expected[name] for name in shown}, abs=1e-9)
        assert it.page.locator("#decided").get_attribute("data-decision") == str(clf.predict(row)[0])
        assert "20 classes are too many to edit here" in it.page.locator("#try").text_content()
        assert it.page.evaluate("document.documentElement.scrollWidth") <= 390
        it.check_quiet()
