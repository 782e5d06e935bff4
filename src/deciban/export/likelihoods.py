"""What the scorer needs of each likelihood, one function for each; a family that is not here is refused by its name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import UsageError
from deciban.export.encoding import amounts, floats, integers, number
from deciban.export.level_sets import LevelSets
from deciban.export.texts import text_as_json
from deciban.families import Family, Likelihood
from deciban.families.base.shapley import MOST_ENUMERATED, orders_tried
from deciban.families.bernoulli import BernoulliLikelihood
from deciban.families.binned import BinnedLikelihood
from deciban.families.categorical import CategoricalLikelihood
from deciban.families.gamma import GammaLikelihood, log_peak
from deciban.families.gaussian import Normal
from deciban.families.joint_gaussian import JointNormal
from deciban.families.joint_table import JointTableLikelihood
from deciban.families.log_normal import LogNormalLikelihood
from deciban.families.multinomial import ComplementScore, MultinomialLikelihood
from deciban.families.poisson import PoissonLikelihood
from deciban.families.text.family import TextLikelihood


@dataclass(frozen=True)
class Exported:
    """What the scorer reads of a group, and of each of its columns what people enter and the place of its levels."""

    parameters: dict[str, Any]
    columns: list[tuple[str, int | None]]


@dataclass(frozen=True)
class Group:
    """A column group: its family, the names of its columns, and where levels are collected."""

    family: Family
    names: Sequence[str]
    levels: LevelSets

    def all_are(self, kind: str) -> list[tuple[str, int | None]]:
        """Columns that all take the same."""
        return [(kind, None)] * len(self.names)


def likelihood_as_json(likelihood: Likelihood, group: Group) -> Exported:
    """What the scorer reads; a UsageError that names the family where it cannot score it."""
    if type(likelihood) not in EXPORTS:
        raise UsageError(
            f"column {group.names[0]!r}: {group.family} cannot be exported; give it another family, and fit again"
        )
    return EXPORTS[type(likelihood)](likelihood, group)


def _categorical(likelihood: CategoricalLikelihood, group: Group) -> Exported:
    named = zip(likelihood.levels, group.names, strict=True)
    places = [group.levels.place_of(levels, name) for levels, name in named]
    parameters = {
        "scorer": "categorical",
        "levels": places,
        "table": floats(likelihood.table),
        "start": integers(likelihood.start),
        "unseen": likelihood.unseen,
    }
    return Exported(parameters, [(_kind_of_levels(group.levels, place), place) for place in places])


def _kind_of_levels(levels: LevelSets, place: int) -> str:
    return "yes/no" if levels.type_of(place) == "flag" else "category"


def _binned(likelihood: BinnedLikelihood, group: Group) -> Exported:
    parameters = {
        "scorer": "binned",
        "exponents": [int(column.exponent) for column in likelihood.bins],
        "cells": [floats(column.cells) for column in likelihood.bins],
        "table": floats(likelihood.table),
        "start": integers(likelihood.start),
        "unseen": likelihood.unseen,
    }
    return Exported(parameters, group.all_are("number"))


def _bernoulli(likelihood: BernoulliLikelihood, group: Group) -> Exported:
    flags_only = getattr(group.family, "threshold", None) is None
    parameters = {
        "scorer": "bernoulli",
        "one": floats(likelihood.one),
        "zero": floats(likelihood.zero),
        "threshold": number(likelihood.threshold),
        "flags_only": flags_only,
    }
    return Exported(parameters, group.all_are("yes/no" if flags_only else "number"))


def _linear(slope: Any, group: Group) -> Exported:
    return Exported({"scorer": "linear", "slope": floats(slope)}, group.all_are("count"))


def _multinomial(likelihood: MultinomialLikelihood, group: Group) -> Exported:
    return _linear(likelihood.log_share, group)


def _complement(likelihood: ComplementScore, group: Group) -> Exported:
    return _linear(likelihood.weight, group)


def _normal_terms(normal: Normal) -> dict[str, Any]:
    terms = {"centre": normal.centre, "mean": normal.mean, "root": normal.root, "offset": normal.offset}
    return {name: floats(array) for name, array in terms.items()}


def _normal(likelihood: Normal, group: Group) -> Exported:
    return Exported({"scorer": "normal", **_normal_terms(likelihood)}, group.all_are("number"))


def _log_normal(likelihood: LogNormalLikelihood, group: Group) -> Exported:
    parameters = {"scorer": "log normal", **_normal_terms(likelihood.normal), "outside": likelihood.outside}
    return Exported(parameters, group.all_are("number"))


def _gamma(likelihood: GammaLikelihood, group: Group) -> Exported:
    arrays = {
        "shape": likelihood.shape,
        "mean": likelihood.mean,
        "mean_low": likelihood.mean_low,
        "peak": log_peak(likelihood.shape),
        "power": likelihood.power,
        "slope": likelihood.slope,
        "offset": likelihood.offset,
    }
    encoded = {name: floats(array) for name, array in arrays.items()}
    narrow = likelihood.narrow.astype(np.int64)
    parameters = {"scorer": "gamma", **encoded, "narrow": integers(narrow), "outside": likelihood.outside}
    return Exported(parameters, group.all_are("number"))


def _poisson(likelihood: PoissonLikelihood, group: Group) -> Exported:
    rates = {"rate": floats(likelihood.rate), "log_rate": floats(likelihood.log_rate)}
    return Exported({"scorer": "poisson", **rates, "outside": likelihood.outside}, group.all_are("count"))


def _joint_normal(likelihood: JointNormal, group: Group) -> Exported:
    """The whitened form for whole rows, and matrices (their lower halves) for rows with missing cells."""
    white, varies = likelihood.whitened, likelihood.whitened.columns
    half = np.tril_indices(varies.size)
    rows = [matrix[m, :reach] for matrix in white.whiten for m, reach in enumerate(white.reach)]
    parameters = {
        "scorer": "joint normal",
        "varies": integers(varies),
        "group": integers(likelihood.group),
        "centre": floats(white.centre),
        "reach": integers(white.reach),
        "whiten": floats(np.concatenate(rows) if rows else np.zeros(0)),
        "white_mean": floats(white.mean),
        "offset": floats(white.offset),
        "unit": floats(likelihood.unit[varies]),
        "mean": floats(likelihood.mean[:, varies]),
        "covariance": floats(likelihood.covariance[:, varies][:, :, varies][:, half[0], half[1]]),
    }
    return Exported(parameters, group.all_are("number"))


def _joint_table(likelihood: JointTableLikelihood, group: Group) -> Exported:
    statistic, cuts = likelihood.statistic, likelihood.cuts or (None,) * len(group.names)
    named = zip(statistic.levels, group.names, strict=True)
    places = [group.levels.place_of(levels, name) for levels, name in named]
    parameters = {
        "scorer": "joint table",
        "levels": places,
        "cuts": [None if some is None else floats(some) for some in cuts],
        "tuples": integers(statistic.tuples),
        "counts": amounts(statistic.table),
        "alpha": number(likelihood.alpha),
        "unseen": likelihood.unseen,
        "orders": integers(list(orders_tried(len(places)))) if len(places) > MOST_ENUMERATED else None,
    }
    shown: list[tuple[str, int | None]] = [
        (_kind_of_levels(group.levels, place), place) if some is None else ("number", None)
        for place, some in zip(places, cuts, strict=True)
    ]
    return Exported(parameters, shown)


def _text(likelihood: TextLikelihood, group: Group) -> Exported:
    named = zip(likelihood.columns, group.names, strict=True)
    return Exported({"scorer": "text", "texts": [text_as_json(*one) for one in named]}, group.all_are("text"))


# What is read of each likelihood.
EXPORTS: dict[type[Any], Callable[[Any, Group], Exported]] = {
    CategoricalLikelihood: _categorical,
    BinnedLikelihood: _binned,
    BernoulliLikelihood: _bernoulli,
    MultinomialLikelihood: _multinomial,
    ComplementScore: _complement,
    Normal: _normal,
    LogNormalLikelihood: _log_normal,
    GammaLikelihood: _gamma,
    PoissonLikelihood: _poisson,
    JointNormal: _joint_normal,
    JointTableLikelihood: _joint_table,
    TextLikelihood: _text,
}
