"""Quotes of CSV files."""

from typing import Any

import numpy as np

from deciban.kernels.bits import byte_bits, highest
from deciban.kernels.compiled import Array, compiled

# Where a file is, between two bytes: at the beginning of a line or a cell, in a cell without quotes or with them, or
# behind a quote in such a cell, which may be its last or the first of two.
LINE, CELL, PLAIN, QUOTED, BEHIND, WRONG = 0, 1, 2, 3, 4, -1


@compiled
def quoting(data: Array, delimiter: int, state: int) -> tuple[int, int]:
    """Where a file is after some more bytes, and how many of them end with a row.

    WRONG if a quote is neither around a cell nor doubled in one.
    """
    quote, feed, back = ord('"'), ord("\n"), ord("\r")
    i = 0
    rows_end: Any = 0
    while i < data.size:
        if i + 64 <= data.size and state != BEHIND and byte_bits(data, np.uint64(i), quote) == 0:
            if state != QUOTED:
                ends = byte_bits(data, np.uint64(i), feed) | byte_bits(data, np.uint64(i), back)
                if ends != 0:
                    rows_end = i + np.int64(highest(ends)) + 1
                last = data[i + 63]
                state = CELL if last == delimiter else LINE if last in (feed, back) else PLAIN
            i += 64
            continue
        for k in range(i, min(i + 64, data.size)):
            byte = data[k]
            if byte == quote:
                if state == PLAIN:
                    return WRONG, rows_end
                state = BEHIND if state == QUOTED else QUOTED
            elif state != QUOTED:
                is_end = byte in (feed, back)
                if state == BEHIND and not is_end and byte != delimiter:
                    return WRONG, rows_end
                state = LINE if is_end else CELL if byte == delimiter else PLAIN
                if is_end:
                    rows_end = k + 1
        i += 64
    return state, rows_end
