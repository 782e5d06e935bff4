"""Released counts: the noise has its distribution, hides any row, merges, and is never undone."""

from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from deciban import BayesClassifier, DataError, ForgetError, UsageError, load, merge
from deciban.fitting.release import CELL_SENSITIVITY, STEPS, ListedValues, NumbersInRange, draw_laplace
from deciban.tables.convert import as_table

CLASSES = ["ill", "well"]
BOUNDS = {"age": (0, 100), "smokes": ["no", "yes"]}


def patients(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.4
    age = rng.normal(np.where(ill, 60.0, 40.0), 9.0)
    smokes = np.where(rng.random(rows) < np.where(ill, 0.7, 0.3), "yes", "no")
    return pd.DataFrame({"age": age, "smokes": smokes}), np.where(ill, "ill", "well")


def release(rows: int = 400, seed: int = 1, epsilon: float = 1.0, **given: object) -> BayesClassifier:
    X, y = patients(rows, seed)
    return BayesClassifier(classes=CLASSES).release(X, y, epsilon=epsilon, bounds=BOUNDS, random_state=seed, **given)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(20, 3)])
def test_noise_has_the_discrete_laplace_distribution(scale: Fraction) -> None:
    """SciPy's dlaplace(a) has probabilities in proportion to exp(-a |k|)."""
    random = Random(3)
    drawn = np.array([draw_laplace(scale, random) for _ in range(4_000)])
    exact = stats.dlaplace(1 / float(scale))
    edge = int(np.ceil(4 * scale))
    places = np.arange(-edge, edge + 1)
    expected = np.append(exact.pmf(places), 1.0 - exact.pmf(places).sum()) * drawn.size
    found = np.append([(drawn == k).sum() for k in places], (abs(drawn) > edge).sum())
    used = expected >= 5.0
    pooled = [np.append(x[used][:-1], x[~used].sum() + x[used][-1]) for x in (found, expected)]
    assert stats.chisquare(*pooled).pvalue > 1e-3


def test_a_row_changes_the_sums_by_no_more_than_the_noise_hides() -> None:
    """Every cell of a range: in, beyond and at its bounds, or missing. Noise is scaled to 1, LARGEST, LARGEST."""
    cells = [*np.linspace(-5.0, 12.0, 1_001), np.inf, -np.inf, np.nan]
    for cell in cells:
        column = NumbersInRange(0.0, 10.0, 1)
        column.add(as_table({"x": [float(cell)]}), 0, np.zeros(1, dtype=np.int32))
        missing, total, squares = abs(column._sums[:, 0])
        assert missing + (total + squares) / CELL_SENSITIVITY <= 1.0
    assert CELL_SENSITIVITY == 1.5 * STEPS


def test_neighboring_tables_are_hidden() -> None:
    """Without one row, no count is more probable by a factor above exp(epsilon / 3), one share of three."""
    X, y = patients(30, 5)
    shares, draws = Fraction(9, 10), 3_000
    released = []
    for rows in (slice(None), slice(1, None)):
        column = ListedValues(["no", "yes"], 2, shares)
        codes = (y[rows] == "well").astype(np.int32)
        column.add(as_table(X[["smokes"]][rows]), 0, codes)
        random = Random(11)
        released.append(np.array([column.release(np.ones(2), shares, random)[2] for _ in range(draws)]))
    changed = np.flatnonzero([(a != b).mean() for a, b in zip(released[0].T, released[1].T, strict=True)])
    assert changed.size  # the row was counted somewhere
    for cell in range(4):
        a, b = (np.bincount(part[:, cell].astype(int), minlength=40) for part in released)
        common = (a + b) > 200
        assert common.any()
        ratio = np.log(a[common] / b[common])
        error = 4.0 * np.sqrt(1.0 / a[common] + 1.0 / b[common])
        assert (abs(ratio) <= float(shares) + error).all()


def test_released_counts_agree_with_the_rows_if_the_noise_is_small() -> None:
    X, y = patients(5_000, 2)
    clf = BayesClassifier(classes=CLASSES, tune=None)
    exact = clf.fit(X, y).predict_proba(X)
    released = clf.release(X, y, epsilon=1_000.0, bounds=BOUNDS, random_state=0).predict_proba(X)
    assert abs(released - exact).max() < 0.01


def test_less_epsilon_is_more_noise() -> None:
    X, y = patients(400, 1)
    exact = BayesClassifier(tune=None).fit(X, y).predict_proba(X)
    distance = [abs(release(epsilon=epsilon).predict_proba(X) - exact).mean() for epsilon in (100.0, 1.0, 0.05)]
    assert distance[0] < distance[1] < distance[2]


def test_missing_cells_and_labels_are_left_out() -> None:
    X, y = patients(4_000, 4)
    X.loc[:999, "age"] = np.nan
    X.loc[3_000:, "smokes"] = None
    y = np.where(np.arange(4_000) % 4 == 3, None, y)
    found = BayesClassifier(classes=CLASSES).release(X, y, epsilon=1_000.0, bounds=BOUNDS, random_state=0)
    exact = BayesClassifier(tune=None).fit(X, y)
    assert found.counts_.class_weight == pytest.approx(exact.counts_.class_weight, abs=2)
    assert abs(found.predict_proba(X) - exact.predict_proba(X)).max() < 0.01


def test_files_and_frames_agree(tmp_path: pytest.TempPathFactory) -> None:
    X, y = patients(300, 7)
    X.assign(state=y).to_csv(tmp_path / "rows.csv", index=False)
    clf = BayesClassifier(classes=CLASSES)
    given = {"epsilon": 1.0, "bounds": BOUNDS, "random_state": 7}
    one, other = clf.release(X, y, **given), clf.release(tmp_path / "rows.csv", "state", **given)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert other.target_ == "state"


