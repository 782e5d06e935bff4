"""Quotes of CSV files."""

import numpy as np

from deciban.kernels.bits import byte_bits
from deciban.kernels.compiled import Array, compiled

# Where a file is, between two bytes: at the beginning of a line or a cell, in a cell without quotes or with them, or
# behind a quote in such a cell, which may be its last or the first of two.
LINE, CELL, PLAIN, QUOTED, BEHIND, STRANGE = 0, 1, 2, 3, 4, -1


@compiled
def quoting(data: Array, delimiter: int, state: int) -> int:
    """Where a file is after some more bytes; STRANGE if a quote is neither around a cell nor doubled in one."""
    quote, feed, back = ord('"'), ord("\n"), ord("\r")
    i = 0
    while i < data.size:
        if i + 64 <= data.size and state != BEHIND and byte_bits(data, np.uint64(i), quote) == 0:
            i += 64
            if state != QUOTED:
                last = data[i - 1]
                state = CELL if last == delimiter else LINE if last in (feed, back) else PLAIN
            continue
        for k in range(i, min(i + 64, data.size)):
            byte = data[k]
            if byte == quote:
                if state == PLAIN:
                    return STRANGE
                state = BEHIND if state == QUOTED else QUOTED
            elif state != QUOTED:
                ends = byte in (feed, back)
                if state == BEHIND and not ends and byte != delimiter:
                    return STRANGE
                state = LINE if ends else CELL if byte == delimiter else PLAIN
        i += 64
    return state
