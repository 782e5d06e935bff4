"""The data of a report are those of the classifier, from rows or from counts; it says what it cannot know."""

import json
import re
from datetime import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_breast_cancer

from deciban import BayesClassifier, Complement, DataError, Gaussian, Multinomial, UsageError
from deciban.datasets import weather
from deciban.report.svg import MARGINS
from tests import textbook
from tests.support.models import HOSTILE, hostile_table, mixed_model, mixed_table

COSTS = {"yes": {"yes": 0.0, "no": 1.0}, "no": {"yes": 5.0, "no": 0.0}}


def test_held_out_rows_give_the_figures_of_evaluate() -> None:
    clf, new = mixed_model(), mixed_table(200, seed=5)
    data = clf.report(X=new, loss=COSTS).data
    oracle = clf.evaluate(new, "buys", loss=COSTS)
    quality = data["quality"]
    assert quality["source"] == "the given rows"
    assert quality["accuracy"] == oracle.accuracy
    assert quality["log_loss"] == oracle.log_loss
    assert quality["confusion"] == oracle.confusion.tolist()
    assert data["decisions"]["mean_cost"] == oracle.mean_cost
    assert data["decisions"]["threshold"] == {"class": "yes", "posterior": pytest.approx(1 / 6)}
    json.dumps(data, allow_nan=False)


def test_new_rows_are_compared_with_those_learned() -> None:
    clf, new = mixed_model(), mixed_table(200, seed=5)
    new["income"] *= 1.5
    report = clf.report(X=new, loss=COSTS)
    drift, oracle = report.data["drift"], clf.compare(new, COSTS)
    assert {one["column"] for one in drift["columns"] if one["drifted"]} == {"income"}
    assert drift["columns"] == oracle.to_dict()["columns"]
    assert drift["accuracy"] == oracle.accuracy
    assert drift["cost"] == oracle.cost
    assert "income *" in report.html
    assert ">Drift<" in report.html
    for known in (clf.report(), clf.report(X=mixed_table())):
        assert known.data["drift"] is None
        assert ">Drift<" not in known.html


def test_rows_that_were_learned_are_left_out() -> None:
    clf = mixed_model(None)
    oracle = clf.leave_one_out()
    for data in (clf.report().data, clf.report(X=mixed_table()).data):
        assert "left out" in data["quality"]["source"]
        assert data["quality"]["log_loss"] == pytest.approx(oracle.log_loss)
        assert data["diagnosis"]["pairs_tested"] > 0


def test_a_model_alone_says_what_it_cannot_know(tmp_path: Path) -> None:
    mixed_model().save(tmp_path / "m.dcb")
    found = BayesClassifier.load(tmp_path / "m.dcb").report(loss=COSTS)
    assert found.data["quality"]["source"] is None
    assert "No rows were given" in found.data["quality"]["cannot_know"]
    assert found.data["quality"]["tuning"]["rows"] == 400
    assert "mean_cost" not in found.data["decisions"]
    for text in ("No rows were given", "no rows of any table", "cannot be computed without such rows"):
        assert text in found.html
    assert "income = " not in found.html


def test_categories_without_a_bar_are_counted() -> None:
    rng = np.random.default_rng(4)
    y = rng.choice(["a", "b"], 600)
    level = np.where(y == "a", rng.integers(0, 14, 600), np.minimum(rng.integers(0, 20, 600), 13))
    clf = BayesClassifier(tune=None).fit(pd.DataFrame({"level": [f"k{k}" for k in level]}), y)
    assert "Not shown: 2 values with weaker evidence." in clf.report().html


def test_what_a_column_says_is_what_the_model_says_of_it_alone() -> None:
    clf = mixed_model()
    columns = {one["column"]: one for one in clf.report().data["columns"]}
    nothing = np.diff(clf.predict_log_proba([{"age": None}]))[0, 0]
    for value, said in zip(columns["town"]["values"], columns["town"]["evidence"]["yes"], strict=True):
        odds = np.diff(clf.predict_log_proba([{"town": value}]))[0, 0]
        assert said == pytest.approx(10 / np.log(10) * (odds - nothing), abs=1e-9)
    assert columns["town"]["min"] == pytest.approx(min(map(min, columns["town"]["evidence"].values())))
    assert {word for one in columns["note"]["words"] for word, _ in one["words"]} >= {"good", "dear"}
    importance = clf.importance()
    for k, name in enumerate(importance.columns):
        assert columns[name]["decibans"] == pytest.approx(importance.decibans[k])
    order = [one["decibans"] for one in clf.report().data["columns"]]
    assert order == sorted(order, reverse=True)


