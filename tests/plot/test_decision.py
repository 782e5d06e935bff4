"""The picture of decisions: curves, boundaries, and areas that are those of the theory."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.contour import ContourSet
from matplotlib.patches import Patch
from scipy import integrate, stats
from sklearn.datasets import load_breast_cancer

from deciban import (
    BayesClassifier,
    Binned,
    Categorical,
    Gaussian,
    JointGaussian,
    LogNormal,
    Loss,
    Poisson,
    Pooled,
    UsageError,
    bayes_error,
)
from deciban.plot import DecisionDisplay, DecisionMapDisplay
from tests import textbook

from .cases import area, drawn_rows, fitted

LETTERS = [stats.norm(15, 4), stats.norm(25, 4)]
PRIORS = [0.75, 0.25]


def polygons(shown: DecisionDisplay) -> dict[str, float]:
    """The area of each drawn polygon by its label."""
    found = [one for one in shown.ax_.collections if isinstance(one, PolyCollection)]
    return {str(one.get_label()): area(one) for one in found}


def test_the_shaded_areas_of_the_letters_are_those_of_the_theory() -> None:
    shown = DecisionDisplay.from_bayes_error(bayes_error(LETTERS, PRIORS, classes=["a", "b"]))
    assert shown.boundaries == pytest.approx([21.7578], abs=1e-4)
    assert shown.areas[1, 0] == pytest.approx(0.034175, abs=5e-7)
    assert shown.areas[0, 1] == pytest.approx(0.052203, abs=5e-7)
    drawn = polygons(shown)
    assert drawn["a decided as b: 3.42%"] == pytest.approx(0.034175, abs=2e-6)
    assert drawn["b decided as a: 5.22%"] == pytest.approx(0.052203, abs=2e-6)
    edges = [line.get_xdata()[0] for line in shown.ax_.lines if "boundary" in str(line.get_label())]
    assert edges == pytest.approx([21.7578], abs=1e-4)
    assert shown.ax_.get_title(loc="left") == "Decision regions: error 8.64%"


def test_the_curves_are_prior_times_density() -> None:
    shown = DecisionDisplay.from_bayes_error(bayes_error(LETTERS, PRIORS))
    for line, distribution, prior in zip(shown.ax_.lines, LETTERS, PRIORS, strict=False):
        x, y = line.get_data()
        np.testing.assert_allclose(y, prior * distribution.pdf(x), rtol=1e-12, atol=1e-300)


def test_posterior_curves_are_the_probabilities_of_the_model_and_cross_at_the_boundary() -> None:
    clf = letters_model()
    result = bayes_error(LETTERS, PRIORS, classes=["a", "b"])
    for shown in (
        DecisionDisplay.from_estimator(clf, y_axis="posterior"),
        DecisionDisplay.from_bayes_error(result, y_axis="posterior"),
    ):
        assert shown.boundaries == pytest.approx([21.7578], abs=1e-4)
        x, expected = shown.x, clf.predict_proba(shown.x[:, None])
        for c in range(2):
            line = shown.ax_.lines[c].get_data()
            np.testing.assert_allclose(line, [x, expected[:, c]], rtol=1e-9)
        np.testing.assert_allclose(shown.to_frame()["P(b)"], expected[:, 1], rtol=1e-9)
        assert shown.ax_.get_ylabel() == "P(class | x)"
        assert not polygons(shown), "areas under posteriors mean nothing"
        assert shown.risk == pytest.approx(0.086378, abs=3e-6)


def test_posterior_curves_of_counts_and_of_maps() -> None:
    counts = [stats.poisson(3), stats.poisson(8)]
    shown = DecisionDisplay.from_bayes_error(bayes_error(counts, PRIORS), y_axis="posterior")
    joint = np.array([0.75 * counts[0].pmf(5), 0.25 * counts[1].pmf(5)])
    bar = np.abs(shown.posterior - joint / joint.sum()).max(axis=1) < 1e-9
    assert [shown.x[bar].min(), shown.x[bar].max()] == [4.5, 5.5]
    plane = [stats.multivariate_normal([0, 0]), stats.multivariate_normal([2, 0])]
    for call in (
        lambda: DecisionDisplay.from_bayes_error(bayes_error(plane, n_samples=1000), y_axis="posterior"),
        lambda: DecisionDisplay.from_estimator(fitted(2, 2), y_axis="posterior"),
        lambda: DecisionDisplay.from_bayes_error(bayes_error(counts), y_axis="likelihood"),  # type: ignore[arg-type]
    ):
        with pytest.raises(UsageError, match="y_axis"):
            call()


def test_the_avoidable_part_of_a_moved_boundary_is_drawn_apart() -> None:
    moved = bayes_error(LETTERS, PRIORS, classes=["a", "b"], boundaries=[20])
    shown = DecisionDisplay.from_bayes_error(moved)
    between = integrate.quad(lambda x: 0.75 * LETTERS[0].pdf(x) - 0.25 * LETTERS[1].pdf(x), 20, 21.757799)[0]
    assert moved.avoidable == pytest.approx(between, abs=1e-9)
    drawn = polygons(shown)
    assert drawn["avoidable: 1.93%"] == pytest.approx(between, abs=2e-6)
    assert drawn["a decided as b: 7.92%"] == pytest.approx(0.079237, abs=2e-6)
    assert shown.ax_.get_title(loc="left").endswith("avoidable")


def test_with_costs_the_avoidable_part_is_the_cost() -> None:
    loss = {("a", "b"): 5, ("b", "a"): 1}
    moved = bayes_error(LETTERS, PRIORS, loss, classes=["a", "b"], boundaries=[22])
    shown = DecisionDisplay.from_bayes_error(moved)
    drawn = {label: size for label, size in polygons(shown).items() if label.startswith("avoidable")}
    assert list(drawn.values()) == pytest.approx([moved.risk - moved.bayes_risk], abs=1e-5)
    best = bayes_error(LETTERS, PRIORS, loss, classes=["a", "b"])
    assert [one.low for one in shown.best_regions[1:]] == pytest.approx(list(best.boundaries))


def test_equal_priors_put_the_boundary_in_the_middle() -> None:
    shown = DecisionDisplay.from_bayes_error(bayes_error(LETTERS))
    assert shown.boundaries == pytest.approx([20.0])


def test_values_of_discrete_distributions_are_bars() -> None:
    counts = [stats.poisson(3), stats.poisson(8)]
    found = bayes_error(counts, PRIORS, classes=["few", "many"])
    shown = DecisionDisplay.from_bayes_error(found)
    assert shown.discrete
    (edge,) = shown.boundaries
    assert edge % 1.0 == 0.5
    assert counts[0].pmf(int(edge)) * 0.75 > counts[1].pmf(int(edge)) * 0.25
    assert counts[0].pmf(int(edge) + 1) * 0.75 < counts[1].pmf(int(edge) + 1) * 0.25
    drawn = polygons(shown)
    wrong = 0.75 * counts[0].sf(int(edge))
    assert next(size for label, size in drawn.items() if label.startswith("few decided as")) == pytest.approx(
        wrong, abs=1e-7
    )


def letters_model(**options: object) -> BayesClassifier:
    """A model whose one column is normal with just the means and variances of the letters."""
    x = np.array([11.0, 19.0] * 300 + [21.0, 29.0] * 100)
    return BayesClassifier(Gaussian(), tune=None, **options).fit(x[:, None], ["a"] * 600 + ["b"] * 200)


def test_a_model_of_one_column_has_the_same_picture() -> None:
    shown = DecisionDisplay.from_estimator(letters_model())
    assert shown.boundaries == pytest.approx([21.7578], abs=1e-4)
    assert [shown.areas[1, 0], shown.areas[0, 1]] == pytest.approx([0.034175, 0.052203], abs=2e-6)
    x, y = shown.ax_.lines[0].get_data()
    np.testing.assert_allclose(y, 0.75 * LETTERS[0].pdf(x), rtol=1e-9, atol=1e-300)


def test_the_picture_of_a_model_moves_with_priors_losses_and_boundaries() -> None:
    clf = letters_model()
    assert DecisionDisplay.from_estimator(clf, prior="uniform").boundaries == pytest.approx([20.0], abs=1e-6)
    dear = DecisionDisplay.from_estimator(clf, loss={("a", "b"): 3, ("b", "a"): 1})
    assert dear.boundaries == pytest.approx([20.0], abs=1e-6)
    moved = DecisionDisplay.from_estimator(clf, boundaries=[20])
    assert moved.avoidable == pytest.approx(0.019272, abs=3e-6)
    turned = DecisionDisplay.from_estimator(clf, boundaries=[20], decisions=["b", "a"])
    assert turned.risk > 0.8
    with pytest.raises(UsageError, match="2 intervals"):
        DecisionDisplay.from_estimator(clf, boundaries=[20], decisions=["a"])


def test_counts_in_a_model_are_bars() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.poisson(3, 300), rng.poisson(9, 300)])
    clf = BayesClassifier({0: Poisson()}, tune=None).fit(x[:, None], [0] * 300 + [1] * 300)
    shown = DecisionDisplay.from_estimator(clf)
    assert shown.discrete
    assert len(shown.boundaries) == 1
    edge = shown.boundaries[0]
    assert clf.predict([[np.floor(edge)], [np.ceil(edge)]]).tolist() == [0, 1]


def test_two_columns_make_a_map_whose_regions_are_the_predictions() -> None:
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.multivariate_normal(m, [[1, 0.6], [0.6, 1]], 150) for m in ([0, 0], [3, 1], [0, 4])])
    y = np.repeat(["a", "b", "c"], 150)
    for spread, kind in ((Pooled(), "linear"), (None, "quadratic")):
        family = JointGaussian() if spread is None else JointGaussian(covariance=spread)
        clf = BayesClassifier({(0, 1): family}, tune=None).fit(X, y)
        shown = DecisionDisplay.from_estimator(clf)
        assert isinstance(shown, DecisionMapDisplay)
        assert shown.boundary == kind
        points = np.stack([part.ravel() for part in np.meshgrid(shown.x, shown.y)], axis=1)
        assert (np.array(["a", "b", "c"])[shown.decisions.ravel()] == clf.predict(points)).all()
        for c, label in enumerate("abc"):
            estimated = clf.estimates()["x0+x1"]
            np.testing.assert_allclose(shown.ellipses[c].mean, X[y == label].mean(axis=0))
            np.testing.assert_allclose(shown.ellipses[c].covariance, estimated["covariance"][c])
    drawn = shown.ax_.lines[0].get_xydata() - shown.ellipses[0].mean
    distance = np.einsum("ni,ij,nj->n", drawn, np.linalg.inv(shown.ellipses[0].covariance), drawn)
    np.testing.assert_allclose(distance, 1.0)  # one standard deviation


def test_a_form_of_functions_of_the_columns_has_no_straight_boundary() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 300)
    X = np.exp(rng.normal(y[:, None] * [1.0, 0.5], 0.5))
    for family in (LogNormal(variance=Pooled()), Binned(bins=8)):
        clf = BayesClassifier({0: family, 1: Gaussian(variance=Pooled())}, tune=None).fit(X, y)
        assert DecisionMapDisplay.from_estimator(clf).boundary is None
    others = BayesClassifier({0: LogNormal(variance=Pooled())}, tune=None).fit(
        np.c_[X[:, :1], rng.normal(y[:, None] * [1.0, 2.0])], y
    )
    assert DecisionMapDisplay.from_estimator(others, [1, 2]).boundary == "quadratic"


def test_two_columns_of_many_are_drawn_with_the_others_missing() -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 200)
    X = rng.normal(y[:, None] * [2.0, 1.0, 3.0, 0.0], 1.0)
    clf = BayesClassifier(tune=None).fit(X, y)
    shown = DecisionDisplay.from_estimator(clf, ["x0", "x2"])
    x, z = (part.ravel() for part in np.meshgrid(shown.x, shown.y))
    nothing = np.full(x.size, np.nan)
    assert (shown.decisions.ravel() == clf.predict(np.stack([x, nothing, z, nothing], axis=1))).all()
    with pytest.raises(UsageError, match="4 columns"):
        DecisionDisplay.from_estimator(clf)
    with pytest.raises(UsageError, match="boundaries= needs exactly one column"):
        DecisionDisplay.from_estimator(clf, [0, 1], boundaries=[1.0])


def test_each_decision_of_a_map_has_a_color_of_its_own_in_the_legend() -> None:
    normal = stats.multivariate_normal
    costs = Loss([[4, 0], [1, 1], [0, 4]], ["grant", "ask", "refuse"], [0, 1])
    shown = DecisionMapDisplay.from_bayes_error(
        bayes_error([normal([0, 0]), normal([2, 0])], None, costs, n_samples=200)
    )
    legend = shown.figure_.legends[0]
    colors = {
        text.get_text(): to_hex(key.get_facecolor() if isinstance(key, Patch) else key.get_color())
        for text, key in zip(legend.get_texts(), legend.legend_handles, strict=True)
    }
    assert len({*colors.values(), "#ffffff"}) == 7, colors
    drawn = {
        to_hex(one.get_facecolor()[0]) for one in shown.ax_.collections if isinstance(one, ContourSet) and one.filled
    }
    assert drawn == {colors[f"decide {name}"] for name in ("grant", "ask", "refuse")}
    assert {colors["0"], colors["1"]} == {line.get_color().lower() for line in shown.ax_.lines} - {
        colors["mean, 1 and 2 std. deviations"]
    }


def test_known_distributions_of_two_dimensions_make_a_map() -> None:
    normal = stats.multivariate_normal
    shown = DecisionDisplay.from_bayes_error(bayes_error([normal([0, 0]), normal([2, 0])], n_samples=200))
    assert isinstance(shown, DecisionMapDisplay)
    assert shown.boundary == "linear"
    x = np.broadcast_to(shown.x, shown.decisions.shape)
    far = np.abs(x - 1.0) > 1e-9
    assert ((x > 1.0) == (shown.decisions == 1))[far].all()
    assert set(shown.to_frame()) == {"x", "y", "joint of 0", "joint of 1", "decision"}


def test_rejected_rows_are_told_apart_from_mistakes() -> None:
    loss = Loss.zero_one(["a", "b"]).with_reject(0.2)
    shown = DecisionDisplay.from_bayes_error(bayes_error(LETTERS, PRIORS, loss, classes=["a", "b"]))
    drawn = polygons(shown)
    rejected = {label: size for label, size in drawn.items() if " decided as reject" in label}
    low, high = shown.boundaries
    assert list(rejected.values()) == pytest.approx(
        [p * (d.cdf(high) - d.cdf(low)) for p, d in zip(PRIORS, LETTERS, strict=True)], abs=2e-6
    )
    assert 0.75 * LETTERS[0].pdf(low) == pytest.approx(4.0 * 0.25 * LETTERS[1].pdf(low))


def test_what_has_no_numbers_is_refused() -> None:
    clf = BayesClassifier({0: Categorical()}, tune=None).fit([["u"], ["v"], ["u"]], [0, 1, 0])
    with pytest.raises(UsageError, match="is not numeric"):
        DecisionDisplay.from_estimator(clf)


def test_the_frame_has_curves_and_decisions() -> None:
    shown = DecisionDisplay.from_bayes_error(bayes_error(LETTERS, PRIORS, classes=["a", "b"], boundaries=[20]))
    frame = shown.to_frame()
    assert list(frame) == ["x", "joint of a", "joint of b", "P(a)", "P(b)", "decision", "best"]
    between = frame[(frame.x > 20) & (frame.x < 21.7)]
    assert set(between.decision) == {"b"}
    assert set(between.best) == {"a"}


def test_one_column_of_a_tuned_model_is_drawn_without_weights() -> None:
    """Weights and biases are tuned for rows in which all columns are there: curves are prior times density."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = BayesClassifier().fit(X, y)
    shown = DecisionDisplay.from_estimator(clf, "mean radius")
    np.testing.assert_allclose(shown.areas.sum(axis=0), np.bincount(y) / len(y), rtol=1e-9)
    np.testing.assert_allclose(np.trapezoid(shown.joint, shown.x, axis=0), np.bincount(y) / len(y), atol=1e-3)
    families = {group.family: group.columns for group in clf.schema_.groups if not group.auxiliary}
    own = next(family for family, columns in families.items() if 0 in columns)
    alone = BayesClassifier(own, tune=None).fit(X[["mean radius"]], y)
    assert shown.risk == pytest.approx(alone.bayes_error().risk, rel=1e-9)


