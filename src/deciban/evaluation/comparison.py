"""Drift: counts now against counts learned, and expected performance without labels.

Counts of two sets of rows are merged with the classes of the second behind those of the first. So each statistic holds
both distributions of a column, with the same values and bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.decisions.decide import compute_risks
from deciban.decisions.shift import estimate_shares
from deciban.errors import Argument, DataError, SchemaError, UsageError
from deciban.families.base.checks import AMOUNTS, COUNTS
from deciban.fitting.fit import count_examples, open_examples
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted
from deciban.model.model import posteriors
from deciban.schema.schema import ColumnGroup
from deciban.scoring.outliers import OUTLIER_SHARE, score_outliers
from deciban.scoring.predict import column_of, loss_for, open_for_model, score_table
from deciban.sources.source import Source
from deciban.statistics import Bins, Combined, Levels, Moments, Scatter, Totals, Tuples, Words
from deciban.tables.examples import LabeledTable
from deciban.tables.labels import LabelArray
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Flags, Floats
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import count_noun, format_class, list_names, shorten

# Chi-squared approximations need this expected count in both sets of rows; rarer values are tested exactly.
MIN_EXPECTED = 5.0

# Groups of bins of a number with about equal counts: more find finer changes, with less power for each.
MAX_GROUPS = 10

# Nodes of the quadrature of the divergence of two normal distributions, which then has four digits or more.
NODES = 64

# Lines that are printed; `to_frame` has all.
MAX_LINES_PRINTED = 20


@dataclass(frozen=True)
class ColumnChange:
    """Change of one column; see `Comparison`. The p-value is not corrected."""

    divergence: float = np.nan
    chance: float = np.nan
    p_value: float = np.nan
    unseen: float = 0.0
    missing_learned: float = np.nan
    missing: float = np.nan
    change: str = "counted in different ways"


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Change of each column and of the class shares since training; print it for tables.

    `BayesClassifier.compare` returns it. `to_frame` returns a line for each column. A p-value of NaN stands for a
    column that cannot be tested. What needs rows is None if counts or classifiers were compared.

    Parameters
    ----------
    columns : tuple of str
        Columns of both.
    divergence : ndarray of float
        Jensen-Shannon divergence of the learned and the current distribution of each column, in nats: 0 for the same,
        log 2 for distributions without a common value.
    chance : ndarray of float
        Mean of the divergence without any change, for these numbers of rows.
    p_value : ndarray of float
        Probability of such a change in any column or the class shares, if nothing has changed (corrected by Holm's
        method).
    drifted : ndarray of bool
        True where the p-value is at most `level`.
    unseen : ndarray of float
        Weight of the cells with a value that was not learned.
    missing_learned, missing : ndarray of float
        Share of missing cells, learned and now.
    change : ndarray of str
        Largest part of each change, in words.
    classes : ndarray of shape (n_classes,)
        Classes of both.
    shares_learned, shares : ndarray of shape (n_classes,)
        Share of each class, learned and now. Those of rows without labels are estimated by expectation maximization.
    shares_p_value : float
        Corrected p-value of the change of class shares.
    labeled : bool
        False if the current shares are estimated.
    weights : tuple of float
        Total weight of the rows learned and now.
    level : float
        Probability of any false alarm if nothing has changed.
    outliers : float, default=None
        Share of outliers among the rows.
    accuracy, adjusted_accuracy : float, default=None
        Expected accuracy on the rows, of the classifier as it is, and with the current class shares as prior.
    cost, adjusted_cost : float, default=None
        The same for the mean cost, if a loss was given.

    See Also
    --------
    BayesClassifier.estimate_prior : Class shares of unlabeled rows, with intervals.
    BayesClassifier.with_prior : The classifier for other class shares.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from deciban import BayesClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> found = BayesClassifier(tune=None).fit(X[::2], y[::2]).compare(X[1::2].assign(hue=X.hue[1::2] + 0.2))
    >>> [name for name, drifted in zip(found.columns, found.drifted) if drifted]
    ['hue']
    """

    columns: tuple[str, ...]
    divergence: Floats
    chance: Floats
    p_value: Floats
    drifted: Flags
    unseen: Floats
    missing_learned: Floats
    missing: Floats
    change: npt.NDArray[np.str_]
    classes: LabelArray
    shares_learned: Floats
    shares: Floats
    shares_p_value: float
    labeled: bool
    weights: tuple[float, float]
    level: float
    outliers: float | None = None
    accuracy: float | None = None
    adjusted_accuracy: float | None = None
    cost: float | None = None
    adjusted_cost: float | None = None

    def _columns(self) -> dict[str, Any]:
        names = ("divergence", "chance", "p_value", "drifted", "unseen", "missing_learned", "missing", "change")
        return {"column": list(self.columns), **{name: getattr(self, name) for name in names}}

    def to_dict(self) -> dict[str, Any]:
        """Return all values as plain values; None for those that are not known.

        Returns
        -------
        dict
        """
        lines = [*zip(*(np.asarray(cells).tolist() for cells in self._columns().values()), strict=True)]
        shares = zip(self.classes.tolist(), self.shares_learned.tolist(), self.shares.tolist(), strict=True)
        names = ("level", "labeled", "outliers", "accuracy", "adjusted_accuracy", "cost", "adjusted_cost")
        return {
            "rows_learned": self.weights[0],
            "rows": self.weights[1],
            "columns": [
                {name: _none_if_nan(cell) for name, cell in zip(self._columns(), line, strict=True)} for line in lines
            ],
            "classes": [dict(zip(("class", "learned", "now"), share, strict=True)) for share in shares],
            "classes_p_value": _none_if_nan(self.shares_p_value),
            **{name: getattr(self, name) for name in names},
        }

    def _parts(self) -> list[Part]:
        learned, now = (count_noun(weight, "row") for weight in self.weights)
        found = f"drift in {int(self.drifted.sum())} of {count_noun(len(self.columns), 'column')}"
        title = f"{now}, compared with {learned} learned: {found} (level {100 * self.level:g}%)"
        order = np.lexsort((-self.divergence, np.where(np.isnan(self.p_value), 2.0, self.p_value)))
        lines = [
            (
                ("* " if self.drifted[k] else "  ") + self.columns[k],
                f"{self.divergence[k]:.4f}",
                f"{self.chance[k]:.4f}",
                format_p(self.p_value[k]),
                self.change[k],
            )
            for k in order[:MAX_LINES_PRINTED]
        ]
        head = ("  column", "divergence", "by chance", "p", "largest change")
        more = len(self.columns) - len(lines)
        notes = [f"… ({count_noun(more, 'more column')}: to_frame())"] if more else []
        shares = [
            (format_class(label), f"{before:.3f}", f"{after:.3f}")
            for label, before, after in zip(self.classes.tolist(), self.shares_learned, self.shares, strict=True)
        ]
        how = "from labels" if self.labeled else "estimated from rows without labels"
        p = format_p(self.shares_p_value)
        named = f"class shares, {how}" + (f"; p {'' if p.startswith('<') else '= '}{p}" if p else "")
        parts: list[Part] = [title, TextTable(lines, head, [1, 2, 3], notes=notes)]
        parts.append(TextTable(shares[:MAX_LINES_PRINTED], ("class", "learned", "now"), [1, 2], title=named))
        text = [] if self.outliers is None else [f"outliers: {self.outliers:.1%} of the rows"]
        for name, now_, adjusted in (
            ("expected accuracy", self.accuracy, self.adjusted_accuracy),
            ("expected cost per row", self.cost, self.adjusted_cost),
        ):
            if now_ is not None:
                text.append(f"{name}: {now_:.4f}; with these class shares as prior: {adjusted:.4f}")
        return [*parts, "\n".join(text)] if text else parts


