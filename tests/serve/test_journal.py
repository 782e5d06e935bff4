"""The journal and the model file: what is on the disk, what fits together, and what is done when the disk fails."""

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from deciban import BayesClassifier
from deciban.errors import ModelFileError, UsageError
from deciban.fitting import update
from deciban.serve.online import durable_model, maintenance
from deciban.serve.online.learner import Learner
from deciban.serve.settings import LearnSettings
from deciban.store import model_file
from deciban.store.lock import journal_of
from tests.serve.learned import PLAY, ROWS, Open, base, copied, counts_of, problem_of, same, saved, some


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path)


def wait_for(fact: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not fact():
        assert time.monotonic() < end, "it never came about"
        time.sleep(0.01)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_what_was_acknowledged_is_replayed_after_a_kill(model: Path, tmp_path: Path) -> None:
    with Open(model) as service:
        service.learner.learn(ROWS[:4], PLAY[:4], ["a", "b", "c", None]).result(10)
        service.learner.forget_ids(["b"]).result(10)
        service.learner.learn([ROWS[0]], ["no"], ["a"]).result(10)
        service.learner.forget_rows([ROWS[3]], [PLAY[3]]).result(10)
        killed, before = copied(model, tmp_path / "copy"), service.states[-1]
    assert model_file.load(killed).counts.rows == 8, "the model file should be the old one"
    with Open(killed) as service:
        assert same(service.counts, counts_of([*some(0, label="no"), *some(2)]))
        assert (service.states[0].version, service.states[0].sequence) == (before.version, before.sequence)
        assert service.learner.learn([ROWS[2]], [PLAY[2]], ["c"]).result(10).results == ["already learned"]


def test_the_journal_is_private_whoever_may_read_the_model(model: Path) -> None:
    model.chmod(0o644)
    with Open(model) as service:
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
        modes = {path.name: path.stat().st_mode & 0o777 for path in model.parent.iterdir()}
        assert modes == {"model.dcb": 0o644, "model.dcb.journal": 0o600, "model.dcb.journal-wal": 0o600}


def test_decay_is_replayed_after_a_kill(model: Path, tmp_path: Path) -> None:
    with Open(model, decay=0.7, decay_every=3) as service:
        service.learner.learn(ROWS[:7], PLAY[:7], list(range(7))).result(10)
        service.learner.forget_ids([0, 6]).result(10)
        killed, before = copied(model, tmp_path / "copy"), service.counts
    decayed = update.replace_counts(base(), base().counts * 0.49)
    rest = [*some(1, 2, weight=0.49), *some(3, 4, 5, weight=0.7)]
    assert same(before, counts_of(rest, decayed), 1e-12)
    with Open(killed) as service:
        assert same(service.counts, before, 1e-12)
        service.learner.forget_ids(list(range(1, 6))).result(10)
        assert same(service.counts, decayed.counts, 1e-12)


def test_rows_that_come_while_the_model_file_is_written_are_not_dropped_with_those_before(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, begun, go = durable_model.replace_file, Event(), Event()

    def waiting(path: Any) -> Any:
        begun.set()
        go.wait(20)
        return write(path)

    monkeypatch.setattr(durable_model, "replace_file", waiting)
    with Open(model, snapshot_every=3, max_retained_rows=1) as service:
        service.learner.learn(ROWS[:3], PLAY[:3], ["a", "b", "c"]).result(10)
        assert begun.wait(20)
        service.learner.learn(ROWS[3:5], PLAY[3:5], ["d", "e"]).result(10)
        go.set()
        wait_for(lambda: service.learner.status()["snapshots"] == 1 and not service.learner._maintenance.busy)
        assert (service.learner.status()["unsaved_changes"], service.learner.status()["retained_rows"]) == (2, 2)
        killed = copied(model, tmp_path / "copy")
    with Open(killed) as service:
        assert same(service.counts, counts_of(some(*range(5))))


@pytest.mark.parametrize("step", ["announced", "replaced", "settled"])
def test_every_step_of_a_snapshot_leaves_files_that_fit_together(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Copies of the disk between the steps are what a process leaves that is killed there."""
    copies: list[Path] = []

    def copy() -> None:
        copies.append(copied(model, tmp_path / f"copy{len(copies)}"))

    replace, settle = durable_model.LockedModelFile.replace, durable_model.DurableModel.drop_saved

    def replacing(self: Any, data: bytes) -> None:
        if step == "announced":
            copy()
        replace(self, data)
        if step == "replaced":
            copy()

    def settling(self: Any, numbers: Any) -> Iterator[None]:
        for _ in settle(self, numbers):
            if step == "settled":
                copy()
            yield

    monkeypatch.setattr(durable_model.LockedModelFile, "replace", replacing)
    with Open(model, snapshot_every=3) as service:
        monkeypatch.setattr(durable_model.DurableModel, "drop_saved", settling)
        service.learner.learn(ROWS[:4], PLAY[:4], ["a", None, "b", "c"]).result(10)
        service.learner.forget_ids(["b"]).result(10)
        wait_for(lambda: service.learner.status()["snapshots"] >= 1 and not service.learner._maintenance.busy)
        monkeypatch.undo()
        expected = counts_of(some(0, 1, 3))
    assert len(copies) >= (3 if step == "settled" else 1)
    for path in copies:
        with Open(path) as service:
            with_b = service.learner.status()["sequence"] == 4  # the file was written before "b" was forgotten
            assert same(service.counts, counts_of(some(0, 1, 2, 3)) if with_b else expected)
            results = service.learner.learn([ROWS[0], ROWS[2]], [PLAY[0], PLAY[2]], ["a", "b"]).result(10).results
            assert results == ["already learned", "already learned" if with_b else "learned"]


def test_a_second_learner_is_refused_also_in_another_process(model: Path) -> None:
    code = (
        "import sys\nfrom deciban.serve.online.learner import Learner\n"
        "from deciban.serve.settings import LearnSettings\n"
        "Learner.open(sys.argv[1], LearnSettings(), lambda state: None)"
    )
    link = model.with_name("link.dcb")
    link.symlink_to(model)
    with Open(model) as service:
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
        for name in (model, link):
            with pytest.raises(ModelFileError, match="the model is in use by another process; stop it"):
                Open(name)
        other = subprocess.run([sys.executable, "-c", code, str(model)], capture_output=True, text=True, check=False)
        assert other.returncode == 1
        assert "the model is in use by another process" in other.stderr
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
    with Open(model) as service:
        assert service.counts.rows == 10


def test_a_database_that_somebody_else_has_locked_is_refused(model: Path) -> None:
    with Open(model) as service:
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
    other = sqlite3.connect(f"{model}.journal", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ModelFileError, match="another process"):
        Open(model)
    other.close()
    with Open(model) as service:
        assert service.counts.rows == 9


def test_a_journal_of_another_model_is_refused_and_nothing_is_changed(model: Path, tmp_path: Path) -> None:
    with Open(model) as service:
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
    model_file.save(model, update.replace_counts(base(), base().counts * 2.0))
    before = contents(tmp_path)
    with pytest.raises(
        ModelFileError, match=r"does not belong to the current content of model.dcb; restore .* or move"
    ):
        Open(model)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("damage", ["other file", "cut", "page", "other database", "no changes"])
def test_a_damaged_journal_is_refused_and_nothing_is_changed(model: Path, tmp_path: Path, damage: str) -> None:
    with Open(model) as service:
        service.learner.learn(ROWS * 30, PLAY * 30, list(range(240))).result(10)
        killed = copied(model, tmp_path / "copy")
    journal = Path(f"{killed}.journal")
    connection = sqlite3.connect(journal)
    if damage == "no changes":
        connection.execute("DELETE FROM changes WHERE sequence = 7")
        connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = journal.read_bytes()
    if damage == "other file":
        journal.write_bytes(b"something else, and long enough to be read" * 100)
    elif damage == "cut":
        journal.write_bytes(data[: len(data) // 2])
    elif damage == "page":
        journal.write_bytes(data[:8192] + b"\xff" * 8192 + data[16384:])
    elif damage == "other database":
        journal.unlink()
        with sqlite3.connect(journal) as other:
            other.execute("CREATE TABLE a (b)")
        other.close()
    before = contents(tmp_path / "copy")
    with pytest.raises(ModelFileError, match=r"model\.dcb\.journal: .*; restore (it|the journal)"):
        Open(killed)
    after = contents(tmp_path / "copy")
    assert {name: after[name] for name in before} == before


def test_a_model_file_that_somebody_else_replaced_is_not_overwritten(model: Path, tmp_path: Path) -> None:
    with Open(model, snapshot_every=2) as service:
        other = model_file.content(update.replace_counts(base(), base().counts * 3.0))
        model.write_bytes(other)
        service.learner.learn(ROWS[:4], PLAY[:4]).result(10)
        wait_for(lambda: service.learner.status()["problems"])
        assert "model.dcb was changed by another program" in service.learner.status()["problems"][0]
        assert service.learner.learn(ROWS[:1], PLAY[:1]).result(10).results == ["learned"]
        assert same(service.counts, counts_of(some(0, 1, 2, 3, 0)))
    assert model.read_bytes() == other
    with pytest.raises(ModelFileError, match="does not belong to the current content"):
        Open(model)
    model_file.save(model, base())
    with Open(model) as service:
        assert same(service.counts, counts_of(some(0, 1, 2, 3, 0)))


def test_a_replaced_model_file_is_reported_without_waiting_for_a_change(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "CLEANUP_SECONDS", 0.02)
    monkeypatch.setattr(maintenance, "RETRY_SECONDS", 0.02)
    before = model.read_bytes()
    with Open(model) as service:
        model_file.save(model, update.replace_counts(base(), base().counts * 3.0))
        wait_for(lambda: service.learner.status()["problems"])
        assert "model.dcb was changed by another program" in service.learner.status()["problems"][0]
        model.write_bytes(before)
        wait_for(lambda: not service.learner.status()["problems"])


def test_a_classifier_is_not_saved_over_the_model_of_a_learning_service(model: Path) -> None:
    clf, before = BayesClassifier.from_fitted(base()), model.read_bytes()
    with Open(model), pytest.raises(UsageError, match="in use by a learning service"):
        clf.save(model)
    with pytest.raises(UsageError, match=r"left its journal next to the model .*use deciban upgrade"):
        clf.save(model)
    assert model.read_bytes() == before
    Path(journal_of(model)).unlink()
    clf.save(model)


def test_a_model_file_that_cannot_be_written_is_told_and_tried_again(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "RETRY_SECONDS", 0.05)
    write = durable_model.replace_file

    def failing(path: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable_model, "replace_file", failing)
    with Open(model, snapshot_every=2) as service:
        service.learner.learn(ROWS[:3], PLAY[:3]).result(10)
        wait_for(lambda: service.learner.status()["problems"])
        assert service.learner.status()["problems"] == ["cannot write the model file: No space left on device"]
        assert service.learner.learn(ROWS[:1], PLAY[:1]).result(10).results == ["learned"]
        monkeypatch.setattr(durable_model, "replace_file", write)
        wait_for(lambda: service.learner.status()["unsaved_changes"] == 0)
        assert service.learner.status()["problems"] == []
    assert same(model_file.load(model).counts, counts_of(some(0, 1, 2, 0)))


def test_a_full_disk_refuses_learning_until_there_is_room(small_disk: Path) -> None:
    model = saved(small_disk)
    with Open(model) as service:
        learner = service.learner
        learner.learn(ROWS[:2], PLAY[:2], ["a", "b"]).result(10)
        ballast = small_disk / "ballast"
        with open(ballast, "wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        before = service.states[-1]
        large = [{"sky": f"{'x' * 4000}{k}"} for k in range(20)]
        problem = problem_of(learner.learn(large, ["no"] * 20, list(range(20))))
        assert (problem.status, problem.cause) == (503, "cannot write the journal")
        assert service.states[-1] is before
        assert learner.status()["sequence"] == 2
        assert "cannot write the journal" in learner.status()["problems"][0]
        ballast.unlink()
        assert learner.learn(ROWS[2:4], PLAY[2:4], ["c", "d"]).result(10).results == ["learned"] * 2
        assert learner.status()["problems"] == []
        assert learner.learn([ROWS[0]], [PLAY[0]], ["0"]).result(10).results == ["learned"], "it was refused before"
        expected = counts_of(some(0, 1, 2, 3, 0))
        assert same(service.counts, expected)
    with Open(model) as service:
        assert same(service.counts, expected)


def test_a_limit_to_the_size_of_files_is_a_full_disk(model: Path) -> None:
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with Open(model) as service:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
            large = [{"sky": f"{'x' * 10_000}{k}"} for k in range(50)]
            assert problem_of(service.learner.learn(large, ["no"] * 50)).status == 503
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
            assert same(service.counts, counts_of(some(0)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    with Open(model) as service:
        assert same(service.counts, counts_of(some(0)))


def test_the_journal_stays_within_its_bound_while_ten_times_as_much_is_learned(model: Path) -> None:
    bound, learned, largest = 1 << 19, 0, 0
    with Open(model, max_journal_bytes=bound, snapshot_every=100) as service:
        start = 0
        while learned < 10 * bound:
            rows = [{"sky": f"sky {k % 40}", "wind": "w" * 1_900 + str(k % 3)} for k in range(start, start + 50)]
            answer = service.learner.learn(rows, ["no"] * 50, list(range(start, start + 50))).result(10)
            assert set(answer.results) == {"learned"}
            learned, start = learned + 1_900 * 50, start + 50
            status = service.learner.status()
            largest = max(largest, os.stat(f"{model}.journal").st_size)
        assert largest <= bound
        assert service.learner.status()["problems"] == []
        assert service.learner.forget_ids([0, start - 1]).result(10).results == ["not found", "forgotten"]
        assert 50 < status["retained_rows"] < start / 5
        assert service.counts.rows == 8 + start - 1
    with Open(model) as service:
        assert service.counts.rows == 8 + start - 1
        assert service.learner.status()["journal_bytes"] <= bound


def test_rows_without_ids_leave_nothing_behind_and_free_room_is_given_back(model: Path) -> None:
    with Open(model, snapshot_every=100_000) as service:
        for _ in range(30):
            service.learner.learn(ROWS * 100, PLAY * 100).result(10)
        assert service.learner.status()["journal_bytes"] > 1_000_000
    assert os.stat(f"{model}.journal").st_size < 100_000
    assert not Path(f"{model}.journal-wal").exists()


def test_the_oldest_ids_are_dropped_beyond_a_number(model: Path) -> None:
    with Open(model, max_retained_rows=5, snapshot_every=1) as service:
        for k in range(8):
            service.learner.learn([ROWS[k]], [PLAY[k]], [k]).result(10)
    with Open(model, max_retained_rows=5) as service:
        assert service.learner.status()["retained_rows"] == 5
        assert service.learner.forget_ids(list(range(8))).result(10).results == ["not found"] * 3 + ["forgotten"] * 5
        assert same(service.counts, counts_of(some(0, 1, 2)))


def test_a_journal_that_cannot_be_shortened_refuses_more_at_its_bound(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(durable_model, "replace_file", failing)
    with Open(model, max_journal_bytes=1 << 19) as service:
        large = [{"sky": "sun", "wind": "w" * 5_000}] * 10
        answers = [service.learner.learn(large, ["no"] * 10) for _ in range(30)]
        refused = [answer for answer in answers if answer.exception(10) is not None]
        assert 10 < len(refused) < 29
        assert problem_of(refused[0]).status == 507
        assert os.stat(f"{model}.journal").st_size <= 1 << 19
        monkeypatch.undo()
        service.learner._maintenance._retry_at = 0.0
        assert service.learner.learn(ROWS[:1], PLAY[:1]).result(10).results == ["learned"]


def test_a_model_that_has_become_too_large_learns_no_more_but_forgets(model: Path) -> None:
    with Open(model, max_model_bytes=3_000, snapshot_every=10) as service:
        rows = [{"sky": f"a level of its own {k}"} for k in range(50)]
        service.learner.learn(rows, ["no"] * 50, list(range(50))).result(10)
        wait_for(lambda: service.learner.status()["model_bytes"] > 3_000)
        assert problem_of(service.learner.learn(ROWS[:1], PLAY[:1])).status == 507
        assert service.learner.learn(rows[:1], ["no"], [0]).result(10).results == ["already learned"]
        service.learner.forget_ids(list(range(50))).result(10)
        wait_for(lambda: service.learner.status()["model_bytes"] < 3_000)
        assert service.learner.learn(ROWS[:1], PLAY[:1]).result(10).results == ["learned"]
        assert same(service.counts, counts_of(some(0)))


@pytest.mark.parametrize("jump", [-1e9, 1e9])
def test_a_clock_that_jumps_loses_nothing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    true = time.time
    with Open(model, pending_seconds=3600.0) as service:
        service.learner.learn(ROWS[:2], PLAY[:2], ["a", "b"]).result(10)
        service.learner.add_pending(["p"], [ROWS[5]]).result(10)
        monkeypatch.setattr(time, "time", lambda: true() + jump)
        service.learner.learn(ROWS[2:3], PLAY[2:3], ["c"]).result(10)
        killed = copied(model, tmp_path / "copy")
    for path in (model, killed):
        with Open(path, pending_seconds=3600.0) as service:
            results = service.learner.learn(ROWS[:3], PLAY[:3], ["a", "b", "c"]).result(10).results
            assert results == ["already learned"] * 3
            assert service.learner.learn_later(["p"], ["no"]).result(10).results == ["learned"]
            assert same(service.counts, counts_of([*some(0, 1, 2), *some(5, label="no")]))


def test_a_learner_that_cannot_be_opened_leaves_the_journal_to_others(model: Path) -> None:
    with Open(model) as service:
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
    good = model.read_bytes()
    model.write_bytes(good[:-20])
    with pytest.raises(ModelFileError):
        Learner.open(model, LearnSettings(), lambda state: None)
    model.write_bytes(good)
    with Open(model) as service:
        assert service.counts.rows == 9


def until_quiet(service: Open) -> None:
    wait_for(lambda: not service.learner._maintenance.busy and not service.learner._maintenance.saving)


def test_readers_cannot_push_out_the_ids_of_learned_rows(model: Path) -> None:
    bound = 1 << 19
    with Open(model, max_journal_bytes=bound) as service:
        learned = [{"sky": "sun", "wind": "w" * 1_000}] * 150
        service.learner.learn(learned, ["no"] * 150, [f"l{k}" for k in range(150)]).result(10)
        service.learner._queue.call(service.learner._maintenance._save_here).result(10)
        until_quiet(service)
        kept = service.learner.status()["retained_rows"]
        for start in range(0, 200, 10):
            rows = [{"sky": "x" * 2_000}] * 10
            service.learner.add_pending([f"p{k}" for k in range(start, start + 10)], rows).result(10)
            service.learner._queue.call(service.learner._maintenance.make_room).result(10)
        durable = service.learner._model
        assert 0 < durable.counters.pending_bytes <= bound // 8
        found = durable.journal.connection.execute("SELECT sum(length(id) + length(record)) FROM pending").fetchone()
        assert durable.counters.pending_bytes == found[0]
        assert service.learner.status()["retained_rows"] == kept == 150


def test_pending_rows_go_before_rows_with_ids(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Open(model, max_journal_bytes=1 << 19) as service:
        service.learner.learn([{"wind": "w" * 1_000}] * 180, ["no"] * 180, [f"l{k}" for k in range(180)]).result(10)
        service.learner._queue.call(service.learner._maintenance._save_here).result(10)
        service.learner.add_pending([f"p{k}" for k in range(30)], [{"sky": "x" * 1_900}] * 30).result(10)
        until_quiet(service)
        monkeypatch.setattr(
            durable_model,
            "CLEANUP_SHARE",
            durable_model.measure_used(service.learner._model.journal) / (1 << 19) - 0.02,
        )
        service.learner._queue.call(lambda: list(service.learner._model.drop_surplus())).result(10)
        assert service.learner.status()["pending_rows"] < 30
        assert service.learner.status()["retained_rows"] == 180


def test_what_a_killed_process_did_not_shorten_is_shortened_at_the_next_start(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the rename and the shortening: the file has all changes, so nothing else would begin it."""
    bound = 1 << 18
    with Open(model, max_journal_bytes=1 << 20) as service:
        service.learner.learn([{"wind": "w" * 1_000}] * 250, ["no"] * 250).result(10)
        monkeypatch.setattr(durable_model.DurableModel, "drop_saved", lambda self, numbers: iter(()))
        service.learner._queue.call(service.learner._maintenance._save_here).result(10)
        killed = copied(model, tmp_path / "copy")
        monkeypatch.undo()
    with Open(killed, max_journal_bytes=bound) as service:
        assert service.learner.status()["unsaved_changes"] == 0
        assert service.learner.learn(ROWS[:1], PLAY[:1]).result(10).results == ["learned"]


@pytest.mark.parametrize("cut", [2, 5_000])
def test_a_row_forgotten_and_learned_in_one_batch_is_replayed_as_it_was(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    """The row of an id is forgotten without its id; what is forgotten by the id later is not there, and nothing else
    goes in its place, whatever comes in between and however it is cut when it is replayed."""
    monkeypatch.setattr(durable_model, "MAX_REPLAYED_CHANGES", cut)
    row = {"sky": "hail"}
    with Open(model) as service:
        learner, go = service.learner, Event()
        learner.learn([row], ["no"], ["a"]).result(10)
        learner.forget_rows([row], ["no"]).result(10)
        learner.forget_ids(["a"]).result(10)
        learner.learn([row], ["no"]).result(10)
        left = [(copied(model, tmp_path / "first"), service.counts)]
        learner._queue.call(go.wait)
        answers = [learner.forget_rows([row] * 2, ["no"] * 2), learner.learn([row], ["no"])]
        go.set()
        assert [answer.result(10).results for answer in answers] == [["forgotten"] * 2, ["learned"]]
        left.append((copied(model, tmp_path / "second"), service.counts))
    for killed, before in left:
        with Open(killed) as service:
            assert same(service.counts, before)


def test_a_chore_that_fails_costs_only_the_chore(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "RETRY_SECONDS", 0.05)

    def failing(*given: Any, **more: Any) -> Any:
        raise RuntimeError("can't start new thread")

    with Open(model, snapshot_every=1) as service:
        with monkeypatch.context() as patch:
            patch.setattr(maintenance, "Thread", failing)
            service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
            wait_for(lambda: service.learner.status()["problems"])
            assert service.learner.status()["problems"] == ["cannot write the model file: can't start new thread"]
            patch.setattr(durable_model.DurableModel, "drop_surplus", failing)
            patch.setattr(maintenance, "CLEANUP_SECONDS", 0.0)
            service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
            wait_for(lambda: len(service.learner.status()["problems"]) == 2)
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
        wait_for(lambda: service.learner.status()["unsaved_changes"] == 0 and not service.learner.status()["problems"])


def test_learning_that_ends_says_so_and_lets_nobody_wait(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Open(model) as service:
        learner, go = service.learner, Event()
        learner._queue.call(go.wait)
        monkeypatch.setattr(learner, "_step", lambda: 1 / 0)
        answers = [learner.learn(ROWS[:1], PLAY[:1]), learner.add_pending(["a"], [ROWS[0]])]
        call = learner._queue.call(lambda: 7)
        go.set()
        # the step that is under way takes all of this, so what comes next is what nobody would answer
        for answer in answers:
            answer.exception(10)
        call.exception(10)
        learner._thread.join(10)
        assert not learner._thread.is_alive()
        assert learner.status()["problems"] == [
            "online learning has stopped: ZeroDivisionError; see the log, and restart the service"
        ]
        assert problem_of(learner.learn(ROWS[:1], PLAY[:1])).cause == "online learning has stopped"
        assert problem_of(learner.add_pending(["a"], [ROWS[0]])).status == 503
        assert isinstance(learner._queue.call(lambda: 7).exception(10), RuntimeError)
        assert learner.status()["dropped_pending_rows"] >= 1


@pytest.mark.parametrize(
    "damage", ["UPDATE state SET numbers = '{'", "DELETE FROM state", "UPDATE state SET classes = 3"]
)
def test_a_journal_without_its_figures_is_damaged(model: Path, damage: str) -> None:
    with Open(model) as service:
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
    with sqlite3.connect(f"{model}.journal") as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(ModelFileError, match=r"model\.dcb\.journal: the journal is damaged .*; restore it"):
        Open(model)


def test_a_model_file_that_cannot_be_written_leaves_no_file_open(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, fitted = durable_model.LockedModelFile.load(str(model))
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: os.write(-1, b""))
        for _ in range(5):
            with pytest.raises(OSError, match="Bad file descriptor"):
                file.replace(model_file.content(fitted))
    assert len(os.listdir("/proc/self/fd")) == before
    file.close()


def test_closing_waits_for_the_model_file_without_spinning(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, begun, taken = durable_model.replace_file, Event(), []

    def slow(path: Any) -> Any:
        begun.set()
        time.sleep(0.3)
        return write(path)

    monkeypatch.setattr(durable_model, "replace_file", slow)
    with Open(model, snapshot_every=1) as service:
        service.learner.learn(ROWS[:1], PLAY[:1]).result(10)
        assert begun.wait(10)
        take = service.learner._queue.take
        monkeypatch.setattr(
            service.learner._queue, "take", lambda *given, **more: taken.append(1) or take(*given, **more)
        )
    assert len(taken) < 20
    assert model_file.load(model).counts.rows == 9


def test_a_model_file_that_may_not_be_written_is_told_with_a_remedy(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(path: str) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(durable_model, "lock_model", refusing)
    with pytest.raises(
        ModelFileError, match=r"model\.dcb: cannot write the file \(Permission denied\); grant write access"
    ):
        Open(model)
