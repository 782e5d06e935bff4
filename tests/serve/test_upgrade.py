"""A model that was fitted again takes the place of one that learns online: what was learned is kept, counted once."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deciban.cli import run
from deciban.errors import DataError, UsageError
from deciban.families import Categorical, Gaussian
from deciban.fitting import fit, update
from deciban.model.fitted import Fitted, Settings
from deciban.serve.online import durable_model
from deciban.serve.online.durable_model import DurableModel
from deciban.serve.online.journal import Journal
from deciban.serve.settings import LearnSettings
from deciban.store import model_file
from tests import PATIENCE
from tests.serve.conftest import Opened
from tests.serve.learned import COLUMNS, DAYS, PLAY, ROWS, Open, base, copied, counts_of, same, saved, some
from tests.serve.processes import ask, serving

ROOT = Path(__file__).parent.parent.parent


def refitted(target: str | None = None) -> Fitted:
    """A model of the first six days, twice each, so that it is another one than that of all days."""
    table = pa.table({name: [*cells[:6], *cells[:6]] for name, cells in DAYS.items()})
    found = fit.fit(Settings(families=COLUMNS, tune=None, threads=1), table, [*PLAY[:6], *PLAY[:6]])
    return replace(found, origin=replace(found.origin, target=target))


def learned(folder: Path, rows: int = 3, **settings: Any) -> Path:
    """A model file and its journal, as a service leaves them that has learned some days by their number."""
    model = saved(folder)
    with Open(model, **settings) as service:
        service.learner.learn(ROWS[:rows], PLAY[:rows], list(range(rows))).result(10)
    return model


@contextmanager
def opened(model: Path) -> Iterator[DurableModel]:
    durable = DurableModel.open(str(model), LearnSettings())
    try:
        yield durable
    finally:
        durable.close()


def test_rows_of_the_journal_are_added_and_their_ids_stay_known(tmp_path: Path) -> None:
    model, new = learned(tmp_path), refitted()
    with opened(model) as durable:
        before = durable.state.version
        assert durable.upgrade(new, frozenset()) == 3
        assert durable.state.version != before
        after = durable.state.version
    assert same(model_file.load(model).counts, counts_of(some(0, 1, 2), new))
    with Open(model) as service:
        assert service.states[0].version == after
        assert service.learner.learn([ROWS[0]], [PLAY[0]], [0]).result(10).results == ["already learned"]
        assert service.learner.forget_ids([0, 1, 2]).result(10).results == ["forgotten"] * 3
        assert same(service.counts, new.counts, 1e-12)


def test_rows_that_the_new_model_was_fitted_to_are_not_added_again(tmp_path: Path) -> None:
    model, new = learned(tmp_path), refitted()
    with opened(model) as durable:
        assert durable.upgrade(new, frozenset({"0", "2", "elsewhere"})) == 1
    assert same(model_file.load(model).counts, counts_of(some(1), new))
    with Open(model) as service:
        assert service.learner.learn([ROWS[2]], [PLAY[2]], [2]).result(10).results == ["already learned"]
        assert service.learner.learn([ROWS[2]], ["yes"], [2]).result(10).results == ["relearned"]
        wanted = counts_of([*some(1), *some(2, label="yes")], update.forget(new, day(2), [PLAY[2]]))
        assert same(service.counts, wanted, 1e-12)


def day(place: int) -> pa.Table:
    return pa.table({name: pa.array([cell]) for name, cell in ROWS[place].items()})


def test_decayed_rows_are_added_with_what_is_left_of_them(tmp_path: Path) -> None:
    model = learned(tmp_path, 5, decay=0.5, decay_every=2)
    with opened(model) as durable:
        durable.upgrade(refitted(), frozenset())
        weights = {0: 0.25, 1: 0.25, 2: 0.5, 3: 0.5, 4: 1.0}
        rows = [row for place, weight in weights.items() for row in some(place, weight=weight)]
        assert same(durable.state.fitted.counts, counts_of(rows, refitted()), 1e-12)


def test_columns_may_come_and_go(tmp_path: Path) -> None:
    model = learned(tmp_path)
    sky = pa.array([row["sky"] for row in ROWS])
    table = pa.table({"sky": sky, "moon": pa.array(["full", "new"] * 4)})
    new = fit.fit(Settings(families={"sky": Categorical(), "moon": Categorical()}, tune=None, threads=1), table, PLAY)
    with opened(model) as durable:
        durable.upgrade(new, frozenset())
        wanted = update.learn_more(new, pa.table({"sky": sky[:3], "moon": pa.nulls(3, pa.string())}), PLAY[:3])
        assert same(durable.state.fitted.counts, wanted.counts)


def test_rows_that_wait_for_a_label_go_on_waiting(tmp_path: Path) -> None:
    model = saved(tmp_path)
    with Open(model) as service:
        service.learner.add_pending(["late"], [ROWS[4]]).result(10)
    with opened(model) as durable:
        assert durable.upgrade(refitted(), frozenset()) == 0
    with Open(model) as service:
        assert service.learner.learn_later(["late"], [PLAY[4]]).result(10).results == ["learned"]
        assert same(service.counts, counts_of(some(4), refitted()))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (lambda: refitted(target="rain"), "they predict different columns, 'play' and 'rain'"),
        (lambda: fit.fit(Settings(tune=None), pa.table({"other": DAYS["sky"]}), PLAY), "no column in common"),
        (
            lambda: fit.fit(Settings(tune=None), pa.table(DAYS), [1, 2] * 4),
            "have different types",
        ),
        (
            lambda: fit.fit(Settings({"sky": Gaussian()}, tune=None), pa.table({"sky": [1.0, 2.0] * 4}), PLAY),
            "cannot learn the row with the id '0': rows[0].sky",
        ),
    ],
)
def test_a_model_of_another_question_is_refused_and_nothing_changes(tmp_path: Path, new: Any, said: str) -> None:
    fitted = replace(base(), origin=replace(base().origin, target="play"))
    model = saved(tmp_path, fitted)
    with Open(model) as service:
        service.learner.learn(ROWS[:3], PLAY[:3], [0, 1, 2]).result(10)
    before = model.read_bytes()
    with opened(model) as durable:
        with pytest.raises((UsageError, DataError), match="fit the new model to a table") as refused:
            durable.upgrade(new(), frozenset())
        assert said in str(refused.value)
        assert same(durable.state.fitted.counts, counts_of(some(0, 1, 2)))
    assert model.read_bytes() == before


def upgrade_until(model: str, step: int) -> None:
    """Upgrade, and kill this process when it comes to a step: around each transaction, and around the renaming."""
    left = [step]

    def arrive() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    transaction, put = Journal.transaction, durable_model.LockedModelFile.replace

    @contextmanager
    def transacting(self: Journal) -> Iterator[None]:
        arrive()
        with transaction(self):
            yield
            arrive()
        arrive()

    def replacing(self: Any, data: bytes) -> None:
        arrive()
        put(self, data)
        arrive()

    with opened(Path(model)) as durable:
        Journal.transaction = transacting  # type: ignore[method-assign]
        durable_model.LockedModelFile.replace = replacing  # type: ignore[method-assign]
        durable.upgrade(refitted(), frozenset({"1"}))


def kill_at_every_step(model: str, folder: str) -> None:
    """Upgrade a copy of the model for each step, in a process that is killed there, until one comes to its end."""
    refitted()  # compiles what all of them need
    for step in count():
        killed = copied(Path(model), Path(folder) / str(step))
        if not (child := os.fork()):
            upgrade_until(str(killed), step)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in (0, -signal.SIGKILL)
        if not ended:
            break


def test_killed_at_any_step_the_model_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    model = learned(tmp_path)
    old, new = counts_of(some(0, 1, 2)), counts_of(some(0, 2), refitted())
    (folder := tmp_path / "killed").mkdir()
    code = f"from tests.serve.test_upgrade import kill_at_every_step as kill; kill({str(model)!r}, {str(folder)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=PATIENCE)
    found = []
    for step in range(len(os.listdir(folder))):
        killed = folder / str(step) / model.name
        with Open(killed) as service:
            found.append(same(service.counts, new))
            assert found[-1] or same(service.counts, old)
            assert service.learner.learn(ROWS[:3], PLAY[:3], [0, 1, 2]).result(10).results == ["already learned"] * 3
            service.learner.learn([ROWS[5]], [PLAY[5]], ["more"]).result(10)
            again = copied(killed, tmp_path / f"again{step}")
        with opened(again) as durable:
            durable.upgrade(refitted(), frozenset({"1"}))
            assert same(durable.state.fitted.counts, counts_of(some(0, 2, 5), refitted()))
    assert found == sorted(found)
    assert found.count(False) > 5
    assert found.count(True) > 5


@pytest.fixture
def days_of_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two tables, the second of which has the rows of the first, and a model of the first."""
    monkeypatch.chdir(tmp_path)
    header = "number,sky,wind,degrees,play\n"
    lines = [f"{k},{row['sky'] or ''},{row['wind']},{row['degrees'] or ''},{PLAY[k]}\n" for k, row in enumerate(ROWS)]
    Path("first.csv").write_text(header + "".join(lines[:6]))
    Path("all.csv").write_text(header + "".join(lines))
    assert run(["fit", "first.csv", "-t", "play", "--ignore", "number", "--tune", "none", "-o", "m.dcb"]) == 0
    assert run(["fit", "all.csv", "-t", "play", "--ignore", "number", "--tune", "none", "-o", "new.dcb"]) == 0
    return tmp_path / "m.dcb"