def test_where_nothing_lies_no_decision_changes() -> None:
    x = np.concatenate([np.linspace(0, 1, 50), np.linspace(9, 10, 50), np.linspace(20, 21, 50)])
    y = np.repeat(["b", "a", "b"], 50)
    shown = DecisionDisplay.from_estimator(BayesClassifier(Binned(bins=8), tune=None).fit(x[:, None], y))
    assert len(shown.boundaries) == 2, "not at the ends of the bins"
    assert 1.0 < shown.boundaries[0] <= 9.0
    assert 10.0 < shown.boundaries[1] <= 20.0


def test_rows_are_drawn_as_points_and_the_map_reaches_them() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 50)
    X = rng.normal(np.where(y == "a", 0.0, 2.0)[:, None] * [1.0, 0.5, 0.0], 1.0)
    clf = BayesClassifier(tune=None).fit(X, y)
    shown = DecisionDisplay.from_estimator(clf, [0, 1], X=X, y=y)
    np.testing.assert_allclose(shown.points.values, X[:, :2])
    assert shown.x[0] <= X[:, 0].min()
    assert shown.x[-1] >= X[:, 0].max()
    drawn = [line for line in shown.ax_.lines if len(line.get_xdata()) == 50]
    assert [line.get_color() for line in drawn] == ["#0072B2", "#D55E00"]
    line = DecisionDisplay.from_estimator(clf, 0, X=X, y=y)
    assert sum(one.get_marker() == "|" for one in line.ax_.lines) == 2


