"""Processes that learn on line and are killed at random points, and whether what they acknowledged is all there.

A first process imports everything and forks one that learns for each round, so that a round takes no longer than it
must. The one that learns writes to a file what it asks for and what was acknowledged; the kernel keeps that file when
the process is killed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from deciban.serve.bodies.checks import LearnableRows
from deciban.serve.online import durable_model, maintenance
from deciban.serve.online.change_set import LearnRequest
from deciban.serve.online.durable_model import DurableModel
from deciban.serve.settings import LearnSettings
from deciban.store.model_file import content
from tests.serve.learned import ROWS, RowLearner, checked_rows, counts_of, same, saved

# Small bounds, so that model files are written and the journal is shortened all the time.
SETTINGS = LearnSettings(snapshot_every=6, snapshot_seconds=0.02, max_journal_bytes=1 << 19)

WORKERS, IDS = 2, 40

# Where a process may be told to kill itself, beside the random points.
POINTS = ("announced", "replaced", "settled", "committed")


def learn_until_killed(model: Path, log: Path, seed: int, point: str | None) -> None:
    """Learn, relabel and forget rows for ever."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def tell(*what: Any) -> None:
        os.write(file, json.dumps(what).encode() + b"\n")

    if point is not None:
        kill_at(point, random.Random(seed).randrange(8))
    learner = RowLearner.open(model, SETTINGS, lambda state: None)
    tell("ready")
    workers = [Thread(target=work, args=(learner, tell, who, seed)) for who in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def work(learner: Any, tell: Any, who: int, seed: int) -> None:
    choice = random.Random(f"{seed} {who}")
    number = 0
    while True:
        number += 1
        ids = [f"{who}-{choice.randrange(IDS)}" for _ in range(choice.randint(1, 4))]
        kind = choice.random()
        if kind < 0.25:
            tell("ask", "forget", who, ids)
            learner.forget_ids(ids).result()
            tell("ok", "forget", who, ids)
        elif kind < 0.35:
            sky = f"{seed} {who} {number}"
            tell("ask", "once", who, sky)
            learner.learn([{"sky": sky}], ["no"]).result()
            tell("ok", "once", who, sky)
        else:
            rows = [(name, choice.randrange(len(ROWS)), choice.choice(["yes", "no"])) for name in ids]
            tell("ask", "learn", who, rows)
            learner.learn([ROWS[k] for _, k, _ in rows], [label for *_, label in rows], ids).result()
            tell("ok", "learn", who, rows)


def kill_at(point: str, times: int) -> None:
    """Let this process end itself when it has come to a point so many times."""
    left = [times]

    def arrive() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    replace, settle, write = (
        durable_model.LockedModelFile.replace,
        durable_model.DurableModel.drop_saved,
        durable_model.DurableModel.write,
    )

    def replacing(self: Any, data: bytes) -> None:
        if point == "announced":
            arrive()
        replace(self, data)
        if point == "replaced":
            arrive()

    def settling(self: Any, numbers: Any) -> Iterator[None]:
        for _ in settle(self, numbers):
            arrive()
            yield

    def writing(self: Any, *what: Any) -> Any:
        outcomes = write(self, *what)
        arrive()
        return outcomes

    if point in ("announced", "replaced"):
        durable_model.LockedModelFile.replace = replacing  # type: ignore[method-assign]
    elif point == "settled":
        durable_model.DurableModel.drop_saved = settling  # type: ignore[method-assign]
    else:
        durable_model.DurableModel.write = writing  # type: ignore[method-assign]


class Expected:
    """What should be known: rows by their ids, and rows without; asked: what every worker waits for."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, str]] = {}
        self.once: set[str] = set()

    def after(self, lines: list[Any]) -> list[Any]:
        """Take in what was acknowledged; the requests that were not."""
        open_: dict[int, Any] = {}
        for what, *asked in lines:
            if what == "ask":
                open_[asked[1]] = asked
            elif what == "ok":
                open_.pop(asked[1])
                self.take(asked)
        return list(open_.values())

    def take(self, asked: Any) -> None:
        kind, _, given = asked
        if kind == "once":
            self.once.add(given)
        elif kind == "forget":
            for name in given:
                self.rows.pop(name, None)
        else:
            for name, row, label in given:
                if name not in self.rows or self.rows[name][1] != label:
                    self.rows[name] = (row, label)

    def check(self, model: Path, unanswered: list[Any]) -> None:
        """Whether the model on the disk knows just this; requests that were not answered may be in it, as a whole."""
        found = DurableModel.open(str(model), SETTINGS)
        try:
            counts = found.state.fitted.counts
            known = found.journal.connection.execute("SELECT id, record, label FROM rows WHERE id IS NOT NULL")
            rows = {name: (json.loads(record), json.loads(label)) for name, record, label in known}
        finally:
            found.close()
        levels = set(counts.statistics[0].levels[0].to_pylist())
        for asked in unanswered:
            trial = Expected()
            trial.rows, trial.once = dict(self.rows), set(self.once)
            trial.take(asked)
            mine = {name: row for name, row in trial.rows.items() if name.startswith(f"{asked[1]}-")}
            there = {name: row for name, row in rows.items() if name.startswith(f"{asked[1]}-")}
            in_it = asked[2] in levels if asked[0] == "once" else there == as_rows(mine)
            if in_it:
                self.rows, self.once = trial.rows, trial.once
        assert rows == as_rows(self.rows)
        expected = counts_of(
            [
                *((ROWS[row], label, 1.0) for row, label in self.rows.values()),
                *(({"sky": sky}, "no", 1.0) for sky in self.once),
            ]
        )
        assert same(counts, expected), "the counts are not those of the acknowledged rows"


def as_rows(rows: dict[str, tuple[int, str]]) -> dict[str, tuple[Any, str]]:
    return {name: (ROWS[row], label) for name, (row, label) in rows.items()}


class Crashes:
    """Rounds of learning on one model that end by kill -9, each of which is checked."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.model = folder, saved(folder)
        self.choice, self.expected = random.Random(seed), Expected()
        self.rounds = self.acknowledged = self.unanswered = 0
        code = "from tests.serve.crashing import fork_for_ever; fork_for_ever()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def round(self, point: str | None = None, longest: float = 0.25) -> None:
        """Let a process learn, kill it at a random time or at a point, and check what is there."""
        self.rounds += 1
        log = self.folder / f"{self.rounds}.log"
        asked = json.dumps([str(self.model), str(log), self.choice.randrange(1 << 30), point])
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(asked + "\n")
        self._process.stdin.flush()
        process = int(self._process.stdout.readline())
        if point is None:
            end = time.monotonic() + 60
            while not log.exists() or b"ready" not in log.read_bytes():
                assert time.monotonic() < end, "the process does not begin to learn"
                time.sleep(0.002)
            time.sleep(self.choice.random() * longest)
            os.kill(process, signal.SIGKILL)
        ended = int(self._process.stdout.readline())
        assert ended == -signal.SIGKILL, f"the process ended by itself: {ended}"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        log.unlink()
        unanswered = self.expected.after(lines)
        self.acknowledged += sum(line[0] == "ok" for line in lines)
        self.unanswered += len(unanswered)
        self.expected.check(self.model, unanswered)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


ROOT = Path(__file__).parent.parent.parent


@contextmanager
def crashes(folder: Path, seed: int) -> Iterator[Crashes]:
    found = Crashes(folder, seed)
    try:
        yield found
    finally:
        found.close()


def fork_for_ever() -> None:
    """Fork a process that learns for each line of standard input; say its number, and how it ended."""
    maintenance.RETRY_SECONDS = 0.1
    load_kernels()
    for line in sys.stdin:
        model, log, seed, point = json.loads(line)
        child = os.fork()
        if not child:
            sys.stdin.close()
            try:
                learn_until_killed(Path(model), Path(log), seed, point)
            finally:
                os._exit(1)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def load_kernels() -> None:
    """Do once what processes that learn do, without threads, which would not be forked."""
    with TemporaryDirectory() as folder:
        found = DurableModel.open(str(saved(Path(folder))), SETTINGS)
        found.write([LearnRequest(checked_rows(ROWS[:2], ["yes", "no"], ["a", "b"], None))], [], None)
        found.write([LearnRequest(LearnableRows(None, (), ["a"], ()), forgets=True)], [], None)
        found.commit_snapshot(content(found.state.fitted), found.counters_to_save())
        found.close()
