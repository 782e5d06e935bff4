"""Cells of CSV files."""

from typing import Any

import numpy as np

from deciban.kernels.bits import byte_bits, copy_bytes, lowest, next_byte, same_bytes
from deciban.kernels.compiled import Array, compiled

QUOTE, FEED, BACK = ord('"'), ord("\n"), ord("\r")

# Those that are found by themselves; others are not known here.
COMMA, SEMICOLON, TAB, BAR = b",;\t|"

# Instead of a number of rows: the bytes are left to somebody else.
REFUSED = -1

_ONE = np.uint64(1)


@compiled
def _signs(data: Array, i: int, delimiter: int) -> Any:
    """A bit for each of the next 64 bytes that is a delimiter, a quote or the end of a line."""
    if i + 64 <= data.size:
        place = np.uint64(i)
        found = byte_bits(data, place, delimiter) | byte_bits(data, place, QUOTE)
        return found | byte_bits(data, place, FEED) | byte_bits(data, place, BACK)
    found = np.uint64(0)
    for k in range(data.size - i):
        if data[i + k] in (delimiter, QUOTE, FEED, BACK):
            found |= _ONE << np.uint64(k)
    return found


@compiled
def _may_be_before_a_cell(byte: int) -> bool:
    """Whether a quote behind it opens a cell, or is the second of two within one."""
    return byte in (COMMA, SEMICOLON, TAB, BAR, FEED, BACK, QUOTE)


@compiled
def breaks_in_quotes(data: Array, opened: bool, last: int) -> tuple[bool, bool]:
    """Whether lines end within quotes, or might; and whether quotes are open at the end.

    opened: before the first byte; last: the byte before it. A quote that opens in the middle of a cell may be none of
    these, and then nobody knows.
    """
    inside, breaks = np.uint64(0) - np.uint64(opened), False
    i = 0
    while i + 64 <= data.size:
        place = np.uint64(i)
        quotes = byte_bits(data, place, QUOTE)
        if quotes != 0:
            turned = quotes
            for k in range(6):  # every quote turns all bits behind it
                turned ^= turned << (_ONE << np.uint64(k))
            inside ^= turned
            opening = quotes & inside
            while opening != 0:
                at = i + np.int64(lowest(opening))
                breaks |= not _may_be_before_a_cell(data[at - 1] if at > 0 else last)
                opening &= opening - _ONE
        breaks |= (byte_bits(data, place, FEED) | byte_bits(data, place, BACK)) & inside != 0
        inside = np.uint64(0) - (inside >> np.uint64(63))
        i += 64
    opened = inside != 0
    for k in range(i, data.size):
        if data[k] == QUOTE:
            opened = not opened
            breaks |= opened and not _may_be_before_a_cell(data[k - 1] if k > 0 else last)
        breaks |= opened and (data[k] == FEED or data[k] == BACK)
    return breaks, opened


@compiled
def find_cells(
    delimiter: int, width: int, data: Array, end: int, all_read: bool, begins: Array, stops: Array
) -> tuple[int, int]:
    """The whole rows of some bytes of a file, as many as can be noted: how many, and up to where they are.

    REFUSED if rows are none of so many cells, a quote is neither around a cell nor doubled in one, or some lines end
    with CR alone and others do not. Of a cell with doubled quotes ~stop is told. all_read: nothing comes behind the
    end. Where cells begin and stop is written to these arrays, row by row.
    """
    rows, used, column, begin = 0, 0, 0, 0
    cell = np.uint64(0)  # unsigned: an index is not asked whether it counts from the end
    closed, doubled = -1, False  # where the quotes around a cell end, and whether there are more in it
    ends_with_back, ends_with_feed = False, False
    block, signs = 0, _signs(data, 0, delimiter)  # of 64 bytes those that are not looked at yet
    while block < end:
        if signs == 0:
            block += 64
            if block < end:
                signs = _signs(data, block, delimiter)
            continue
        place = block + int(lowest(signs))
        signs &= signs - _ONE
        if place >= end:
            break
        sign = data[np.uint64(place)]
        if sign == QUOTE:
            if place != begin:
                return REFUSED, used
            begin = place + 1
            closed = next_byte(data, begin, end, QUOTE)
            while closed + 1 < end and data[closed + 1] == QUOTE:
                doubled = True
                closed = next_byte(data, closed + 2, end, QUOTE)
            if closed >= end:
                return REFUSED if all_read else rows, used
            block = closed + 1
            signs = _signs(data, block, delimiter)
            continue
        is_last = sign != delimiter
        if is_last and place == begin and column == 0 and width > 1:  # an empty line is no row
            begin = place + 1
            used = begin
            continue
        is_back = sign == BACK
        if is_back and place + 1 == end and not all_read:
            return rows, used
        if is_last != (column == width - 1) or (closed >= 0 and closed + 1 != place):
            return REFUSED, used
        stop = place if closed < 0 else closed
        begins[cell], stops[cell] = begin, ~stop if doubled else stop
        cell += _ONE
        column += 1
        begin, closed, doubled = place + 1, -1, False
        if is_last:
            with_feed = is_back and begin < end and data[begin] == FEED
            ends_with_back |= is_back and not with_feed
            ends_with_feed |= not is_back or with_feed
            if ends_with_back and ends_with_feed:
                return REFUSED, used
            if with_feed:
                begin += 1
                if begin > block + 64:
                    block, signs = begin, _signs(data, begin, delimiter)
                else:
                    signs &= signs - _ONE
            rows, used, column = rows + 1, begin, 0
            if cell + np.uint64(width) > np.uint64(begins.size):
                return rows, used
    if all_read and (begin < end or column > 0 or closed >= 0):  # the last line has no end
        if column != width - 1 or (closed >= 0 and closed + 1 != end):
            return REFUSED, used
        stop = end if closed < 0 else closed
        begins[cell], stops[cell] = begin, ~stop if doubled else stop
        rows, used = rows + 1, end
    return rows, used


@compiled
def _is_missing(data: Array, begin: int, size: int, missing: Array, starts: Array) -> bool:
    for k in range(starts.size - 1):
        if size == starts[k + 1] - starts[k] and same_bytes(data, begin, missing, starts[k], size):
            return True
    return False


@compiled
def copy_cells(
    missing: Array, starts: Array, data: Array, begins: Array, stops: Array, out: Array, offsets: Array, present: Array
) -> bool:
    """The cells of a column, one behind the other, with one quote for two; those like a missing one are not there.

    The words for a missing cell are from starts[k] to starts[k + 1] in `missing`.
    """
    at = 0
    offsets[0] = 0
    sizes = _ONE  # a bit for the length of each word for a missing cell, and of an empty cell
    for k in range(starts.size - 1):
        sizes |= _ONE << np.uint64(min(starts[k + 1] - starts[k], 63))
    for row in range(present.size):
        begin, stop = begins[row], stops[row]
        present[row] = True
        if stop < 0:
            stop = ~stop
            while begin < stop:
                upto = min(next_byte(data, begin, stop, QUOTE) + 1, stop)
                copy_bytes(data, begin, upto - begin, out, at)
                at += upto - begin
                begin = upto + 1
        else:
            if (sizes >> np.uint64(min(stop - begin, 63))) & _ONE:
                present[row] = begin < stop and not _is_missing(data, begin, stop - begin, missing, starts)
            if present[row]:
                copy_bytes(data, begin, stop - begin, out, at)
                at += stop - begin
        offsets[row + 1] = at
    return True
