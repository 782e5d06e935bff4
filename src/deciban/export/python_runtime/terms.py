"""The terms of a model, each a function of a row; and the share of each column in those of several columns.

Sums are made in the order in which deciban makes them, so that they are rounded alike.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

from deciban.export.python_runtime.cells import Column, Row, add_to, decoded_array, decoded_number, largest, log, zeros

_MAX_AMOUNT = 1e290
_TOO_LARGE = 1e140

# The code of a member of a tuple that is summed over.
_SUMMED_OVER = -1

# Columns, all sets of which are looked at.
_MAX_ENUMERATED = 10

# Decompositions of matrices that are kept, of different sets of columns that are there.
_MAX_KEPT = 64


class Eigen(NamedTuple):
    """The eigenvalues and eigenvectors of a symmetric matrix: axes[row][k] is of value k."""

    values: list[float]
    axes: list[list[float]]


def shapley_shares(value_of: Callable[[int], list[float]], players: int, classes: int) -> list[list[float]]:
    """The Shapley value of each player; value_of(set of players, as bits) has a value for each class."""
    values = [value_of(some) for some in range(1 << players)]
    weights = shapley_weights(players)
    shares = [zeros(classes) for _ in range(players)]
    for p, share in enumerate(shares):
        for some, before in enumerate(values):
            if some & 1 << p:
                continue
            after, weight = values[some | 1 << p], weights[bin(some).count("1")]
            for c in range(classes):
                share[c] += weight * gain(before[c], after[c])
    return shares


def shapley_weights(players: int) -> list[float]:
    """The weight in a Shapley value of a set of so many others, among so many players."""
    found, choose = [], 1.0
    for size in range(players):
        found.append(1.0 / (players * choose))
        choose = choose * (players - 1 - size) / (size + 1)
    return found


def gain(before: float, after: float) -> float:
    """What a value gains; nothing where it was -inf already."""
    return after - before if before > -math.inf else 0.0


def shares_by_orders(
    value_of: Callable[[list[bool]], list[float]], orders: list[int], players: int, classes: int
) -> list[list[float]]:
    """The mean of what each player adds to those before it, in some orders."""
    shares = [zeros(classes) for _ in range(players)]
    count = len(orders) // players
    for o in range(count):
        known = [False] * players
        before = value_of(known)
        for player in orders[o * players : (o + 1) * players]:
            known[player] = True
            after = value_of(known)
            for c in range(classes):
                shares[player][c] += gain(before[c], after[c]) / count
            before = after
    return shares


def eigenvectors(matrix: list[list[float]]) -> Eigen:
    """The eigenvalues and eigenvectors of a symmetric matrix, by Jacobi's rotations."""
    size = len(matrix)
    a = [list(row) for row in matrix]
    axes = [[1.0 if i == j else 0.0 for j in range(size)] for i in range(size)]
    for _ in range(60):
        turned = False
        for p in range(size - 1):
            for q in range(p + 1, size):
                if abs(a[p][q]) > 1e-17 * math.sqrt(abs(a[p][p] * a[q][q])):
                    turned = True
                    turn(a, axes, p, q)
        if not turned:
            break
    return Eigen([a[i][i] for i in range(size)], axes)


def turn(a: list[list[float]], axes: list[list[float]], p: int, q: int) -> None:
    """One rotation, by which a[p][q] becomes 0."""
    theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q])
    t = (1.0 if theta >= 0 else -1.0) / (abs(theta) + math.hypot(theta, 1.0))
    cosine = 1.0 / math.hypot(t, 1.0)
    sine, shift = t * cosine, t * a[p][q]
    first, second = a[p][p] - shift, a[q][q] + shift
    for k, (row, axis) in enumerate(zip(a, axes)):
        x, y = row[p], row[q]
        row[p] = a[p][k] = cosine * x - sine * y
        row[q] = a[q][k] = sine * x + cosine * y
        x, y = axis[p], axis[q]
        axis[p] = cosine * x - sine * y
        axis[q] = sine * x + cosine * y
    a[p][p], a[q][q] = first, second
    a[p][q] = a[q][p] = 0.0


def inverse_logarithmic_mean(a: float, b: float) -> float:
    """(log a - log b) / (a - b), 1 / a where they are equal."""
    ratio = a / b - 1.0
    return (1.0 - ratio / 2.0 if abs(ratio) < 1e-8 else math.log1p(ratio) / ratio) / b


