"""Array types, numeric limits and array helpers."""

import os
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.floating] | npt.NDArray[np.integer]

# Cells beyond this cannot be squared and summed.
TOO_LARGE = np.float64(1e140)

# Larger cells are reduced to this in terms of different signs, so that inf - inf never occurs.
MAX_AMOUNT = np.float64(1e290)

# Cells that differ only in their last few bits count as equal: the variance of that, relative to their mean square.
ROUNDING_VARIANCE = (4.0 * 2.0**-52) ** 2

# Doubles from this size on have no fractional part.
MIN_WHOLE = 2.0**52

# Seed of the hashes of cells. The hash of 0.0 is the seed itself; that of a missing cell is 0.
CONTENT_SEED = 0x9E3779B97F4A7C15

# Slots of a hash table per distinct row that it may hold; fewer would make searches slow.
SLOTS_PER_CONTENT = 2

# Bytes that kernels may read beyond the last word of a vocabulary.
SPARE = 16

# Doubles that kernels add at once.
LANES = 4

# Bytes of a cache line. A row of a table that starts at one touches the fewest of them.
CACHE_LINE = 64

# Rows that kernels score together.
TILE_ROWS = 64

# Distance in memory between the columns of such a tile. At a power of two they would share a few cache lines.
TILE_PITCH = TILE_ROWS + 8

# Processors that this process may use. Determined once, because it takes longer than scoring a row.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class PickledFields:
    """Base of dataclasses that are pickled without cached values."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]


class _Alias:
    """The memory of an array, marked writable.

    NumPy cannot remove the mark from memory that its owner (Arrow, a mapped file) has marked read-only.
    """

    def __init__(self, array: npt.NDArray[np.generic]) -> None:
        self.owner = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def kernel_view(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return `array` in the form that kernels take: C-contiguous and not marked read-only.

    For numba a read-only array has another type, for which kernels are compiled again. Kernels never write to their
    inputs, so a view of the same memory without the mark saves seconds of the first fit.
    """
    contiguous = np.ascontiguousarray(array)
    return contiguous if contiguous.flags.writeable else np.asarray(_Alias(contiguous))


def in_lanes(table: Floats) -> Floats:
    """Return `table` with its last axis padded with zeros to a multiple of LANES, and aligned to cache lines."""
    shape = (*table.shape[:-1], table.shape[-1] + -table.shape[-1] % LANES)
    size = int(np.prod(shape))
    room = np.zeros(size + CACHE_LINE // 8)
    first = -room.ctypes.data % CACHE_LINE // 8
    padded = room[first : first + size].reshape(shape)
    padded[..., : table.shape[-1]] = table
    return padded


def even_part(whole: int, max_size: int) -> int:
    """Return the size, at most `max_size`, of nearly equal parts of a whole, such that their number is even.

    A short or odd last part would leave threads idle.
    """
    return -(-whole // (2 * -(-whole // (2 * max_size))))


def scatter_to(array: Any, positions: Integers, size: int, axis: int = 0) -> Any:
    """Return `array` with its slices along `axis` moved to `positions` of an axis of length `size`; zero elsewhere.

    A slice with a negative position is dropped.
    """
    shape = list(array.shape)
    shape[axis] = size
    result = np.zeros(shape, dtype=array.dtype)
    here: list[slice | Integers] = [slice(None)] * array.ndim
    there = here.copy()
    there[axis] = np.flatnonzero(positions >= 0)
    here[axis] = positions[there[axis]]
    result[tuple(here)] = array[tuple(there)]
    return result


def sum_columns_at(table: Floats, place: Integers, size: int) -> Floats:
    """Return the columns of `table` summed at their positions among `size` columns."""
    result = np.zeros((size, table.shape[0]))
    np.add.at(result, place, table.T)
    return np.ascontiguousarray(result.T)


def sum_at(place: npt.NDArray[Any], values: npt.NDArray[Any], size: int) -> Floats:
    """Return the values summed at their positions among `size`."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def log(values: Floats) -> Floats:
    """Return the natural logarithm; log 0 is -inf without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values), dtype=np.float64)
