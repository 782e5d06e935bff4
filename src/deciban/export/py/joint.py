"""The families of several columns together; `shares` is what each column has of the evidence of the block."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, NamedTuple

from deciban.export.py.arrays import decoded_array, decoded_number, log, zeros
from deciban.export.py.cells import Column, LevelSet, finite_number_in, number_in, shown
from deciban.export.py.families import Context, GroupScorer, add_to, unseen_code
from deciban.export.py.shares import (
    _MOST_ENUMERATED,
    _MOST_KEPT,
    Eigen,
    eigenvectors,
    gradual_normal_shares,
    shapley_shares,
    shares_by_orders,
)

# The code of a value that has the probability of a zero count.
_NEVER_SEEN = 2**31


class JointNormal:
    """Normal distributions of several columns: a whitened form of whole rows, matrices for rows with missing cells."""

    def __init__(self, group: dict[str, Any], classes: int) -> None:
        names = ("varies", "group", "centre", "reach", "whiten", "white_mean", "offset", "unit", "mean", "covariance")
        arrays = [decoded_array(group[name]) for name in names]
        self.varies, self.of, self.centre, self.reach, self.whiten = arrays[:5]
        self.white_mean, self.offset, self.unit, self.mean, self.covariance = arrays[5:]
        self.classes, self.size, self.stride = classes, len(self.varies), sum(self.reach)
        self.eigen: dict[Any, Eigen] = {}

    def whitened(self, x: list[float], g: int) -> list[float]:
        """whiten (x - centre) of a group of classes."""
        at, found = g * self.stride, []
        for reach in self.reach:
            total = 0.0
            for k in range(reach):
                total += self.whiten[at + k] * (x[k] - self.centre[k])
            found.append(total)
            at += reach
        return found

    def whole(self, x: list[float]) -> list[float]:
        """Log densities of a whole row: offset - |whiten (x - centre) - mean|**2."""
        found, count = [], len(self.reach)
        white = {g: self.whitened(x, g) for g in sorted(set(self.of))}
        for c in range(self.classes):
            distance = 0.0
            for value, mean in zip(white[self.of[c]], self.white_mean[c * count : (c + 1) * count]):
                distance += (value - mean) * (value - mean)
            found.append(self.offset[c] - (math.inf if math.isnan(distance) else distance))
        return found

    def entry(self, g: int, a: int, b: int) -> float:
        """The covariance of two columns, of which only the lower half is kept."""
        a, b = max(a, b), min(a, b)
        return float(self.covariance[g * self.size * (self.size + 1) // 2 + a * (a + 1) // 2 + b])

    def factor(self, g: int, kept: list[int]) -> tuple[list[list[float]], float]:
        """Cholesky's factor of the matrix of the columns that are there, and the sum of its log diagonal."""
        root: list[list[float]] = []
        log_root = 0.0
        for a in range(len(kept)):
            row: list[float] = []
            root.append(row)
            for b in range(a + 1):
                left = self.entry(g, kept[a], kept[b])
                for one, other in zip(row, root[b][:b]):
                    left -= one * other
                row.append((math.sqrt(left) if left >= 0 else math.nan) if a == b else left / root[b][b])
            log_root += log(row[a])
        return root, log_root

    def present(self, x: list[float]) -> list[int]:
        """The columns that are there."""
        return [k for k in range(self.size) if not math.isnan(x[k])]

    def standard(self, x: list[float], kept: list[int], c: int) -> list[float]:
        """How far columns are from the mean of a class, in units."""
        return [(x[k] - self.centre[k]) / self.unit[k] - self.mean[c * self.size + k] for k in kept]

    def holed(self, x: list[float]) -> list[float]:
        """Log densities of the columns that are there: the others are integrated out."""
        kept = self.present(x)
        factors = {g: self.factor(g, kept) for g in sorted(set(self.of))}
        constant, found = 0.0, []
        for k in kept:
            constant -= log(self.unit[k]) + 0.5 * math.log(2.0 * math.pi)
        for c in range(self.classes):
            root, log_root = factors[self.of[c]]
            white: list[float] = []
            distance = 0.0
            for a, left in enumerate(self.standard(x, kept, c)):
                for one, other in zip(root[a], white):
                    left -= one * other
                white.append(left / root[a][a])
                distance += white[a] * white[a]
            found.append(constant - log_root - 0.5 * (math.inf if math.isnan(distance) else distance))
        return found

    def evidence(self, x: list[float]) -> list[float]:
        """Log densities with what is the same for every class, which `whole` may leave out."""
        return self.holed(x) if len(self.reach) < self.size or any(map(math.isnan, x)) else self.whole(x)

    def eigen_of(self, g: int, kept: list[int]) -> Eigen:
        """The eigenvectors of a matrix of some columns; the last ones that were asked for are kept."""
        key = (g, *kept)
        if key not in self.eigen:
            if len(self.eigen) >= _MOST_KEPT:
                self.eigen.clear()
            self.eigen[key] = eigenvectors([[self.entry(g, a, b) for b in kept] for a in kept])
        return self.eigen[key]

    def gradual_shares(self, x: list[float]) -> list[list[float]]:
        """Of many columns: all become known at the same pace."""
        kept = self.present(x)
        found = [zeros(self.classes) for _ in x]
        for c in range(self.classes):
            shares = gradual_normal_shares(self.standard(x, kept, c), self.eigen_of(self.of[c], kept))
            for k, share in zip(kept, shares):
                found[k][c] = share - (0.5 * math.log(2.0 * math.pi) + log(self.unit[k]))
        return found

    def exact_shares(self, x: list[float]) -> list[list[float]]:
        """Of few columns: by all their sets."""
        kept = self.present(x)
        found = [zeros(self.classes) for _ in x]

        def evidence_of_some(known: int) -> list[float]:
            some = [math.nan] * len(x)
            for a, k in enumerate(kept):
                some[k] = x[k] if known & 1 << a else math.nan
            return self.evidence(some)

        for k, share in zip(kept, shapley_shares(evidence_of_some, len(kept), self.classes)):
            found[k] = share
        return found


