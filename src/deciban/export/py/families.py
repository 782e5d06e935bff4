"""The families of single columns, each as a GroupScorer.

Sums are made in the order in which deciban makes them, so that they are rounded alike.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, Callable, NamedTuple

from deciban.export.py.arrays import decoded_array, decoded_number, zeros
from deciban.export.py.cells import (
    Column,
    LevelSet,
    bad_cell,
    finite_number_in,
    given_cell,
    number_in,
    shown,
    unexpected,
)

_LARGEST = 1e290
_TOO_LARGE = 1e140


class Context(NamedTuple):
    """What all groups share: the number of classes, and the sets of levels."""

    classes: int
    levels: list[LevelSet]


class GroupScorer(NamedTuple):
    """What scores a group of columns.

    score(cells, weights, slots, out): adds weight * evidence of each column to out[slot]. Of columns together,
    shares(cells) is what each has of the evidence, and evidence(cells) that with what is the same for every class.
    """

    score: Callable[[list[Any], list[float], list[int], list[list[float]]], None]
    shares: Callable[[list[Any]], list[list[float]]] | None = None
    evidence: Callable[[list[Any]], list[float]] | None = None


def add_columns(weights: list[float], slots: list[int], out: list[list[float]], classes: int, add: Any) -> None:
    """Add what `add(j, weight, total)` finds of each column; columns of one slot are added up first."""
    first = 0
    while first < len(weights):
        here, total, last = slots[first], zeros(classes), first
        while last < len(weights) and slots[last] == here:
            if weights[last] != 0:
                add(last, weights[last], total)
            last += 1
        add_to(out[here], 1.0, total)
        first = last


def add_to(out: list[float], weight: float, values: list[float]) -> None:
    """Add weight * value of each class."""
    for c, value in enumerate(values):
        out[c] += weight * value


def make_impossible(outside: list[bool], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
    """Give probability 0 to every class where a cell lies outside the support."""
    for j, beyond in enumerate(outside):
        if beyond and weights[j] > 0:
            out[slots[j]][:] = [-math.inf] * len(out[slots[j]])


def lookup(
    table: list[float], start: list[int], classes: int, codes_of: Callable[[list[Any]], list[int]]
) -> GroupScorer:
    """Columns of which each value has a row of a table."""

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        codes = codes_of(cells)

        def add(j: int, weight: float, total: list[float]) -> None:
            if codes[j] >= 0:
                row = (start[j] + codes[j]) * classes
                add_to(total, weight, table[row : row + classes])

        add_columns(weights, slots, out, classes, add)

    return GroupScorer(score)


def unseen_code(unseen: str, column: Column, shown_value: str, place: str, size: int) -> int:
    """What becomes of a value that was never seen: -1 leaves it out, otherwise the row of a zero count."""
    if unseen == "error":
        raise bad_cell(column, f"found {shown_value}, {place}", "or choose unseen='ignore'")
    return size if unseen == "smooth" else -1


def categorical(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """Values that have a probability each."""
    start = decoded_array(group["start"])
    sets: list[LevelSet] = [context.levels[place] for place in group["levels"]]

    def code_of(j: int, column: Column, raw: Any) -> int:
        code = sets[j].code_in(column, raw)
        if code != -2:
            return code
        size = start[j + 1] - start[j] - 1
        return unseen_code(group["unseen"], column, shown(given_cell(column, raw)), "never seen in training", size)

    def codes_of(cells: list[Any]) -> list[int]:
        return [code_of(j, column, cells[column.place]) for j, column in enumerate(columns)]

    return lookup(decoded_array(group["table"]), start, context.classes, codes_of)


def scaled(x: float, exponent: int) -> float:
    """x * 2**exponent, in steps that do not overflow by themselves."""
    while exponent > 1000:
        x *= 2.0**1000
        exponent -= 1000
    while exponent < -1000:
        x *= 2.0**-1000
        exponent += 1000
    return x * 2.0**exponent


def binned(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """Numbers in bins."""
    bins = [decoded_array(cells) for cells in group["cells"]]

    def code_of(j: int, x: float) -> int:
        if math.isnan(x):
            return -1
        wanted = scaled(x, -group["exponents"][j])
        wanted = math.floor(wanted) if math.isfinite(wanted) else wanted
        place = bisect_right(bins[j], wanted) - 1
        if place >= 0 and bins[j][place] == wanted:
            return place
        return unseen_code(group["unseen"], columns[j], shown(x), "in a bin never seen", len(bins[j]))

    def codes_of(cells: list[Any]) -> list[int]:
        numbers = [finite_number_in(column, cells[column.place]) for column in columns]
        return [code_of(j, x) for j, x in enumerate(numbers)]

    return lookup(decoded_array(group["table"]), decoded_array(group["start"]), context.classes, codes_of)


def bernoulli(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """True and false, or numbers above a threshold."""
    one, zero, classes = decoded_array(group["one"]), decoded_array(group["zero"]), context.classes
    threshold = decoded_number(group["threshold"])

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        for j, column in enumerate(columns):
            x = number_in(column, cells[column.place])
            if math.isnan(x):
                continue
            if group["flags_only"] and x not in (0.0, 1.0):
                raise unexpected(column, x, "0 or 1")
            if weights[j] != 0:
                table = one if x > threshold else zero
                add_to(out[slots[j]], weights[j], table[j * classes : (j + 1) * classes])

    return GroupScorer(score)


def linear(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """Counts of several columns in one block, each times its slope."""
    slope, classes = decoded_array(group["slope"]), context.classes

    def share(j: int, column: Column, raw: Any) -> list[float]:
        x = number_in(column, raw)
        if x < 0 or x == math.inf:
            raise unexpected(column, x, "a count: not negative, not infinite")
        if math.isnan(x) or x == 0:
            return zeros(classes)
        return [min(x, _TOO_LARGE) * value for value in slope[j * classes : (j + 1) * classes]]

    def shares(cells: list[Any]) -> list[list[float]]:
        return [share(j, column, cells[column.place]) for j, column in enumerate(columns)]

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        total = zeros(classes)
        for values in shares(cells):
            add_to(total, 1.0, values)
        if weights[0] != 0:
            add_to(out[slots[0]], weights[0], total)

    return GroupScorer(score, shares)


def normal_terms(group: dict[str, Any], classes: int) -> Any:
    """A function that adds the log densities of numbers."""
    centre, mean, root, offset = (decoded_array(group[name]) for name in ("centre", "mean", "root", "offset"))

    def add_all(numbers: list[float], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        def add(j: int, weight: float, total: list[float]) -> None:
            x = numbers[j] - centre[j]
            if math.isnan(x):
                return
            for c in range(classes):
                at = j * classes + c
                z = (x - mean[at]) * root[at]
                total[c] += weight * (offset[at] - z * z)

        add_columns(weights, slots, out, classes, add)

    return add_all


def normal(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """Normal distributions."""
    add_all = normal_terms(group, context.classes)

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        readers = [number_in if weight == 0 else finite_number_in for weight in weights]
        numbers = [read(column, cells[column.place]) for read, column in zip(readers, columns)]
        add_all(numbers, weights, slots, out)

    return GroupScorer(score)


def log_normal(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """Logarithms that have normal distributions."""
    add_all = normal_terms(group, context.classes)

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        numbers = [finite_number_in(column, cells[column.place]) for column in columns]
        add_all([math.log(x) if x > 0 else math.nan for x in numbers], weights, slots, out)
        if group["outside"] == "refuse":
            make_impossible([x <= 0 for x in numbers], weights, slots, out)

    return GroupScorer(score)


def half_line(x: float, offset: float, power: float, slope: float) -> float:
    """offset + power * log(x) + slope * x, of which 0 has only the first."""
    value = min(x, _LARGEST)
    return offset if x == 0 else offset + power * math.log(value) + slope * value


def gamma(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """Gamma distributions; narrow ones by their distance from the mean, where the plain sum would lose digits."""
    classes, narrow = context.classes, decoded_array(group["narrow"])
    shape, mean, low, peak = (decoded_array(group[name]) for name in ("shape", "mean", "mean_low", "peak"))
    power, slope, offset = (decoded_array(group[name]) for name in ("power", "slope", "offset"))

    def wide_density(x: float, at: int) -> float:
        return half_line(x, offset[at], power[at], slope[at])

    # log x + log density is its peak, and falls from there with the distance from the mean
    def narrow_density(x: float, at: int) -> float:
        away = min((x - mean[at] - low[at]) / mean[at], 1e250)
        log_ratio = math.log1p(away) if abs(away) < 0.5 else math.log(x) - math.log(mean[at])
        return float(peak[at] + shape[at] * (log_ratio - away) - math.log(x))

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        numbers = [finite_number_in(column, cells[column.place]) for column in columns]
        for wanted, density in ((False, wide_density), (True, narrow_density)):
            for j, x in enumerate(numbers):
                if x > 0 and weights[j] != 0 and bool(narrow[j]) is wanted:
                    add_to(out[slots[j]], weights[j], [density(x, j * classes + c) for c in range(classes)])
        if group["outside"] == "refuse":
            make_impossible([x <= 0 for x in numbers], weights, slots, out)

    return GroupScorer(score)


def is_count(x: float) -> bool:
    """Whether a number is 0, 1, 2, ..."""
    return x >= 0 and x == math.floor(x)


def poisson(group: dict[str, Any], columns: list[Column], context: Context) -> GroupScorer:
    """Poisson distributions of counts."""
    rate, log_rate, classes = decoded_array(group["rate"]), decoded_array(group["log_rate"]), context.classes

    def score(cells: list[Any], weights: list[float], slots: list[int], out: list[list[float]]) -> None:
        numbers = [finite_number_in(column, cells[column.place]) for column in columns]
        if group["outside"] == "ignore":
            numbers = [x if is_count(x) else math.nan for x in numbers]
        for j, x in enumerate(numbers):
            if is_count(x) and weights[j] != 0:
                places = range(j * classes, (j + 1) * classes)
                add_to(out[slots[j]], weights[j], [half_line(x, -rate[at], 0.0, log_rate[at]) for at in places])
        make_impossible([not math.isnan(x) and not is_count(x) for x in numbers], weights, slots, out)

    return GroupScorer(score)