def compare(fitted: Fitted, other: Any, loss: Any = None, level: float = 0.01) -> Comparison:
    """Compare what was learned with rows, counts or another fitted model; see `BayesClassifier.compare`.

    Rows in a `LabeledTable` are taken with their labels.
    """
    if not 0.0 < level < 1.0:
        raise UsageError("give a probability between 0 and 1, such as 0.01", parameter=Argument("level", level))
    learned, table = fitted.counts, None
    if isinstance(other, Fitted):
        mine, theirs = fitted.origin.target, other.origin.target
        if mine is not None and theirs is not None and mine != theirs:
            cause = f"the classifiers predict different columns, {mine!r} and {theirs!r}"
            raise SchemaError(cause, remedy="compare classifiers with the same target, or their counts_")
        other = other.counts
    if isinstance(other, Counts):
        now, by_class = other, dict(zip(other.classes.tolist(), other.class_weight.tolist(), strict=True))
    else:
        now, by_class, table = _count_rows(fitted, other)
    if table is None and loss is not None:
        raise UsageError("expected costs need rows", parameter=Argument("loss"), remedy="pass rows, or no loss")
    weights = float(learned.class_weight.sum()), float(now.class_weight.sum())
    if not min(weights):
        raise DataError("comparing needs at least one row of both")
    names, changes = _compare_columns(learned, now, weights)
    before = dict(zip(learned.classes.tolist(), learned.class_weight.tolist(), strict=True))
    new = [label for label in by_class if label not in before]
    classes = np.array([*before, *new], dtype=object) if new else learned.classes
    cells = np.array([[one.get(label, 0.0) for label in classes.tolist()] for one in (before, by_class)])
    shares, p = cells[1] / max(cells[1].sum(), 1e-300), _test_cells(cells)[2]
    performance: dict[str, Any] = {}
    if table is not None:
        found, p_rows, performance = _expect_performance(fitted, table, shares, loss, weights)
        shares, p = (shares, p) if by_class else (found, p_rows)
    corrected = _correct_by_holm(np.array([*(one.p_value for one in changes), p]))
    columns: dict[str, Any] = {
        f.name: np.array([getattr(one, f.name) for one in changes]) for f in fields(ColumnChange)
    }
    columns |= {"p_value": corrected[:-1], "drifted": corrected[:-1] <= level}
    return Comparison(
        columns=names,
        **columns,
        classes=classes,
        shares_learned=cells[0] / cells[0].sum(),
        shares=shares,
        shares_p_value=float(corrected[-1]),
        labeled=bool(by_class),
        weights=weights,
        level=level,
        **performance,
    )


