"""Where compiled kernels are kept, and that it works where nothing can be kept."""

import gc
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from bench.start import AFTER, MEASURED, PROGRAMS

from deciban import BayesClassifier, kernels
from deciban.kernels import compiled
from deciban.util import progress

FIT = "from deciban import BayesClassifier\nprint(BayesClassifier().fit([[1.0], [2.0]], [0, 1]).predict([[1.1]])[0])\n"
WHERE = "from deciban.kernels.compiled import cache_folder\nprint(cache_folder())\n"


def as_nobody(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run by a user who can read everything and write nothing but what is free to all; there is no HOME."""
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("another user can be had by root alone")
    may_read = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *may_read, sys.executable, "-c"]
    return subprocess.run([*command, code], env=environment, capture_output=True, text=True, check=False, cwd="/")


def test_a_user_without_home_and_with_a_read_only_package_has_a_private_cache(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.owner() == "root" and parent.is_relative_to("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o011)
    done = as_nobody(FIT + WHERE, TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    predicted, folder = done.stdout.split()
    assert predicted == "0"
    assert Path(folder).is_relative_to(tmp_path / "deciban-65534")
    assert (tmp_path / "deciban-65534").stat().st_mode & 0o777 == 0o700
    assert list(Path(folder).rglob("*.nbc"))


def test_it_works_where_no_folder_can_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "cache_folder", lambda: None)

    @compiled.compile_kernel
    def doubled(values: np.ndarray, out: np.ndarray) -> None:
        for i in range(values.size):
            out[i] = 2.0 * values[i]

    out = np.zeros(3)
    doubled(np.arange(3.0), out)
    assert out.tolist() == [0.0, 2.0, 4.0]


def test_no_temporary_folder_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert [folder.name for folder in compiled._candidates()][-1:] == ["__pycache__"]


def test_a_folder_that_others_can_write_to_is_not_private(tmp_path: Path) -> None:
    assert compiled._is_private(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert not compiled._is_private(tmp_path / "open")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    assert not compiled._is_private(tmp_path / "link")
    (tmp_path / "file").touch()
    assert not compiled._is_private(tmp_path / "file")


@pytest.mark.parametrize("stream", [None, object()])
def test_a_program_without_a_terminal_learns_too(stream: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    progress.show_line("nobody watches")
    assert BayesClassifier().fit([[1.0], [2.0]], [0, 1]).predict([[1.1]]).tolist() == [0]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_tells_of_compilation_and_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(compiled, "UNNOTICED_SECONDS", -1.0)
    notice = compiled._CompilationNotice()
    ours, theirs = (
        SimpleNamespace(data={"dispatcher": kernel}) for kernel in (kernels.scoring.normalize, numba.njit(as_nobody))
    )
    notice.on_start(theirs)  # a kernel of somebody else
    notice.on_end(theirs)
    assert not screen.getvalue()
    notice.on_start(ours)
    notice.on_start(theirs)  # what it calls
    notice.on_end(theirs)
    assert not gc.isenabled(), "paused while kernels are compiled"
    assert screen.getvalue().count("compiling, once per machine (about 10 s)") == 1
    notice.on_end(ours)
    assert gc.isenabled()
    assert screen.getvalue().endswith("\r\033[K")
    screen.truncate(0)
    monkeypatch.setattr(screen, "isatty", lambda: False)
    progress.show_line("nobody watches")
    assert not screen.getvalue()


def test_functions_without_a_module_of_other_packages_are_compiled() -> None:
    """Code made by exec without a __name__ has the module None."""
    made: dict[str, Any] = {"__name__": None}
    exec("def doubled(x):\n    return 2 * x\n", made)
    assert made["doubled"].__module__ is None
    assert numba.njit(made["doubled"])(4) == 8


def test_what_is_kept_depends_on_the_constants_that_kernels_are_compiled_with(tmp_path: Path) -> None:
    package = tmp_path / "deciban"
    shutil.copytree(Path(compiled.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def folder() -> str:
        return subprocess.run([sys.executable, "-c", WHERE], env=environment, capture_output=True, text=True).stdout

    before = folder()
    source = (package / "util" / "arrays.py").read_text()
    (package / "util" / "arrays.py").write_text(source.replace("SPARE = 16", "SPARE = 32"))
    assert source != (package / "util" / "arrays.py").read_text()
    assert folder() != before != ""


def test_after_warming_nothing_is_compiled_any_more() -> None:
    """Every kernel that the programs of the benchmark need is in the cache, which the session has filled."""
    code = MEASURED + "".join(PROGRAMS.values()) + AFTER
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert '"kernels": {}' in done.stdout
