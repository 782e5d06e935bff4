"""The mathematics of the playground, against SciPy, scikit-learn and deciban."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from deciban import (
    BayesClassifier,
    Bernoulli,
    Categorical,
    Gaussian,
    JointGaussian,
    JointTable,
    Multinomial,
    Pooled,
    bayes,
    bayes_error,
)
from deciban.datasets import weather
from deciban.util.text_tables import format_probability
from tests.page.node import called, constant
from tests.support.node import needs_node

pytestmark = needs_node

LETTERS = [{"mean": 15, "spread": 4, "prior": 0.75}, {"mean": 25, "spread": 4, "prior": 0.25}]
ZERO_ONE = [[0, 1], [1, 0]]


def rules(cases: list[tuple[Any, Any]]) -> list[Any]:
    """The best rule of each case (classes, loss)."""
    return called("maths_line.js", *(("bestRule", classes, loss) for classes, loss in cases))


def areas(cases: list[tuple[Any, Any]]) -> list[np.ndarray]:
    """The areas of each case (classes, rule)."""
    return [np.array(found) for found in called("maths_line.js", *(("areasOf", *case) for case in cases))]


def known(classes: list[Any], loss: Any = None, **options: Any) -> Any:
    """What deciban says of the same."""
    priors = [c["prior"] for c in classes]
    return bayes_error([norm(c["mean"], c["spread"]) for c in classes], priors, loss, **options)


def drawn_classes(rng: np.random.Generator, size: int) -> list[dict[str, float]]:
    priors = rng.dirichlet(np.full(size, 2.0))
    priors[-1] = 1.0 - priors[:-1].sum()
    return [
        {"mean": rng.uniform(0, 40), "spread": float(np.exp(rng.uniform(-0.5, 2.3))), "prior": prior}
        for prior in priors.tolist()
    ]


def test_the_cumulative_normal_distribution_is_scipys() -> None:
    z = np.concatenate([np.linspace(-30, 30, 4001), [-0.67448975, 0.67448975, -5.656854249492381, 5.656854249492381]])
    found = np.array(called("maths_normal.js", *(("normalCdf", value) for value in z.tolist())))
    np.testing.assert_allclose(found, norm.cdf(z), rtol=1e-12, atol=0)


def test_letters() -> None:
    (rule,) = rules([(LETTERS, ZERO_ONE)])
    (found,) = areas([(LETTERS, rule)])
    assert rule["decisions"] == [0, 1]
    assert rule["edges"] == pytest.approx([20 + 1.6 * np.log(3)], abs=1e-12)
    assert found.round(6).tolist() == [[0.715825, 0.052203], [0.034175, 0.197797]]


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("costs", ["zero-one", "any"])
def test_boundaries_areas_and_risk_are_those_of_bayes_error(size: int, costs: str) -> None:
    rng = np.random.default_rng(size)
    cases = []
    for _ in range(25):
        loss = 1.0 - np.eye(size)
        if costs == "any":
            loss *= np.exp(rng.normal(0, 1.5, size=(size, size))).round(3)
        cases.append((drawn_classes(rng, size), loss.tolist()))
    found = rules(cases)
    found_areas = areas([(classes, rule) for (classes, _), rule in zip(cases, found, strict=True)])
    for (classes, loss), rule, area in zip(cases, found, found_areas, strict=True):
        expected = known(classes, loss)
        assert rule["decisions"] == [region.decision for region in expected.regions]
        np.testing.assert_allclose(rule["edges"], expected.boundaries, rtol=0, atol=1e-9)
        np.testing.assert_allclose(area, expected.areas, rtol=0, atol=1e-12)
        assert (np.array(loss) * area).sum() == pytest.approx(expected.risk, abs=1e-12)


def test_costs_that_make_three_classes_cross_often() -> None:
    """The middle decision is a compromise: the difference of two risks has three terms and up to four zeros."""
    classes = [
        {"mean": 10, "spread": 1.5, "prior": 0.3},
        {"mean": 20, "spread": 8, "prior": 0.5},
        {"mean": 22, "spread": 1, "prior": 0.2},
    ]
    loss = [[0, 4, 1], [3, 0, 3.5], [1, 4, 0]]
    (rule,) = rules([(classes, loss)])
    expected = known(classes, loss)
    assert len(expected.boundaries) >= 4
    np.testing.assert_allclose(rule["edges"], expected.boundaries, rtol=0, atol=1e-9)


def test_a_boundary_moved_by_hand_costs_what_bayes_error_says() -> None:
    (found,) = areas([(LETTERS, {"edges": [20], "decisions": [0, 1]})])
    expected = known(LETTERS, boundaries=[20])
    np.testing.assert_allclose(found, expected.areas, rtol=0, atol=1e-14)
    (risk,) = called("maths_line.js", ("riskOf", found.tolist(), ZERO_ONE))
    assert risk - expected.bayes_risk == pytest.approx(expected.avoidable, abs=1e-14)


@pytest.mark.parametrize("size", [2, 3])
def test_what_is_read_off_at_x_is_what_bayes_says(size: int) -> None:
    """Densities are SciPy's, posteriors those of `bayes`, and the decision costs least."""
    rng = np.random.default_rng(size)
    for _ in range(10):
        classes, x = drawn_classes(rng, size), float(rng.uniform(0, 40))
        loss = (1.0 - np.eye(size)) * np.exp(rng.normal(0, 1.5, size=(size, size)))
        found, threshold = called(
            "maths_line.js", ("readingAt", classes, loss.tolist(), x), ("ratioThreshold", classes, loss.tolist())
        )
        densities = [norm(part["mean"], part["spread"]).pdf(x) for part in classes]
        belief = bayes({str(k): part["prior"] for k, part in enumerate(classes)}, densities)
        assert found["densities"] == pytest.approx(densities, rel=1e-12)
        assert found["posterior"] == pytest.approx(list(belief.posterior.values()), rel=1e-12)
        assert found["risks"] == pytest.approx((loss @ found["posterior"]).tolist(), rel=1e-12)
        if size == 2:
            assert (densities[0] / densities[1] > threshold) == (found["risks"][0] < found["risks"][1])