def _expect_performance(
    fitted: Fitted, table: Table, shares: Floats, loss: Any, weights: tuple[float, float]
) -> tuple[Floats, float, dict[str, Any]]:
    """Return the class shares of rows, the p-value of their change, and the expected performance.

    shares: those of the labels, by class; all 0 without labels. Then they are estimated, and tested by the ratio of
    likelihoods. The learned shares are estimates too, so the ratio is scaled by these rows' part of the variance.
    """
    from scipy.special import chdtrc

    model, prior, p = fitted.model, np.exp(fitted.log_prior), np.nan
    aligned = model.schema.table_as_learned(table)
    posterior = score_table(model, aligned, posteriors, threads=fitted.settings.threads)
    ratio = np.divide(posterior, prior, out=np.zeros_like(posterior), where=prior > 0.0)
    if not shares.any():
        shares = estimate_shares(posterior, prior, model.classes, 0.95, 0.0 if fitted.is_tuned else None).prior
        before = fitted.counts.class_weight / fitted.counts.class_weight.sum()
        now, old = ratio @ shares, ratio @ before
        used = (now > 0.0) & (old > 0.0)
        statistic = 2.0 * float(np.log(now[used] / old[used]).sum()) * weights[0] / sum(weights)
        if fitted.is_tuned:
            p = float(chdtrc(max(int(np.count_nonzero(before)) - 1, 1), max(statistic, 0.0)))
    joint = ratio * (shares if shares.size == prior.size else prior)  # labels may have a class that is not known
    total = joint.sum(axis=1, keepdims=True)
    adjusted = np.divide(joint, total, out=posterior.copy(), where=total > 0.0)
    found: dict[str, Any] = {}
    for name, one in (("accuracy", None), *(() if loss is None else (("cost", loss),))):
        risks, own = (compute_risks(P, loss_for(fitted, one), column_of(table)) for P in (adjusted, posterior))
        taken = risks[np.arange(len(risks)), own.argmin(axis=1)]
        means = float(taken.mean()), float(risks.min(axis=1).mean())
        found[name], found[f"adjusted_{name}"] = means if name == "cost" else (1.0 - means[0], 1.0 - means[1])
    if (scores := score_outliers(fitted, table)) is not None:
        found["outliers"] = float((scores <= OUTLIER_SHARE).mean())
    return shares, p, found