def joint_normal(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """Normal distributions of several columns together."""
    known = JointNormal(group, context.classes)

    def numbers_of(cells: list[Any]) -> list[float]:
        numbers = [finite_number_in(column, cells[column.place]) for column in columns]
        return [numbers[k] for k in known.varies]

    def evidence(cells: list[Any]) -> list[float]:
        return known.evidence(numbers_of(cells)) if known.size else zeros(context.classes)

    def shares(cells: list[Any]) -> list[list[float]]:
        found = [zeros(context.classes) for _ in columns]
        of = known.gradual_shares if known.size > _MOST_ENUMERATED else known.exact_shares
        for k, share in zip(known.varies, of(numbers_of(cells))):
            found[k] = share
        return found

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        x = numbers_of(cells)
        if weights[0] != 0 and known.size:
            densities = known.holed(x) if any(map(math.isnan, x)) else known.whole(x)
            add_to(out[slots[0]], weights[0], densities)

    return GroupScorer(score, shares, evidence)


class TupleTable(NamedTuple):
    """Counts of the tuples of some columns: of each tuple, of all, how many could be, and what is added to each."""

    found: dict[tuple[int, ...], list[float]]
    total: list[float]
    possible: float
    alpha: float

    def log_shares(self, name: tuple[int, ...]) -> list[float]:
        """log((count + alpha) / (sum + alpha * possible)) of each class.

        A class without counts and smoothing takes the shares of all.
        """
        own = self.found.get(name) or zeros(len(self.total))
        every = sum(self.total)
        logs = []
        for count, total in zip(own, self.total):
            bottom = total + self.alpha * self.possible
            overall = sum(own) / every if every > 0 else 1.0 / max(self.possible, 1.0)
            logs.append(log((count + self.alpha) / bottom if bottom > 0 else overall))
        return logs


class JointTable:
    """Counts of tuples of values, and tables of them with some columns summed over, made as they are needed."""

    def __init__(self, group: dict[str, Any], columns: list[Column], context: Context) -> None:
        self.columns, self.unseen, self.classes = columns, group["unseen"], context.classes
        self.alpha = decoded_number(group["alpha"])
        self.sets: list[LevelSet] = [context.levels[place] for place in group["levels"]]
        self.cuts = [None if some is None else decoded_array(some) for some in group["cuts"]]
        tuples, width = decoded_array(group["tuples"]), len(columns)
        self.tuples = [tuples[start : start + width] for start in range(0, len(tuples), width)]
        self.counts = decoded_array(group["counts"])
        self.tables: dict[tuple[int, ...], TupleTable] = {}

    def code_of(self, k: int, raw: Any) -> int:
        """The code of a cell, -1 where it is to be summed over."""
        column, cuts = self.columns[k], self.cuts[k]
        if cuts is None:
            code = self.sets[k].code_in(column, raw)
        else:
            x = number_in(column, raw)
            place = None if math.isnan(x) else bisect_right(cuts, x)
            code = self.sets[k].code_in(column._replace(read_as="as it is"), place)
        if code != -2:
            return code
        return unseen_code(self.unseen, column, shown(raw), "never seen in training", _NEVER_SEEN)

    def codes_of(self, cells: list[Any]) -> list[int]:
        """The codes of the members."""
        return [self.code_of(k, cells[column.place]) for k, column in enumerate(self.columns)]

    def table_of(self, kept: tuple[int, ...]) -> TupleTable:
        """The counts of the tuples of some columns, the others summed over."""
        if kept not in self.tables:
            found: dict[tuple[int, ...], list[float]] = {}
            for t, codes in enumerate(self.tuples):
                sums = found.setdefault(tuple(codes[k] for k in kept), zeros(self.classes))
                add_to(sums, 1.0, self.counts[t :: len(self.tuples)])
            total = zeros(self.classes)
            for sums in found.values():
                add_to(total, 1.0, sums)
            possible = hidden = 1.0
            for k, levels in enumerate(self.sets):
                possible *= len(levels.values) if k in kept else 1
                hidden *= 1 if k in kept else len(levels.values)
            self.tables[kept] = TupleTable(found, total, possible, self.alpha * hidden)
        return self.tables[kept]

    def evidence(self, codes: list[int]) -> list[float]:
        """What some members say."""
        kept = tuple(k for k, code in enumerate(codes) if code != -1)
        return self.table_of(kept).log_shares(tuple(codes[k] for k in kept)) if kept else zeros(self.classes)

    def shares_by_sets(self, codes: list[int]) -> list[list[float]]:
        """Of few columns: by all their sets."""
        kept = [k for k, code in enumerate(codes) if code != -1]

        def evidence_of_some(known: int) -> list[float]:
            members = {k for a, k in enumerate(kept) if known & 1 << a}
            return self.evidence([code if k in members else -1 for k, code in enumerate(codes)])

        found = [zeros(self.classes) for _ in codes]
        for k, share in zip(kept, shapley_shares(evidence_of_some, len(kept), self.classes)):
            found[k] = share
        return found


def joint_table(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """A table of the values of several columns together."""
    table = JointTable(group, columns, context)
    orders = decoded_array(group["orders"]) if group["orders"] else None

    def shares(cells: list[Any]) -> list[list[float]]:
        codes = table.codes_of(cells)
        if orders is None:
            return table.shares_by_sets(codes)

        def evidence_of_some(known: list[bool]) -> list[float]:
            return table.evidence([code if there else -1 for code, there in zip(codes, known)])

        return shares_by_orders(evidence_of_some, orders, len(columns), context.classes)

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        codes = table.codes_of(cells)
        if weights[0] != 0:
            add_to(out[slots[0]], weights[0], table.evidence(codes))

    return GroupScorer(score, shares)