def test_letters_are_read_off_where_both_densities_are_equal() -> None:
    found, edge = called(
        "maths_line.js",
        ("readingAt", LETTERS, ZERO_ONE, 20),
        ("readingAt", LETTERS, ZERO_ONE, 20 + 1.6 * np.log(3)),
    )
    assert found["densities"][0] == found["densities"][1] == pytest.approx(0.0456623, abs=1e-7)
    assert found["posterior"] == pytest.approx([0.75, 0.25])
    assert edge["posterior"] == pytest.approx([0.5, 0.5])
    (far,) = called("maths_line.js", ("readingAt", [{**part, "spread": 0.1} for part in LETTERS], ZERO_ONE, 40))
    assert far["densities"] == [0, 0]
    assert far["posterior"] == [0, 1]


def test_strange_classes() -> None:
    """Equal classes, a class without a prior, a class far away, and a loss that never punishes."""
    same = [{"mean": 20, "spread": 3, "prior": 0.6}, {"mean": 20, "spread": 3, "prior": 0.4}]
    none = [{"mean": 20, "spread": 3, "prior": 1}, {"mean": 30, "spread": 3, "prior": 0}]
    far = [{"mean": 0, "spread": 0.1, "prior": 0.5}, {"mean": 40, "spread": 0.1, "prior": 0.5}]
    found = rules([(same, ZERO_ONE), (none, ZERO_ONE), (far, ZERO_ONE), (LETTERS, [[0, 0], [1, 0]])])
    assert [rule["decisions"] for rule in found] == [[0], [0], [0, 1], [0]]
    assert found[2]["edges"] == pytest.approx([20])


def points_of_three_classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    parts = [
        rng.multivariate_normal([3, 3], [[1, 0.6], [0.6, 1]], 20),
        rng.multivariate_normal([6, 4], [[2, -1.0], [-1.0, 1]], 15),
        rng.multivariate_normal([5, 7], [[0.5, 0.1], [0.1, 1.5]], 12),
    ]
    return np.concatenate(parts), np.repeat([0, 1, 2], [20, 15, 12])


def fitted(points: np.ndarray, kinds: np.ndarray, size: int = 3) -> dict[str, Any]:
    given = [{"x": x, "y": y, "kind": kind} for (x, y), kind in zip(points.tolist(), kinds.tolist(), strict=True)]
    (fit,) = called("maths_plane.js", ("fitPlane", given, size))
    methods = ("linear", "quadratic", "naive")
    gaussians = called("maths_plane.js", *(("gaussiansBy", fit, method) for method in methods))
    return {"fit": fit, "given": given, **dict(zip(methods, gaussians, strict=True))}