def test_rows_are_shown_unless_none_are_wanted() -> None:
    clf, new = mixed_model(), mixed_table(200, seed=5)
    found = clf.report(X=new)
    assert [one["why"] for one in found.data["rows"]] == [
        "Most confident correct prediction", "Least confident prediction", "Most confident mistake",
    ]  # fmt: skip
    wrong = found.data["rows"][2]
    assert wrong["truth"] != wrong["predicted"]
    posterior = clf.predict_proba(new)
    assert max(found.data["rows"][1]["posterior"].values()) == pytest.approx(posterior.max(axis=1).min())
    total = sum(term["decibans"] for term in wrong["terms"])
    odds = np.log(wrong["posterior"][wrong["predicted"]] / wrong["posterior"][wrong["against"]])
    assert total == pytest.approx(10 / np.log(10) * odds, abs=1e-9)
    assert clf.report(X=new, examples=0).data["rows"] == []
    assert "no rows of any table" in clf.report(X=new, examples=0).html


class Outside(HTMLParser):
    """What a page would load, and the scripts that are in it."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.scripts = 0
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        for name, value in attrs:
            if name in ("src", "href", "action", "data") and value and not value.startswith(("#", "data:")):
                self.loads.append(value)
            if name.startswith("on"):
                self.handlers.append(name)


def test_hostile_names_are_text_and_nothing_is_loaded() -> None:
    table = hostile_table()
    found = BayesClassifier().fit(table, "class").report(X=table, title=HOSTILE["script"])
    page = Outside()
    page.feed(found.html)
    assert (page.loads, page.handlers, page.scripts) == ([], [], 3)
    assert "<img" not in found.html
    assert "http://" not in found.html.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in found.html


@pytest.mark.parametrize("columns", [3, 300])
@pytest.mark.parametrize("classes", [2, 20])
def test_pages_stay_small(columns: int, classes: int) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(600) % classes
    X = rng.normal(y[:, None] * (np.arange(columns) % 3), 3.0, (600, columns))
    found = BayesClassifier(tune="weights").fit(X, y).report()
    assert len(found.html.encode()) < 1_000_000
    assert found.html.count('class="card"') >= columns
    assert (f"{columns - 30} more columns" in found.html) == (columns > 30)


def test_models_that_cannot_be_drawn_from_or_exported_still_have_a_report() -> None:
    X, y = np.abs(np.random.default_rng(0).normal(size=(60, 3))).round(), np.arange(60) % 2
    clf = textbook(Complement()).fit(X, y)
    clf.partial_fit(X, y)
    assert ">Columns</h2>" in clf.report().html
    from deciban import Text

    texts = textbook({"a": Text(tokenizer=str.split)}).fit({"a": ["x y", "z y"] * 5}, [0, 1] * 5)
    assert "cannot run in a page" in texts.report().html


def test_bad_input_has_one_clear_error(tmp_path: Path) -> None:
    clf = mixed_model(None)
    with pytest.raises(DataError, match="no row has a label"):
        clf.report(X=mixed_table().assign(buys=None))
    with pytest.raises((UsageError, DataError), match="buys"):
        clf.report(X=mixed_table().drop(columns="buys"))
    target = tmp_path / "r.html"
    target.write_text("before")
    with pytest.raises(DataError):
        clf.report(target, X=mixed_table().assign(buys=None))
    assert target.read_text() == "before"
    clf.report(target)
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_dates_times_and_whole_numbers_are_in_a_report_with_rows() -> None:
    y = np.arange(60) % 2
    table = pd.DataFrame(
        {
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(60) + 20 * y, "D"),
            "at": [time(8 + label, k % 60) for k, label in enumerate(y)],
            "id": np.arange(60) % 7,
            "always": 3.0,
        }
    )
    clf = BayesClassifier().fit(table, y)
    found = clf.report(X=table, y=y)
    assert "What if" in found.html
    json.dumps(found.data, allow_nan=False)
    assert found.data["rows"][0]["cells"]["day"].startswith("2024-")
    typical = {one.name: one.typical for one in found.contents.columns if one.values is not None}
    assert typical.get("always", [3, 3]) == [3, 3]
    assert all(len(value) == len("2024-01-01") for value in typical["day"])


def test_what_is_impossible_is_told_as_infinite() -> None:
    table = pd.DataFrame({"a": list("uuuvvv"), "b": list("pqpqpq")})
    y = ["k", "k", "k", "l", "l", "l"]
    clf = textbook(alpha=0).fit(table, y)
    found = clf.report(X=table.assign(y=["k", "k", "k", "l", "l", "l"]).iloc[[0, 1, 4]], y="y")
    json.dumps(found.data, allow_nan=False)
    assert found.data["rows"][0]["terms"][1]["decibans"] is None
    html = found.html
    assert "a = u +∞" in html
    assert "sum" in html
    columns = {one["column"]: one for one in found.data["columns"]}
    assert columns["a"]["evidence"]["k"] == [None, None]
    a, b = re.findall('<article class="card">.*?</article>', html, re.DOTALL)
    assert "mean absolute evidence ∞ decibans (a value never seen in a class rules the class out)" in a
    assert "−∞ to +∞ decibans" in a
    assert a.count("<path") == 2, "both values of a are drawn as arrows"
    assert "<path" not in b
    assert "inf" not in re.sub("infinite", "", a)


def test_what_the_given_rows_lack_is_told() -> None:
    clf = mixed_model(None)
    some = mixed_table(60, seed=3)
    some.loc[:9, "buys"] = "perhaps"
    page = clf.report(X=some.drop(columns=["age", "town"])).html
    assert "10 rows of a class that is not in the model count as errors." in page
    assert (
        "treated as missing: &#x27;age&#x27;, &#x27;town&#x27;" in page or "treated as missing: 'age', 'town'" in page
    )
    with pytest.raises(DataError, match="no row has one of the model's classes"):
        clf.report(X=some.assign(buys="perhaps"))


def test_very_many_columns_are_not_all_shown() -> None:
    counts = sparse.csr_array(np.random.default_rng(0).poisson(0.05, (80, 2_000)).astype(float))
    found = textbook(Multinomial()).fit(counts, np.arange(80) % 3).report()
    assert len(found.html.encode()) < 1_000_000
    assert "1,500 less important columns not shown." in found.html


def test_the_importance_of_columns_is_the_first_picture() -> None:
    clf, new = mixed_model(), mixed_table(200, seed=5)
    found = clf.report(X=new)
    section = found.html.partition('<section id="columns"')[2]
    figure = section[section.index("<figure>") : section.index("</figure>")]
    assert section.index("<figure>") < section.index("<article")
    importance = clf.importance(new.drop(columns="buys"))
    ranked = [f"{importance.columns[k]} {importance.decibans[k]:.1f}" for k in importance.order]
    assert f"Mean absolute evidence of each column, in decibans: {', '.join(ranked)}" in figure
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([^"]+)"', figure)]
    assert len(widths) == len(ranked)
    assert 166.0 < widths[0] < 320.0  # more than beside labels of the maximum length
    sizes = np.sort(importance.decibans)[::-1]
    np.testing.assert_allclose(widths, widths[0] * sizes / sizes[0], atol=0.6)


def test_few_rows_and_a_model_that_is_no_better_than_the_baseline_are_told() -> None:
    page = textbook().fit(weather(), "play").report().html
    assert "Classes with few rows: no (5 rows), yes (9 rows). Remedy: more rows" in page
    assert "The model is no better in log-loss than this baseline" in page
    page = mixed_model().report().html
    assert "Few rows" not in page
    assert "no better than this baseline" not in page


def test_decisions_and_their_baseline_are_named() -> None:
    clf, new = mixed_model(), mixed_table(200, seed=5)
    found, oracle = clf.report(X=new, loss=COSTS), clf.evaluate(new, "buys", loss=COSTS)
    assert found.data["decisions"]["decision_counts"] == oracle.decision_counts.tolist()
    decision, cost = oracle.baseline["decision"], oracle.baseline["mean_cost"]
    assert f"always deciding {decision}, the best single decision, would cost {cost:.3g}" in found.html
    assert "Number of rows by decision" in found.html


def test_density_curves_reach_their_maximum() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = textbook().fit(X, y)
    found = clf.report()
    card = re.search(r"<h3>worst area</h3>.*?</article>", found.html, re.DOTALL)[0]
    highest = stats.norm.pdf(0.0) / X["worst area"][y == 1].std(ddof=0)
    assert f">{highest:.3g}</text>" in card
    data = {one["column"]: one for one in found.data["columns"]}["worst area"]
    assert max(data["density"]["1"]) == pytest.approx(highest, rel=1e-9)
    top, lines = float(MARGINS[2]), re.findall('<polyline points="([^"]*)"', card)[-2:]
    at_top = [point for line in lines for point in line.split() if float(point.split(",")[1]) <= top]
    assert len(at_top) == 1, "a peak, not a plateau"


def test_a_narrow_peak_is_cut_off_with_a_mark() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [200, 200])
    x = np.where(y == "a", rng.normal(0.0, 10.0, 400), rng.normal(0.0, 0.01, 400))
    page = textbook(Gaussian()).fit(x[:, None], y).report().html
    highest = stats.norm.pdf(0.0) / x[y == "b"].std()
    assert f"below a peak of {highest:.3g}" in page
    assert f">{highest:.3g}</text>" in page


def test_texts_in_tables_are_aligned_to_the_left() -> None:
    page = mixed_model().report().html
    table = re.search(r"<caption>Columns that do not fit their family</caption>.*?</table>", page, re.DOTALL)[0]
    families = re.findall(r'<td class="text">(\w+)</td><td>0\.', table)
    assert families
    assert len(families) == table.count("<tr>") - 1
