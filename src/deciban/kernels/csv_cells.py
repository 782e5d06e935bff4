"""Cells of CSV files."""

from typing import Any

import numpy as np

from deciban.kernels.bits import byte_bits, copy_block, lowest
from deciban.kernels.compiled import Array, compiled
from deciban.kernels.words import longer

QUOTE, FEED, BACK = ord('"'), ord("\n"), ord("\r")


@compiled
def _next_quote(data: Array, i: int, end: int) -> Any:
    """The place of the next quote, or the end."""
    while i < end:
        if i + 64 <= data.size:
            found = byte_bits(data, np.uint64(i), QUOTE)
            if found != 0:
                return min(i + np.int64(lowest(found)), end)
            i += 64
        else:
            if data[i] == QUOTE:
                return i
            i += 1
    return end


@compiled
def _next_sign(data: Array, i: int, end: int, delimiter: int) -> Any:
    """The place of the next delimiter, quote or end of a line, or the end."""
    while i < end:
        if i + 64 <= data.size:
            place = np.uint64(i)
            found = byte_bits(data, place, delimiter) | byte_bits(data, place, QUOTE)
            found |= byte_bits(data, place, FEED) | byte_bits(data, place, BACK)
            if found != 0:
                return min(i + np.int64(lowest(found)), end)
            i += 64
        else:
            if data[i] in (delimiter, QUOTE, FEED, BACK):
                return i
            i += 1
    return end


@compiled
def find_cells(data: Array, end: int, delimiter: int, width: int, all_read: bool) -> tuple[int, int, Array, Array]:
    """The whole rows of some bytes of a file: how many, up to where, and where their cells begin and stop, row by row.

    -1 rows if these are none of so many cells, or a quote is neither around a cell nor doubled in one. Of a cell with
    doubled quotes ~stop is told. all_read: nothing comes behind the end.
    """
    begins, stops = np.empty(end // 16 + width, dtype=np.int64), np.empty(end // 16 + width, dtype=np.int64)
    rows, used, i = 0, 0, 0
    while i < end:
        if width > 1 and data[i] in (FEED, BACK):  # an empty line is no row
            i += 1
            used = i
            continue
        if begins.size < (rows + 1) * width:
            begins, stops = longer(begins, rows * width, width), longer(stops, rows * width, width)
        for column in range(width):
            begin, doubled = i, False
            if i < end and data[i] == QUOTE:
                begin = i + 1
                i = _next_quote(data, begin, end)
                while i + 1 < end and data[i + 1] == QUOTE:
                    doubled = True
                    i = _next_quote(data, i + 2, end)
                if i + 1 >= end and not all_read:
                    return rows, used, begins, stops
                if i >= end:
                    return -1, used, begins, stops
                stop = i
                i += 1
            else:
                i = _next_sign(data, i, end, delimiter)
                stop = i
            if i >= end and not all_read:
                return rows, used, begins, stops
            begins[rows * width + column], stops[rows * width + column] = begin, ~stop if doubled else stop
            more = i < end and data[i] == delimiter
            if more != (column < width - 1) or (not more and i < end and data[i] not in (FEED, BACK)):
                return -1, used, begins, stops
            i += more
        if i + 1 < end and data[i] == BACK:
            i += data[i + 1] == FEED
        elif i + 1 == end and data[i] == BACK and not all_read:
            return rows, used, begins, stops
        i += 1
        used = min(i, end)
        rows += 1
    return rows, used, begins, stops


@compiled
def _copy(data: Array, begin: int, size: int, out: Array, at: int) -> None:
    """Copy some bytes, 64 at a time where nothing is in the way; some behind them are overwritten."""
    for k in range(0, size, 64):
        if begin + k + 64 <= data.size and at + k + 64 <= out.size:
            copy_block(data, np.uint64(begin + k), out, np.uint64(at + k), False)
        else:
            for b in range(k, size):
                out[at + b] = data[begin + b]
            return


@compiled
def _is_missing(data: Array, begin: int, size: int, missing: Array, starts: Array) -> bool:
    for k in range(starts.size - 1):
        if size == starts[k + 1] - starts[k]:
            same = 0
            while same < size and data[begin + same] == missing[starts[k] + same]:
                same += 1
            if same == size:
                return True
    return size == 0


@compiled
def copy_cells(
    data: Array, begins: Array, stops: Array, missing: Array, starts: Array, out: Array, offsets: Array, present: Array
) -> None:
    """The cells of a column, one behind the other, with one quote for two; those like a missing one are not there.

    The words for a missing cell are from starts[k] to starts[k + 1] in `missing`.
    """
    at = 0
    offsets[0] = 0
    for row in range(present.size):
        begin, stop = begins[row], stops[row]
        if stop < 0:
            present[row] = True
            stop = ~stop
            while begin < stop:
                upto = min(_next_quote(data, begin, stop) + 1, stop)
                _copy(data, begin, upto - begin, out, at)
                at += upto - begin
                begin = upto + 1
        else:
            present[row] = not _is_missing(data, begin, stop - begin, missing, starts)
            if present[row]:
                _copy(data, begin, stop - begin, out, at)
                at += stop - begin
        offsets[row + 1] = at
