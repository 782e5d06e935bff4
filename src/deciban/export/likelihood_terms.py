"""The terms of each likelihood, one function for each; what terms cannot say is refused by the name of its column."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, prod
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import UsageError
from deciban.export.level_sets import LARGEST_EXACT, levels_as_json
from deciban.export.terms import (
    OTHER_PLACE,
    CutPlace,
    HalfLineTerm,
    JointNormalTerm,
    LevelPlace,
    LinearTerm,
    LookupTerm,
    NarrowGammaTerm,
    NormalTerm,
    Refusal,
    Term,
    TuplePlace,
    WhitenedForm,
)
from deciban.families import Family, Likelihood
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
from deciban.util.arrays import Floats

# Cells of a joint table, all combinations of values and missing ones, that are written out at most.
MOST_TUPLES = 1 << 16

LARGEST_DOUBLE = float(np.finfo(np.float64).max)

REMEDY = "use deciban itself, to_python() or to_javascript(), or give it another family, and fit again"


@dataclass(frozen=True)
class Group:
    """A column group: its family, its columns and their names, and the weight of each block.

    holed: whether its rows are known to have had missing cells when they were learned.
    """

    family: Family
    columns: tuple[int, ...]
    names: Sequence[str]
    weights: Floats
    holed: bool = False

    def refused(self, k: int, cause: str) -> UsageError:
        """An error that names a column."""
        return UsageError(f"column {self.names[k]!r}: {cause}; {REMEDY}")


@dataclass(frozen=True)
class GroupTerms:
    """The weighted terms of each block of a group, and the rows that it refuses whatever its weight."""

    terms: list[list[Term]]
    refusals: list[Refusal]


def terms_of_likelihood(likelihood: Likelihood, group: Group) -> GroupTerms:
    """The terms of a column group; a UsageError that names the column where they cannot be said."""
    if type(likelihood) not in TERMS:
        raise group.refused(0, f"{group.family} cannot be said as terms of a sum")
    return TERMS[type(likelihood)](likelihood, group)


def level_place(column: int, levels: pa.Array, name: str, merged: bool = False) -> LevelPlace:
    """The place of a value among Arrow's levels; a UsageError that names the column where they cannot be written."""
    kind, _ = levels_as_json(levels, name)
    values = levels.to_pylist()
    if kind in ("date", "time"):
        as_micros = pa.timestamp("us") if kind == "date" else pa.time64("us")
        values = levels.cast(as_micros, safe=False).cast(pa.int64()).to_pylist()
    if kind in ("flag", "number") or (kind == "integer" and all(abs(value) < LARGEST_EXACT for value in values)):
        kind, values = "number", [float(value) for value in values]
    return LevelPlace(column, "text" if kind == "none" else kind, tuple(values), merged)  # type: ignore[arg-type]


def infinite(column: int) -> Refusal:
    """Numbers that are not finite."""
    return Refusal(CutPlace(column, (-LARGEST_DOUBLE, inf)), (1, 3))


def no_flag(column: int) -> Refusal:
    """Numbers that are neither 0 nor 1."""
    edges = (0.0, float(np.nextafter(0.0, 1.0)), 1.0, float(np.nextafter(1.0, 2.0)))
    return Refusal(CutPlace(column, edges), (1, 3, 5))


def _lookup(place: Any, rows: Floats, weight: float) -> list[Term]:
    """The lookup of weighted rows; none without a weight."""
    return [LookupTerm(place, weight * rows)] if weight > 0.0 else []


def _padded(rows: Floats) -> Floats:
    """A table with a row for a missing cell before the others."""
    return np.concatenate([np.zeros((1, rows.shape[1])), rows])


def _categorical(likelihood: CategoricalLikelihood, group: Group) -> GroupTerms:
    """The row of a zero count, which stands last there, is that of other values, or nothing."""
    terms, refusals = [], []
    for j, (column, levels) in enumerate(zip(group.columns, likelihood.levels, strict=True)):
        place = level_place(column, levels, group.names[j])
        rows = likelihood.table[likelihood.start[j] : likelihood.start[j + 1]]
        other = rows[-1:] if likelihood.unseen == "smooth" else np.zeros_like(rows[-1:])
        terms.append(_lookup(place, _padded(np.concatenate([other, rows[:-1]])), group.weights[j]))
        if likelihood.unseen == "error":
            refusals.append(Refusal(place, (OTHER_PLACE,)))
    return GroupTerms(terms, refusals)