def log_joints(gaussians: Any, places: np.ndarray) -> np.ndarray:
    (forms,) = called("maths_plane.js", ("planeForms", gaussians))
    x, y = places.T
    return np.array(forms) @ np.stack([np.ones_like(x), x, y, x * x, x * y, y * y])


def posteriors(gaussians: Any, places: np.ndarray) -> np.ndarray:
    joint = np.exp(log_joints(gaussians, places)).T
    return joint / joint.sum(axis=1, keepdims=True)


def test_methods_of_the_plane_are_those_of_scikit_learn_and_deciban() -> None:
    points, kinds = points_of_three_classes()
    found = fitted(points, kinds)
    places = np.random.default_rng(1).uniform(0, 10, (50, 2))
    linear = LinearDiscriminantAnalysis(solver="lsqr").fit(points, kinds)
    naive = GaussianNB(var_smoothing=0).fit(points, kinds)
    quadratic = BayesClassifier(JointGaussian(), tune=None).fit(points, kinds)
    for method, peer in {"linear": linear, "quadratic": quadratic, "naive": naive}.items():
        np.testing.assert_allclose(posteriors(found[method], places), peer.predict_proba(places), rtol=0, atol=1e-9)
        (forms,) = called("maths_plane.js", ("planeForms", found[method]))
        (mistakes,) = called("maths_plane.js", ("mistakesAmong", found["given"], [forms]))
        assert mistakes == (peer.predict(points) != kinds).sum()


def cut(points: np.ndarray) -> list[dict[str, str]]:
    """Points with both columns cut into four parts."""
    parts = np.minimum(points / 10 * 4, 3).astype(int).tolist()
    return [{"x": f"part {x}", "y": f"part {y}"} for x, y in parts]


def test_tables_of_the_plane_are_those_of_deciban() -> None:
    points = np.random.default_rng(8).uniform(0, 10, size=(80, 2))
    kinds = np.arange(80) % 3
    given = [{"x": x, "y": y, "kind": kind} for (x, y), kind in zip(points.tolist(), kinds.tolist(), strict=True)]
    models: dict[str, Any] = {
        "naive-table": {"x": Categorical(), "y": Categorical()},
        "joint-table": {("x", "y"): JointTable()},
    }
    for method, families in models.items():
        model = BayesClassifier(families, alpha=1, tune=None).fit(pd.DataFrame(cut(points)), kinds)
        grid, count = called(
            "maths_plane.js", ("tableGrid", given, 3, method == "joint-table"), ("planeParameters", method, 3)
        )
        cells = np.array(grid)[:, :, 0].reshape(4, 4, 3)
        column, row = np.minimum(points.T / 10 * 4, 3).astype(int)
        np.testing.assert_allclose(cells[row, column], model.log_joint(pd.DataFrame(cut(points))), atol=1e-12)
        assert count == model.parameter_count().model
        (mistakes,) = called("maths_plane.js", ("mistakesAmong", given, grid))
        assert mistakes == (model.predict(pd.DataFrame(cut(points))) != kinds).sum()


def test_parameters_of_gaussians_are_those_deciban_counts() -> None:
    points, kinds = points_of_three_classes()
    models: dict[str, Any] = {
        "linear": {("x", "y"): JointGaussian(Pooled())},
        "quadratic": {("x", "y"): JointGaussian()},
        "naive": {"x": Gaussian(), "y": Gaussian()},
    }
    for method, families in models.items():
        model = BayesClassifier(families, tune=None).fit(pd.DataFrame(points, columns=["x", "y"]), kinds)
        assert called("maths_plane.js", ("planeParameters", method, 3)) == [model.parameter_count().model], method


def test_xor_defeats_every_naive_model_and_no_joint_one() -> None:
    """The points, fitted with deciban: both columns alone are equal in both classes."""
    (given,) = called("maths_examples.js", ("examplePoints", "XOR"))
    points = np.array([[one["x"], one["y"]] for one in given])
    kinds = np.array([one["kind"] for one in given])
    assert ((points > 5).all(axis=1) | (points < 5).all(axis=1)).tolist() == (kinds == 0).tolist()
    frame, table = pd.DataFrame(points, columns=["x", "y"]), pd.DataFrame(cut(points))
    for families, rows, expected in (
        ({"x": Gaussian(), "y": Gaussian()}, frame, 0.5),
        ({("x", "y"): JointGaussian(Pooled())}, frame, 0.5),
        ({"x": Categorical(), "y": Categorical()}, table, 0.5),
        ({("x", "y"): JointGaussian()}, frame, 1.0),
        ({("x", "y"): JointTable()}, table, 1.0),
    ):
        model = BayesClassifier(families, alpha=1, tune=None).fit(rows, kinds)
        probabilities = model.predict_proba(rows)
        if expected == 0.5:
            np.testing.assert_allclose(probabilities, 0.5, atol=1e-9)
        else:
            assert (model.predict(rows) == kinds).all()


