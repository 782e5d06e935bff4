"""The quotes and line breaks of CSV files, which say how many threads, and which readers, may read them."""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.errors import DataError
from deciban.sources.sniff import compression_of
from deciban.util.arrays import Bytes, Flags, Integers

# Bytes of a long line, and of the longest that is read: a longer one would take gigabytes of memory.
LONG_LINE = 1 << 23
LONGEST_LINE = 1 << 26

# Bytes that are looked at together.
QUOTE_BLOCK = 1 << 20

QUOTE, FEED, BACK = b'"\n\r'


class Quotes(NamedTuple):
    """What the quotes and lines of CSV files are like.

    closed: whether all quotes are closed that are opened. with_breaks: whether line breaks are, or may be, within
    quotes. plain: whether the quotes are closed, stand around whole cells or are doubled within them, and no line ends
    with CR alone: then all readers find the same cells. longest_line: its bytes, if they are more than a block.
    nul: the place of the first NUL byte, or -1.
    """

    closed: bool = True
    with_breaks: bool = False
    plain: bool = True
    longest_line: int = 0
    nul: int = -1

    @property
    def long_lines(self) -> bool:
        """Whether DuckDB may lose a line if it reads the file in parts."""
        return self.longest_line >= LONG_LINE

    @classmethod
    def together(cls, found: Sequence["Quotes"]) -> "Quotes":
        """Those of several files."""
        closed, breaks, plain, longest, nul = zip(cls(), *found, strict=True)
        return cls(all(closed), any(breaks), all(plain), max(longest), max(nul))


def quotes_in(path: Path, delimiter: str) -> Quotes:
    """The quotes of a CSV file; they are not closed if it cannot be read to its end."""
    file = path.stat()
    return _quotes_in(path, delimiter, (file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns))


@lru_cache(maxsize=256)
def _quotes_in(path: Path, delimiter: str, state: tuple[int, ...]) -> Quotes:
    """The same, looked up once as long as the file does not change."""
    with suppress(OSError, pa.ArrowException):
        return quotes_of(_blocks(path), delimiter)
    return Quotes(closed=False, with_breaks=True, plain=False)


def _blocks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        compression = compression_of(file.read(4))
    with pa.input_stream(str(path), compression=compression) as stream:
        block = stream.read(QUOTE_BLOCK).removeprefix(BOM_UTF8)
        while block:
            yield block
            block = stream.read(QUOTE_BLOCK)


def quotes_of(blocks: Iterable[bytes], delimiter: str) -> Quotes:
    """The quotes of a CSV file that comes block by block."""
    beside_cell = np.zeros(256, dtype=np.bool_)
    beside_cell[[QUOTE, FEED, BACK, delimiter.encode()[-1]]] = True  # a quote, too, is next to one that is doubled
    opened, with_breaks, plain = False, False, True
    longest, line = 0, 0  # bytes of the longest line, and of the last one so far
    size, nul = 0, -1
    before = b"\n"
    for block in blocks:
        if nul < 0 and (found := block.find(0)) >= 0:
            nul = size + found
        size += len(block)
        feed = b"\n" if b"\n" in block else b"\r"
        stop = block.find(feed)
        longest = max(longest, line + (len(block) if stop < 0 else stop))
        line = line + len(block) if stop < 0 else len(block) - block.rfind(feed) - 1
        if opened or b'"' in block or b"\r" in block or before in b'"\r':
            data = np.frombuffer(before + block, dtype=np.uint8)
            quotes = np.flatnonzero(data[1:] == QUOTE)
            with_breaks = with_breaks or _breaks_within(data[1:], opened)
            plain = plain and _are_plain(data, quotes, opened, beside_cell)
            opened ^= quotes.size % 2 == 1
        before = block[-1:]
    return Quotes(not opened, with_breaks or not plain, plain and not opened and before != b"\r", longest, nul)


def _are_plain(data: Bytes, quotes: Integers, opened: bool, beside_cell: Flags) -> bool:
    """Whether these quotes are around cells or doubled, and outside of them no line ends with CR alone.

    The first byte is the one before the block; what follows the last one is seen with the next block.
    """
    here = quotes + 1
    opening, closing = here[int(opened) :: 2], here[1 - int(opened) :: 2]
    if data[0] == QUOTE and not opened:  # it closed a cell, or was the first of two
        closing = np.concatenate([[0], closing])
    if closing.size and closing[-1] == data.size - 1:
        closing = closing[:-1]
    if not beside_cell[data[opening - 1]].all() or not beside_cell[data[closing + 1]].all():
        return False
    returns = np.flatnonzero(data[:-1] == BACK)
    lone = returns[data[returns + 1] != FEED]
    return bool(((np.searchsorted(here, lone) + opened) % 2 == 1).all())


def _breaks_within(data: Bytes, opened: bool) -> bool:
    """Whether lines end within quotes; `opened` says whether the first byte is within them."""
    inside, breaks = _bits(data == QUOTE), _bits((data == FEED) | (data == BACK))
    for k in range(6):  # every quote turns all bits behind it in the same 64
        inside ^= inside << np.uint64(1 << k)
    turned = np.bitwise_xor.accumulate(inside >> np.uint64(63)) ^ np.uint64(opened)
    inside ^= np.uint64(0) - np.concatenate([[np.uint64(opened)], turned[:-1]])
    return bool((inside & breaks).any())


def _bits(flags: Flags) -> npt.NDArray[np.uint64]:
    """A bit for each flag, 64 in a number."""
    packed = np.packbits(flags, bitorder="little")
    return np.concatenate([packed, np.zeros(-packed.size % 8, dtype=np.uint8)]).view(np.uint64)


def refuse_damaged(path: Path, name: str, delimiter: str) -> None:
    """A DataError where a file holds a NUL byte, or a line so long that a quote is not closed or it is not a table."""
    quotes = quotes_in(path, delimiter)
    if quotes.nul >= 0:
        line, left = 1, quotes.nul
        for block in _blocks(path):
            line += block[:left].count(b"\n") or block[:left].count(b"\r")
            left -= len(block)
            if left <= 0:
                break
        raise DataError(
            f"{name}, line {line}: found a NUL byte; the file is damaged, or in another encoding: write it again, or "
            f"give its encoding"
        )
    if (longest := quotes.longest_line) > LONGEST_LINE:
        raise DataError(
            f"{name}: a row of {longest // 1_000_000:,} MB is longer than the {LONGEST_LINE // 1_000_000} MB that are "
            f"read; is a quote not closed? Else shorten its cells, or read them from a folder of documents"
        )
