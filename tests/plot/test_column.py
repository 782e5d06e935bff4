"""What a column says: lines, bars and histograms against SciPy, counting, and the classifier itself."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from deciban import BayesClassifier, Binned, Categorical, Gaussian, JointTable, LogNormal, Text, UsageError
from deciban.datasets import weather
from deciban.plot import ColumnDisplay, EvidenceDisplay, PairDisplay
from deciban.web.palette import class_colors

DECIBANS = 10.0 / np.log(10.0)


def two_normals() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = np.repeat(["a", "b"], [300, 100])
    return np.stack([rng.normal(np.where(y == "a", 0.0, 3.0), 1.0), rng.normal(size=400)], axis=1), y


def test_a_number_says_the_log_ratio_of_its_densities() -> None:
    X, y = two_normals()
    shown = ColumnDisplay.from_estimator(BayesClassifier(Gaussian(), tune=None).fit(X, y), 0)
    densities = [stats.norm(X[y == label, 0].mean(), X[y == label, 0].std()) for label in "ab"]
    above, below = shown.axes_
    lines = [line for line in above.lines if not str(line.get_label()).startswith("_")]
    for k, line in enumerate(lines):
        x, said = line.get_data()
        expected = DECIBANS * (densities[k].logpdf(x) - densities[1 - k].logpdf(x))
        np.testing.assert_allclose(said, expected, atol=1e-9)
        assert line.get_color() == class_colors("ab")[k]
    for k, line in enumerate(below.lines):
        np.testing.assert_allclose(line.get_ydata(), densities[k].pdf(line.get_xdata()), rtol=1e-9)
    assert [line.get_label() for line in lines] == ["a (300 rows)", "b (100 rows)"]
    assert x[0] < X[:, 0].min() + 1.0
    assert x[-1] > X[:, 0].max() - 1.0


def test_a_narrow_peak_is_clipped_and_its_height_marked() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 200)
    X = np.exp(np.where(y == "a", rng.normal(-8.0, 1.0, 400), rng.normal(-2.0, 1.0, 400)))[:, None]
    shown = ColumnDisplay.from_estimator(BayesClassifier(LogNormal(), tune=None).fit(X, y), 0)
    below, peaks = shown.axes_[1], shown.density.max(axis=0)
    top = below.get_ylim()[1]
    assert peaks[1] < top < peaks[0] / 5.0
    assert [text.get_text() for text in below.texts] == [f"{float(f'{peaks[0]:.3g}'):,.0f}"]


def test_one_row_is_not_plural() -> None:
    clf = BayesClassifier(Gaussian(), tune=None).fit([[1.0], [2.0], [3.0]], ["a", "b", "a"])
    labels = [line.get_label() for line in ColumnDisplay.from_estimator(clf, 0).axes_[0].lines]
    assert [label for label in labels if not label.startswith("_")] == ["a (2 rows)", "b (1 row)"]


def test_against_several_classes_evidence_is_by_how_much_the_odds_change() -> None:
    X, _ = two_normals()
    y = np.arange(400) % 3
    X[:, 0] += y
    clf = BayesClassifier(tune=None).fit(X, y)
    shown = ColumnDisplay.from_estimator(clf, 0)
    cells = np.stack([shown.values.numbers, np.full(shown.values.numbers.size, np.nan)], axis=1)
    posterior, prior = clf.predict_proba(cells), clf.predict_proba([[np.nan, np.nan]])
    change = np.log(posterior / (1.0 - posterior)) - np.log(prior / (1.0 - prior))
    np.testing.assert_allclose(shown.evidence, DECIBANS * change, atol=1e-8)


def test_bars_of_categories_are_smoothed_shares_and_marks_are_counts() -> None:
    shown = ColumnDisplay.from_estimator(BayesClassifier(tune=None).fit(weather(), "play"), "outlook")
    assert shown.values.names == ("overcast", "rain", "sunny")
    counts = {"no": [0, 2, 3], "yes": [4, 3, 2]}
    bars = [[bar.get_height() for bar in container] for container in shown.axes_[1].containers]
    assert bars[0] == pytest.approx([(n + 1) / 8 for n in counts["no"]])
    assert bars[1] == pytest.approx([(n + 1) / 12 for n in counts["yes"]])
    marks = [line.get_ydata() for line in shown.axes_[1].lines]
    assert marks[0] == pytest.approx([n / 5 for n in counts["no"]])
    assert marks[1] == pytest.approx([n / 9 for n in counts["yes"]])
    said = [bar.get_height() for bar in shown.axes_[0].containers[1]]
    assert said == pytest.approx(
        [10.0 * np.log10(((b + 1) / 12) / ((a + 1) / 8)) for a, b in zip(*counts.values(), strict=True)]
    )
    assert [text.get_text() for text in shown.axes_[1].get_xticklabels()] == ["overcast", "rain", "sunny"]
    frame = shown.to_frame("pandas")
    assert frame["count"].tolist() == [0, 4, 2, 3, 3, 2]
    assert list(frame) == ["value", "class", "decibans", "density", "count"]


def test_the_histogram_behind_binned_numbers_is_that_of_the_rows() -> None:
    X, y = two_normals()
    shown = ColumnDisplay.from_estimator(BayesClassifier(Binned(bins=16), tune=None).fit(X, y), 0)
    for k, (label, patch) in enumerate(zip("ab", shown.axes_[1].patches, strict=True)):
        heights, edges, _ = patch.get_data()
        inside = X[y == label, 0]
        inside = inside[(inside >= edges[0]) & (inside < edges[-1])]
        share = (heights * np.diff(edges)).sum()
        assert share == pytest.approx(inside.size / (y == label).sum(), abs=0.02), k
        middle = np.average(0.5 * (edges[1:] + edges[:-1]), weights=heights)
        assert middle == pytest.approx(inside.mean(), abs=0.1)


def test_gaps_between_bins_have_no_density() -> None:
    x = np.concatenate([np.linspace(0, 1, 50), np.linspace(9, 10, 50)])
    shown = ColumnDisplay.from_estimator(BayesClassifier(Binned(bins=8), tune=None).fit(x[:, None], x > 5), 0)
    gap = (shown.values.numbers > 3.0) & (shown.values.numbers < 7.0)
    assert gap.any()
    assert (shown.density[gap] == 0.0).all()


def test_members_of_a_joint_block_are_shown_by_what_they_say_alone() -> None:
    clf = BayesClassifier({("outlook", "wind"): JointTable()}, tune=None).fit(weather(), "play")
    shown = ColumnDisplay.from_estimator(clf, "wind")
    posterior = clf.predict_proba([{"wind": name} for name in shown.values.names])
    prior = clf.predict_proba([{"wind": None}])
    change = 10.0 * np.log10(posterior[:, 1] / posterior[:, 0]) - 10.0 * np.log10(prior[:, 1] / prior[:, 0])
    assert shown.evidence[:, 1] == pytest.approx(change)


def test_dates_flags_and_many_categories_have_their_axes() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    table = pa.table(
        {
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 99, 200) + 30 * y],
            "flag": rng.random(200) < 0.3 + 0.4 * y,
            "code": [f"code {k}" for k in rng.integers(0, 60, 200)],
        }
    )
    clf = BayesClassifier({"code": Categorical()}, tune=None).fit(table, y)
    day = ColumnDisplay.from_estimator(clf, "day")
    assert day.values.dates
    assert "2020" in day.values.names[50]
    day.figure_.canvas.draw()
    assert ColumnDisplay.from_estimator(clf, "flag").values.names == ("false", "true")
    code = ColumnDisplay.from_estimator(clf, "code")
    assert len(code.values.names) > 40
    assert len(code.axes_[1].get_xticklabels()) == 20
    assert "the 20 of" in code.axes_[1].get_xlabel()
    assert len(code.to_frame("pandas")) == 2 * len(code.values.names)


def test_words_of_texts_say_what_a_text_of_one_word_says() -> None:
    texts = ["cheap pills now", "cheap watches now", "meeting at noon", "notes of the meeting"] * 5
    clf = BayesClassifier(Text(), tune=None).fit(texts, ["spam", "spam", "ham", "ham"] * 5)
    shown = ColumnDisplay.from_estimator(clf)
    assert {"cheap", "meeting"} <= set(shown.values.names)
    posterior = clf.predict_proba(list(shown.values.names))
    said = 10.0 * np.log10(posterior[:, 1] / posterior[:, 0])
    assert shown.evidence[:, 1] == pytest.approx(said)
    names = shown.values.names
    assert shown.evidence[names.index("cheap"), 1] > 0.0 > shown.evidence[names.index("meeting"), 1]


def test_what_cannot_be_shown_is_refused() -> None:
    texts = {"a": ["some words here", "other words there", "more of them"], "b": [1.0, 2.0, 3.0]}
    with pytest.raises(UsageError, match="holds texts"):
        PairDisplay.from_estimator(BayesClassifier({"a": Text()}, tune=None).fit(texts, [0, 1, 0]), [0, 1])
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    with pytest.raises(UsageError, match="unknown column 'rain'"):
        ColumnDisplay.from_estimator(clf, "rain")
    with pytest.raises(UsageError, match="unknown column 9"):
        ColumnDisplay.from_estimator(clf, 9)
    with pytest.raises(UsageError, match="expected two columns"):
        PairDisplay.from_estimator(clf, "outlook")
    with pytest.raises(UsageError, match="expected two different columns"):
        PairDisplay.from_estimator(clf, ["wind", "wind"])


def test_a_pair_says_what_the_model_says_of_both() -> None:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    shown = PairDisplay.from_estimator(clf, ["outlook", "wind"])
    prior = 10.0 * np.log10(9 / 5)
    for i, outlook in enumerate(shown.first.names):
        for j, wind in enumerate(shown.second.names):
            chance = clf.predict_proba([{"outlook": outlook, "wind": wind}])[0, 1]
            said = 10.0 * np.log10(chance / (1.0 - chance)) - prior
            assert shown.evidence[i, j, 1] == pytest.approx(said)
            texts = {tuple(text.get_position()): text.get_text() for text in shown.axes_[0].texts}
            assert texts[float(i), float(j)] == f"{said:+.1f}".replace("-", "−")
    (mesh,) = shown.axes_[0].collections
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(2, 3), shown.evidence[:, :, 1].T)
    assert [ax.get_title(loc="left") for ax in shown.axes_] == ["Evidence for yes"]
    assert len(shown.to_frame("pandas")) == 12


def test_infinite_evidence_is_marked() -> None:
    clf = BayesClassifier(alpha=0, tune=None).fit(weather(), "play")
    shown = ColumnDisplay.from_estimator(clf, "outlook")
    low, high = shown.ax_.get_ylim()
    marks = {text.get_text(): text.xy for text in shown.ax_.texts}
    assert set(marks) == {"−∞", "+∞"}
    assert marks["−∞"] == (pytest.approx(-0.2), low)
    assert marks["+∞"] == (pytest.approx(0.2), high)
    assert "−∞: never seen in that class" in shown.ax_.get_title(loc="left")
    assert not ColumnDisplay.from_estimator(clf, "wind").ax_.texts
    pair = PairDisplay.from_estimator(clf, ["outlook", "wind"])
    assert sum("∞" in text.get_text() for one in pair.axes_ for text in one.texts) == 2
    for one in pair.axes_:
        assert not np.ma.getmaskarray(one.collections[0].get_array()).any(), "no cell is left blank"
    row = EvidenceDisplay.from_estimator(clf, [{"outlook": "overcast"}])
    assert [text.get_text() for text in row.ax_.texts].count("+∞") == 2, "the term and the sum"
    assert [line.get_marker() for line in row.ax_.lines].count(">") == 2


def test_a_curve_beyond_the_axis_is_marked() -> None:
    X, y = two_normals()
    X[y == "b", 0] += 20.0
    shown = ColumnDisplay.from_estimator(BayesClassifier(Gaussian(), tune=None).fit(X, y), 0)
    assert {line.get_marker() for line in shown.ax_.lines} >= {"^", "v"}
    assert not shown.ax_.texts
