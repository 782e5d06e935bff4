"""Compilation of kernels with numba, and the cache of compiled kernels."""

import gc
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy.typing as npt
from numba.core import event
from numba.extending import intrinsic

from deciban.util.budget import exclude_seconds
from deciban.util.progress import show_line

P = ParamSpec("P")
R = TypeVar("R")
Array = npt.NDArray[Any]

# The numpy error model turns 1/0 into inf. Otherwise every division is a branch, and loops do not vectorize.
_HOW: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

_ANY_ORDER = {"reassoc", "contract"}

_SETTINGS: Any = numba.config  # filled when numba is imported, which type checkers cannot see

_DECORATING = Lock()

# Compilations shorter than this (in seconds) are not announced.
UNNOTICED_SECONDS = 0.5

# Approximate seconds of compilation for a first fit, for the message; see bench/START.md.
EXPECTED_SECONDS = 10


def compile_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` compiled on its first call, cached on disk if possible, running without the GIL."""
    folder = cache_folder()
    if folder is None:
        return _jit(function)
    with _DECORATING:
        before = _SETTINGS.CACHE_DIR
        _SETTINGS.CACHE_DIR = str(folder)  # numba reads the setting when a function is decorated
        try:
            return _jit(function, cache=True)
        finally:
            _SETTINGS.CACHE_DIR = before


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` compiled for calls from other kernels.

    Python cannot call it: the wrapper is not compiled, which saves time.
    """
    return _jit(function, no_cpython_wrapper=True)


def inner_to_reorder(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` compiled for calls from other kernels, with permission to reorder additions."""
    return _jit(function, no_cpython_wrapper=True, fastmath=_ANY_ORDER)


def emit_intrinsic(function: Callable[..., Any]) -> Any:
    """Return an operation for kernels, from a function that returns its signature and instruction builder."""
    return intrinsic(function)


class _CompilationNotice(event.Listener):
    """Listener that shows a line on the terminal while kernels are compiled.

    It also pauses the garbage collector, which would take a seventh of the time: numba makes many objects that live on.
    """

    def __init__(self) -> None:
        self.collecting = False  # to be resumed
        self.begun: list[float] = []  # start of each compilation in progress: a kernel, then the functions it calls
        self.spent = 0.0

    def on_start(self, event: event.Event) -> None:
        module = event.data["dispatcher"].py_func.__module__ or ""  # None for some functions made by exec
        if not (self.begun or module.startswith("deciban.")):
            return  # a kernel of another package
        if not self.begun and self.spent > UNNOTICED_SECONDS:
            show_line(f"compiling, once per machine (about {EXPECTED_SECONDS} s): {self.spent:.0f} s")
        if not self.begun:
            self.collecting = gc.isenabled()
            gc.disable()
        self.begun.append(time.monotonic())

    def on_end(self, event: event.Event) -> None:
        if not self.begun:
            return
        begun = self.begun.pop()
        if not self.begun:
            if self.collecting:
                gc.enable()
            if self.spent > UNNOTICED_SECONDS:
                show_line("")
            seconds = time.monotonic() - begun
            self.spent += seconds
            exclude_seconds(seconds)


event.register("numba:compile", _CompilationNotice())  # type: ignore[no-untyped-call]


def _jit(function: Callable[P, R], **more: Any) -> Callable[P, R]:
    how: dict[str, Any] = _HOW | more
    return cast(Callable[P, R], numba.njit(**how)(function))


@cache
def cache_folder() -> Path | None:
    """Return the folder of compiled kernels; None if no folder is writable, so that each process compiles its own.

    The folder name depends on the source of all kernels and of the constants compiled into them, because numba does not
    notice changes in what a kernel uses. It also depends on the versions of Python and numba, which cannot share
    kernels.
    """
    here = Path(__file__).parent
    sources = hashlib.sha256(f"{sys.implementation.cache_tag} {numba.__version__}".encode())
    for path in (here.parent / "util" / "arrays.py", *sorted(here.glob("*.py"))):
        sources.update(path.read_bytes())
    for folder in _candidates():
        place = folder / f"deciban-{sources.hexdigest()[:16]}"
        try:
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=place):
                return place
        except OSError:
            continue
    return None


def _candidates() -> Iterator[Path]:
    """Yield the folders to try: NUMBA_CACHE_DIR, next to the kernels, the user's cache, a private temporary folder."""
    if _SETTINGS.CACHE_DIR:
        yield Path(_SETTINGS.CACHE_DIR)
    yield Path(__file__).parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if home or os.environ.get("HOME"):
        yield Path(home or Path.home() / ".cache")
    try:
        private = Path(tempfile.gettempdir()) / f"deciban-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    except OSError:  # not writable
        return
    if _is_private(private):
        yield private


def _is_private(folder: Path) -> bool:
    """Return True if nobody else can write to a folder, which is created if needed.

    Its contents are executed, so this must hold.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    ours = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
    return stat.S_ISDIR(found.st_mode) and ours
