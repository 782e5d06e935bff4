"""What a model has to learn, and the risk it believes in."""

from dataclasses import dataclass
from math import prod

import numpy as np

from deciban.arrays import Flags
from deciban.decisions.loss import Loss
from deciban.families.base import Likelihood
from deciban.families.bernoulli import BernoulliLikelihood
from deciban.families.binned import BinnedLikelihood
from deciban.families.categorical import CategoricalLikelihood
from deciban.families.gamma import GammaLikelihood
from deciban.families.gaussian import Normal
from deciban.families.joint_gaussian import JointNormal
from deciban.families.joint_table import JointTableLikelihood
from deciban.families.log_normal import LogNormalLikelihood
from deciban.families.multinomial import MultinomialLikelihood
from deciban.families.poisson import PoissonLikelihood
from deciban.model import Counts, Model


@dataclass(frozen=True, repr=False)
class PlugIn:
    """The risk of the best rule if plain Bayes were true, with its interval, and the leave-one-out risk beside it.

    `left_out` is None where the training rows are not known.
    """

    risk: float
    interval: tuple[float, float]
    left_out: float | None
    loss: Loss

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        low, high = self.interval
        found = f"by the model's own lights {self.risk:.4f} (between {max(low, 0.0):.4f} and {high:.4f})"
        return found + ("" if self.left_out is None else f"; leave-one-out {self.left_out:.4f}")


@dataclass(frozen=True)
class ParameterCount:
    """Free parameters: of every column by itself, of the model as it is, and of the full joint distribution."""

    naive: int
    model: int
    full: int

    @classmethod
    def of(cls, counts: Counts, plain: Model, model: Model) -> "ParameterCount":
        classes = counts.classes.size
        tuned = int(((model.weights != 1.0) & (model.weights != 0.0)).sum()) + (classes - 1 if model.bias.any() else 0)
        naive = sum(_alone(likelihood, classes) for likelihood in plain.likelihoods)
        here = sum(
            _parameters(likelihood, classes, model.weights[slot] != 0.0)
            for likelihood, slot in zip(model.likelihoods, model.schema.slots, strict=True)
        )
        return cls(classes - 1 + naive, classes - 1 + tuned + here, classes - 1 + _full(plain, classes))

    def __str__(self) -> str:
        full = f"{self.full:,}" if self.full < 10**15 else f"about 10^{len(str(self.full)) - 1}"
        return f"naive {self.naive:,}, as it is {self.model:,}, full joint {full}"


def _parameters(likelihood: Likelihood, classes: int, heard: Flags) -> int:
    """Of the blocks of one part that are heard."""
    if isinstance(likelihood, LogNormalLikelihood):
        return _parameters(likelihood.normal, classes, heard)
    if isinstance(likelihood, CategoricalLikelihood):
        each = classes * np.array([max(len(levels) - 1, 0) for levels in likelihood.levels])
    elif isinstance(likelihood, BinnedLikelihood):
        each = classes * np.array([max(bins.cells.size - 1, 0) for bins in likelihood.bins])
    elif isinstance(likelihood, Normal):
        shared = (likelihood.variance == likelihood.variance[:, :1]).all(axis=1)
        each = np.where(shared, classes + 1, 2 * classes)
    elif isinstance(likelihood, BernoulliLikelihood):
        each = np.full(len(likelihood.one), classes)
    elif isinstance(likelihood, GammaLikelihood):
        each = np.full(len(likelihood.shape), 2 * classes)
    elif isinstance(likelihood, PoissonLikelihood):
        each = np.full(len(likelihood.rate), classes)
    elif isinstance(likelihood, JointNormal):
        size = likelihood.centre.size
        each = np.array([classes * size + len(likelihood.covariance) * size * (size + 1) // 2])
    elif isinstance(likelihood, JointTableLikelihood):
        each = np.array([classes * max(int(likelihood.complete.possible) - 1, 0)])
    else:
        each = np.array([classes * max(_words(likelihood) - 1, 0)])
    return int(each[heard].sum())


def _words(likelihood: Likelihood) -> int:
    table = likelihood.log_share if isinstance(likelihood, MultinomialLikelihood) else getattr(likelihood, "weight", ())
    return len(table)


def _alone(likelihood: Likelihood, classes: int) -> int:
    """Of the columns of one part, each by itself."""
    if isinstance(likelihood, JointNormal):
        shared = np.unique(likelihood.group).size == 1
        return int(likelihood.centre.size * (classes + 1 if shared else 2 * classes))
    if isinstance(likelihood, JointTableLikelihood):
        return classes * sum(max(len(levels) - 1, 0) for levels in likelihood.statistic.levels)
    return _parameters(likelihood, classes, np.array(True))


def _full(plain: Model, classes: int) -> int:
    """Of a table of all discrete columns, with a joint Gaussian of all others in each of its cells, for every class."""
    cells, numbers = 1, 0
    for likelihood in plain.likelihoods:
        if isinstance(likelihood, CategoricalLikelihood):
            cells *= prod(max(len(levels), 1) for levels in likelihood.levels)
        elif isinstance(likelihood, BernoulliLikelihood):
            cells *= 2 ** len(likelihood.one)
        elif isinstance(likelihood, JointTableLikelihood):
            cells *= prod(max(len(levels), 1) for levels in likelihood.statistic.levels)
        elif isinstance(likelihood, BinnedLikelihood):
            cells *= prod(max(int(bins.cells.size), 1) for bins in likelihood.bins)
        elif isinstance(likelihood, Normal):
            numbers += len(likelihood.variance)
        elif isinstance(likelihood, LogNormalLikelihood):
            numbers += len(likelihood.normal.variance)
        elif isinstance(likelihood, JointNormal):
            numbers += likelihood.centre.size
        elif isinstance(likelihood, GammaLikelihood):
            numbers += len(likelihood.shape)
        else:
            numbers += len(likelihood.rate) if isinstance(likelihood, PoissonLikelihood) else _words(likelihood)
    return classes * (cells * (1 + numbers + numbers * (numbers + 1) // 2) - 1)