def _count_rows(fitted: Fitted, rows: Any) -> tuple[Counts, dict[Any, float], Table]:
    """Return the counts of rows as one class, the number of rows with each label, and the rows in memory."""
    held = rows if isinstance(rows, LabeledTable) else _open_rows(fitted, rows)
    by_class: dict[Any, float] = {}
    if isinstance(held, LabeledTable):
        table, labels = held.table, held.labels
        number = np.bincount(labels.codes[labels.codes >= 0], minlength=labels.classes.size).tolist()
        by_class = {label: float(rows) for label, rows in zip(labels.classes.tolist(), number, strict=True) if rows}
    else:
        table = held
    one_class = LabeledTable.of(table, np.zeros(table.rows, dtype=np.int64))
    return count_examples(fitted.counts.schema, one_class, fitted.settings.threads), by_class, table


def _open_rows(fitted: Fitted, rows: Any) -> LabeledTable | Table:
    """Return rows in memory, with their labels if they have the target column."""
    opened, target = open_for_model(fitted, rows), fitted.origin.target
    if target is not None and target in (opened.names or ()) and target not in (fitted.schema.names or ()):
        held = open_examples(fitted, opened, target) if isinstance(opened, Source) else LabeledTable.of(opened, target)
        return held.whole()
    return Frame(opened.table()) if isinstance(opened, Source) else opened


def _compare_columns(
    learned: Counts, now: Counts, weights: tuple[float, float]
) -> tuple[tuple[str, ...], list[ColumnChange]]:
    """Return the names of the columns of both, and the change of each."""
    keys, others = (counts.schema.names or range(counts.schema.width) for counts in (learned, now))
    shared = set(keys) & set(others)
    common = [key for key in keys if key in shared]
    if not common:
        shown = [list_names(list(counts.schema.column_names), 3) for counts in (learned, now)]
        raise SchemaError(f"they have no column in common ({shown[0]}; {shown[1]})")
    found: dict[Any, tuple[int, ColumnChange]] = {}
    a, b = learned.classes.size, now.classes.size
    for (group, mine), (other, theirs) in product(
        zip(learned.schema.groups, learned.statistics, strict=True), zip(now.schema.groups, now.statistics, strict=True)
    ):
        own, their = [keys[j] for j in group.columns], [others[j] for j in other.columns]
        there = set(their)
        both = [key for key in own if key in there]
        same = group.family.statistic_key == other.family.statistic_key
        if not both or not same or (group.family.joint and own != their):
            continue
        if own != their:
            mine = mine.reindex_columns(_places(own, both), len(both))
            theirs = theirs.reindex_columns(_places(their, both), len(both))
        merged = mine.reindex_classes(np.arange(a), a + b).merge(theirs.reindex_classes(np.arange(a, a + b), a + b))
        for key, (rank, change) in zip(both, _list_changes(merged, group, a, np.array(weights)), strict=True):
            if key not in found or rank < found[key][0]:
                found[key] = rank, change
    names = dict(zip(keys, learned.schema.column_names, strict=True))
    return tuple(names[key] for key in common), [found.get(key, (0, ColumnChange()))[1] for key in common]


def _places(keys: list[Any], among: list[Any]) -> Any:
    place = {key: k for k, key in enumerate(among)}
    return np.array([place.get(key, -1) for key in keys])