def test_releases_merge_and_keep_the_largest_epsilon(tmp_path: pytest.TempPathFactory) -> None:
    parts = [release(seed=seed, epsilon=epsilon) for seed, epsilon in ((1, 1.0), (2, 0.5), (3, 1.0))]
    together = merge(parts)
    assert together.counts_.epsilon == 1.0
    assert together.counts_.class_weight == pytest.approx(sum(part.counts_.class_weight for part in parts))
    assert "released with epsilon=1" in repr(together.counts_)
    together.save(tmp_path / "all.dcb")
    again = load(tmp_path / "all.dcb")
    X, _ = patients(20, 9)
    assert again.counts_.epsilon == 1.0
    assert np.array_equal(again.predict_proba(X), together.predict_proba(X))
    assert (0.5 * together.counts_).epsilon == 1.0
    with pytest.raises(DataError, match="same rows"):
        merge([parts[0], parts[0]])


def test_exact_counts_end_the_guarantee() -> None:
    exact = BayesClassifier(release().families, classes=CLASSES, tune=None).fit(*patients(50, 8))
    released = release()
    both = (released + exact).counts_
    assert both.epsilon == np.inf
    assert "partly exact" in repr(both)
    assert (both + released.counts_).epsilon == np.inf
    assert exact.counts_.epsilon is None
    assert released.partial_fit(patients(5, 3)[0], [None] * 5).counts_.epsilon == np.inf  # their number is exact


def test_rows_cannot_be_removed_or_left_out() -> None:
    X, y = patients(400, 1)
    clf = release()
    with pytest.raises(ForgetError, match="released with noise; forget them in the exact counts"):
        clf.forget(X[:5], y[:5])
    with pytest.raises(ForgetError, match="released with noise"):
        clf - release(seed=2)
    with pytest.raises(UsageError, match="cannot be left out"):
        clf.leave_one_out(X, y)
    with pytest.raises(UsageError, match="cannot be left out"):
        clf.retune(X, y)
    assert clf.evaluate(X, y).accuracy > 0.8


def test_weights_learned_from_rows_end_the_guarantee() -> None:
    X, y = patients(200, 9)
    clf = release(400)
    assert clf.retune(X, y, already_learned=False).counts_.epsilon == np.inf


def test_conformity_scores_of_rows_end_the_guarantee(tmp_path: Path) -> None:
    """They are exact counts, which the model file contains."""
    clf = release(400).conformalize(*patients(200, 9), already_learned=False)
    assert clf.counts_.epsilon == np.inf
    clf.save(tmp_path / "scored.dcb")
    assert load(tmp_path / "scored.dcb").counts_.epsilon == np.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bounds", [(0, 1e-140), (-1e130, 1e130), (0, 1)])
def test_extreme_cells_and_bounds_are_released(bounds: tuple[float, float]) -> None:
    """The noise of few rows may be far wider than the range."""
    rows = {"x": [1e308, -1e308, np.inf, 5e-324]}
    clf = BayesClassifier(classes=CLASSES).release(rows, CLASSES * 2, epsilon=1e-6, bounds={"x": bounds})
    assert np.isfinite(clf.predict_proba({"x": [5e-324]})).all()


def test_noise_differs_without_a_seed() -> None:
    X, y = patients(200, 1)
    clf = BayesClassifier(classes=CLASSES)
    one, other = (clf.release(X, y, epsilon=0.1, bounds=BOUNDS).counts_ for _ in range(2))
    assert not np.array_equal(one.class_weight, other.class_weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0: give a finite number from 1e-06"),
        ({"bounds": {}}, "the bounds are {}; give a mapping"),
        ({"bounds": ["age"]}, r"the bounds are \['age'\]; give a mapping"),
        ({"bounds": {"age": (9, 3)}}, r"the bounds of column 'age' are \(9, 3\); give a tuple"),
        ({"bounds": {"age": (0, 5e-324)}}, "the bounds of column 'age' are"),
        ({"bounds": {"age": (0, 10**400)}}, "the bounds of column 'age' are"),
        ({"bounds": {"age": [40.0, float("nan")]}}, "or a list of all values, without missing ones"),
        ({"bounds": {"smokes": ["no", "yes", None]}}, "or a list of all values, without missing ones"),
        ({"bounds": {"smokes": "yes"}}, "the bounds of column 'smokes' are 'yes'"),
        ({"bounds": {"agee": (0, 9)}}, "no column 'agee', which has bounds; did you mean 'age'"),
        ({"bounds": {"smokes": ["no"]}}, "column 'smokes', row 0: found 'yes', which is not one of the values"),
        ({"bounds": {"smokes": (0, 1)}}, "column 'smokes'"),
        ({"classes": ["ill"]}, "the label 'well' is not among the declared classes"),
        ({"classes": None}, "the classes must be declared"),
    ],
)
def test_invalid_calls_name_the_cause(changes: dict[str, object], message: str) -> None:
    X, y = patients(50, 1)
    X.loc[0, "smokes"] = "yes"
    clf = BayesClassifier(classes=changes.pop("classes", CLASSES))
    with pytest.raises((UsageError, DataError), match=message):
        clf.release(X, y, **{"epsilon": 1.0, "bounds": BOUNDS, **changes})


def test_an_array_without_names_is_rejected() -> None:
    with pytest.raises(DataError, match="the columns have no names; pass a data frame"):
        BayesClassifier(classes=[0, 1]).release([[1.0], [2.0]], [0, 1], epsilon=1.0, bounds={"0": (0, 1)})
