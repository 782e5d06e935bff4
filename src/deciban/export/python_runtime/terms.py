"""Terms of a model as functions of a row, and the shares of columns in joint terms.

Sums have the same order as in deciban, so that they are rounded equally.
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

from deciban.export.python_runtime.cells import Column, Row, add_to, decode_array, decode_number, largest, log, zeros

# Larger numbers are reduced to this, so that inf - inf never occurs.
_MAX_AMOUNT = 1e290

# Larger numbers cannot be squared and summed.
_TOO_LARGE = 1e140

# Code of a tuple member that is summed over.
_SUMMED_OVER = -1

# Maximum number of columns for which all subsets are evaluated.
_MAX_ENUMERATED = 10

# Maximum number of cached eigendecompositions, one per set of present columns.
_MAX_KEPT = 64


class Eigen(NamedTuple):
    """Eigenvalues and eigenvectors of a symmetric matrix: axes[row][k] belongs to value k."""

    values: list[float]
    axes: list[list[float]]


def shapley_shares(value_of: Callable[[int], list[float]], players: int, classes: int) -> list[list[float]]:
    """Return the Shapley value of each player; value_of(set of players, as bits) has a value per class."""
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
    """Return the Shapley weight of sets of other players, by their size."""
    found, choose = [], 1.0
    for size in range(players):
        found.append(1.0 / (players * choose))
        choose = choose * (players - 1 - size) / (size + 1)
    return found


def gain(before: float, after: float) -> float:
    """Return the gain of a value; 0 if it was -inf already."""
    return after - before if before > -math.inf else 0.0


def shares_by_orders(
    value_of: Callable[[list[bool]], list[float]], orders: list[int], players: int, classes: int
) -> list[list[float]]:
    """Return the mean gain of each player over the players before it, in some orders."""
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
    """Return the eigenvalues and eigenvectors of a symmetric matrix, by Jacobi rotations."""
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
    """Apply one rotation, which makes a[p][q] zero."""
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
    """Return (log a - log b) / (a - b), or 1 / a if they are equal."""
    ratio = a / b - 1.0
    return (1.0 - ratio / 2.0 if abs(ratio) < 1e-8 else math.log1p(ratio) / ratio) / b


def gradual_normal_shares(z: list[float], eigen: Eigen) -> list[float]:
    """Return the share of each column in the log density at z of a normal distribution with mean 0.

    The term -log(2 pi)/2 of each column is left out.
    """
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


def adjust_shares(shares: list[list[float]], evidence: list[float], limited: bool) -> list[list[float]]:
    """Return shares (column by class) adjusted to the final evidence of the block.

    If a cap limited the evidence, they are relative to the best class too. Rounding errors are distributed to the
    columns in proportion to their shares.
    """
    best = evidence.index(largest(evidence))
    present = [any(value != 0 for value in share) for share in shares]
    found = [zeros(len(share)) for share in shares]
    for c, whole in enumerate(evidence):
        own = [share[c] - share[best] for share in shares] if limited else [share[c] for share in shares]
        for k, value in enumerate(adjust_class_shares(own, whole, limited, present)):
            found[k][c] = value
    return found


def adjust_class_shares(own: list[float], whole: float, limited: bool, present: list[bool]) -> list[float]:
    """Return the shares of one class."""
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
    """A term: its columns, the function that reads a row, and its score per class; None if it adds nothing.

    For several columns, `shares` returns the share of each, and `evidence` the term with the parts common to all
    classes, if the score leaves them out.
    """

    columns: list[Column]
    read: Callable[[Row], Any]
    score: Callable[[Row], list[float] | None]
    shares: Callable[[Row], list[list[float]]] | None = None
    evidence: Callable[[Row], list[float]] | None = None


def lookup_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """Return a term that looks up a row of a table."""
    flat, place = decode_array(term["table"]), term["place"]
    table = [flat[start : start + classes] for start in range(0, len(flat), classes)]
    return Term(columns, lambda row: row.place(place), lambda row: table[row.place(place)])


def density_term(
    columns: list[Column],
    impossible: bool,
    classes: int,
    inside: Callable[[float], bool],
    density: Callable[[float], list[float]],
) -> Term:
    """Return a term that is a function of a number inside the support.

    Outside, every class has probability 0, or the cell counts as missing.
    """
    (column,) = columns

    def score(row: Row) -> list[float] | None:
        x = row.number(column)
        if inside(x):
            return density(x)
        return [-math.inf] * classes if impossible and not math.isnan(x) else None

    return Term(columns, lambda row: row.number(column), score)


def is_positive(x: float) -> bool:
    """Return True if a number is positive."""
    return x > 0


def is_count(x: float) -> bool:
    """Return True if a number is 0, 1, 2, ..."""
    return x >= 0 and (x == math.inf or x == math.floor(x))


def by_class(term: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """Return the parameters of each class."""
    return list(zip(*(decode_array(term[name]) for name in names)))


def normal_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """Return a term for normal distributions of a number, or of its logarithm."""
    of_log, center = term["of_log"], decode_number(term["center"])
    parameters = by_class(term, "mean", "root", "offset")

    def density(x: float) -> list[float]:
        away = (math.log(x) if of_log else x) - center
        return [offset - (z := (away - mean) * root) * z for mean, root, offset in parameters]

    inside = is_positive if of_log else lambda x: not math.isnan(x)
    return density_term(columns, term["impossible"], classes, inside, density)


def half_line_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """Return the term offset + power * log(x) + slope * x; for 0 only the offset."""
    parameters = by_class(term, "offset", "power", "slope")

    def density(x: float) -> list[float]:
        if x == 0:
            return [offset for offset, _, _ in parameters]
        value = min(x, _MAX_AMOUNT)
        log_value = math.log(value)
        return [offset + power * log_value + slope * value for offset, power, slope in parameters]

    return density_term(columns, term["impossible"], classes, is_count if term["counts"] else is_positive, density)


def narrow_gamma_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """Return a term for narrow gamma distributions, computed from the distance to the mean."""
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
    """Return a term that is a number times a slope."""
    slope = decode_array(term["slope"])
    return density_term(columns, False, classes, is_positive, lambda x: [min(x, _TOO_LARGE) * one for one in slope])


class JointNormal:
    """Joint normal distributions: a whitened form for complete rows, matrices for rows with missing cells."""

    def __init__(self, term: dict[str, Any], classes: int) -> None:
        names = ("group", "center", "reach", "whiten", "white_mean", "offset", "unit", "mean", "covariance")
        arrays = [decode_array(term[name]) for name in names]
        self.of, self.center, self.reach, self.whiten = arrays[:4]
        self.white_mean, self.offset, self.unit, self.mean, self.covariance = arrays[4:]
        self.classes, self.size, self.stride = classes, len(self.center), sum(self.reach)
        self.eigen: dict[Any, Eigen] = {}

    def whiten_cells(self, x: list[float], g: int) -> list[float]:
        """Return whiten (x - center) for a group of classes."""
        at, found = g * self.stride, []
        for reach in self.reach:
            total = 0.0
            for k in range(reach):
                total += self.whiten[at + k] * (x[k] - self.center[k])
            found.append(total)
            at += reach
        return found

    def complete_densities(self, x: list[float]) -> list[float]:
        """Return the log densities of a complete row: offset - |whiten (x - center) - mean|**2."""
        found, count = [], len(self.reach)
        white = {g: self.whiten_cells(x, g) for g in sorted(set(self.of))}
        for c in range(self.classes):
            distance = 0.0
            for value, mean in zip(white[self.of[c]], self.white_mean[c * count : (c + 1) * count]):
                distance += (value - mean) * (value - mean)
            found.append(self.offset[c] - (math.inf if math.isnan(distance) else distance))
        return found

    def entry(self, g: int, a: int, b: int) -> float:
        """Return the covariance of two columns; only the lower triangle is stored."""
        a, b = max(a, b), min(a, b)
        return float(self.covariance[g * self.size * (self.size + 1) // 2 + a * (a + 1) // 2 + b])

    def factor(self, g: int, kept: list[int]) -> tuple[list[list[float]], float]:
        """Return the Cholesky factor for the present columns, and the sum of its log diagonal."""
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
        """Return the present columns."""
        return [k for k in range(self.size) if not math.isnan(x[k])]

    def standard(self, x: list[float], kept: list[int], c: int) -> list[float]:
        """Return the distances of columns from the mean of a class, in units."""
        return [(x[k] - self.center[k]) / self.unit[k] - self.mean[c * self.size + k] for k in kept]

    def partial_densities(self, x: list[float]) -> list[float]:
        """Return the log densities of the present columns; the others are integrated out."""
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
        """Return the log densities with the terms common to all classes, which `whole` may leave out."""
        return (
            self.partial_densities(x)
            if len(self.reach) < self.size or any(map(math.isnan, x))
            else self.complete_densities(x)
        )

    def eigen_of(self, g: int, kept: list[int]) -> Eigen:
        """Return the eigenvectors of the matrix of some columns; the latest ones are cached."""
        key = (g, *kept)
        if key not in self.eigen:
            if len(self.eigen) >= _MAX_KEPT:
                self.eigen.clear()
            self.eigen[key] = eigenvectors([[self.entry(g, a, b) for b in kept] for a in kept])
        return self.eigen[key]

    def gradual_shares(self, x: list[float]) -> list[list[float]]:
        """Return the shares for many columns, which all become known at the same pace."""
        kept = self.present(x)
        found = [zeros(self.classes) for _ in x]
        for c in range(self.classes):
            shares = gradual_normal_shares(self.standard(x, kept, c), self.eigen_of(self.of[c], kept))
            for k, share in zip(kept, shares):
                found[k][c] = share - (0.5 * math.log(2.0 * math.pi) + log(self.unit[k]))
        return found

    def exact_shares(self, x: list[float]) -> list[list[float]]:
        """Return the shares for few columns, by all their subsets."""
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
    """Return a term for joint normal distributions."""
    known = JointNormal(term, classes)

    def numbers(row: Row) -> list[float]:
        return [row.number(column) for column in columns]

    def score(row: Row) -> list[float]:
        x = numbers(row)
        return known.partial_densities(x) if any(map(math.isnan, x)) else known.complete_densities(x)

    of = known.gradual_shares if known.size > _MAX_ENUMERATED else known.exact_shares
    return Term(columns, numbers, score, lambda row: of(numbers(row)), lambda row: known.evidence(numbers(row)))


class TupleTable(NamedTuple):
    """Counts of the tuples of some columns: per tuple, in total, the number of possible tuples, and the smoothing."""

    found: dict[tuple[int, ...], list[float]]
    total: list[float]
    possible: float
    alpha: float

    def log_shares(self, name: tuple[int, ...]) -> list[float]:
        """Return log((count + alpha) / (sum + alpha * possible)) for each class.

        A class without counts and smoothing takes the shares of all classes.
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
    """Counts of tuples of codes, and tables with some columns summed over, made on first use."""

    def __init__(self, term: dict[str, Any], classes: int) -> None:
        self.classes, self.alpha, self.sizes = classes, decode_number(term["alpha"]), term["sizes"]
        self.places, self.codes = term["places"], [decode_array(codes) for codes in term["codes"]]
        tuples, width = decode_array(term["tuples"]), len(self.places)
        self.tuples = [tuples[start : start + width] for start in range(0, len(tuples), width)]
        self.counts = decode_array(term["counts"])
        self.tables: dict[tuple[int, ...], TupleTable] = {}

    def codes_of(self, row: Row) -> list[int]:
        """Return the codes of the members."""
        return [codes[row.place(place)] for codes, place in zip(self.codes, self.places)]

    def table_of(self, kept: tuple[int, ...]) -> TupleTable:
        """Return the counts of the tuples of some columns, with the others summed over."""
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
        """Return the evidence of some members."""
        kept = tuple(k for k, code in enumerate(codes) if code != _SUMMED_OVER)
        return self.table_of(kept).log_shares(tuple(codes[k] for k in kept)) if kept else zeros(self.classes)

    def shares_by_sets(self, codes: list[int]) -> list[list[float]]:
        """Return the shares for few columns, by all their subsets."""
        kept = [k for k, code in enumerate(codes) if code != _SUMMED_OVER]

        def evidence_of_some(known: int) -> list[float]:
            members = {k for a, k in enumerate(kept) if known & 1 << a}
            return self.evidence([code if k in members else _SUMMED_OVER for k, code in enumerate(codes)])

        found = [zeros(self.classes) for _ in codes]
        for k, share in zip(kept, shapley_shares(evidence_of_some, len(kept), self.classes)):
            found[k] = share
        return found


def tuple_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """Return a term for a table of the joint values of several columns."""
    table = Tuples(term, classes)
    orders = decode_array(term["orders"]) if term["orders"] else None

    def shares(row: Row) -> list[list[float]]:
        codes = table.codes_of(row)
        if orders is None:
            return table.shares_by_sets(codes)

        def evidence_of_some(known: list[bool]) -> list[float]:
            return table.evidence([code if there else _SUMMED_OVER for code, there in zip(codes, known)])

        return shares_by_orders(evidence_of_some, orders, len(columns), classes)

    return Term(columns, table.codes_of, lambda row: table.evidence(table.codes_of(row)), shares)
