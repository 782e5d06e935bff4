"""What a model has to learn, and the risk it believes in."""

from dataclasses import dataclass

import numpy as np

from deciban.decide.loss import Loss
from deciban.families.base import Likelihood
from deciban.families.bernoulli import BernoulliLikelihood
from deciban.families.binned import BinnedLikelihood
from deciban.families.categorical import CategoricalLikelihood
from deciban.families.gamma import GammaLikelihood
from deciban.families.gaussian import Normal
from deciban.families.joint_gaussian import JointNormal
from deciban.families.joint_table import JointTableLikelihood
from deciban.families.log_normal import LogNormalLikelihood
from deciban.families.multinomial import ComplementScore, MultinomialLikelihood
from deciban.model import Counts, Model


@dataclass(frozen=True)
class PlugIn:
    """The risk of the best rule if plain Bayes were true, with its interval, and the leave-one-out risk beside it.

    `left_out` is None where the training rows are not known.
    """

    risk: float
    interval: tuple[float, float]
    left_out: float | None
    loss: Loss

    def __str__(self) -> str:
        low, high = self.interval
        found = f"by the model's own lights {self.risk:.4f} (between {low:.4f} and {high:.4f})"
        return found + ("" if self.left_out is None else f"; leave-one-out {self.left_out:.4f}")


@dataclass(frozen=True)
class ParameterCount:
    """Free parameters: of every column by itself, of the model as it is, and of the full joint distribution."""

    naive: int
    model: int
    full: float

    @classmethod
    def of(cls, counts: Counts, plain: Model, model: Model) -> "ParameterCount":
        classes = counts.classes.size
        tuned = int((model.weights != 1.0).sum()) + int((model.bias != 0.0).sum())
        naive = classes - 1 + sum(_parameters(likelihood, classes) for likelihood in plain.likelihoods)
        here = classes - 1 + tuned + sum(_parameters(likelihood, classes) for likelihood in model.likelihoods)
        return cls(naive, here, classes - 1 + _full(plain, classes))

    def __str__(self) -> str:
        full = f"{self.full:,.0f}" if self.full < 1e15 else f"{self.full:.3g}"
        return f"naive {self.naive:,}, as it is {self.model:,}, full joint {full}"


def _parameters(likelihood: Likelihood, classes: int) -> int:
    """Of one part."""
    if isinstance(likelihood, CategoricalLikelihood):
        return classes * int(sum(len(levels) - 1 for levels in likelihood.levels))
    if isinstance(likelihood, BinnedLikelihood):
        return classes * int(sum(bins.cells.size - 1 for bins in likelihood.bins))
    if isinstance(likelihood, BernoulliLikelihood):
        return classes * len(likelihood.one)
    if isinstance(likelihood, MultinomialLikelihood | ComplementScore):
        table = likelihood.log_share if isinstance(likelihood, MultinomialLikelihood) else likelihood.weight
        return classes * (len(table) - 1)
    if isinstance(likelihood, LogNormalLikelihood):
        return _parameters(likelihood.normal, classes)
    if isinstance(likelihood, Normal):
        shared = (likelihood.variance == likelihood.variance[:, :1]).all(axis=1)
        return int(np.where(shared, classes + 1, 2 * classes).sum())
    if isinstance(likelihood, GammaLikelihood):
        return 2 * classes * len(likelihood.shape)
    if isinstance(likelihood, JointNormal):
        size = likelihood.centre.size
        return classes * size + len(likelihood.covariance) * size * (size + 1) // 2
    if isinstance(likelihood, JointTableLikelihood):
        return classes * (int(likelihood.complete.possible) - 1)
    rates = getattr(likelihood, "rate", None)
    return 0 if rates is None else int(rates.size)


def _full(plain: Model, classes: int) -> float:
    """Of a table of all discrete columns, with a joint Gaussian of all others in each of its cells, for every class."""
    cells, numbers = 1.0, 0
    for likelihood in plain.likelihoods:
        if isinstance(likelihood, CategoricalLikelihood):
            cells *= float(np.prod([max(len(levels), 1) for levels in likelihood.levels], dtype=np.float64))
        elif isinstance(likelihood, BernoulliLikelihood):
            cells *= 2.0 ** len(likelihood.one)
        elif isinstance(likelihood, JointTableLikelihood):
            cells *= float(likelihood.complete.possible)
        elif isinstance(likelihood, BinnedLikelihood):
            cells *= float(np.prod([max(bins.cells.size, 1) for bins in likelihood.bins], dtype=np.float64))
        elif isinstance(likelihood, Normal):
            numbers += len(likelihood.variance)
        elif isinstance(likelihood, LogNormalLikelihood):
            numbers += len(likelihood.normal.variance)
        elif isinstance(likelihood, JointNormal):
            numbers += likelihood.centre.size
        elif isinstance(likelihood, GammaLikelihood):
            numbers += len(likelihood.shape)
        else:
            table = getattr(likelihood, "log_share", getattr(likelihood, "rate", np.zeros((0, 1))))
            numbers += len(table)
    return classes * (cells * (1.0 + numbers + numbers * (numbers + 1) / 2.0) - 1.0)
