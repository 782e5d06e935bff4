"""Cells of lines of JSON, each an object whose values are texts."""

from typing import Any

import numpy as np

from deciban.kernels.bits import byte_bits, control_bits, copy_block, copy_bytes, lowest, same_bytes
from deciban.kernels.compiled import Array, compiled
from deciban.kernels.csv_cells import REFUSED
from deciban.kernels.texts import put_character

QUOTE, BACKSLASH = b'"\\'
TAB, FEED, BACK, SPACE = b"\t\n\r "
OPEN, CLOSE, COLON, COMMA, SMALL_U = b"{}:,u"
NULL = np.frombuffer(b"null", dtype=np.uint8)

_ONE = np.uint64(1)
_ODD = np.uint64(0xAAAAAAAAAAAAAAAA)

# What a byte stands for behind a backslash; 0 if nothing.
ESCAPED = np.zeros(256, dtype=np.uint8)
for _sign, _meant in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    ESCAPED[_sign] = _meant

# What a hexadecimal digit counts; 16 if it is none.
DIGITS = np.full(256, 16, dtype=np.int64)
for _value, _digit in enumerate(b"0123456789abcdef"):
    DIGITS[_digit] = DIGITS[ord(chr(_digit).upper())] = _value

# Instead of the end of something: more has to be read.
UNFINISHED = -2

# So many columns are looked at for the one that a key names: in other orders many keys would take for ever.
MOST_GUESSES = 32

# The end of a cell that a line does not have, and both ends of one without a value. No text ends there: ~stop is less,
# for there is a brace before it.
UNMET, MISSING = -2, -1


@compiled
def _behind_space(data: Array, i: int, end: int) -> int:
    """The next place that is no white space within a line."""
    while i < end and (data[i] == SPACE or data[i] == TAB or data[i] == BACK):
        i += 1
    return i


@compiled
def _escaped(backslashes: Any, first: Any) -> tuple[Any, Any]:
    """A bit for each of 64 bytes that a backslash is before, unless that has one itself; and for the one behind them.

    `first`: whether the first of them has one. In a row of backslashes every second is meant: a subtraction carries
    through all rows at once, which end at even places if they are as long as they should be and begin there.
    """
    before = (backslashes & ~first) << _ONE
    ends = ((before | _ODD) - (backslashes & ~first)) ^ _ODD
    return ends ^ (backslashes | first), (ends & backslashes) >> np.uint64(63)


@compiled
def _text_end(data: Array, i: int, end: int) -> tuple[int, bool]:
    """Where the quote behind a text is, and whether there is a backslash before it."""
    first, any_backslash = np.uint64(0), False
    while i + 64 <= data.size and i < end:
        place = np.uint64(i)
        backslashes = byte_bits(data, place, BACKSLASH)
        ends = byte_bits(data, place, QUOTE)
        if backslashes | first != 0:
            escaped, first = _escaped(backslashes, first)
            ends &= ~escaped
        ends |= control_bits(data, place)
        if ends != 0:
            any_backslash |= backslashes & ((ends & ~ends + _ONE) - _ONE) != 0
            return _checked_end(data, i + np.int64(lowest(ends)), end), any_backslash
        any_backslash |= backslashes != 0
        i += 64
    is_escaped = first != 0
    while i < end:
        if data[i] < SPACE or (data[i] == QUOTE and not is_escaped):
            return _checked_end(data, i, end), any_backslash
        is_escaped = data[i] == BACKSLASH and not is_escaped
        any_backslash |= is_escaped
        i += 1
    return UNFINISHED, any_backslash


@compiled
def _checked_end(data: Array, place: Any, end: int) -> Any:
    if place >= end:
        return UNFINISHED
    return place if data[place] == QUOTE else REFUSED


@compiled
def _column(data: Array, begin: int, end: int, names: Array, starts: Array, guess: int) -> int:
    """The column with this name, or REFUSED if it is not one of the next; most often it is the one that is guessed."""
    columns = starts.size - 1
    for k in range(min(columns, MOST_GUESSES)):
        column = (guess + k) % columns
        size = starts[column + 1] - starts[column]
        if end - begin == size and same_bytes(data, begin, names, starts[column], size):
            return column
    return REFUSED


@compiled
def _find_value(data: Array, i: int, end: int) -> tuple[int, int, int]:
    """The place behind a text or null (or REFUSED, or UNFINISHED), and where it begins and stops."""
    if data[i] == QUOTE:
        stop, escaped = _text_end(data, i + 1, end)
        return (stop, 0, 0) if stop < 0 else (stop + 1, i + 1, ~stop if escaped else stop)
    size = min(NULL.size, end - i)
    if not same_bytes(data, i, NULL, 0, size):
        return REFUSED, 0, 0
    return (i + size if size == NULL.size else UNFINISHED), MISSING, MISSING