def gradual_normal_shares(z: list[float], eigen: Eigen) -> list[float]:
    """What each column has of the log density at z of a normal distribution of mean 0, without -log(2 pi)/2 of each."""
    values, axes = eigen
    size = range(len(z))
    along = [sum(each * axes[i][k] for i, each in enumerate(z)) for k in size]
    means = [[inverse_logarithmic_mean(a, b) for b in values] for a in values]
    logs = [log(value) for value in values]
    found = []
    for axis in axes:
        turned = [axis[k] * along[k] for k in size]
        quadratic = sum(turned[k] * sum(turned[m] * means[m][k] for m in size) for k in size)
        volume = sum(axis[k] * axis[k] * logs[k] for k in size)
        found.append(-0.5 * (quadratic + volume))
    return found


def settled(shares: list[list[float]], evidence: list[float], limited: bool) -> list[list[float]]:
    """Shares (column by class) as shares of the evidence that a block has in the end.

    Where a cap limited it, they are relative to the best class too; what is left over by rounding goes to the columns
    by the size of their shares.
    """
    best = evidence.index(largest(evidence))
    present = [any(value != 0 for value in share) for share in shares]
    found = [zeros(len(share)) for share in shares]
    for c, whole in enumerate(evidence):
        own = [share[c] - share[best] for share in shares] if limited else [share[c] for share in shares]
        for k, value in enumerate(settled_class(own, whole, limited, present)):
            found[k][c] = value
    return found


def settled_class(own: list[float], whole: float, limited: bool, present: list[bool]) -> list[float]:
    """The shares of one class."""
    if limited:
        total = sum(own)
        scale = 0.0 if whole == 0 else whole / total if total < 0 else math.nan
        own = [value * scale for value in own]
    finite = math.isfinite(whole)
    if any(math.isnan(value) or (finite and math.isinf(value)) for value in own):
        own = [whole / max(sum(present), 1) if there else 0.0 for there in present]
    size, rest = sum(abs(value) for value in own), whole - sum(own)
    return [value + abs(value) / size * rest for value in own] if finite and size > 0 else own


class Term(NamedTuple):
    """A term: its columns, what it reads of a row, and its number for each class; None if it adds nothing.

    If it is of several columns, `shares` is what each of them has of it, and `evidence` the term with what is the same
    for every class, if that is not in it.
    """

    columns: list[Column]
    read: Callable[[Row], Any]
    score: Callable[[Row], list[float] | None]
    shares: Callable[[Row], list[list[float]]] | None = None
    evidence: Callable[[Row], list[float]] | None = None


def lookup_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """A row of a table."""
    flat, place = decoded_array(term["table"]), term["place"]
    table = [flat[start : start + classes] for start in range(0, len(flat), classes)]
    return Term(columns, lambda row: row.place(place), lambda row: table[row.place(place)])


def density_term(
    columns: list[Column],
    impossible: bool,
    classes: int,
    inside: Callable[[float], bool],
    density: Callable[[float], list[float]],
) -> Term:
    """A function of a number inside the support; outside, every class has probability 0, or the cell is missing."""
    (column,) = columns

    def score(row: Row) -> list[float] | None:
        x = row.number(column)
        if inside(x):
            return density(x)
        return [-math.inf] * classes if impossible and not math.isnan(x) else None

    return Term(columns, lambda row: row.number(column), score)


def is_positive(x: float) -> bool:
    """Whether a number is above 0."""
    return x > 0


def is_count(x: float) -> bool:
    """Whether a number is 0, 1, 2, ..."""
    return x >= 0 and (x == math.inf or x == math.floor(x))