def test_the_command_upgrades_a_service(days_of_play: Path, capfd: pytest.CaptureFixture[str], opened: Opened) -> None:
    rows = [{**ROWS[7], "sky": "snow"}, ROWS[6]]
    sent = {"rows": rows, "labels": ["no", PLAY[6]], "ids": ["new", 6]}
    upgrade = ["upgrade", "m.dcb", "new.dcb", "--history", "all.csv", "--id", "number"]
    assert run(upgrade) == 2
    assert "m.dcb: the model has no journal" in capfd.readouterr().err
    (journal := days_of_play.parent / "m.dcb.journal").touch()  # an empty one has no rows to add either
    assert run(upgrade) == 2
    assert "m.dcb: the model has no journal" in capfd.readouterr().err
    journal.unlink()
    with serving(days_of_play, "--learn") as address:
        assert [row["result"] for row in ask(f"{address}/learn", sent).json["rows"]] == ["learned", "learned"]
        assert run(upgrade) == 4
        assert "the model is in use by another process" in capfd.readouterr().err
    assert run(["fit", "all.csv", "-t", "play", "-o", "m.dcb"]) == 2
    assert "deciban upgrade" in capfd.readouterr().err
    assert run(["upgrade", "m.dcb", "new.dcb", "--history", "all.csv"]) == 2
    assert run([*upgrade[:-1], "nubmer"]) == 3
    assert "did you mean 'number'?" in capfd.readouterr().err
    assert run([*upgrade, "--json"]) == 0
    told = {"model": "m.dcb", "added": 1, "included": 1, "rows": 9}
    assert json.loads(capfd.readouterr().out) == told
    client = opened(days_of_play, learn=True)
    again = client.post("/learn", json=sent).json()["rows"]
    assert [row["result"] for row in again] == ["already learned", "already learned"]
    assert client.get("/model").json()["rows"] == 9


