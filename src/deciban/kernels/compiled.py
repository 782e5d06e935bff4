"""How every kernel is compiled."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy.typing as npt
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")
Array = npt.NDArray[Any]


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` compiled on its first call, cached on disk, running without the GIL.

    The numpy error model turns 1/0 into inf: without it every division is a branch and loops do not vectorise.
    """
    return cast(Callable[P, R], numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def compiled_to_reorder(function: Callable[P, R]) -> Callable[P, R]:
    """The same, with leave to add up in any order: several times faster where long sums are the work."""
    how: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
    return cast(Callable[P, R], numba.njit(**how)(function))


def emitted(function: Callable[..., Any]) -> Any:
    """What kernels call, from a function that says its signature and how its instructions are built."""
    return intrinsic(function)