def test_log_joints_of_the_plane_are_scipys() -> None:
    points, kinds = points_of_three_classes()
    expected = [
        multivariate_normal(part.mean(axis=0), np.cov(part.T, ddof=0)).logpdf(points) + np.log(len(part) / len(points))
        for part in (points[kinds == k] for k in range(3))
    ]
    np.testing.assert_allclose(log_joints(fitted(points, kinds)["quadratic"], points), expected, rtol=0, atol=1e-10)


def by_grid(truth: Any, rule: Any) -> float:
    """The error by brute force, on a grid of four million cells, row by row."""
    true, decided = map(np.array, called("maths_plane.js", ("planeForms", truth), ("planeForms", rule)))
    x, right = np.linspace(-15, 25, 2001), 0.0
    for y in x:
        terms = np.stack([np.ones_like(x), x, np.full_like(x, y), x * x, x * y, np.full_like(x, y * y)])
        right += np.exp(true @ terms)[(decided @ terms).argmax(axis=0), np.arange(x.size)].sum()
    return 1.0 - float(right) * (x[1] - x[0]) ** 2


@pytest.mark.parametrize("method", ["linear", "quadratic", "naive"])
def test_errors_in_the_plane_are_those_of_brute_force(method: str) -> None:
    points, kinds = points_of_three_classes()
    found = fitted(points, kinds)
    truth, rule = found["quadratic"], found[method]
    own, under = called("maths_plane.js", ("planeError", rule), ("planeError", truth, rule))
    assert own["within"] < 1e-4
    assert own["error"] == pytest.approx(by_grid(rule, rule), abs=max(own["within"], 2e-5))
    assert under["error"] == pytest.approx(by_grid(truth, rule), abs=max(under["within"], 2e-5))


def test_two_round_gaussians_have_the_error_of_one_dimension() -> None:
    one, other = ({"prior": 0.5, "mean": mean, "xx": 1, "xy": 0, "yy": 1} for mean in ([3, 4], [6, 8]))
    (found,) = called("maths_plane.js", ("planeError", [one, other]))
    assert found["error"] == pytest.approx(norm.sf(2.5), abs=1e-9)


def test_classes_with_too_few_points_borrow_the_pooled_covariance() -> None:
    points = np.array([[1, 1], [2, 3], [3, 1], [7, 7], [8, 8], [9, 9], [5, 1]], dtype=float)
    found = fitted(points, np.array([0, 0, 0, 1, 1, 1, 2]))
    assert found["fit"]["borrowed"] == [False, True, True]  # three points on a line; one point
    assert np.isfinite(log_joints(found["quadratic"], points)).all()
    alone = fitted(points[:1], np.array([0]), size=2)
    (forms,) = called("maths_plane.js", ("planeForms", alone["linear"]))
    assert called("maths_plane.js", ("planeError", alone["linear"])) == [{"error": 0, "within": 0}]
    assert np.isfinite(forms[0]).all()


DAYS = [
    {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"},
    {"outlook": "overcast", "temperature": "hot", "humidity": "normal", "wind": "weak"},
    {"outlook": "rain", "temperature": None, "humidity": "high", "wind": None},
]


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 5])
def test_steps_of_the_weather_table_are_decibans(alpha: float) -> None:
    model = BayesClassifier(alpha=alpha, tune=None).fit(weather(), "play")
    for day, found in zip(
        DAYS, called("maths_counts.js", *(("weatherSteps", day, alpha) for day in DAYS)), strict=True
    ):
        assert found["posterior"] == pytest.approx(model.predict_proba([day])[0].tolist(), abs=1e-12)
        assert found["joint"] == pytest.approx(np.exp(model.log_joint([day]))[0].tolist(), abs=1e-12)