def _list_changes(merged: Any, group: ColumnGroup, split: int, weight: Floats) -> Iterator[tuple[int, ColumnChange]]:
    """Yield the change of each column of a statistic, and its rank: a lower one shows more of the distribution.

    The first `split` classes are those learned, the others those of now.
    """

    def halves(table: Floats) -> Floats:
        return np.stack([table[:split].sum(axis=0), table[split:].sum(axis=0)])

    rank = 10 if group.family.part is not None else 0
    while isinstance(merged, Combined):  # bins, or logs, are the second part
        merged = merged.parts[1]
    if isinstance(merged, Levels):
        for levels, table in zip(merged.levels, merged.tables, strict=True):
            change = _compare_values(_shower(levels), halves(table), weight)
            number = pa.types.is_integer(levels.type) or pa.types.is_floating(levels.type)
            yield rank, _test_order(change, halves(table)) if number else change
    elif isinstance(merged, Bins):
        for column in merged.columns:
            yield rank + 1, _compare_bins(column.edges, halves(column.table), weight)
    elif isinstance(merged, Words):
        for words, counts, texts in zip(merged.vocabularies, merged.counts, halves(merged.text_weight).T, strict=True):
            table = halves(counts.dense())  # the words of a text depend on each other: each text counts as one word
            total = table.sum(axis=1, keepdims=True)
            table = np.divide(table * texts[:, None], total, out=np.zeros_like(table), where=total > 0.0)
            yield rank + 1, _compare_values(words.display, table, weight)
    elif isinstance(merged, Tuples):
        for j, levels in enumerate(merged.levels):
            codes, table = merged.marginal(np.array([j]))
            yield rank + 3, _compare_values(_shower(levels.take(pa.array(codes[:, 0]))), halves(table), None)
    elif isinstance(merged, Totals) and group.family.support not in (COUNTS, AMOUNTS):
        for total, present in zip(halves(merged.total).T, halves(merged.present).T, strict=True):
            cells = np.stack([present - total, total], axis=1)
            yield rank, _compare_values(("false", "true").__getitem__, cells, weight)
    elif isinstance(merged, Totals):
        for total, present in zip(halves(merged.total).T, halves(merged.present).T, strict=True):
            mean, missing = _divide(total, present), 1.0 - present / weight
            text = f"mean {mean[0]:.4g} → {mean[1]:.4g}; the variance is not counted"
            yield rank + 5, ColumnChange(missing_learned=missing[0], missing=missing[1], change=text)
    elif isinstance(merged, Moments | Scatter):
        joint = isinstance(merged, Scatter)
        scatters = np.diagonal(merged.scatter, axis1=1, axis2=2) if joint else merged.scatter
        present = np.broadcast_to(merged.weight[:, None], scatters.shape) if joint else merged.weight
        mean = _divide(halves(present * merged.mean), halves(present))
        away = merged.mean - np.repeat(mean, [split, len(merged.mean) - split], axis=0)
        variance = _divide(halves(scatters + present * away**2), halves(present))
        for one in zip(halves(present).T, mean.T, variance.T, strict=True):
            yield rank + (4 if joint else 2), _compare_moments(*one, None if joint else weight)


def _divide(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)


def _add_missing(cells: Floats, weight: Floats | None) -> tuple[Floats, tuple[float, float]]:
    """Add the missing cells as one more value, if there are any. weight: of all rows; None if not known."""
    if weight is None:
        return cells, (np.nan, np.nan)
    missing = np.maximum(weight - cells.sum(axis=1), 0.0)
    missing = np.where(missing > 1e-9 * weight, missing, 0.0)  # differences from rounding do not count
    shares = float(missing[0] / weight[0]), float(missing[1] / weight[1])
    return (np.column_stack([cells, missing]) if missing.any() else cells), shares


