"""Family of blocks of real columns with a joint normal distribution: linear and quadratic discriminant analysis.

`JointGaussian` is the family, `JointNormal` its likelihood, `Whitened` the form used for scoring, `Downdate` scores
left-out rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from deciban import kernels
from deciban.families.base.checks import FINITE, check_amount, check_finite
from deciban.families.base.contract import (
    BaseLikelihood,
    BlockFamily,
    Covariance,
    DiscriminantTerms,
    FreeParameters,
    LeftOutRows,
    ParameterEstimates,
    Sampled,
    group_by_missing,
    score_block,
)
from deciban.families.base.lowering import ExportedColumns, JointNormalTerm, Lowered, WhitenedForm, reject_infinite
from deciban.families.base.shapley import MAX_ENUMERATED, Rule, ShapleyValues, gradual_normal_shares, shapley
from deciban.families.base.spread import PerClass, Spread, check_spread, estimate_spread_errors, find_varying
from deciban.families.base.sql_questions import Later, Number, SqlQuestions
from deciban.families.gaussian import Gaussian
from deciban.statistics import Scatter
from deciban.tables.table import Readable
from deciban.util.arrays import TILE_PITCH, TILE_ROWS, Codes, Flags, Floats, Integers, Numbers
from deciban.util.special import solve_lower
from deciban.util.text_tables import format_digits, format_number

# Maximum size of arrays row by class by class, or row by class by column, while errors are added up.
MAX_ERROR_TERMS = 1 << 22

# A direction with less than this share of the columns' variances counts as constant: it may be a rounding error.
NO_VARIANCE = 1e-12

HALF_LOG_2_PI = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True, repr=False)
class JointGaussian(BlockFamily):
    r"""Several columns of real numbers together: a multivariate normal distribution for each class.

    All columns are one block. Rows with a missing cell are left out in training; in scoring, missing cells are
    integrated out.

    Parameters
    ----------
    covariance : PerClass, Pooled or Shrunk, default=PerClass()
        PerClass() is quadratic discriminant analysis, Pooled() linear discriminant analysis, Shrunk(amount) a weighted
        mean of both.
    ddof : float, default=0.0
        Delta degrees of freedom, as in `numpy.cov`: 0 is maximum likelihood, 1 unbiased. With `Pooled` it is subtracted
        once per class: ddof=1 divides the pooled scatter by n - n_classes, as `lda` of R's MASS does.
    floor : float, default=0.0
        Minimum variance in any direction, in units of each column's variance over all classes. With 0, only directions
        in which the n rows of a matrix do not vary are adjusted: they get 1/(n+1) of these units.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Gaussian : Each column on its own.
    deciban.dropin.LinearDiscriminantAnalysis, deciban.dropin.QuadraticDiscriminantAnalysis : With scikit-learn's names.

    Notes
    -----
    For d columns with the mean vector :math:`\mu_c` and the covariance matrix :math:`\Sigma_c`:

    .. math::

        \log p(x \mid c) = - \frac{1}{2} \left( (x - \mu_c)^T \Sigma_c^{-1} (x - \mu_c)
        + \log \det \Sigma_c + d \log 2 \pi \right)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier, JointGaussian, Pooled
    >>> X, y = load_iris(return_X_y=True)
    >>> round(BayesClassifier({(0, 1, 2, 3): JointGaussian(Pooled())}, tune=None).fit(X, y).score(X, y), 2)
    0.98
    """

    covariance: Spread = PerClass()
    ddof: float = 0.0
    floor: float = 0.0

    support = FINITE

    def __post_init__(self) -> None:
        check_amount("ddof", self.ddof)
        check_amount("floor", self.floor)
        check_spread(self.covariance)

    def marginal_family(self) -> Gaussian:
        return Gaussian()

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> Scatter:
        return Scatter.empty(classes, columns)

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Scatter:
        return Scatter.count(cells, labels, weights, classes)

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Scatter]:
        return questions.scatter([Number(column) for column in columns])

    def estimate(self, statistic: Scatter) -> JointNormal:
        return self._estimate(statistic, self._shares(statistic))

    def _unshrunk(self, statistic: Scatter) -> Floats:
        """Return the covariance of each class and, last, the pooled one, in units of the columns' deviations."""
        unit = find_units(statistic.merge_classes())
        divisor = np.maximum(statistic.weight - self.ddof, 0.0)[:, None, None]
        scatter = (statistic.scatter + statistic.scatter_low) * np.outer(1.0 / unit, 1.0 / unit)
        scatter = np.concatenate([scatter, scatter.sum(axis=0, keepdims=True)])
        divisor = np.concatenate([divisor, divisor.sum(axis=0, keepdims=True)])
        return np.divide(scatter, divisor, out=np.zeros_like(scatter), where=divisor > 0.0)

    def _shares(self, statistic: Scatter) -> Floats:
        """Return the share by which each of these matrices is shrunk toward its diagonal."""
        share = self.covariance.shrinkage
        if share != "oas":
            return np.full(statistic.weight.size + 1, float(share))
        weights = [*statistic.weight, statistic.weight.sum()]
        pairs = zip(self._unshrunk(statistic), weights, strict=True)
        return np.array([oas_share(matrix, weight) for matrix, weight in pairs])

    def _estimate(self, statistic: Scatter, shares: Floats) -> JointNormal:
        return build_joint_normal(statistic, *self._covariance(statistic, shares), self.floor)

    def _covariance(self, statistic: Scatter, shares: Floats) -> tuple[Floats, Integers]:
        """Return the matrices, in units of the columns' deviations, and the index of the matrix of each class."""
        overall, seen = statistic.merge_classes(), statistic.weight > 0.0
        unit = find_units(overall)
        scale = np.outer(1.0 / unit, 1.0 / unit)
        pairs = zip(self._unshrunk(statistic), shares, strict=True)
        *classes, pooled = (shrink(matrix, share) for matrix, share in pairs)
        own = np.stack(classes)
        everything = (overall.scatter + overall.scatter_low) * scale / max(overall.weight[0], 1e-300)
        if self.covariance.shared:
            covariance, group = np.concatenate([pooled[None], everything]), np.where(seen, 0, 1)
        else:
            covariance = np.where(seen[:, None, None], self.covariance.combine(own, pooled), everything)
            group = np.arange(seen.size)
        return covariance[: group.max(initial=0) + 1], group

    def score_left_out(
        self, statistic: Scatter, cells: Numbers, rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        """Score each row by a rank-one downdate of its class's matrix, or by a factorization of its own.

        The latter is needed if shrinkage changes the diagonal. Rows without which a matrix might reach the floor, or a
        class have no rows, are refitted. The shrinkage is that of all rows together.
        """
        shares = self._shares(statistic)
        covariance, group = self._covariance(statistic, shares)
        columns = np.flatnonzero(np.isfinite(find_units(statistic.merge_classes())))
        left_out = (rows.removed > 0.0) & ~np.isnan(cells).any(axis=1) & bool(columns.size)
        counted = np.flatnonzero(left_out)
        evidence = np.zeros((len(cells), 1, out.shape[2]))
        as_counted = np.flatnonzero(~left_out) if self.covariance.share_pooled else np.arange(len(cells))
        if as_counted.size:
            whole = build_joint_normal(statistic, covariance, group, self.floor)
            every = as_counted.size == len(cells)
            evidence[as_counted, 0] = score_block(whole, cells if every else cells[as_counted], out.shape[2])
        if counted.size:
            x = (cells if counted.size == len(cells) else cells[counted])[:, columns].astype(np.float64)
            kept = statistic.weight > 0.0
            place = np.where(kept, np.cumsum(kept) - 1, -1)
            some = LeftOutRows(place[rows.labels[counted]].astype(np.int32), rows.removed[counted])
            present = statistic if kept.all() else statistic.reindex_classes(place, int(kept.sum()))
            downdate = self._downdate(present, shares[np.append(kept, True)], columns)
            found, sure = downdate.score(x, some, evidence[counted, 0][:, kept])
            if np.linalg.eigvalsh(covariance[:, columns][:, :, columns]).min() <= 2.0 * downdate.floor:
                sure[:] = False  # a matrix at the floor depends on all rows
            evidence[counted[:, None], 0, np.flatnonzero(kept)] = found
            if not kept.all():  # a class without rows has the distribution of all rows
                plain = JointGaussian(floor=self.floor)
                of_all = plain._downdate(statistic.merge_classes(), np.zeros(2), columns)
                alike = LeftOutRows(np.zeros_like(some.labels), some.removed)
                found, sure_of_all = of_all.score(x, alike, np.zeros((counted.size, 1)))
                evidence[counted[:, None], 0, np.flatnonzero(~kept)] = found
                sure &= sure_of_all
            self._score_by_refitting(statistic, shares, cells, rows, counted[~sure], evidence)
        out[:, slot[0]] += evidence[:, 0]

    def _downdate(self, statistic: Scatter, shares: Floats, columns: Integers) -> Downdate:
        return Downdate.of(statistic, columns, self.covariance, shares, self.ddof, self.floor)

    def add_covariance(
        self, whole: JointNormal, statistic: Scatter, cells: Numbers, weight: Floats, out: Covariance
    ) -> None:
        """Add the estimation errors of means and covariance matrices.

        In whitened coordinates, at a distance y from a mean, the error of the mean has the variance y'y/n, and that of
        the matrix tr((yy' - 1)²)/2n. The covariance of two classes is proportional to the product of their yy' - 1.
        """
        varies = whole.whitened.columns
        rows = np.maximum(statistic.weight, 0.5)
        errors = estimate_spread_errors(self.covariance, rows, np.ones(rows.size))
        z = (cells[:, varies] - whole.center[varies]) / whole.unit[varies]
        step = max(1, MAX_ERROR_TERMS // (rows.size * max(rows.size, varies.size)))
        for pattern, rows_of in group_by_missing(np.isnan(z)):
            used = varies[~pattern]
            if not used.size:
                continue
            whiten = np.linalg.inv(np.linalg.cholesky(whole.covariance[:, used][:, :, used]))[whole.group]
            for first in range(0, rows_of.size, step):
                here = rows_of[first : first + step]
                away = z[np.ix_(here, ~pattern)][:, None] - whole.mean[:, used]
                white = np.einsum("cij,ncj->nci", whiten, away)
                squares = (white**2).sum(axis=2)
                matrix = np.maximum(squares**2 - 2.0 * squares + used.size, 0.0)
                out.own[here] += weight[0] ** 2 * (np.diag(errors) * matrix + squares / rows)
                if self.covariance.share_pooled:
                    between = (
                        (white @ white.swapaxes(1, 2)) ** 2 - squares[:, :, None] - squares[:, None, :] + used.size
                    )
                    between *= weight[0] ** 2 * (errors - np.diag(np.diag(errors)))
                    for direction, shared in zip(out.directions, out.shared, strict=True):
                        shared[here] += np.einsum("nab,nb->na", between, direction[here])

    def _score_by_refitting(
        self, statistic: Scatter, shares: Floats, cells: Numbers, rows: LeftOutRows, again: Integers, evidence: Floats
    ) -> None:
        """Score rows by definition: remove each from the statistic, estimate, score it."""
        for i in again:
            at = slice(i, i + 1)
            row = Scatter.count(cells[at], rows.labels[at], rows.removed[at], evidence.shape[2])
            left = self._estimate(statistic.remove(row, tolerance=0.0), shares)
            evidence[at, 0] = score_block(left, cells[at], evidence.shape[2])


def shrink(matrix: Floats, share: float) -> Floats:
    """Return the matrix shrunk toward its diagonal."""
    return (1.0 - share) * matrix + share * np.diag(np.diag(matrix))


def oas_share(matrix: Floats, weight: float) -> float:
    """Return the oracle approximating shrinkage (Chen et al.) of a correlation matrix."""
    deviation = np.sqrt(np.diag(matrix))
    used = deviation > 0.0
    size = int(used.sum())
    if size < 2 or weight <= 0.0:
        return 0.0
    correlation = (matrix / np.where(used, deviation, 1.0) / np.where(used, deviation, 1.0)[:, None])[used][:, used]
    mean_square = float((correlation**2).mean())
    top = mean_square + 1.0
    bottom = (weight + 1.0) * (mean_square - 1.0 / size)
    return 1.0 if bottom <= 0.0 else min(top / bottom, 1.0)


def find_units(overall: Scatter) -> Floats:
    """Return the standard deviation of each column over all classes; infinity for a constant column."""
    variance = np.diagonal(overall.scatter[0]) / max(overall.weight[0], 1e-300)
    varies = find_varying(variance, overall.mean[0])
    return np.asarray(np.sqrt(variance, out=np.full_like(variance, np.inf), where=varies))


def build_joint_normal(statistic: Scatter, covariance: Floats, group: Integers, floor: float) -> JointNormal:
    """Return the distributions with the means of the statistic and these covariances.

    Covariances are in units of the columns' deviations, so that results do not depend on units of measurement. A class
    without rows gets the overall mean. A constant direction gets the variance 1/(n+1), as if the next of n rows
    differed.
    """
    overall, seen = statistic.merge_classes(), statistic.weight > 0.0
    unit, center = find_units(overall), overall.mean[0]
    mean = np.where(seen[:, None], (statistic.mean - center) + statistic.mean_low, 0.0) / unit
    rows = np.zeros(len(covariance))
    np.add.at(rows, group, statistic.weight)
    rows = np.where(rows > 0.0, rows, statistic.weight.sum())
    return JointNormal.of(center, unit, mean, raise_eigenvalues(covariance, floor, 1.0 / (1.0 + rows)), group)


def raise_eigenvalues(covariance: Floats, floor: float, unspread: Floats) -> Floats:
    """Raise the eigenvalues of the matrices to at least `floor`.

    If it is 0, eigenvalues within rounding errors become unspread[matrix].
    """
    result = covariance.copy()
    for g, matrix in enumerate(covariance):
        values, vectors = np.linalg.eigh(matrix)
        if values.size and values[0] < max(floor, NO_VARIANCE):
            none = values <= NO_VARIANCE
            values = np.where(none, floor or max(unspread[g], NO_VARIANCE), np.maximum(values, floor))
            result[g] = (vectors * values) @ vectors.T
    return result


@dataclass(frozen=True)
class JointNormal(BaseLikelihood):
    """Multivariate normal distributions, in units of `unit` about `center`.

    `covariance[group[c]]` is the matrix of class c. A column with an infinite unit is constant and has no evidence.
    common: the part that is the same for every class, if it is computed separately.
    """

    center: Floats
    unit: Floats
    mean: Floats
    covariance: Floats
    group: Integers
    whitened: Whitened
    common: Whitened | None

    @classmethod
    def of(cls, center: Floats, unit: Floats, mean: Floats, covariance: Floats, group: Integers) -> Self:
        return cls(
            center, unit, mean, covariance, group, *Whitened.of(center, unit, mean, covariance, group).separate_common()
        )

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        if not self.whitened.columns.size:
            check_finite(cells)
            return
        used, holed = self._select_varying(cells)
        if holed is None:
            self.whitened.score(used, weight[0], slot[0], out)
        else:
            for rows, score in (
                (np.flatnonzero(~holed), self.whitened.score),
                (np.flatnonzero(holed), self._score_holed),
            ):
                part = np.zeros((rows.size, 1, out.shape[2]))
                score(used[rows], weight[0], 0, part)
                out[rows, slot[0]] += part[:, 0]

    def _select_varying(self, cells: Numbers) -> tuple[Floats, Flags | None]:
        """Return the cells of varying columns, and flags of rows with missing cells; None if there is no such row."""
        varies = self.whitened.columns
        used = np.ascontiguousarray(cells if varies.size == cells.shape[1] else cells[:, varies], dtype=np.float64)
        if kernels.cell_counts.all_finite(cells.ravel()):
            return used, None
        check_finite(cells)
        holed = np.asarray(np.isnan(used).any(axis=1))
        return used, holed if holed.any() else None

    def _score_holed(self, cells: Floats, weight: float, slot: int, out: Floats) -> None:
        if weight == 0.0:
            return
        varies = self.whitened.columns
        center, unit, mean = self.center[varies], self.unit[varies], np.ascontiguousarray(self.mean[:, varies])
        covariance = np.ascontiguousarray(self.covariance[:, varies][:, :, varies])
        kept, root = np.empty(varies.size, dtype=np.int64), np.empty((len(covariance), varies.size + 1, varies.size))
        normals = kernels.scoring.JointNormals(
            center=center, unit=unit, covariance=covariance, group=self.group, mean=mean
        )
        kernels.scoring.score_holed_normal(cells, normals, weight, slot, kept, root, out)

    def log_common_factor(self, cells: Numbers) -> Floats | None:
        """Return the evidence of the coordinates in which classes do not differ; 0 for rows with missing cells.

        The score of rows with missing cells contains it already.
        """
        if self.common is None:
            return None
        used, holed = self._select_varying(cells)
        out = np.zeros((len(used), 1, 1))
        self.common.score(used, 1.0, 0, out)
        return out[:, 0] if holed is None else np.where(holed[:, None], 0.0, out[:, 0])

    def shapley_values(self, cells: Numbers) -> ShapleyValues:
        """Return Shapley values if few columns vary, else Aumann-Shapley values."""
        varies = self.whitened.columns
        rule = Rule.EXACT if varies.size <= MAX_ENUMERATED else Rule.GRADUAL
        values = np.zeros((*cells.shape, self.group.size))
        for missing, rows in group_by_missing(np.isnan(cells[:, varies])):
            kept = varies[~missing]
            with np.errstate(over="ignore"):
                z = (cells[np.ix_(rows, kept)] - self.center[kept]) / self.unit[kept]
            found = self._exact_shares(z, kept) if rule is Rule.EXACT else self._gradual_shares(z, kept)
            values[rows[:, None], kept] = found - (HALF_LOG_2_PI + np.log(self.unit[kept]))[None, :, None]
        return ShapleyValues(values, rule)

    def _exact_shares(self, z: Floats, kept: Integers) -> Floats:
        """Return the Shapley values of the known columns, row by column by class, in units of the columns."""

        def log_density(known: Flags) -> Floats:
            found, some = np.zeros((len(z), self.group.size)), kept[known]
            for c, group in enumerate(self.group):
                root = np.linalg.cholesky(self.covariance[group][np.ix_(some, some)])
                away = (z[:, known] - self.mean[c, some]).T
                white = solve_lower(root, away)
                with np.errstate(over="ignore"):
                    found[:, c] = -0.5 * (white**2).sum(axis=0) - np.log(np.diag(root)).sum()
            return found

        return shapley(log_density, kept.size).values

    def _gradual_shares(self, z: Floats, kept: Integers) -> Floats:
        """Return the Aumann-Shapley values of the known columns, row by column by class, in units of the columns."""
        values = np.empty((*z.shape, self.group.size))
        for c, group in enumerate(self.group):
            with np.errstate(over="ignore", invalid="ignore"):
                covariance = self.covariance[group][np.ix_(kept, kept)]
                values[:, :, c] = gradual_normal_shares(z - self.mean[c, kept], covariance)
        return values

    def lower(self, columns: ExportedColumns) -> Lowered:
        """Return one term of the columns that vary."""
        white, varies = self.whitened, self.whitened.columns
        refusals = [reject_infinite(column) for column in columns.numbers]
        if not varies.size:
            return Lowered([[]], refusals)
        form = WhitenedForm(white.group, white.whiten, white.reach, white.mean, white.offset)
        covariance = self.covariance[:, varies][:, :, varies]
        numbers = tuple(columns.numbers[k] for k in varies.tolist())
        term = JointNormalTerm(numbers, white.center, form, self.unit[varies], self.mean[:, varies], covariance)
        return Lowered([[term]], refusals)

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        unit = np.where(np.isfinite(self.unit), self.unit, 0.0)
        root = np.linalg.cholesky(self.covariance)[self.group]
        noise = rng.standard_normal((len(labels), self.unit.size))
        standard = self.mean[labels] + np.einsum("nij,nj->ni", root[labels], noise)
        return list((self.center + unit * standard).T)

    def estimates(self) -> list[ParameterEstimates]:
        """Return the mean of each column and the covariance matrix, by class."""
        unit = np.where(np.isfinite(self.unit), self.unit, 0.0)
        mean = self.center + np.where(unit > 0.0, self.mean, 0.0) * unit
        return [ParameterEstimates({"mean": mean, "covariance": self.covariance[self.group] * np.outer(unit, unit)})]

    def curve_points(self, column: int) -> Floats:
        unit = self.unit[column] if np.isfinite(self.unit[column]) else 0.0
        return np.unique(self.center[column] + self.mean[:, column] * unit)

    def free_parameters(self) -> FreeParameters:
        """Return the number of means and of distinct entries of the matrices."""
        columns, classes = self.center.size, self.group.size
        matrices = len(np.unique(self.group))
        joint = classes * columns + matrices * columns * (columns + 1) // 2
        shared = columns * matrices if matrices < classes else 0
        return FreeParameters((joint,), columns * (classes + matrices), shared, n_continuous=columns)

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        """Return terms of the columns that vary; quadratic unless all classes have the same matrix."""
        varies = self.whitened.columns
        unit, mean = self.unit[varies], self.mean[:, varies] * self.unit[varies]  # beyond the center
        matrices = self.covariance[:, varies][:, :, varies] * np.outer(unit, unit)
        inverses = np.linalg.inv(matrices)[self.group]
        slope = np.einsum("cij,cj->ic", inverses, mean)
        offset = -0.5 * np.einsum("ci,cij,cj->c", mean, inverses, mean)
        curve: Floats | None = None
        if np.unique(self.group).size > 1:
            curve = np.asarray(-0.5 * inverses, dtype=np.float64)
            offset = offset - 0.5 * np.linalg.slogdet(matrices)[1][self.group]
        kept = tuple(names[k] for k in varies)
        return [
            DiscriminantTerms(
                kept, lambda cells: cells[:, varies].astype(np.float64), slope, offset, curve, self.center[varies]
            )
        ]

    def formula(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        if np.isnan(cells[row]).all():
            return None
        mean = self.center + np.where(np.isfinite(self.unit), self.mean[label], 0.0) * np.where(
            np.isfinite(self.unit), self.unit, 0.0
        )
        point = ", ".join("missing" if np.isnan(value) else format_number(value) for value in cells[row])
        return f"N(({point}); mean ({', '.join(map(format_digits, mean))}), its covariance)"


@dataclass(frozen=True)
class Whitened:
    """Log density of the columns that vary, as offset - |whiten (x - center) - mean|**2.

    whiten[g, m, k]: the factor of column k in coordinate m of group g; 0 from column reach[m] on.
    """

    columns: Integers
    center: Floats
    whiten: Floats
    reach: Integers
    group: Integers
    mean: Floats
    offset: Floats

    @classmethod
    def of(cls, center: Floats, unit: Floats, mean: Floats, covariance: Floats, group: Integers) -> Self:
        columns = np.flatnonzero(np.isfinite(unit))
        size, kept = columns.size, np.ix_(columns, columns)
        whiten, log_root = np.empty((len(covariance), size, size)), np.zeros(len(covariance))
        for g, matrix in enumerate(covariance):
            lower = np.linalg.cholesky(matrix[kept])
            inverse = solve_lower(lower, np.eye(size)) / np.sqrt(2.0)
            log_root[g] = np.log(np.diag(lower)).sum() + np.log(unit[columns]).sum()
            whiten[g] = inverse / unit[columns]
        whitened = np.einsum("cmk,ck->cm", whiten[group], mean[:, columns] * unit[columns])
        offset = -0.5 * size * np.log(2.0 * np.pi) - log_root[group]
        return cls(columns, center[columns], whiten, np.arange(1, size + 1), group, whitened, offset)

    def separate_common(self) -> tuple[Whitened, Whitened | None]:
        """Split the coordinates into those in which classes differ and the others.

        Coordinates are rotated so that the means lie along the first axes; along the others, all classes have the same
        distance. The second part is None unless all classes have one matrix and most coordinates are common.
        """
        size = self.columns.size
        if self.group.any() or not size:
            return self, None
        _, spread, axes = np.linalg.svd(self.mean)
        rank = int((spread > size * np.finfo(np.float64).eps * spread[0]).sum())
        if 2 * rank >= size:
            return self, None
        whiten, mean, reach = axes @ self.whiten, self.mean @ axes.T, np.full(size, size)
        differ = replace(
            self,
            whiten=np.ascontiguousarray(whiten[:, :rank]),
            reach=reach[:rank],
            mean=np.ascontiguousarray(mean[:, :rank]),
            offset=np.zeros_like(self.offset),
        )
        common = replace(
            self,
            whiten=np.ascontiguousarray(whiten[:, rank:]),
            reach=reach[rank:],
            group=self.group[:1],
            mean=np.zeros((1, size - rank)),
            offset=self.offset[:1],
        )
        return differ, common

    def score(self, cells: Floats, weight: float, slot: int, out: Floats) -> None:
        if weight == 0.0:
            return
        normals = kernels.scoring.WhitenedNormals(
            self.center, self.whiten, self.reach, self.group, self.mean, self.offset
        )
        columns, white = np.zeros((self.columns.size, TILE_PITCH)), np.zeros((self.reach.size, TILE_ROWS))
        kernels.scoring.score_joint_normal(cells, *normals, weight, slot, columns, white, np.empty(TILE_ROWS), out)


@dataclass(frozen=True)
class Downdate:
    """Scatter matrices from which single rows are removed, in units of the columns' deviations."""

    weight: Floats
    mean: Floats
    center: Floats
    unit: Floats
    scatter: Floats
    pooled: Floats
    shares: Floats
    mix: float
    ddof: float
    floor: float

    @classmethod
    def of(
        cls, statistic: Scatter, columns: Integers, spread: Spread, shares: Floats, ddof: float, floor: float
    ) -> Self:
        """Return the scatters of some columns; shares: the shrinkage of the matrix of each class and the pooled one."""
        overall = statistic.merge_classes()
        unit, center = find_units(overall)[columns], overall.mean[0, columns]
        mean = ((statistic.mean[:, columns] - center) + statistic.mean_low[:, columns]) / unit
        scatter = (statistic.scatter + statistic.scatter_low)[:, columns][:, :, columns] / np.outer(unit, unit)
        pooled, least = scatter.sum(axis=0), max(floor, NO_VARIANCE)
        return cls(statistic.weight, mean, center, unit, scatter, pooled, shares, spread.share_pooled, ddof, least)

    def score(self, x: Floats, rows: LeftOutRows, whole: Floats) -> tuple[Floats, Flags]:
        """Return the evidence of each row, and a flag for each row that surely does not reach the floor."""
        z = np.ascontiguousarray((x - self.center) / self.unit)
        constant = -np.log(self.unit).sum() - 0.5 * self.unit.size * np.log(2.0 * np.pi)
        rest = self.weight[rows.labels] - rows.removed
        sure = (rest > self.ddof + 1e-9) & (rest > 1e-9 * rows.removed)
        if not self.shares.any() and self.mix in (0.0, 1.0):
            return self._by_rank_one(z, rows, whole, constant, sure)
        away = z - self.mean[rows.labels]
        drop = (rows.removed * self.weight[rows.labels] / np.where(sure, rest, 1.0))[:, None] * away**2
        own = self._diagonal(self.scatter)[rows.labels] - drop
        own = own / np.where(sure, rest - self.ddof, 1.0)[:, None]
        freedom = np.maximum(self.weight - self.ddof, 0.0).sum()
        pooled = (np.diag(self.pooled) - drop) / max(freedom - 1.0, 1e-300)
        share = self.shares[rows.labels][:, None]
        least = (1.0 - self.mix) * share * own + self.mix * self.shares[-1] * pooled
        sure &= least.min(axis=1) > self.floor
        found = np.zeros(whole.shape)
        room = np.empty(kernels.left_out.count_slots(self.unit.size) * kernels.left_out.FACTORED_ROWS)
        joint = kernels.left_out.JointClasses(
            weight=self.weight,
            mean=self.mean,
            scatter=self.scatter,
            pooled=self.pooled,
            mix=self.mix,
            shrinkage=self.shares,
            degrees=freedom,
            ddof=self.ddof,
        )
        removed, order = np.where(sure, rows.removed, 0.0), np.argsort(rows.labels, kind="stable")
        kernels.left_out.score_cholesky(z, order, rows.labels, removed, joint, constant, whole, room, found)
        return found, sure

    @staticmethod
    def _diagonal(matrices: Floats) -> Floats:
        return np.diagonal(matrices, axis1=1, axis2=2)

    def _by_rank_one(
        self, z: Floats, rows: LeftOutRows, whole: Floats, constant: float, sure: Flags
    ) -> tuple[Floats, Flags]:
        """Score rows by a rank-one downdate.

        Without a row at a distance d from its class mean, a scatter A becomes A - c dd'. Whitened by the root of A that
        is 1 - c dd', with the inverse 1 + c / (1 - c d'd) dd'.
        """
        found, sure = whole.copy(), sure.copy()
        shared = self.mix == 1.0
        for g in [None] if shared else range(self.weight.size):
            here = np.flatnonzero(sure & ((rows.labels == g) if g is not None else True))
            matrix = self.pooled if g is None else self.scatter[g]
            if not here.size:
                continue
            values = np.linalg.eigvalsh(matrix)
            if not values[0] > 1e-13 * values[-1]:
                sure[here] = False
                continue
            lower = np.linalg.cholesky(matrix)
            whiten = solve_lower(lower, np.eye(len(lower))).T
            white, means = z[here] @ whiten, self.mean @ whiten
            removed, labels = rows.removed[here], rows.labels[here]
            weight = self.weight[labels]
            rest = weight - removed
            away = white - means[labels]
            down = removed * weight / rest
            left = 1.0 - down * (away**2).sum(axis=1)
            divisors = np.maximum(self.weight - self.ddof, 0.0)
            freedom = divisors.sum() - removed if g is None else rest - self.ddof
            sure[here] = left * values[0] > self.floor * freedom
            safe = np.where(left > 0.0, left, 1.0)
            log_root = np.log(np.diag(lower)).sum() + 0.5 * np.log(safe) - 0.5 * z.shape[1] * np.log(freedom)
            for c in range(self.weight.size) if g is None else [g]:
                from_mean = white - means[c]
                stretch = np.where(labels == c, weight / rest, 1.0)
                squares = (from_mean**2).sum(axis=1) + down / safe * (from_mean * away).sum(axis=1) ** 2
                distance = freedom * stretch**2 * squares
                found[here, c] = constant - log_root - 0.5 * distance
        return found, sure