def test_boundaries_of_maps_are_smooth() -> None:
    """Contours of a difference of risks lie on the boundary, not on the grid."""
    normal = stats.multivariate_normal
    shown = DecisionDisplay.from_bayes_error(bayes_error([normal([0, 0]), normal([2, 1])], n_samples=200))
    contour = next(one for one in shown.ax_.collections if len(one.get_paths()) and one.get_facecolor().size == 0)
    points = contour.get_paths()[0].vertices
    np.testing.assert_allclose(points @ [2.0, 1.0], 2.5, atol=1e-6)


def test_one_decision_for_all_values_is_stated() -> None:
    loss = {("a", "b"): 1, ("b", "a"): 1e6}
    shown = DecisionDisplay.from_estimator(letters_model(), loss=loss)
    texts = [text.get_text() for text in shown.ax_.texts]
    assert texts == ["decide a for all values shown"]
    shown = DecisionDisplay.from_bayes_error(
        bayes_error([stats.norm(0, 1), stats.norm(0, 1)], [0.9, 0.1], classes="ab")
    )
    assert [text.get_text() for text in shown.ax_.texts] == ["always decide a"]


def test_the_axis_of_an_area_does_not_start_below_zero() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = BayesClassifier(Gaussian(), tune=None).fit(X[["worst area"]], y)
    shown = DecisionDisplay.from_estimator(clf, X=X[["worst area"]], y=y)
    assert shown.x[0] < 0.0
    assert shown.ax_.get_xlim()[0] == 0.0