def by_class(term: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """The parameters of each class."""
    return list(zip(*(decoded_array(term[name]) for name in names)))


def normal_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """Normal distributions of a number, or of its logarithm."""
    of_log, center = term["of_log"], decoded_number(term["center"])
    parameters = by_class(term, "mean", "root", "offset")

    def density(x: float) -> list[float]:
        away = (math.log(x) if of_log else x) - center
        return [offset - (z := (away - mean) * root) * z for mean, root, offset in parameters]

    inside = is_positive if of_log else lambda x: not math.isnan(x)
    return density_term(columns, term["impossible"], classes, inside, density)


def half_line_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """offset + power * log(x) + slope * x, of which 0 has only the first."""
    parameters = by_class(term, "offset", "power", "slope")

    def density(x: float) -> list[float]:
        if x == 0:
            return [offset for offset, _, _ in parameters]
        value = min(x, _MAX_AMOUNT)
        log_value = math.log(value)
        return [offset + power * log_value + slope * value for offset, power, slope in parameters]

    return density_term(columns, term["impossible"], classes, is_count if term["counts"] else is_positive, density)


def narrow_gamma_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """The log density falls from its peak with the distance from the mean."""
    parameters = by_class(term, "peak", "shape", "mean", "mean_low")

    def density(x: float) -> list[float]:
        found = []
        for peak, shape, mean, low in parameters:
            away = min((x - mean - low) / mean, 1e250)
            log_ratio = math.log1p(away) if abs(away) < 0.5 else math.log(x) - math.log(mean)
            found.append(peak + shape * (log_ratio - away))
        return found

    return density_term(columns, term["impossible"], classes, is_positive, density)


def linear_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """A number times a slope."""
    slope = decoded_array(term["slope"])
    return density_term(columns, False, classes, is_positive, lambda x: [min(x, _TOO_LARGE) * one for one in slope])


class JointNormal:
    """Normal distributions of several columns: a whitened form of whole rows, matrices for rows with missing cells."""

    def __init__(self, term: dict[str, Any], classes: int) -> None:
        names = ("group", "center", "reach", "whiten", "white_mean", "offset", "unit", "mean", "covariance")
        arrays = [decoded_array(term[name]) for name in names]
        self.of, self.center, self.reach, self.whiten = arrays[:4]
        self.white_mean, self.offset, self.unit, self.mean, self.covariance = arrays[4:]
        self.classes, self.size, self.stride = classes, len(self.center), sum(self.reach)
        self.eigen: dict[Any, Eigen] = {}

    def whitened(self, x: list[float], g: int) -> list[float]:
        """whiten (x - center) of a group of classes."""
        at, found = g * self.stride, []
        for reach in self.reach:
            total = 0.0
            for k in range(reach):
                total += self.whiten[at + k] * (x[k] - self.center[k])
            found.append(total)
            at += reach
        return found

    def whole(self, x: list[float]) -> list[float]:
        """Log densities of a whole row: offset - |whiten (x - center) - mean|**2."""
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
        return [(x[k] - self.center[k]) / self.unit[k] - self.mean[c * self.size + k] for k in kept]

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
            if len(self.eigen) >= _MAX_KEPT:
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


def joint_normal_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """Normal distributions of several columns together."""
    known = JointNormal(term, classes)

    def numbers(row: Row) -> list[float]:
        return [row.number(column) for column in columns]

    def score(row: Row) -> list[float]:
        x = numbers(row)
        return known.holed(x) if any(map(math.isnan, x)) else known.whole(x)

    of = known.gradual_shares if known.size > _MAX_ENUMERATED else known.exact_shares
    return Term(columns, numbers, score, lambda row: of(numbers(row)), lambda row: known.evidence(numbers(row)))


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


class Tuples:
    """Counts of tuples of codes, and tables of them with some columns summed over, made as they are needed."""

    def __init__(self, term: dict[str, Any], classes: int) -> None:
        self.classes, self.alpha, self.sizes = classes, decoded_number(term["alpha"]), term["sizes"]
        self.places, self.codes = term["places"], [decoded_array(codes) for codes in term["codes"]]
        tuples, width = decoded_array(term["tuples"]), len(self.places)
        self.tuples = [tuples[start : start + width] for start in range(0, len(tuples), width)]
        self.counts = decoded_array(term["counts"])
        self.tables: dict[tuple[int, ...], TupleTable] = {}

    def codes_of(self, row: Row) -> list[int]:
        """The codes of the members."""
        return [codes[row.place(place)] for codes, place in zip(self.codes, self.places)]

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
            for k, size in enumerate(self.sizes):
                possible *= size if k in kept else 1
                hidden *= 1 if k in kept else size
            self.tables[kept] = TupleTable(found, total, possible, self.alpha * hidden)
        return self.tables[kept]

    def evidence(self, codes: list[int]) -> list[float]:
        """The evidence of some members."""
        kept = tuple(k for k, code in enumerate(codes) if code != _SUMMED_OVER)
        return self.table_of(kept).log_shares(tuple(codes[k] for k in kept)) if kept else zeros(self.classes)

    def shares_by_sets(self, codes: list[int]) -> list[list[float]]:
        """Of few columns: by all their sets."""
        kept = [k for k, code in enumerate(codes) if code != _SUMMED_OVER]

        def evidence_of_some(known: int) -> list[float]:
            members = {k for a, k in enumerate(kept) if known & 1 << a}
            return self.evidence([code if k in members else _SUMMED_OVER for k, code in enumerate(codes)])

        found = [zeros(self.classes) for _ in codes]
        for k, share in zip(kept, shapley_shares(evidence_of_some, len(kept), self.classes)):
            found[k] = share
        return found


def tuple_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """A table of the values of several columns together."""
    table = Tuples(term, classes)
    orders = decoded_array(term["orders"]) if term["orders"] else None

    def shares(row: Row) -> list[list[float]]:
        codes = table.codes_of(row)
        if orders is None:
            return table.shares_by_sets(codes)

        def evidence_of_some(known: list[bool]) -> list[float]:
            return table.evidence([code if there else _SUMMED_OVER for code, there in zip(codes, known)])

        return shares_by_orders(evidence_of_some, orders, len(columns), classes)

    return Term(columns, table.codes_of, lambda row: table.evidence(table.codes_of(row)), shares)