def _binned(likelihood: BinnedLikelihood, group: Group) -> GroupTerms:
    """Bins are what lies between cuts, and so are the gaps between them, where nothing was seen."""
    terms, refusals = [], []
    for j, (column, bins) in enumerate(zip(group.columns, likelihood.bins, strict=True)):
        edges = np.unique(np.concatenate([bins.cells, bins.cells + 1.0]))
        place = CutPlace(column, tuple(np.ldexp(edges, bins.exponent).tolist()))
        home = np.searchsorted(edges, bins.cells, side="right")  # how many edges do not lie above
        rows = likelihood.table[likelihood.start[j] : likelihood.start[j + 1]]
        unseen = rows[-1] if likelihood.unseen == "smooth" else np.zeros(rows.shape[1])
        between = np.tile(unseen, (edges.size + 1, 1))
        between[home] = rows[:-1]
        terms.append(_lookup(place, _padded(between), group.weights[j]))
        refusals.append(infinite(column))
        if likelihood.unseen == "error":
            gaps = np.setdiff1d(np.arange(edges.size + 1), home)
            refusals.append(Refusal(place, tuple((1 + gaps).tolist())))
    return GroupTerms(terms, refusals)


def _bernoulli(likelihood: BernoulliLikelihood, group: Group) -> GroupTerms:
    above = float(np.nextafter(likelihood.threshold, inf))
    flags_only = getattr(group.family, "threshold", None) is None
    terms, refusals = [], []
    for j, column in enumerate(group.columns):
        rows = _padded(np.stack([likelihood.zero[j], likelihood.one[j]]))
        terms.append(_lookup(CutPlace(column, (above,)), rows, group.weights[j]))
        if flags_only:
            refusals.append(no_flag(column))
    return GroupTerms(terms, refusals)


def _linear(slope: Floats, group: Group) -> GroupTerms:
    refusals = [Refusal(CutPlace(column, (0.0, inf)), (1, 3)) for column in group.columns]
    weight = float(group.weights[0])
    terms: list[Term] = [LinearTerm(column, weight * slope[j]) for j, column in enumerate(group.columns)]
    return GroupTerms([terms if weight > 0.0 else []], refusals)


def _multinomial(likelihood: MultinomialLikelihood, group: Group) -> GroupTerms:
    return _linear(likelihood.log_share, group)


def _complement(likelihood: ComplementScore, group: Group) -> GroupTerms:
    return _linear(likelihood.weight, group)


def _normal(likelihood: Normal, group: Group) -> GroupTerms:
    used = [column for column, weight in zip(group.columns, group.weights, strict=True) if weight > 0.0]
    return GroupTerms(_normal_terms(likelihood, group, False, False), [infinite(column) for column in used])


def _normal_terms(normal: Normal, group: Group, of_log: bool, impossible: bool) -> list[list[Term]]:
    terms: list[list[Term]] = []
    for j, (column, weight) in enumerate(zip(group.columns, group.weights.tolist(), strict=True)):
        root, offset = weight**0.5 * normal.root[j], weight * normal.offset[j]
        term = NormalTerm(column, float(normal.centre[j]), normal.mean[j], root, offset, of_log, impossible)
        terms.append([term] if weight > 0.0 else [])
    return terms


def _log_normal(likelihood: LogNormalLikelihood, group: Group) -> GroupTerms:
    terms = _normal_terms(likelihood.normal, group, True, likelihood.outside == "refuse")
    return GroupTerms(terms, [infinite(column) for column in group.columns])


def _gamma(likelihood: GammaLikelihood, group: Group) -> GroupTerms:
    impossible, peak = likelihood.outside == "refuse", log_peak(likelihood.shape)
    terms: list[list[Term]] = []
    for j, (column, w) in enumerate(zip(group.columns, group.weights.tolist(), strict=True)):
        if not w > 0.0:
            terms.append([])
        elif likelihood.narrow[j]:
            mean, low = likelihood.mean[j], likelihood.mean_low[j]
            terms.append([NarrowGammaTerm(column, w * peak[j], w * likelihood.shape[j], mean, low, impossible)])
        else:
            offset, power, slope = (w * part[j] for part in (likelihood.offset, likelihood.power, likelihood.slope))
            terms.append([HalfLineTerm(column, offset, power, slope, False, impossible)])
    return GroupTerms(terms, [infinite(column) for column in group.columns])