@pytest.mark.parametrize(
    ("learned_as", "settings", "said"),
    [
        ({"labels": ["no"], "weights": None}, {}, "the label 'yes' in the table and 'no' in the journal"),
        ({"labels": [PLAY[6]], "weights": [50.0]}, {}, "the weight 1 in the table and 50 in the journal"),
        (
            {"labels": [PLAY[6]], "weights": None},
            {"decay": 0.5, "decay_every": 1},
            "the weight 1 in the table and 0.25 in the journal",
        ),
    ],
)
def test_rows_that_the_table_has_otherwise_are_refused(
    days_of_play: Path,
    capfd: pytest.CaptureFixture[str],
    learned_as: dict[str, Any],
    settings: dict[str, Any],
    said: str,
) -> None:
    """To forget such a row later would remove what the new model has not counted."""
    with Open(days_of_play, **settings) as service:
        labels, weights = learned_as["labels"], learned_as["weights"]
        service.learner.learn([ROWS[6]], labels, [6], weights).result(10)
        if settings:
            service.learner.learn([ROWS[5]], [PLAY[5]], ["later"]).result(10)
    before = days_of_play.read_bytes()
    assert run(["upgrade", "m.dcb", "new.dcb", "--history", "all.csv", "--id", "number"]) == 3
    printed = capfd.readouterr().err
    assert "the row with the id '6' has" in printed
    assert said in printed
    assert days_of_play.read_bytes() == before


def test_ids_that_a_table_holds_as_floats_are_recognized(days_of_play: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Open(days_of_play) as service:
        service.learner.learn([ROWS[6]], [PLAY[6]], [6]).result(10)
    header, *lines = Path("all.csv").read_text().splitlines()
    floats = [re.sub(r"^(\d+),", r"\1.0,", line) for line in lines]
    Path("all.csv").write_text("\n".join([header, *floats, ""]))
    upgrade = ["upgrade", "m.dcb", "new.dcb", "--history", "all.csv", "--id", "number"]
    assert run(upgrade) == 0
    assert "0 rows of the journal added, 1 already in it" in capfd.readouterr().out
    Path("all.csv").write_text("\n".join([header, *(f"day {line}" for line in lines), ""]))
    assert run(upgrade) == 0
    assert "no id in column 'number' is one of the journal's" in capfd.readouterr().err


def test_rows_without_ids_are_not_lost_unasked(days_of_play: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Open(days_of_play, max_retained_rows=1) as service:
        service.learner.learn(ROWS[:4], PLAY[:4], [None, "a", "b", "c"]).result(10)
    before = days_of_play.read_bytes()
    assert run(["upgrade", "m.dcb", "new.dcb"]) == 2
    assert "3 rows learned without an id, or dropped from the journal, cannot be added" in capfd.readouterr().err
    assert days_of_play.read_bytes() == before
    for _ in range(2):  # after the first time there is nothing more to lose
        assert run(["upgrade", "m.dcb", "new.dcb", *(() if _ else ["--force"])]) == 0
        assert model_file.load("m.dcb").counts.rows == 9