@compiled
def _find_line(
    data: Array, i: int, end: int, all_read: bool, names: Array, starts: Array, begins: Array, stops: Array
) -> int:
    """Find the cells of a line that begins with a brace: the place behind it, or REFUSED, or UNFINISHED."""
    begins[:], stops[:] = MISSING, UNMET
    column = -1
    while True:
        i = _behind_space(data, i + 1, end)  # behind the brace or a comma
        if i >= end:
            return UNFINISHED
        if data[i] != QUOTE:
            return REFUSED
        stop, escaped = _text_end(data, i + 1, end)
        if stop < 0:
            return stop
        column = _column(data, i + 1, stop, names, starts, column + 1)
        if column < 0 or escaped or stops[column] != UNMET:
            return REFUSED
        i = _behind_space(data, stop + 1, end)
        if i < end and data[i] != COLON:
            return REFUSED
        i = _behind_space(data, i + 1, end)
        if i >= end:
            return UNFINISHED
        i, begins[column], stops[column] = _find_value(data, i, end)
        if i < 0:
            return i
        i = _behind_space(data, i, end)
        if i >= end:
            return UNFINISHED
        if data[i] == CLOSE:
            break
        if data[i] != COMMA:
            return REFUSED
    i = _behind_space(data, i + 1, end)
    if i >= end:
        return i if all_read else UNFINISHED
    return i + 1 if data[i] == FEED else REFUSED


@compiled
def find_values(
    names: Array, starts: Array, data: Array, end: int, all_read: bool, begins: Array, stops: Array
) -> tuple[int, int]:
    """The whole lines of some bytes of a file, as many as can be noted: how many, and up to where they are.

    REFUSED if one is no object with texts or null for some of these names, each once; name k is from starts[k] to
    starts[k + 1] in `names`. Where a cell begins and stops is written to these arrays, line by line: a negative
    beginning for a missing one, and ~stop if there is a backslash in it. all_read: nothing comes behind the end.
    """
    width = starts.size - 1
    rows, used = 0, 0
    while (rows + 1) * width <= begins.size:
        while used < end and (data[used] == FEED or _behind_space(data, used, used + 1) > used):
            used += 1
        if used >= end:
            break
        if data[used] != OPEN:
            return REFUSED, used
        cells = slice(rows * width, (rows + 1) * width)
        behind = _find_line(data, used, end, all_read, names, starts, begins[cells], stops[cells])
        if behind < 0:
            return (rows if behind == UNFINISHED and not all_read else REFUSED), used
        rows, used = rows + 1, behind
    return rows, used


@compiled
def _four_digits(data: Array, i: int, stop: int) -> Any:
    """The number that is written with four hexadecimal digits, or REFUSED."""
    if i + 4 > stop:
        return REFUSED
    value, wrong = 0, 0
    for k in range(4):
        digit = DIGITS[data[i + k]]
        wrong |= digit
        value = value << 4 | digit
    return REFUSED if wrong >= 16 else value


@compiled
def _character(data: Array, i: int, stop: int) -> tuple[Any, int]:
    """The code point behind a backslash and a small u, and where it ends; REFUSED where it is none."""
    point = _four_digits(data, i, stop)
    if 0xD800 <= point < 0xDC00 and i + 6 < stop and data[i + 4] == BACKSLASH and data[i + 5] == SMALL_U:
        low = _four_digits(data, i + 6, stop)
        if 0xDC00 <= low < 0xE000:
            return 0x10000 + ((point & 0x3FF) << 10 | low & 0x3FF), i + 10
    return (REFUSED if point == 0 or 0xD800 <= point < 0xE000 else point), i + 4


@compiled
def _copied(data: Array, begin: int, stop: int, out: Array, at: int) -> Any:
    """Copy bytes up to a backslash, at most 64, and tell how many; some behind them are overwritten."""
    if begin + 64 <= data.size and at + 64 <= out.size:
        copy_block(data, np.uint64(begin), out, np.uint64(at), False)
        found = byte_bits(data, np.uint64(begin), BACKSLASH)
        return min(stop - begin, 64 if found == 0 else np.int64(lowest(found)))
    if data[begin] == BACKSLASH:
        return 0
    out[at] = data[begin]
    return 1


@compiled
def copy_values(data: Array, begins: Array, stops: Array, out: Array, offsets: Array, present: Array) -> bool:
    """The cells of a column, one behind the other, with what backslashes stand for; false if some stand for nothing."""
    at = 0
    offsets[0] = 0
    for row in range(present.size):
        begin, stop = begins[row], stops[row]
        present[row] = begin >= 0
        if begin >= 0 and stop >= 0:
            copy_bytes(data, begin, stop - begin, out, at)
            at += stop - begin
        elif begin >= 0:
            stop = ~stop
            while begin < stop:
                step = _copied(data, begin, stop, out, at)
                at += step
                begin += step
                if begin >= stop or data[begin] != BACKSLASH:
                    continue
                sign = data[begin + 1]
                if sign == SMALL_U:
                    point, begin = _character(data, begin + 2, stop)
                    if point < 0:
                        return False
                    at = put_character(out, at, point)
                else:
                    if ESCAPED[sign] == 0:
                        return False
                    out[at] = ESCAPED[sign]
                    at += 1
                    begin += 2
        offsets[row + 1] = at
    return True
