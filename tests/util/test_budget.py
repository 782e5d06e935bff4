"""Time budgets, with a clock that only the tests move."""

import warnings

import numpy as np
import pytest

from deciban import BayesClassifier, UsageError
from deciban.errors import DecibanWarning
from deciban.evaluation.validation import cross_validate
from deciban.fitting import fit as fitting
from deciban.fitting.fit import open_examples
from deciban.fitting.tune import boosting, propose
from deciban.model.fitted import Settings
from deciban.util import budget as module
from deciban.util.budget import NO_LIMIT, Budget, exclude_seconds


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    monkeypatch.setattr(module, "_compiled", 0.0)
    return found


@pytest.fixture
def slow(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Seconds of choosing families, per row; of counting; of a round of tables, per row."""
    seconds = {"propose": 0.0, "count": 0.0, "round": 0.0}
    choose, count, held = propose.choose_groups, fitting.count_examples, boosting._Member.grow

    def choose_slowly(rows, base):
        clock.now += seconds["propose"] * rows.labels.size
        return choose(rows, base)

    def count_slowly(*arguments):
        clock.now += seconds["count"]
        return count(*arguments)

    def grow_slowly(member, rate):
        clock.now += seconds["round"] * member.rows.labels.size / boosting.CORRECTIONS.folds
        return held(member, rate)

    monkeypatch.setattr(propose, "choose_groups", choose_slowly)
    monkeypatch.setattr(fitting, "count_examples", count_slowly)
    monkeypatch.setattr(boosting._Member, "grow", grow_slowly)
    return seconds


def table(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * random.normal(size=rows) > 0.0, "yes", "no")


def test_a_budget_counts_from_its_start_and_not_what_is_excluded(clock: Clock) -> None:
    clock.now = 5.0
    budget = Budget.of(10)
    clock.now += 4.0
    assert (budget.used, budget.left, budget.spent) == (4.0, 6.0, False)
    part = budget.part(0.5)
    clock.now += 3.0
    assert part.spent
    assert not budget.spent
    exclude_seconds(6.0)  # of which 6 were compilation
    assert budget.used == 1.0
    clock.now += 9.0
    assert budget.spent
    assert not NO_LIMIT.spent
    assert NO_LIMIT.part(0.5) is NO_LIMIT


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (np.inf, [100_000]),  # not limited: one run
        (1000.0, [1_000, 100_000]),
        (10.0, [1_000, 6_300]),  # 9 s are left: 70% of them, and then too few to double
        (1.5, [1_000]),
        (0.1, [1_000]),
    ],
)
def test_as_many_rows_as_there_is_time_for(clock: Clock, seconds: float, expected: list[int]) -> None:
    """A thousand rows take a second."""
    runs: list[int] = []

    def run(rows: int) -> int:
        runs.append(rows)
        clock.now += rows / 1_000
        return rows

    budget = Budget.of(seconds)
    assert budget.run_with_affordable_rows(run, 100_000, 1_000) == expected[-1]
    assert runs == expected
    assert seconds < 1.0 or budget.used <= seconds


def test_a_first_run_with_fixed_costs_is_followed_by_larger_ones(clock: Clock) -> None:
    runs: list[int] = []

    def run(rows: int) -> None:
        runs.append(rows)
        clock.now += 1.0 + rows / 100_000

    budget = Budget.of(10.0)
    budget.run_with_affordable_rows(run, 10**9, 1_000)
    assert runs[0] == 1_000
    assert sorted(runs) == runs
    assert runs[-1] > 50_000
    assert budget.used <= 10.0


def test_few_rows_are_not_tried_first(clock: Clock) -> None:
    assert Budget.of(1e-9).run_with_affordable_rows(lambda rows: rows, 1_500, 1_000) == 1_500


@pytest.mark.parametrize("seconds", [0, -1.0, np.nan, "2", True])
def test_other_values_are_rejected(seconds: object) -> None:
    X, y = table(60)
    with pytest.raises(UsageError, match=r"max_seconds=.*positive number of seconds"):
        BayesClassifier().fit(X, y, max_seconds=seconds)


def test_without_a_limit_nothing_changes_and_with_much_time_neither() -> None:
    X, y = table(4_000)
    free, rich = BayesClassifier().fit(X, y), BayesClassifier().fit(X, y, max_seconds=1e6)
    assert np.array_equal(free.predict_log_proba(X), rich.predict_log_proba(X))
    assert str(free.tuning_) == str(rich.tuning_)


def test_fits_keep_their_budget(slow: dict[str, float], clock: Clock) -> None:
    """Unlimited, tuning would take 6 s, and 50 rounds of corrections 60 s."""
    X, y = table(6_000)
    slow.update(propose=0.001, count=0.5, round=0.0002)
    for seconds in (1.5, 3.0, 10.0, 20.0):
        start = clock.now
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            clf = BayesClassifier(threads=1).fit(X, y, max_seconds=seconds)
        assert clock.now - start <= 1.2 * seconds
        assert clf.tuning_.rows >= 500
        assert clf.score(X, y) > 0.6
    assert clf.tuning_.rows > 1_000
    assert clf.tuning_.correction_rows >= 1_000
    assert f"corrections learned from {clf.tuning_.correction_rows:,} rows" in str(clf.tuning_)


def test_tables_stop_growing_in_time(slow: dict[str, float], clock: Clock) -> None:
    """Rounds that become slow after the first run, such as on a machine with other work, do not break the budget."""
    X, y = table(1_500)
    slow["round"] = 0.001  # 1.5 s per round
    BayesClassifier(threads=1).fit(X, y, max_seconds=10.0)
    assert 5.0 < clock.now <= 12.0


def test_too_little_time_is_said(slow: dict[str, float], clock: Clock) -> None:
    X, y = table(3_000)
    slow["count"] = 2.0
    with pytest.warns(DecibanWarning) as warned:
        clf = BayesClassifier().fit(X, y, max_seconds=1.0)
    assert [str(one.message) for one in warned] == [
        "max_seconds=1 left no time for tuning: the model is plain Bayes",
        "the fit took 2 s despite max_seconds=1: reading, counting and the smallest tuning are not shortened",
    ]
    assert str(clf.tuning_).startswith("plain Bayes: no time was left for tuning")
    plain = BayesClassifier(tune=None).fit(X, y)
    assert np.array_equal(clf.predict_log_proba(X), plain.predict_log_proba(X))


def test_retuning_and_each_fold_have_the_same_limit(slow: dict[str, float], clock: Clock) -> None:
    X, y = table(6_000)
    clf = BayesClassifier(threads=1).fit(X, y)
    slow.update(propose=0.001, round=0.0002)
    start = clock.now
    clf.retune(X, y, max_seconds=5.0)
    assert 0.0 < clock.now - start <= 6.0
    assert clf.tuning_.correction_rows < 6_000
    start = clock.now
    rows = open_examples(None, X, y)
    assert cross_validate(Settings(threads=1), rows, 2, max_seconds=3.0).accuracy > 0.6
    assert 0.0 < clock.now - start <= 2 * 1.2 * 3.0


def test_rounds_are_not_limited_without_a_budget(slow: dict[str, float], clock: Clock) -> None:
    X, y = table(1_500)
    slow["round"] = 1.0
    BayesClassifier(threads=1).fit(X, y)
    assert clock.now > 1_000.0