def _poisson(likelihood: PoissonLikelihood, group: Group) -> GroupTerms:
    impossible, flat = likelihood.outside == "refuse", np.zeros(likelihood.rate.shape[1])
    terms: list[list[Term]] = []
    for j, (column, w) in enumerate(zip(group.columns, group.weights.tolist(), strict=True)):
        rate, log_rate = likelihood.rate[j], likelihood.log_rate[j]
        terms.append([HalfLineTerm(column, -w * rate, flat, w * log_rate, True, impossible)] if w > 0.0 else [])
    return GroupTerms(terms, [infinite(column) for column in group.columns])


def _joint_normal(likelihood: JointNormal, group: Group) -> GroupTerms:
    white, weight = likelihood.whitened, float(group.weights[0])
    refusals = [infinite(column) for column in group.columns]
    if not weight > 0.0 or not white.columns.size:
        return GroupTerms([[]], refusals)
    columns, root = tuple(group.columns[k] for k in white.columns.tolist()), weight**0.5
    form = WhitenedForm(white.group, root * white.whiten, root * white.mean, weight * white.offset)
    return GroupTerms([[JointNormalTerm(columns, white.centre, form, weight, likelihood, group.holed)]], refusals)


def _joint_table(likelihood: JointTableLikelihood, group: Group) -> GroupTerms:
    """A row for each combination of places, as the likelihood scores it."""
    cuts = likelihood.cuts or (None,) * len(group.columns)
    apart = likelihood.unseen != "ignore"
    members: list[LevelPlace | CutPlace] = []
    refusals = []
    for k, (column, levels, own) in enumerate(zip(group.columns, likelihood.statistic.levels, cuts, strict=True)):
        if own is None:
            place: LevelPlace | CutPlace = level_place(column, levels, group.names[k], merged=not apart)
            never = [OTHER_PLACE]
        else:
            place = CutPlace(column, tuple(map(float, own)))
            never = [1 + count for count in range(len(own) + 1) if count not in set(levels.to_pylist())]
        members.append(place)
        if likelihood.unseen == "error" and never:
            refusals.append(Refusal(place, tuple(never)))
    tuples = prod(member.size for member in members)
    if tuples > MOST_TUPLES:
        raise group.refused(0, f"{group.family} has {tuples:,} combinations of values, more than {MOST_TUPLES:,}")
    table = joint_table_rows(likelihood, members)
    return GroupTerms([_lookup(TuplePlace(tuple(members)), table, float(group.weights[0]))], refusals)


def joint_table_cells(likelihood: JointTableLikelihood, members: Sequence[LevelPlace | CutPlace]) -> list[pa.Array]:
    """The cells of each column for every combination of places; a refused value is a missing one here."""
    cells = []
    places = np.array(list(product(*(range(member.size) for member in members))), dtype=np.int64)
    for k, (member, levels) in enumerate(zip(members, likelihood.statistic.levels, strict=True)):
        if isinstance(member, CutPlace):
            known = pa.array(np.arange(member.size - 1))
            if likelihood.unseen == "error":
                known = pa.array([count if count in set(levels.to_pylist()) else None for count in known.to_pylist()])
            values = pa.concat_arrays([pa.nulls(1, known.type), known])
        else:
            other = unseen_value(levels) if likelihood.unseen == "smooth" else None
            before = [None] * member.first
            before[-1] = other if member.first == 1 + OTHER_PLACE else None
            values = pa.concat_arrays([pa.array(before, levels.type), levels])
        cells.append(values.take(pa.array(places[:, k])))
    return cells


def unseen_value(levels: pa.Array) -> Any:
    """A value of the type of the levels that is none of them; None where there is none."""
    known = set(levels.to_pylist())
    if pa.types.is_null(levels.type):
        return None
    if pa.types.is_boolean(levels.type):
        return next((value for value in (False, True) if value not in known), None)
    if pa.types.is_string(levels.type):
        return "x" * (1 + max(map(len, known), default=0))
    width = 32 if str(levels.type) in ("date32[day]", "time32[s]", "time32[ms]") else 64
    numbers = pa.array(np.arange(len(known) + 1), pa.int32() if width == 32 else pa.int64())
    return next(value for value in numbers.cast(levels.type).to_pylist() if value not in known)


def joint_table_rows(likelihood: JointTableLikelihood, members: Sequence[LevelPlace | CutPlace]) -> Floats:
    """What the likelihood says of every combination of places, place by class."""
    cells = joint_table_cells(likelihood, members)
    out = np.zeros((len(cells[0]), 1, len(likelihood.statistic.table)))
    likelihood.score(cells, np.ones(1), np.zeros(1, dtype=np.int64), out)
    return out[:, 0]


# What is read of each likelihood.
TERMS: dict[type[Any], Callable[[Any, Group], GroupTerms]] = {
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
}
