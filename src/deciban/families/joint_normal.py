"""Multivariate normal distributions: made from means and covariances, scored, sampled from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy

from deciban import kernels
from deciban.families.bases import BaseLikelihood
from deciban.families.estimates import Estimated, Parameters
from deciban.families.lowering import ExportedColumns, JointNormalTerm, Lowered, WhitenedForm, reject_infinite
from deciban.families.protocols import Sampled, by_pattern
from deciban.families.shares import MOST_ENUMERATED, Rule, Shares, gradual_normal_shares, shapley
from deciban.families.spreads import vary
from deciban.families.support import refuse_infinite
from deciban.families.terms import Terms
from deciban.statistics import Scatter
from deciban.util.arrays import TILE_PITCH, TILE_ROWS, Flags, Floats, Integers, Numbers
from deciban.util.text_tables import as_written, digits

# A direction with less than this share of the columns' variances has none: what is there is rounding.
NO_VARIANCE = 1e-12

HALF_LOG_2_PI = 0.5 * np.log(2.0 * np.pi)


def units(overall: Scatter) -> Floats:
    """The deviation of each column over all classes; infinite where it does not vary."""
    variance = np.diagonal(overall.scatter[0]) / max(overall.weight[0], 1e-300)
    varies = vary(variance, overall.mean[0])
    return np.asarray(np.sqrt(variance, out=np.full_like(variance, np.inf), where=varies))


def joint_normal(statistic: Scatter, covariance: Floats, group: Integers, floor: float) -> "JointNormal":
    """The distributions with the means of the statistic and these covariances, in units of the columns' deviations.

    In these units no unit of measurement matters. A class without rows takes the overall mean, a direction without
    variance that of a matrix of as many rows of which the next one differs.
    """
    overall, seen = statistic.over_classes(), statistic.weight > 0.0
    unit, centre = units(overall), overall.mean[0]
    mean = np.where(seen[:, None], (statistic.mean - centre) + statistic.mean_low, 0.0) / unit
    rows = np.zeros(len(covariance))
    np.add.at(rows, group, statistic.weight)
    rows = np.where(rows > 0.0, rows, statistic.weight.sum())
    return JointNormal.of(centre, unit, mean, raised(covariance, floor, 1.0 / (1.0 + rows)), group)


def raised(covariance: Floats, floor: float, unspread: Floats) -> Floats:
    """The matrices with every eigenvalue raised to at least `floor`; where that is 0, eigenvalues of nothing but
    rounding become unspread[matrix]."""
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
    """Multivariate normal distributions, in units of `unit` about `centre`.

    `covariance[group[c]]` is the matrix of class c. A column of infinite unit is constant and is no evidence.
    """

    centre: Floats
    unit: Floats
    mean: Floats
    covariance: Floats
    group: Integers
    whitened: "Whitened"
    common: "Whitened | None"  # what is the same for every class, where it is kept apart

    @classmethod
    def of(cls, centre: Floats, unit: Floats, mean: Floats, covariance: Floats, group: Integers) -> Self:
        return cls(centre, unit, mean, covariance, group, *Whitened.of(centre, unit, mean, covariance, group).parted())

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        if not self.whitened.columns.size:
            refuse_infinite(cells)
            return
        used, holed = self._used(cells)
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

    def _used(self, cells: Numbers) -> tuple[Floats, Flags | None]:
        """The cells of the columns that vary, and which rows miss one; None where no row does."""
        varies = self.whitened.columns
        used = np.ascontiguousarray(cells if varies.size == cells.shape[1] else cells[:, varies], dtype=np.float64)
        if kernels.all_finite(cells.ravel()):
            return used, None
        refuse_infinite(cells)
        holed = np.asarray(np.isnan(used).any(axis=1))
        return used, holed if holed.any() else None

    def _score_holed(self, cells: Floats, weight: float, slot: int, out: Floats) -> None:
        if weight == 0.0:
            return
        varies = self.whitened.columns
        centre, unit, mean = self.centre[varies], self.unit[varies], np.ascontiguousarray(self.mean[:, varies])
        covariance = np.ascontiguousarray(self.covariance[:, varies][:, :, varies])
        kept, root = np.empty(varies.size, dtype=np.int64), np.empty((varies.size + 1, varies.size))
        normals = kernels.JointNormals(centre=centre, unit=unit, covariance=covariance, group=self.group, mean=mean)
        kernels.score_holed_normal(cells, normals, weight, slot, kept, root, out)

    def base(self, cells: Numbers) -> Floats | None:
        """The evidence of the coordinates in which the classes do not differ; rows with holes have theirs already."""
        if self.common is None:
            return None
        used, holed = self._used(cells)
        out = np.zeros((len(used), 1, 1))
        self.common.score(used, 1.0, 0, out)
        return out[:, 0] if holed is None else np.where(holed[:, None], 0.0, out[:, 0])

    def shares(self, cells: Numbers) -> Shares:
        """Exact where few columns vary; of more, by the eigenvectors of the covariances."""
        varies = self.whitened.columns
        rule = Rule.EXACT if varies.size <= MOST_ENUMERATED else Rule.GRADUAL
        values = np.zeros((*cells.shape, self.group.size))
        for missing, rows in by_pattern(np.isnan(cells[:, varies])):
            kept = varies[~missing]
            with np.errstate(over="ignore"):
                z = (cells[np.ix_(rows, kept)] - self.centre[kept]) / self.unit[kept]
            found = self._exact_shares(z, kept) if rule is Rule.EXACT else self._gradual_shares(z, kept)
            values[rows[:, None], kept] = found - (HALF_LOG_2_PI + np.log(self.unit[kept]))[None, :, None]
        return Shares(values, rule)

    def _exact_shares(self, z: Floats, kept: Integers) -> Floats:
        """The Shapley value of each column that is there, row by column by class, in units of the columns."""

        def log_density(known: Flags) -> Floats:
            found, some = np.zeros((len(z), self.group.size)), kept[known]
            for c, group in enumerate(self.group):
                root = np.linalg.cholesky(self.covariance[group][np.ix_(some, some)])
                away = (z[:, known] - self.mean[c, some]).T
                white = scipy.linalg.solve_triangular(root, away, lower=True, check_finite=False) if some.size else away
                with np.errstate(over="ignore"):
                    found[:, c] = -0.5 * (white**2).sum(axis=0) - np.log(np.diag(root)).sum()
            return found

        return shapley(log_density, kept.size).values

    def _gradual_shares(self, z: Floats, kept: Integers) -> Floats:
        """The shares of columns that become known at the same pace, row by column by class, in units of the columns."""
        values = np.empty((*z.shape, self.group.size))
        for c, group in enumerate(self.group):
            with np.errstate(over="ignore", invalid="ignore"):
                covariance = self.covariance[group][np.ix_(kept, kept)]
                values[:, :, c] = gradual_normal_shares(z - self.mean[c, kept], covariance)
        return values

    def lower(self, columns: ExportedColumns) -> Lowered:
        """The columns that vary."""
        white, varies = self.whitened, self.whitened.columns
        refusals = [reject_infinite(column) for column in columns.numbers]
        if not varies.size:
            return Lowered([[]], refusals)
        form = WhitenedForm(white.group, white.whiten, white.reach, white.mean, white.offset)
        covariance = self.covariance[:, varies][:, :, varies]
        numbers = tuple(columns.numbers[k] for k in varies.tolist())
        term = JointNormalTerm(numbers, white.centre, form, self.unit[varies], self.mean[:, varies], covariance)
        return Lowered([[term]], refusals)

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        unit = np.where(np.isfinite(self.unit), self.unit, 0.0)
        root = np.linalg.cholesky(self.covariance)[self.group]
        noise = rng.standard_normal((len(labels), self.unit.size))
        standard = self.mean[labels] + np.einsum("nij,nj->ni", root[labels], noise)
        return list((self.centre + unit * standard).T)

    def estimates(self) -> list[Estimated]:
        """The mean of each column and the covariance of each two, class by class."""
        unit = np.where(np.isfinite(self.unit), self.unit, 0.0)
        mean = self.centre + np.where(unit > 0.0, self.mean, 0.0) * unit
        return [Estimated({"mean": mean, "covariance": self.covariance[self.group] * np.outer(unit, unit)})]

    def landmarks(self, column: int) -> Floats:
        unit = self.unit[column] if np.isfinite(self.unit[column]) else 0.0
        return np.unique(self.centre[column] + self.mean[:, column] * unit)

    def parameters(self) -> Parameters:
        """The means and half of each matrix; apart, a mean and a variance of each column."""
        columns, classes = self.centre.size, self.group.size
        matrices = len(np.unique(self.group))
        joint = classes * columns + matrices * columns * (columns + 1) // 2
        shared = columns * matrices if matrices < classes else 0
        return Parameters((joint,), columns * (classes + matrices), shared, numbers=columns)

    def score_terms(self, names: Sequence[str]) -> list[Terms]:
        """The columns that vary; quadratic where the classes do not share one matrix."""
        varies = self.whitened.columns
        unit, mean = self.unit[varies], self.mean[:, varies] * self.unit[varies]  # beyond the centre
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
            Terms(kept, lambda cells: cells[:, varies].astype(np.float64), slope, offset, curve, self.centre[varies])
        ]

    def formula(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        if np.isnan(cells[row]).all():
            return None
        mean = self.centre + np.where(np.isfinite(self.unit), self.mean[label], 0.0) * np.where(
            np.isfinite(self.unit), self.unit, 0.0
        )
        point = ", ".join("missing" if np.isnan(value) else as_written(value) for value in cells[row])
        return f"N(({point}); mean ({', '.join(map(digits, mean))}), its covariance)"


@dataclass(frozen=True)
class Whitened:
    """The log density of the columns that vary as offset - |whiten (x - centre) - mean|**2.

    whiten[g, m, k] is what column k adds to coordinate m in group g, nothing from column reach[m] on.
    """

    columns: Integers
    centre: Floats
    whiten: Floats
    reach: Integers
    group: Integers
    mean: Floats
    offset: Floats

    @classmethod
    def of(cls, centre: Floats, unit: Floats, mean: Floats, covariance: Floats, group: Integers) -> Self:
        columns = np.flatnonzero(np.isfinite(unit))
        size, kept = columns.size, np.ix_(columns, columns)
        whiten, log_root = np.empty((len(covariance), size, size)), np.zeros(len(covariance))
        for g, matrix in enumerate(covariance):
            lower = np.linalg.cholesky(matrix[kept])
            inverse = scipy.linalg.solve_triangular(lower, np.eye(size), lower=True) / np.sqrt(2.0) if size else lower
            log_root[g] = np.log(np.diag(lower)).sum() + np.log(unit[columns]).sum()
            whiten[g] = inverse / unit[columns]
        whitened = np.einsum("cmk,ck->cm", whiten[group], mean[:, columns] * unit[columns])
        offset = -0.5 * size * np.log(2.0 * np.pi) - log_root[group]
        return cls(columns, centre[columns], whiten, np.arange(1, size + 1), group, whitened, offset)

    def parted(self) -> "tuple[Whitened, Whitened | None]":
        """The coordinates in which the classes differ, and the others, where these are most: one matrix, few classes.

        Turned so that the means lie along the first axes, all classes are equally far away along the others.
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
        normals = kernels.WhitenedNormals(self.centre, self.whiten, self.reach, self.group, self.mean, self.offset)
        columns, white = np.zeros((self.columns.size, TILE_PITCH)), np.zeros((self.reach.size, TILE_ROWS))
        kernels.score_joint_normal(cells, *normals, weight, slot, columns, white, np.empty(TILE_ROWS), out)