def test_days_of_the_weather_table_are_those_of_the_package() -> None:
    (levels,) = called("maths_counts.js", ("weatherLevels", "outlook"))
    assert levels == ["sunny", "overcast", "rain"]
    (steps,) = called("maths_counts.js", ("weatherSteps", DAYS[0], 0))
    assert [step["counts"] for step in steps["steps"]] == [[3, 2], [1, 3], [4, 3], [3, 3]]
    assert [round(part, 5) for part in steps["joint"]] == [0.02057, 0.00529]


def test_a_word_never_seen() -> None:
    found = called("maths_counts.js", ("smoothedShare", 0, 100, 1, 2), ("smoothedShare", 30, 80, 1, 2))
    assert found == [1 / 102, 31 / 82]


def test_tests_in_a_row_say_what_deciban_bayes_says() -> None:
    rng = np.random.default_rng(3)
    cases = [(0.05, 0.9, 0.08), (0.001, 0.99, 0.05), (0.5, 0.625, 0.25), (1, 0.9, 0.1), (0.2, 1, 0)]
    cases += [tuple(rng.integers(1, 999, 3) / 1000) for _ in range(40)]
    results = [True, False, True]
    found = called("maths_belief.js", *(("testsInARow", *map(float, case), results) for case in cases))
    steps, expected = [], []
    for (prior, hit, alarm), beliefs in zip(cases, found, strict=True):
        belief: Any = None
        for positive, step in zip(results, beliefs, strict=False):
            likelihoods = (hit, alarm) if positive else (1 - hit, 1 - alarm)
            belief = bayes(prior, likelihoods, ("ill", "well")) if belief is None else belief.update(likelihoods)
            assert step["posterior"] == pytest.approx(list(belief.posterior.values()), rel=1e-14)
            steps.append(step)
            expected.append(belief.frequencies().split("\n"))
    assert len(steps) > 120
    assert called("maths_belief.js", *(("frequencySentences", step, ("ill", "well")) for step in steps)) == expected


def test_evidence_that_is_impossible_ends_the_row() -> None:
    assert called("maths_belief.js", ("testsInARow", 0, 0.9, 0, [True, True])) == [[]]


def test_numbers_are_written_as_python_writes_them() -> None:
    rng = np.random.default_rng(4)
    values = [0.15625, 0.46875, 0.00012345, 1e-5, 123456.0, 999999.5, 1.0, 0.1, 62.5, 9.99995e-5]
    values += (10 ** rng.uniform(-8, 8, 300)).tolist()
    for digits in (4, 6):
        found = called("maths_belief.js", *(("significant", value, digits) for value in values))
        assert found == [f"{value:.{digits}g}" for value in values]


def test_decibans_and_probabilities() -> None:
    tenth, back, far = called(
        "maths_belief.js", ("decibansOf", 10 / 11), ("probabilityOf", -10), ("probabilityOf", -400)
    )
    assert tenth == pytest.approx(10)
    assert back == pytest.approx(1 / 11)
    assert far == pytest.approx(1e-40)


def test_the_field_of_people_adds_up() -> None:
    (belief,) = called("maths_belief.js", ("testsInARow", 0.05, 0.9, 0.08, [True]))
    (field,) = called("maths_belief.js", ("peopleInField", belief[0], 1000))
    assert field == [[45, 5], [76, 874]]


def test_pages_format_probabilities_as_python_does() -> None:
    rng = np.random.default_rng(5)
    chances = [0.0, 1.0, 0.5, 1e-4, 1.0 - 1e-4, 0.01, 0.99, *rng.random(200), *10.0 ** -rng.uniform(1, 6, 100)]
    found = called("../web/dom.js", *(("percent", chance) for chance in chances))
    assert found == [format_probability(chance) for chance in chances]


def test_differences_of_terms_add_up_if_only_one_sum_has_a_term() -> None:
    """The limit is a term of few rows."""
    now = [{"name": "prior", "value": 1.0, "role": "prior"}, {"name": "x", "value": 5.0, "role": "column"}]
    before = [*now, {"name": "limit", "value": -2.0, "role": "limit"}]
    for first, second, change in ((now, before, 2.0), (before, now, -2.0)):
        (found,) = called("comparison.js", ("differences", first, second))
        assert sum(term["value"] for term in found) == change
        assert [term["name"] for term in found] == ["x", "limit"]