def test_areas_of_different_mistakes_look_different_and_right_decisions_are_not_shaded() -> None:
    rng = np.random.default_rng(1)
    y = np.repeat(["no", "yes"], 500)
    clf = BayesClassifier(Gaussian(), tune=None).fit(rng.normal(2.0 * (y == "yes"), 1.0)[:, None], y)
    costs = {"refuse": {"no": 0, "yes": 3}, "ask": {"no": 1, "yes": 1}, "grant": {"no": 5, "yes": 0}}
    shown = DecisionDisplay.from_estimator(clf, 0, loss=costs)
    found = [one for one in shown.ax_.collections if str(one.get_label()).count(" decided as ")]
    labels = {str(one.get_label()).partition(":")[0] for one in found}
    assert labels == {"no decided as ask", "no decided as grant", "yes decided as refuse", "yes decided as ask"}
    looks = {(tuple(one.get_facecolor()[0].round(3)), one.get_hatch()) for one in found}
    assert len(looks) == len(found)


def test_a_map_is_drawn_by_its_own_name_too() -> None:
    X, y = drawn_rows(2, 3)
    clf = fitted(2, 3)
    own = DecisionMapDisplay.from_estimator(clf, [0, 1], prior="uniform", loss=[[0, 3], [1, 0]], X=X, y=y)
    same = DecisionDisplay.from_estimator(clf, [0, 1], prior="uniform", loss=[[0, 3], [1, 0]], X=X, y=y)
    assert isinstance(same, DecisionMapDisplay)
    np.testing.assert_array_equal(own.decisions, same.decisions)
    np.testing.assert_array_equal(own.points.values, same.points.values)
    assert own.loss.decisions == same.loss.decisions == ("class 0", "class 1")
    with pytest.raises(UsageError, match="a map has two columns; 1 column given"):
        DecisionMapDisplay.from_estimator(clf, 0)


def test_a_narrow_peak_does_not_flatten_the_other_curves() -> None:
    rng = np.random.default_rng(0)
    cells = np.concatenate([rng.normal(0.0, 1e-3, 100), rng.normal(1.0, 1.0, 100)])[:, None]
    shown = DecisionDisplay.from_estimator(textbook(Gaussian()).fit(cells, np.repeat(["a", "b"], 100)))
    top, peaks = shown.ax_.get_ylim()[1], shown.joint.max(axis=0)
    assert peaks[1] < top < peaks[0] / 5.0
    assert f"{peaks[0]:.0f}" in [text.get_text() for text in shown.ax_.texts]
