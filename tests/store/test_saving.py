"""A model file is written whole or not at all, whatever happens to disk, process or thread."""

import os
import pickle
import random
import resource
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import deciban as dc
from tests.store.models import every_family, small
from tests.support.model_files import assert_identical, content


def in_child(work: Callable[[], None]) -> int:
    """The id of a process that does this and ends."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_process_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "model.dcb"
    models = [dc.BayesClassifier(tune=None).fit(np.eye(4) + k, [0, 1, 0, k]) for k in (1, 2)]
    whole = [content(model) for model in models]
    assert whole[0] != whole[1]
    models[0].save(path)
    chance, found = random.Random(1), set()

    def save_for_ever() -> None:
        while True:
            for model in reversed(models):
                model.save(path)

    for _ in range(50):
        child = in_child(save_for_ever)
        time.sleep(chance.uniform(0.002, 0.06))  # a save takes up to 25 ms on a busy machine
        os.kill(child, signal.SIGKILL)
        assert exit_code(child) == -signal.SIGKILL
        data = path.read_bytes()
        assert data in whole
        found.add(whole.index(data))
        assert content(dc.load(path)) == data
    assert found == {0, 1}
    others = [left.name for left in tmp_path.iterdir() if left != path]
    assert all(name.startswith(".") and name.endswith(".part") for name in others)


def test_threads_that_save_to_one_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "model.dcb"
    models = [dc.BayesClassifier(tune=None).fit(np.eye(4) + k, [0, 1, 0, k]) for k in (1, 2)]
    whole = [content(model) for model in models]
    problems: list[BaseException] = []

    def save(model: dc.BayesClassifier) -> None:
        try:
            for _ in range(60):
                model.save(path)
                assert path.read_bytes() in whole
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=save, args=(model,)) for model in models * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]
    assert [left.name for left in tmp_path.iterdir()] == ["model.dcb"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.dcb"
    small().save(path)
    before = path.read_bytes()
    larger = every_family()[0]

    def save() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), len(before)))
        try:
            larger.save(path)
        except OSError:
            os._exit(7)
        os._exit(8)

    assert exit_code(in_child(save)) == 7
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="No space left"):
        larger.save("/dev/full")


def test_where_a_file_cannot_be_written(tmp_path: Path) -> None:
    clf = small()
    with pytest.raises(FileNotFoundError):
        clf.save(tmp_path / "nowhere" / "model.dcb")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        clf.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        dc.load(tmp_path / "none.dcb")
    with pytest.raises(IsADirectoryError):
        dc.load(tmp_path)
    clf.save("/dev/null")


def test_names_as_long_as_a_folder_takes_them(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 125 + ".dcb")
    small().save(path)
    assert content(dc.load(path)) == path.read_bytes()


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    clf = small()
    path, link = tmp_path / "model.dcb", tmp_path / "link.dcb"
    link.symlink_to("model.dcb")
    clf.save(link)  # to a file that is not there yet
    assert link.is_symlink()
    for mode in (0o600, 0o444, 0o640):
        path.chmod(mode)
        clf.save(link)
        assert link.is_symlink()
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert path.read_bytes() == content(clf)
    before = os.umask(0o027)
    try:
        clf.save(tmp_path / "new.dcb")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.dcb").stat().st_mode) == 0o640
    assert sorted(left.name for left in tmp_path.iterdir()) == ["link.dcb", "model.dcb", "new.dcb"]


def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.dcb"
    clf = small()
    clf.save(path)
    before = path.read_bytes()
    clf.prior = object()
    with pytest.raises(dc.DecibanError, match="cannot hold"):
        clf.save(path)
    assert path.read_bytes() == before


def test_a_loaded_model_owns_its_numbers(tmp_path: Path) -> None:
    """Nothing in it is a view of the file, and writing over the file changes nothing."""
    path = tmp_path / "model.dcb"
    clf, X = every_family()
    clf.save(path)
    loaded = dc.load(path)
    before = loaded.predict_proba(X)
    path.write_bytes(b"\0" * path.stat().st_size)
    assert_identical(load_free(loaded).predict_proba(X), before)


def load_free(clf: dc.BayesClassifier) -> dc.BayesClassifier:
    """The same without what it has remembered."""
    clf.fitted_ = pickle.loads(pickle.dumps(clf.fitted_))
    return clf