@pytest.mark.parametrize("corpus", ["Emails", "China or not"])
def test_documents_are_scored_as_deciban_scores_them(corpus: str) -> None:
    """Both models, fitted with deciban to the same documents: estimates and posteriors."""
    given = constant("maths_documents.js", "CORPORA")[corpus]
    (model,) = called("maths_documents.js", ("documentModel", given))
    words = model["words"]
    texts = [text.split() for own in given["documents"] for text in own]
    labels = np.repeat([0, 1], [len(own) for own in given["documents"]])
    counts = pd.DataFrame([[text.count(word) for word in words] for text in texts], columns=words)
    rng = np.random.default_rng(2)
    documents = rng.integers(0, 4, size=(20, len(words))) * rng.integers(0, 2, size=(20, len(words)))
    documents[0], documents[1] = [given["first"].split().count(word) for word in words], 0
    found = called("maths_documents.js", *(("documentEvidence", model, times) for times in documents.tolist()))
    for name, family, rows, present in (
        ("die", {tuple(words): Multinomial()}, counts, documents),
        ("coin", dict.fromkeys(words, Bernoulli()), counts.clip(upper=1), documents.clip(max=1)),
    ):
        peer = BayesClassifier(family, alpha=1, tune=None).fit(rows, labels)
        probabilities = peer.predict_proba(pd.DataFrame(present, columns=words))[:, 1]
        assert [one["posterior"][name] for one in found] == pytest.approx(probabilities.tolist(), abs=1e-12)
        decibans = 10 * np.log10(probabilities / (1 - probabilities))
        assert [one["sums"][name] for one in found] == pytest.approx(decibans.tolist(), abs=1e-9)


def test_the_documents_of_introduction_to_information_retrieval() -> None:
    """Manning, Raghavan and Schütze, examples 13.1 and 13.2: the two models disagree."""
    given = constant("maths_documents.js", "CORPORA")["China or not"]
    (model,) = called("maths_documents.js", ("documentModel", given))
    times = [given["first"].split().count(word) for word in model["words"]]
    (found,) = called("maths_documents.js", ("documentEvidence", model, times))
    die = np.array([1 / 4 * (2 / 9) ** 5, 3 / 4 * (3 / 7) ** 3 * (1 / 14) ** 2])
    coin = np.array([1 / 4 * (2 / 3) ** 6, 3 / 4 * 4 / 5 * (1 / 5) ** 2 * (3 / 5) ** 3])
    assert die.round(4).tolist() == [0.0001, 0.0003]
    assert coin.round(3).tolist() == [0.022, 0.005]
    assert found["posterior"]["die"] == pytest.approx(die[1] / die.sum(), abs=1e-12)
    assert found["posterior"]["coin"] == pytest.approx(coin[1] / coin.sum(), abs=1e-12)


def test_a_die_falls_on_each_side_with_its_probability() -> None:
    shares = [0.05, 0.1, 0.6, 0.25]
    rolls = ((np.arange(2000) + 0.5) / 2000).tolist()
    found = called("maths_documents.js", *(("sideOf", shares, roll) for roll in [*rolls, 1.0]))
    assert np.bincount(found[:-1]).tolist() == [100, 200, 1200, 500]
    assert found[-1] == 3


@pytest.mark.parametrize(("columns", "values", "classes"), [(1, 2, 2), (4, 3, 2), (5, 5, 3), (30, 2, 2)])
def test_parameters_of_tables_are_those_deciban_counts(columns: int, values: int, classes: int) -> None:
    names = [f"column {k}" for k in range(columns)]
    cells = np.tile(np.arange(values).repeat(classes)[:, None], columns).astype(str)
    rows = pd.DataFrame(cells, columns=names)
    count = BayesClassifier(dict.fromkeys(names, Categorical()), tune=None).fit(
        rows, np.tile(np.arange(classes), values)
    ).parameter_count()  # fmt: skip
    (found,) = called("maths_growth.js", ("growthTexts", columns, values, classes, 1000))
    assert found["naive"]["all"] == str(count.naive)
    assert found["joint"]["all"] == str(count.full)
    assert found["combinations"] == str(values**columns)


def test_parameters_of_gaussians_of_several_columns_are_those_deciban_counts() -> None:
    rng = np.random.default_rng(6)
    names = list("abcde")
    rows, labels = pd.DataFrame(rng.normal(size=(60, 5)), columns=names), np.arange(60) % 3
    models: dict[str, Any] = {
        "naive-gaussian": dict.fromkeys(names, Gaussian()),
        "linear": {tuple(names): JointGaussian(Pooled())},
        "quadratic": {tuple(names): JointGaussian()},
    }
    (found,) = called("maths_growth.js", ("growthTexts", 5, 2, 3, 1000))
    for name, families in models.items():
        count = BayesClassifier(families, tune=None).fit(rows, labels).parameter_count()
        assert found[name]["all"] == str(count.model), name