def _compare_values(show: Callable[[int], str], cells: Floats, weight: Floats | None) -> ColumnChange:
    """Compare counts of values, learned and now: by a G-test, value by value, and by values of only one of them."""
    from scipy.special import gammainc

    known = cells.shape[1]
    cells, missing = _add_missing(cells, weight)
    divergence, chance, p = _test_cells(cells)
    total, share = cells.sum(axis=0), cells.sum(axis=1) / max(cells.sum(), 1e-300)
    rare, tests = (total > 0.0) & (total * share.min() < MIN_EXPECTED), [p]
    for there, absent in ((0, 1), (1, 0)) if rare.any() else ():
        only, expected = float((cells[absent, rare] == 0.0).sum()), float((share[there] ** total[rare]).sum())
        tests.append(float(gammainc(only, expected)) if only else 1.0)
    words = "no change"
    if cells.size and cells.any(axis=1).all():
        before, after = cells / cells.sum(axis=1, keepdims=True)
        k = int((_entropy_gain(before, after) + _entropy_gain(after, before)).argmax())
        value = "missing" if k >= known else shorten(show(k), 30)
        words = f"{value}: {before[k]:.1%} → {after[k]:.1%}" if before[k] != after[k] else words
    unseen = float(cells[1, :known][cells[0, :known] == 0.0].sum())
    return ColumnChange(divergence, chance, _combine(tests), unseen, *missing, words)


def _shower(levels: pa.Array) -> Callable[[int], str]:
    return lambda k: format_class(levels[k].as_py())


def _compare_bins(edges: Floats, cells: Floats, weight: Floats) -> ColumnChange:
    """Compare counts of bins, in groups with about equal counts, and their order."""
    total = cells.sum(axis=0)
    group = (MAX_GROUPS * (np.cumsum(total) - total / 2.0) / max(total.sum(), 1e-300)).astype(int)
    start = np.flatnonzero(np.diff(group, prepend=-1))
    last = edges[np.append(start[1:], edges.size) - 1]
    grouped = np.add.reduceat(cells, start, axis=1) if cells.size else cells
    found = _compare_values(lambda k: f"{edges[start[k]]:.4g} to {last[k]:.4g}", grouped, weight)
    return replace(_test_order(found, cells), unseen=0.0)


def _test_order(found: ColumnChange, cells: Floats) -> ColumnChange:
    """Add the test of Kolmogorov and Smirnov to a change of values that are numbers, in ascending order."""
    from scipy.special import kolmogorov

    n = cells.sum(axis=1)
    if not n.all():
        return found
    gap = np.abs(np.cumsum(cells[1]) / n[1] - np.cumsum(cells[0]) / n[0]).max()
    p = float(kolmogorov(gap * np.sqrt(n[0] * n[1] / n.sum())))
    return replace(found, p_value=_combine([found.p_value, p]))


def _compare_moments(present: Floats, mean: Floats, variance: Floats, weight: Floats | None) -> ColumnChange:
    """Compare means by a t-test, and missing cells. The variance is not tested: its error depends on the tails."""
    from scipy.special import stdtr

    cells, missing = _add_missing(present[:, None], weight)
    divergence, chance, p = _test_cells(cells)
    words, tests, inverse = "no change", [p] if cells.shape[1] > 1 else [], float(_divide(np.ones(2), present).sum())
    if present.all():
        pooled, step = float(np.sqrt(present @ variance / present.sum())), float(mean[1] - mean[0])
        size = 0.0 if step == 0.0 else step / pooled if pooled else np.copysign(np.inf, step)
        freedom = float(present.sum()) - 2.0
        t = abs(size) * np.sqrt(max(freedom, 0.0) / (inverse * present.sum()))
        tests.append(float(2.0 * stdtr(freedom, -t)) if freedom > 0.0 else 1.0)
        divergence, chance = divergence + _diverge_normals(abs(size)), chance + inverse / 8.0
        if p < tests[-1]:
            words = f"missing: {missing[0]:.1%} → {missing[1]:.1%}"
        elif (variance != variance[0]).any() or size:
            ratio = float(np.sqrt(variance[1] / variance[0])) if variance[0] else np.inf
            words = f"mean {size:+.2f} SD, SD × {ratio:.2f}"
    return ColumnChange(divergence, chance, _combine(tests), 0.0, *missing, words)


