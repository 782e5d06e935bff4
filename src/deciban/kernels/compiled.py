"""How every kernel is compiled, and where what was compiled is kept."""

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

from deciban.util.progress import show_line

P = ParamSpec("P")
R = TypeVar("R")
Array = npt.NDArray[Any]

# The numpy error model turns 1/0 into inf: without it every division is a branch and loops do not vectorize.
_HOW: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

_ANY_ORDER = {"reassoc", "contract"}

_SETTINGS: Any = numba.config  # filled when numba is imported, which type checkers cannot see

_DECORATING = Lock()

# Seconds of compilation that are not worth a message, and what a first fit may take in all; see bench/START.md.
UNNOTICED_SECONDS = 0.5
EXPECTED_SECONDS = 10


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` compiled on its first call, kept on disk where that is possible, running without the GIL."""
    return _kept(function)


def compiled_to_reorder(function: Callable[P, R]) -> Callable[P, R]:
    """The same, with leave to add up in any order: several times faster where long sums are the work."""
    return _kept(function, fastmath=_ANY_ORDER)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` for kernels to call. Python must not: the way in is not compiled, which saves time."""
    return _jitted(function, no_cpython_wrapper=True)


def inner_to_reorder(function: Callable[P, R]) -> Callable[P, R]:
    """The same for kernels that may add up in any order."""
    return _jitted(function, no_cpython_wrapper=True, fastmath=_ANY_ORDER)


def emitted(function: Callable[..., Any]) -> Any:
    """An operation for kernels, from a function that returns its signature and what builds its instructions."""
    return intrinsic(function)


class _CompilationNotice(event.Listener):
    """Shows a line on the terminal while kernels are being compiled."""

    def __init__(self) -> None:
        self.begun: list[float] = []  # when each compilation under way began: a kernel, then what it calls
        self.spent = 0.0

    def on_start(self, event: event.Event) -> None:
        module = event.data["dispatcher"].py_func.__module__ or ""  # None for some functions made by exec
        if not (self.begun or module.startswith("deciban.")):
            return  # a kernel of another package
        if not self.begun and self.spent > UNNOTICED_SECONDS:
            show_line(f"compiling for this machine, once (about {EXPECTED_SECONDS} s): {self.spent:.0f} s")
        self.begun.append(time.monotonic())

    def on_end(self, event: event.Event) -> None:
        if not self.begun:
            return
        begun = self.begun.pop()
        if not self.begun:
            if self.spent > UNNOTICED_SECONDS:
                show_line("")
            self.spent += time.monotonic() - begun


event.register("numba:compile", _CompilationNotice())  # type: ignore[no-untyped-call]


def _jitted(function: Callable[P, R], **more: Any) -> Callable[P, R]:
    how: dict[str, Any] = _HOW | more
    return cast(Callable[P, R], numba.njit(**how)(function))


def _kept(function: Callable[P, R], **more: Any) -> Callable[P, R]:
    folder = cache_folder()
    if folder is None:
        return _jitted(function, **more)
    with _DECORATING:
        before = _SETTINGS.CACHE_DIR
        _SETTINGS.CACHE_DIR = str(folder)  # numba reads it while a function is decorated
        try:
            return _jitted(function, cache=True, **more)
        finally:
            _SETTINGS.CACHE_DIR = before


@cache
def cache_folder() -> Path | None:
    """Where compiled kernels are kept; None where no folder can be written to, and each process compiles its own.

    It depends on the source of all kernels and of the constants that are compiled into them, because numba does not see
    that what a kernel uses has changed; and on the versions of Python and numba, which cannot use each other's kernels.
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
    """The folders that are tried: NUMBA_CACHE_DIR, beside the kernels, the user's cache, a private temporary one."""
    if _SETTINGS.CACHE_DIR:
        yield Path(_SETTINGS.CACHE_DIR)
    yield Path(__file__).parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    if home or os.environ.get("HOME"):
        yield Path(home or Path.home() / ".cache")
    try:
        private = Path(tempfile.gettempdir()) / f"deciban-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    except OSError:  # there is none that can be written to
        return
    if _is_private(private):
        yield private


def _is_private(folder: Path) -> bool:
    """Whether nobody else can write to a folder, which is made if need be: what it holds is executed."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    ours = not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)
    return stat.S_ISDIR(found.st_mode) and ours
