"""The linear and the quadratic form of a model: scores as weights times features."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.arrays import Floats
from deciban.errors import DataError, UsageError
from deciban.families.bernoulli import BernoulliLikelihood
from deciban.families.binned import BinnedLikelihood
from deciban.families.categorical import CategoricalLikelihood
from deciban.families.gamma import GammaLikelihood
from deciban.families.gaussian import Normal
from deciban.families.joint_gaussian import JointNormal
from deciban.families.log_normal import LogNormalLikelihood, positive_log
from deciban.families.multinomial import ComplementScore, MultinomialLikelihood
from deciban.families.poisson import PoissonLikelihood
from deciban.files.open import open_table
from deciban.model import Model
from deciban.schema.schema import ColumnGroup
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table
from deciban.text_tables import aligned

# The features of some rows, NaN where their block says nothing.
Read = Callable[[Table], Floats]


@dataclass(frozen=True)
class Terms:
    """What one block adds: weights of features, an offset that falls away where its cells are missing.

    All speak of features less `centre`, so that no digits are lost where values are large against their spread.
    """

    names: tuple[str, ...]
    read: Read
    weights: Floats
    offset: Floats
    quadratic: Floats | None = None
    centre: Floats | float = 0.0

    def expanded(self) -> "Terms":
        """The same for features as they are."""
        centre = np.broadcast_to(self.centre, (len(self.names),))
        weights, offset = self.weights, self.offset - centre @ self.weights
        if self.quadratic is not None:
            weights = weights - 2.0 * np.einsum("cij,j->ic", self.quadratic, centre)
            offset = offset + np.einsum("i,cij,j->c", centre, self.quadratic, centre)
        return replace(self, weights=weights, offset=offset, centre=0.0)


@dataclass(frozen=True)
class Form:
    """score[class] = weights · features + offset (+ features' quadratic features): the model's log joint up to a term
    that is the same for every class.

    names: of the features. weights: feature by class. offset: of each class, for rows without missing cells.
    quadratic: class by feature by feature, or None: then the form is linear. A missing cell takes its features and its
    part of the offset away.
    """

    classes: LabelArray
    names: tuple[str, ...]
    weights: Floats
    offset: Floats
    quadratic: Floats | None
    prior: Floats
    terms: tuple[Terms, ...]
    align: Callable[[Table], Table]

    def features(self, X: Any) -> Floats:  # noqa: N803
        """The features of a table, NaN where a cell is missing."""
        table = self.align(open_table(X))
        return np.concatenate([term.read(table) for term in self.terms], axis=1)

    def scores(self, X: Any) -> Floats:  # noqa: N803
        """The score of each class, row by class."""
        table = self.align(open_table(X))
        out = np.tile(self.prior, (table.rows, 1))
        for term in self.terms:
            cells = term.read(table)
            missing = np.isnan(cells)
            holed = np.asarray(missing.any(axis=1))
            if (holed & ~missing.all(axis=1)).any():
                raise DataError(f"{' and '.join(term.names[:3])} belong together; a form cannot leave one of them out")
            x = np.where(missing, 0.0, cells - term.centre)
            said = x @ term.weights + term.offset
            if term.quadratic is not None:
                said = said + np.einsum("ni,cij,nj->nc", x, term.quadratic, x)
            out += np.where(holed[:, None], 0.0, said)
        return out

    def hyperplane(self, first: Any, second: Any) -> tuple[Floats, float]:
        """w and b of the boundary w·x + b = 0 between two classes; on the side of the first it is positive."""
        if self.quadratic is not None:
            raise UsageError(
                "the boundary of a quadratic form is no hyperplane; read its quadratic, weights and offset"
            )
        a, b = self._place(first), self._place(second)
        return self.weights[:, a] - self.weights[:, b], float(self.offset[a] - self.offset[b])

    def signed(self, positive: Any = None) -> tuple[Floats, float]:
        """w and b of the two-class form sign(w·x + b), +1 for the positive class (without, the last); the posterior of
        that class is 1 / (1 + exp(-(w·x + b)))."""
        if self.classes.size != 2:
            raise UsageError(f"sign(w·x + b) is for two classes, not {self.classes.size}; see hyperplane(a, b)")
        place = 1 if positive is None else self._place(positive)
        labels = self.classes.tolist()
        return self.hyperplane(labels[place], labels[1 - place])

    def _place(self, label: Any) -> int:
        labels = self.classes.tolist()
        if label not in labels:
            raise UsageError(f"{label!r} is none of the classes {labels}")
        return int(labels.index(label))

    def __str__(self) -> str:
        size = len(self.names)
        shown = range(size) if size <= 40 else [*range(20), *range(size - 5, size)]
        lines = [("", *map(str, self.classes.tolist()))]
        lines += [(self.names[k], *(f"{weight:.4g}" for weight in self.weights[k])) for k in shown]
        lines.append(("offset", *(f"{offset:.4g}" for offset in self.offset)))
        text = aligned(lines, right=range(1, self.classes.size + 1))
        return text if self.quadratic is None else f"{text}\nand a quadratic term for each class"


def form_of(model: Model, quadratic: bool) -> Form:
    """The form of a model, linear unless `quadratic`; a UsageError that says why where there is none."""
    terms: list[Terms] = []
    for p, group in enumerate(model.schema.groups):
        weights = model.weights[model.schema.block_slots[p]]
        for term in _terms(model, group, model.likelihoods[p], weights):
            if term.quadratic is not None and not quadratic:
                raise UsageError(
                    f"{', '.join(term.names[:4])}: {group.family} has variances that differ between classes (one "
                    f"without rows has that of all): the score is quadratic; use quadratic_form() or Pooled() variances"
                )
            if not (np.isfinite(term.weights).all() and np.isfinite(term.offset).all()):
                raise UsageError(f"{', '.join(term.names[:4])}: a probability of 0 has no finite weight; use alpha > 0")
            terms.append(term)
    names = tuple(name for term in terms for name in term.names)
    classes = model.classes.size
    prior = model.log_prior + model.bias
    read = [term.expanded() for term in terms]
    weights = np.concatenate([term.weights for term in read]) if terms else np.zeros((0, classes))
    offset = prior + sum((term.offset for term in read), np.zeros(classes))
    curved = None
    if any(term.quadratic is not None for term in terms):
        curved = np.zeros((classes, len(names), len(names)))
        start = 0
        for term in terms:
            stop = start + len(term.names)
            if term.quadratic is not None:
                curved[:, start:stop, start:stop] = term.quadratic
            start = stop
    return Form(model.classes, names, weights, offset, curved, prior, tuple(terms), model.schema.table_as_learned)


def _terms(model: Model, group: ColumnGroup, likelihood: Any, weights: Floats) -> Sequence[Terms]:
    """What each block of a part adds."""
    name = model.schema.column_name
    columns = group.columns
    if isinstance(likelihood, JointNormal):
        return [_joint(group, likelihood, weights[0], [name(column) for column in columns])] if weights[0] else []
    if isinstance(likelihood, MultinomialLikelihood | ComplementScore):
        slope = likelihood.log_share if isinstance(likelihood, MultinomialLikelihood) else likelihood.weight
        read = _amounts(group)
        names = tuple(name(column) for column in columns)
        return [Terms(names, read, weights[0] * slope, np.zeros(slope.shape[1]))] if weights[0] else []
    found = []
    for j, column in enumerate(columns):
        if weights[j] != 0.0:
            found += _single(group, likelihood, j, weights[j], name(column))
    return found


def _amounts(group: ColumnGroup) -> Read:
    def read(table: Table) -> Floats:
        cells: Any = group.family.read(table, group.columns)
        dense = cells if isinstance(cells, np.ndarray) else cells.matrix().toarray()
        return np.asarray(np.nan_to_num(np.asarray(dense, dtype=np.float64)))

    return read


def _numbers(group: ColumnGroup, j: int, transform: Callable[[Floats], Floats] = lambda x: x) -> Read:
    def read(table: Table) -> Floats:
        return transform(np.asarray(table.numbers([group.columns[j]]), dtype=np.float64))

    return read


def _flag(group: ColumnGroup, j: int, threshold: float) -> Read:
    def read(table: Table) -> Floats:
        cells: Any = table.amounts([group.columns[j]])
        dense = np.asarray(cells if isinstance(cells, np.ndarray) else cells.matrix().toarray(), dtype=np.float64)
        return np.asarray(np.where(np.isnan(dense), np.nan, dense > threshold))

    return read


def _indicators(group: ColumnGroup, likelihood: Any, j: int, size: int) -> Read:
    def read(table: Table) -> Floats:
        codes = likelihood.codes(group.family.read(table, group.columns))[:, j]
        out: Floats = (codes[:, None] == np.arange(size)).astype(np.float64)
        out[codes < 0] = np.nan
        return out

    return read


def _single(group: ColumnGroup, likelihood: Any, j: int, weight: float, name: str) -> list[Terms]:
    """The terms of one column."""
    if isinstance(likelihood, BernoulliLikelihood):
        slope = weight * (likelihood.one[j] - likelihood.zero[j])
        read = _flag(group, j, likelihood.threshold)
        return [Terms((name,), read, slope[None], weight * likelihood.zero[j])]
    if isinstance(likelihood, CategoricalLikelihood | BinnedLikelihood):
        rows = slice(int(likelihood.start[j]), int(likelihood.start[j + 1]))
        table = weight * likelihood.table[rows]
        if isinstance(likelihood, CategoricalLikelihood):
            names = [f"{name} = {level}" for level in likelihood.levels[j].to_pylist()]
        else:
            bins = likelihood.bins[j]
            width = 2.0**bins.exponent
            names = [f"{name} in [{cell * width:.6g}, {(cell + 1) * width:.6g})" for cell in bins.cells]
        names.append(f"{name} = something else")
        return [Terms(tuple(names), _indicators(group, likelihood, j, len(names)), table, np.zeros(table.shape[1]))]
    if isinstance(likelihood, PoissonLikelihood):
        return [Terms((name,), _numbers(group, j), weight * likelihood.log_rate[j][None], -weight * likelihood.rate[j])]
    if isinstance(likelihood, GammaLikelihood):
        slopes = weight * np.stack([likelihood.slope[j], likelihood.power[j]])
        both = _numbers(group, j, lambda x: np.concatenate([np.where(x > 0.0, x, np.nan), positive_log(x)], axis=1))
        return [Terms((name, f"log({name})"), both, slopes, weight * likelihood.offset[j])]
    if isinstance(likelihood, Normal | LogNormalLikelihood):
        return _normal(group, likelihood, j, weight, name)
    raise UsageError(f"{name}: {group.family} has no linear or quadratic form")


def _normal(
    group: ColumnGroup, likelihood: Normal | LogNormalLikelihood, j: int, weight: float, name: str
) -> list[Terms]:
    """-(x - m)²/2v without its part in x² where that is the same for every class."""
    in_logs = isinstance(likelihood, LogNormalLikelihood)
    normal: Normal = likelihood.normal if isinstance(likelihood, LogNormalLikelihood) else likelihood
    name = f"log({name})" if in_logs else name
    read = _numbers(group, j, positive_log) if in_logs else _numbers(group, j)
    variance, mean, centre = normal.variance[j], normal.mean[j], normal.centre[j]
    if not (variance > 0.0).all():
        return []  # a constant column says nothing
    slope = weight * mean / variance
    offset = -weight * mean**2 / (2.0 * variance)
    if (variance == variance[0]).all():
        return [Terms((name,), read, slope[None], offset, centre=centre)]
    curve = -weight / (2.0 * variance)
    offset = offset - 0.5 * weight * np.log(variance)
    return [Terms((name,), read, slope[None], offset, curve[:, None, None], centre)]


def _joint(group: ColumnGroup, likelihood: JointNormal, weight: float, names: list[str]) -> Terms:
    varies = np.flatnonzero(np.isfinite(likelihood.unit))
    unit, centre = likelihood.unit[varies], likelihood.centre[varies]
    matrices = likelihood.covariance[:, varies][:, :, varies] * np.outer(unit, unit)
    inverses = np.stack([np.linalg.inv(matrix) for matrix in matrices])
    matrix_of = likelihood.group
    mean = likelihood.mean[:, varies] * unit  # beyond the centre
    slope = weight * np.einsum("cij,cj->ic", inverses[matrix_of], mean)
    offset = -0.5 * weight * np.einsum("ci,cij,cj->c", mean, inverses[matrix_of], mean)

    def read(table: Table) -> Floats:
        return np.asarray(table.numbers([group.columns[k] for k in varies]), dtype=np.float64)

    kept = tuple(names[k] for k in varies)
    if np.unique(matrix_of).size == 1:
        return Terms(kept, read, slope, offset, centre=centre)
    curve = -0.5 * weight * inverses[matrix_of]
    logs = np.array([np.linalg.slogdet(matrix)[1] for matrix in matrices])[matrix_of]
    return Terms(kept, read, slope, offset - 0.5 * weight * logs, curve, centre)