def _diverge_normals(distance: float) -> float:
    """Return the Jensen-Shannon divergence of two normal distributions with variance 1, by Gauss-Hermite quadrature."""
    x, weights = np.polynomial.hermite_e.hermegauss(NODES)
    far = min(distance, 100.0)
    return max(float(np.log(2.0) - weights @ np.logaddexp(0.0, far * x - far**2 / 2.0) / weights.sum()), 0.0)


def _test_cells(cells: Floats) -> tuple[float, float, float]:
    """Return the divergence of two rows of counts, its mean under no change, and the p-value of no change.

    Two tests are combined: a G-test of the frequent values, and an exact test of each value given how often it occurs
    in both. The correction for several values leaves out those too rare for significance (Tarone 1990).
    """
    from scipy.special import betainc, chdtrc

    n, total = cells.sum(axis=1), cells.sum(axis=0)
    cells, total = cells[:, total > 0.0], total[total > 0.0]
    if not n.all() or total.size < 2:
        return 0.0, 0.0, 1.0
    share = n / n.sum()
    frequent = total * share.min() >= MIN_EXPECTED
    rest = cells[:, ~frequent].sum(axis=1)
    grouped = np.column_stack([cells[:, frequent], rest]) if rest.any() else cells
    p, q = grouped / n[:, None]
    divergence = 0.5 * float((_entropy_gain(p, q) + _entropy_gain(q, p)).sum())
    kept = grouped[:, grouped.sum(axis=0) * share.min() >= MIN_EXPECTED]
    expected = kept.sum(axis=1, keepdims=True) * kept.sum(axis=0) / max(kept.sum(), 1e-300)
    statistic = 2.0 * float(
        (kept * np.log(np.where(kept > 0.0, kept, 1.0) / np.where(kept > 0.0, expected, 1.0))).sum()
    )
    chance = (grouped.shape[1] - 1) * float((1.0 / n).sum()) / 8.0
    overall = [float(chdtrc(kept.shape[1] - 1, max(statistic, 0.0)))] if kept.shape[1] > 1 else []
    x, y = cells[1], cells[0]
    at_least = np.where(x > 0.0, betainc(np.maximum(x, 1e-9), y + 1.0, share[1]), 1.0)
    at_most = np.where(y > 0.0, betainc(np.maximum(y, 1e-9), x + 1.0, share[0]), 1.0)
    single = np.minimum(2.0 * np.minimum(at_least, at_most), 1.0)
    smallest = float(single.min())
    testable = float((2.0 * share.min() ** total <= smallest).sum())
    return max(divergence, 0.0), chance, _combine([*overall, min(max(testable, 1.0) * smallest, 1.0)])


def _combine(p: list[float]) -> float:
    """Return the harmonic mean of p-values, which is the p-value of all tests together (Wilson 2019).

    Tests of one column depend on each other in unknown ways. Small harmonic means hardly depend on it, and are never
    larger than by Bonferroni's correction. A test that cannot find anything must not be among them.

    >>> round(_combine([0.01, 0.01]), 6), round(_combine([0.001, 1.0]), 6)
    (0.01, 0.001998)
    """
    return float(len(p) / (1.0 / np.maximum(p, 1e-300)).sum()) if p else 1.0


def _entropy_gain(p: Floats, q: Floats) -> Floats:
    """Return p log(p / m) for the mean m of both."""
    there = p > 0.0
    return np.asarray(p * np.log(np.where(there, p, 1.0) / np.where(there, (p + q) / 2.0, 1.0)))


def _correct_by_holm(p: Floats) -> Floats:
    """Return the p-values, corrected so that those at most `level` contain a false one with this probability at most.

    >>> _correct_by_holm(np.array([0.04, 0.01, np.nan, 0.3])).tolist()
    [0.08, 0.03, nan, 0.3]
    """
    corrected = np.full(p.size, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1)), 1.0)
    return corrected


def format_p(p: float | None) -> str:
    """Return a p-value as text: empty if it is not known."""
    return "" if p is None or np.isnan(p) else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _none_if_nan(value: Any) -> Any:
    return None if value != value else value  # NaN differs from itself
