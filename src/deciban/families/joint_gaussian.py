"""A block of real columns, jointly bell-shaped within each class: linear and quadratic discriminants."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deciban.families.bases import BlockFamily
from deciban.families.checks import check_amount
from deciban.families.gaussian import Gaussian
from deciban.families.joint_left_out import Downdate
from deciban.families.joint_normal import JointNormal, joint_normal, units
from deciban.families.protocols import Covariance, LeftOut, by_pattern, evidence_of_block
from deciban.families.spreads import PerClass, Spread, check_spread, spread_errors
from deciban.families.sql_questions import Later, Number, SqlQuestions
from deciban.families.support import FINITE
from deciban.statistics import Scatter
from deciban.tables.readable import Readable
from deciban.util.arrays import Codes, Floats, Integers, Numbers

# Numbers row by class by class, or by column, that are held at once while errors are added up.
MOST_ERROR_TERMS = 1 << 22


@dataclass(frozen=True, repr=False)
class JointGaussian(BlockFamily):
    """Several columns of real numbers together: a multivariate normal distribution for each class.

    All its columns are one block. A row with a missing cell is left out when counting; when scoring, the missing member
    is integrated out.

    Parameters
    ----------
    covariance : PerClass, Pooled or Shrunk, default=PerClass()
        PerClass() is the quadratic discriminant, Pooled() the linear one, Shrunk(amount) lies between.
    ddof : float, default=0.0
        What is subtracted from the weight below a covariance: 0 is maximum likelihood, 1 unbiased. With `Pooled` it is
        subtracted once for each class: ddof=1 divides the pooled scatter by n - n_classes, as MASS's lda does.
    floor : float, default=0.0
        The least variance in any direction, in units of each column's variance over all classes. At 0 there is none; a
        direction in which the n rows behind a matrix do not vary then takes 1/(n+1) of these units.

    Raises
    ------
    UsageError
        If a parameter is out of its range.

    See Also
    --------
    Gaussian : Each column by itself.
    deciban.dropin.LinearDiscriminantAnalysis, deciban.dropin.QuadraticDiscriminantAnalysis : With scikit-learn's names.

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

    def alone(self) -> Gaussian:
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
        """The covariance of each class and, last, the pooled one, in units of the columns' deviations."""
        unit = units(statistic.over_classes())
        divisor = np.maximum(statistic.weight - self.ddof, 0.0)[:, None, None]
        scatter = (statistic.scatter + statistic.scatter_low) * np.outer(1.0 / unit, 1.0 / unit)
        scatter = np.concatenate([scatter, scatter.sum(axis=0, keepdims=True)])
        divisor = np.concatenate([divisor, divisor.sum(axis=0, keepdims=True)])
        return np.divide(scatter, divisor, out=np.zeros_like(scatter), where=divisor > 0.0)

    def _shares(self, statistic: Scatter) -> Floats:
        """How far each of these matrices is moved towards its diagonal."""
        share = self.covariance.shrinkage
        if share != "oas":
            return np.full(statistic.weight.size + 1, float(share))
        weights = [*statistic.weight, statistic.weight.sum()]
        pairs = zip(self._unshrunk(statistic), weights, strict=True)
        return np.array([oas_share(matrix, weight) for matrix, weight in pairs])

    def _estimate(self, statistic: Scatter, shares: Floats) -> JointNormal:
        return joint_normal(statistic, *self._covariance(statistic, shares), self.floor)

    def _covariance(self, statistic: Scatter, shares: Floats) -> tuple[Floats, Integers]:
        """The matrices, in units of the columns' deviations, and which of them each class has."""
        overall, seen = statistic.over_classes(), statistic.weight > 0.0
        unit = units(overall)
        scale = np.outer(1.0 / unit, 1.0 / unit)
        pairs = zip(self._unshrunk(statistic), shares, strict=True)
        *classes, pooled = (shrunk(matrix, share) for matrix, share in pairs)
        own = np.stack(classes)
        everything = (overall.scatter + overall.scatter_low) * scale / max(overall.weight[0], 1e-300)
        if self.covariance.shared:
            covariance, group = np.concatenate([pooled[None], everything]), np.where(seen, 0, 1)
        else:
            covariance = np.where(seen[:, None, None], self.covariance.combine(own, pooled), everything)
            group = np.arange(seen.size)
        return covariance[: group.max(initial=0) + 1], group

    def score_left_out(self, statistic: Scatter, cells: Numbers, rows: LeftOut, slot: Integers, out: Floats) -> None:
        """Each row downdates its class's matrix by one rank, or factors its own where shrinkage changes the diagonal.

        Rows without which a matrix might meet the floor, or a class have no rows, are counted anew. The shares of
        shrinkage are those of all rows together.
        """
        shares = self._shares(statistic)
        whole = self._estimate(statistic, shares)
        evidence = evidence_of_block(whole, cells, out.shape[2])[:, None]
        counted = np.flatnonzero((rows.removed > 0.0) & ~np.isnan(cells).any(axis=1))
        if counted.size and whole.whitened.columns.size:
            columns = whole.whitened.columns
            x = cells[counted][:, columns].astype(np.float64)
            kept = statistic.weight > 0.0
            place = np.where(kept, np.cumsum(kept) - 1, -1)
            some = LeftOut(place[rows.labels[counted]].astype(np.int32), rows.removed[counted])
            present = statistic.place_classes(place, int(kept.sum()))
            downdate = self._downdate(present, shares[np.append(kept, True)], columns)
            found, sure = downdate.score(x, some, evidence[counted, 0][:, kept])
            matrices = self._covariance(statistic, shares)[0][:, columns][:, :, columns]
            if np.linalg.eigvalsh(matrices).min() <= 2.0 * downdate.floor:
                sure[:] = False  # a matrix at the floor, which follows the spread of all rows
            evidence[counted[:, None], 0, np.flatnonzero(kept)] = found
            if not kept.all():  # a class without rows has the distribution of all
                plain = JointGaussian(floor=self.floor)
                of_all = plain._downdate(statistic.over_classes(), np.zeros(2), columns)
                alike = LeftOut(np.zeros_like(some.labels), some.removed)
                found, sure_of_all = of_all.score(x, alike, np.zeros((counted.size, 1)))
                evidence[counted[:, None], 0, np.flatnonzero(~kept)] = found
                sure &= sure_of_all
            self._score_anew(statistic, shares, cells, rows, counted[~sure], evidence)
        out[:, slot[0]] += evidence[:, 0]

    def _downdate(self, statistic: Scatter, shares: Floats, columns: Integers) -> Downdate:
        return Downdate.of(statistic, columns, self.covariance, shares, self.ddof, self.floor)

    def add_covariance(
        self, whole: JointNormal, statistic: Scatter, cells: Numbers, weight: Floats, out: Covariance
    ) -> None:
        """Add the errors of means and of matrices. At a point that is y away from a mean, in coordinates in which its
        matrix is 1, that of the mean is |y|²/n and that of the matrix |yy' - 1|²/2n; what two classes share of the
        latter goes by the product of their yy' - 1."""
        varies = whole.whitened.columns
        rows = np.maximum(statistic.weight, 0.5)
        errors = spread_errors(self.covariance, rows, np.ones(rows.size))
        z = (cells[:, varies] - whole.centre[varies]) / whole.unit[varies]
        step = max(1, MOST_ERROR_TERMS // (rows.size * max(rows.size, varies.size)))
        for pattern, rows_of in by_pattern(np.isnan(z)):
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

    def _score_anew(
        self, statistic: Scatter, shares: Floats, cells: Numbers, rows: LeftOut, again: Integers, evidence: Floats
    ) -> None:
        """Score a few rows by definition: remove each from the statistic, estimate, score it."""
        for i in again:
            at = slice(i, i + 1)
            row = Scatter.count(cells[at], rows.labels[at], rows.removed[at], evidence.shape[2])
            left = self._estimate(statistic.remove(row, slack=0.0), shares)
            evidence[at, 0] = evidence_of_block(left, cells[at], evidence.shape[2])


def shrunk(matrix: Floats, share: float) -> Floats:
    """`matrix` moved towards its diagonal."""
    return (1.0 - share) * matrix + share * np.diag(np.diag(matrix))


def oas_share(matrix: Floats, weight: float) -> float:
    """The share of the diagonal that the oracle approximating shrinkage of Chen et al. gives the correlation matrix."""
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
