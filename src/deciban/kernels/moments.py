"""Exact sums of cells and of their squares, by class and column.

Cells are divided by a power of two, so that none exceeds 1, and split into slices of 42 bits on a fixed grid; so are
their squares. Up to 2048 slices sum to 53 bits, which doubles hold exactly. A column of doubles fits that grid unless
its cells differ by more than 2**31 in size. Cells that do not fit are added one by one.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from deciban.kernels.compiled import Array, compile_kernel, emit_intrinsic, inner
from deciban.kernels.exact_sums import add_integer, add_product

# Bits of a slice.
SLICE = 42

# Maximum weight of rows whose slices can be added in doubles.
SLICED_WEIGHT = 2.0**11

# Slices of a cell.
SLICES = 2

# Bits of a sliced cell.
FITTING_BITS = SLICE * SLICES

# Slices of a cell and its square.
ALL_SLICES = 6

# Columns that are sliced at once.
SLICE_LANES = 8
_STEP = np.uint64(SLICE_LANES)

# Numbers that are added and subtracted again to round to the grid of a slice.
_GRIDS = tuple(1.5 * 2.0 ** (52 - SLICE * k) for k in (1, 2, 3))

_VECTOR = ir.VectorType(ir.DoubleType(), SLICE_LANES)


class Slices(NamedTuple):
    """Sums of slices, with columns padded to a multiple of SLICE_LANES.

    scale, exponent: the factor of each column, a power of two, and the exponent of its inverse. The factor is NaN if no
    cell fits, and 0 after the last column. sums: class by slice by column; `used` is the weight of the rows of each
    class in them. rows: the weight of all rows of each class. missing: that of missing cells. unfit: columns with cells
    that do not fit. tail: scratch space for some cells.
    """

    scale: Array
    exponent: Array
    sums: Array
    used: Array
    rows: Array
    missing: Array
    unfit: Array
    tail: Array


class MomentDigits(NamedTuple):
    """Digits of sums (see `exact_sums`) of weights, cells and squares, one row each.

    The sums are by class and column, one class after another.
    """

    present: Array
    first: Array
    second: Array
    lows: Array


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any, element: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), ir.VectorType(element, SLICE_LANES).as_pointer())


def _add_slices(weighted: bool) -> Any:
    """Return an operation that adds the slices of SLICE_LANES cells of x to the sums at `at`, `at + pitch` and so on.

    The operation returns a bit for each cell that does not fit the grid and was left out.
    """

    def add_slices(
        typing: Any, x: Any, place: Any, scale: Any, column: Any, sums: Any, at: Any, pitch: Any, weight: Any
    ) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            x, place, scale, column, sums, at, pitch, weight = arguments
            kind = signature.args[0]
            element = context.get_value_type(kind.dtype)
            cells = builder.load(_pointer(context, builder, kind, x, place, element), align=kind.dtype.bitwidth // 8)
            if isinstance(kind.dtype, types.Integer):
                cells = (
                    builder.sitofp(cells, _VECTOR)
                    if kind.dtype in types.signed_domain
                    else builder.uitofp(cells, _VECTOR)
                )
            elif element != ir.DoubleType():
                cells = builder.fpext(cells, _VECTOR)

            def all_lanes(number: float) -> Any:
                return ir.Constant(_VECTOR, [number] * SLICE_LANES)

            def to_grid(numbers: Any, k: int) -> Any:
                return builder.fsub(builder.fadd(numbers, all_lanes(_GRIDS[k])), all_lanes(_GRIDS[k]))

            factor = builder.load(
                _pointer(context, builder, signature.args[2], scale, column, ir.DoubleType()), align=8
            )
            nothing, cells = builder.fcmp_ordered("==", cells, all_lanes(0.0)), builder.fmul(cells, factor)
            high = to_grid(cells, 0)
            low = builder.fsub(cells, high)
            fits = builder.or_(nothing, builder.fcmp_ordered("!=", cells, all_lanes(0.0)))  # no underflow
            fits = builder.and_(fits, builder.fcmp_ordered("==", to_grid(low, 1), low))
            cells, high, low = (builder.select(fits, part, all_lanes(0.0)) for part in (cells, high, low))
            fused = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
                builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fma.v{SLICE_LANES}f64"
            )
            square = builder.fmul(cells, cells)
            error = builder.call(fused, [cells, cells, builder.fsub(all_lanes(-0.0), square)])
            first = to_grid(square, 0)
            square = builder.fsub(square, first)
            second = to_grid(square, 1)
            square = builder.fsub(square, second)
            third = to_grid(square, 2)
            more = to_grid(error, 1)
            error = builder.fsub(error, more)
            second = builder.fadd(second, more)
            more = to_grid(error, 2)
            fourth = builder.fadd(builder.fsub(square, third), builder.fsub(error, more))
            third = builder.fadd(third, more)
            parts = [high, low, first, second, third, fourth]
            if weighted:
                undefined = ir.Constant(_VECTOR, ir.Undefined)
                one = builder.insert_element(undefined, weight, ir.Constant(ir.IntType(32), 0))
                everywhere = ir.Constant(ir.VectorType(ir.IntType(32), SLICE_LANES), [0] * SLICE_LANES)
                weights = builder.shuffle_vector(one, undefined, everywhere)
                parts = [builder.fmul(weights, part) for part in parts]
            for part in parts:
                pointer = _pointer(context, builder, signature.args[4], sums, at, ir.DoubleType())
                builder.store(builder.fadd(builder.load(pointer, align=8), part), pointer, align=8)
                at = builder.add(at, pitch)
            bits = builder.bitcast(builder.not_(fits), ir.IntType(SLICE_LANES))
            return builder.zext(bits, ir.IntType(64))

        place_type = types.uint64
        return types.uint64(x, place_type, scale, place_type, sums, place_type, place_type, types.float64), build

    return emit_intrinsic(add_slices)


_add_plain, _add_weighted = _add_slices(False), _add_slices(True)


@compile_kernel
def largest_cells(x: Array, labels: Array, weights: Array, largest: Array) -> None:
    """Raise largest[j] to the maximum absolute cell of column j, over rows with a class and a weight."""
    for i in range(x.shape[0]):
        if labels[i] >= 0 and weights[i] > 0.0:
            for j in range(x.shape[1]):
                size = abs(np.float64(x[i, j]))
                largest[j] = size if size > largest[j] else largest[j]


@compile_kernel
def smallest_cells(x: Array, labels: Array, weights: Array, smallest: Array) -> None:
    """Lower smallest[j] to the minimum absolute nonzero cell of column j, over the same rows."""
    for i in range(x.shape[0]):
        if labels[i] >= 0 and weights[i] > 0.0:
            for j in range(x.shape[1]):
                size = abs(np.float64(x[i, j]))
                smallest[j] = size if 0.0 < size < smallest[j] else smallest[j]


@inner
def _is_sliced(weight: float) -> bool:
    """Return True if rows of this weight can be sliced; others are added one by one."""
    return weight <= SLICED_WEIGHT and weight == np.floor(weight)


@inner
def _flush(sums: Array, exponents: Array, c: Any, columns: int, digits: MomentDigits) -> None:
    """Move the sums of slices of a class (an int64) to their digits."""
    for j in range(columns):
        cell = c * columns + j
        for k in range(ALL_SLICES):
            number = sums[c, k, j]
            if number == 0.0:
                continue
            sums[c, k, j] = 0.0
            of_cells = k < SLICES
            power = SLICE * (k + 1 if of_cells else k + 1 - SLICES)
            exponent = (exponents[j] if of_cells else 2 * exponents[j]) - power
            into, low = digits.first if of_cells else digits.second, digits.lows[1 if of_cells else 2]
            add_integer(into, cell, low, np.int64(number * 2.0**power), exponent)


@compile_kernel
def add_sliced_cells(x: Array, labels: Array, weights: Array, slices: Slices, digits: MomentDigits) -> bool:
    """Add all cells that fit, and the weights of rows and of missing cells.

    Return False if rows with other weights are left.
    """
    scale, exponent, sums, used, rows, missing, unfit, tail = slices
    all_whole = True
    columns, pitch = np.uint64(x.shape[1]), np.uint64(scale.size)
    whole = columns - columns % _STEP
    for i in range(x.shape[0]):
        c, w = labels[i], weights[i]
        if c < 0 or w == 0.0:
            continue
        if not _is_sliced(w):
            all_whole = False
            continue
        if used[c] + w > SLICED_WEIGHT:
            _flush(sums, exponent, np.int64(c), x.shape[1], digits)
            used[c] = 0.0
        used[c] += w
        rows[c] += w
        row, base, j = np.uint64(i) * columns, np.uint64(c) * np.uint64(ALL_SLICES) * pitch, np.uint64(0)
        while j < columns:
            if row + j + _STEP > np.uint64(x.size):
                for k in range(x.shape[1] - np.int64(j)):
                    tail[k] = x[i, np.int64(j) + k]
                left = _add_weighted(tail, np.uint64(0), scale, j, sums, base + j, pitch, w)
            elif w == 1.0:
                left = _add_plain(x, row + j, scale, j, sums, base + j, pitch, w)
            else:
                left = _add_weighted(x, row + j, scale, j, sums, base + j, pitch, w)
            if j >= whole:  # the last lanes belong to the next row, or to none
                left &= (np.uint64(1) << (columns - whole)) - np.uint64(1)
            place = np.int64(j)
            while left:
                if left & np.uint64(1):
                    if x[i, place] == x[i, place]:
                        unfit[place] = 1
                    else:
                        missing[c, place] += w
                left >>= np.uint64(1)
                place += 1
            j += _STEP
    for c in range(rows.size):
        if used[c] > 0.0:
            _flush(sums, exponent, c, x.shape[1], digits)
    return all_whole


@compile_kernel
def add_other_cells(x: Array, labels: Array, weights: Array, scale: Array, unfit: Array, digits: MomentDigits) -> None:
    """Add the cells that do not fit, and all cells of rows with large or fractional weights."""
    present, first, second, lows = digits
    for i in range(x.shape[0]):
        c, w = labels[i], weights[i]
        if c < 0 or w == 0.0:
            continue
        sliced = _is_sliced(w)
        for j in range(x.shape[1]):
            if sliced and unfit[j] == 0:
                continue
            value, cell = np.float64(x[i, j]), c * x.shape[1] + j
            if sliced:
                scaled = value * scale[j]
                low = scaled - ((scaled + _GRIDS[0]) - _GRIDS[0])
                if (low + _GRIDS[1]) - _GRIDS[1] == low and (value == 0.0 or scaled != 0.0):
                    continue
            if value == value:
                if not sliced:
                    add_product(present, cell, lows[0], w, 1.0, 1.0)
                add_product(first, cell, lows[1], w, value, 1.0)
                add_product(second, cell, lows[2], w, value, value)


@compile_kernel
def add_rows(x: Array, labels: Array, weights: Array, digits: MomentDigits) -> None:
    """Add rows without missing cells: weights by class, cells, and products of each pair of columns."""
    present, first, second, lows = digits
    size = x.shape[1]
    for i in range(x.shape[0]):
        c, w = labels[i], weights[i]
        add_product(present, c, lows[0], w, 1.0, 1.0)
        pair = c * (size * (size + 1) // 2)
        for j in range(size):
            add_product(first, c * size + j, lows[1], w, x[i, j], 1.0)
            for k in range(j, size):
                add_product(second, pair, lows[2], w, x[i, j], x[i, k])
                pair += 1


@compile_kernel
def slice_rows(x: Array, rows: Array, scale: Array, bits: int, out: Array, unfit: Array) -> None:
    """Write the slices of some rows of x as integers of `bits` bits, all first slices, then all second ones.

    out: row by slice and column. A row with a cell that does not fit is marked, and its slices are 0.
    """
    columns = x.shape[1]
    depth, unit = out.shape[1] // columns, 2.0**bits
    for i in range(rows.size):
        row, fits = rows[i], True
        for j in range(columns):
            value = x[row, j]
            rest = value * scale[j]
            fits &= rest != 0.0 or value == 0.0
            for k in range(depth):
                rest *= unit
                part = np.rint(rest)
                out[i, k * columns + j] = part
                rest -= part
            fits &= rest == 0.0
        if not fits:
            unfit[row] = True
            for j in range(out.shape[1]):
                out[i, j] = 0.0