def test_thirty_binary_columns_and_the_columns_that_rows_suffice_for() -> None:
    found, *columns = called(
        "maths_growth.js",
        ("growthTexts", 30, 2, 2, 1000),
        *(("columnsWithin", model, 2, 1000) for model in ("joint", "quadratic", "naive", "naive-gaussian")),
    )
    assert found["joint"] == {"own": "1073741823", "all": "2147483647"}
    assert found["naive"] == {"own": "30", "all": "61"}
    assert found["perRow"] == "1073742"
    assert columns == [9, 43, 1000, 500]  # 2^9 - 1 = 511 and 43 + 43 · 44 / 2 = 989


def drawn_points(count: int, correlation: float, seed: int) -> tuple[list[Any], np.ndarray, np.ndarray]:
    (given,) = called("maths_linear.js", ("drawPoints", count, correlation, seed))
    return given, np.array([[one["x"], one["y"]] for one in given]), np.array([one["kind"] for one in given])


@pytest.mark.parametrize(("count", "correlation"), [(10, 0), (200, 0), (300, 0.8), (100, -0.9)])
def test_lines_are_those_of_deciban_and_of_logistic_regression(count: int, correlation: float) -> None:
    given, points, kinds = drawn_points(count, correlation, 3)
    (gaussians,) = called("maths_linear.js", ("naiveGaussians", given))
    line, steps, regression = called(
        "maths_linear.js", ("lineOf", gaussians), ("naiveSteps", gaussians, 6, 4.5), ("logisticLine", given)
    )
    families = {"x": Gaussian(Pooled()), "y": Gaussian(Pooled())}
    model = BayesClassifier(families, tune=None).fit(pd.DataFrame(points, columns=["x", "y"]), kinds)
    weights, intercept = model.linear_form().hyperplane()
    assert [*line["w"], line["b"]] == pytest.approx([*weights, intercept], rel=1e-9)
    posterior = model.predict_proba(pd.DataFrame([[6, 4.5]], columns=["x", "y"]))[0, 1]
    (score,) = called("maths_linear.js", ("scoreAt", line, 6, 4.5))
    assert steps["posterior"] == pytest.approx(posterior, rel=1e-9)
    assert called("maths_linear.js", ("logistic", score))[0] == pytest.approx(posterior, rel=1e-9)
    assert score == pytest.approx(np.log(steps["joint"][1] / steps["joint"][0]), rel=1e-9)
    peer = LogisticRegression(C=1000, tol=1e-12, max_iter=10_000).fit(points, kinds)
    assert [*regression["w"], regression["b"]] == pytest.approx([*peer.coef_[0], peer.intercept_[0]], rel=1e-4)


def test_logistic_regression_of_separable_points_ends() -> None:
    given = [{"x": x, "y": 5, "kind": int(x > 5)} for x in (1, 2, 3, 7, 8, 9)]
    (line,) = called("maths_linear.js", ("logisticLine", given))
    points, kinds = [[one["x"], one["y"]] for one in given], [one["kind"] for one in given]
    peer = LogisticRegression(C=1000, tol=1e-12, max_iter=100_000).fit(points, kinds)
    assert line["w"][0] == pytest.approx(peer.coef_[0][0], rel=1e-3)


def test_naive_bayes_and_logistic_regression_agree_only_for_independent_columns() -> None:
    for correlation, gap in ((0.0, 0.1), (0.8, 1.0)):
        given, _, _ = drawn_points(2000, correlation, 1)
        (gaussians,) = called("maths_linear.js", ("naiveGaussians", given))
        naive, regression, truth = called(
            "maths_linear.js", ("lineOf", gaussians), ("logisticLine", given), ("trueLine", correlation)
        )
        assert np.abs(np.subtract(regression["w"], truth["w"])).max() < 0.1
        difference = np.abs(np.subtract(naive["w"], regression["w"])).max()
        assert (difference < gap) == (correlation == 0)
    precision = np.linalg.inv(1.69 * np.array([[1, 0.8], [0.8, 1]]))
    assert truth["w"] == pytest.approx((precision @ [2, 1]).tolist())
