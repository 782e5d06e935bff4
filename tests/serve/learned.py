"""A small model that learns on line, and what its counts should be."""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban.families import Categorical, Gaussian
from deciban.fitting import fit, update
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Settings
from deciban.serve.bodies.checks import LearnableRows, check_lengths, check_list, check_weights, parse_id
from deciban.serve.online.learner import Learner
from deciban.serve.predictions import State
from deciban.serve.problems import Problem
from deciban.serve.settings import LearnSettings
from deciban.store import model_file

COLUMNS = {"sky": Categorical(), "wind": Categorical(), "degrees": Gaussian()}
DAYS = {
    "sky": ["sun", "sun", "rain", "fog", "rain", "sun", None, "fog"],
    "wind": ["weak", "strong", "weak", "weak", "strong", "weak", "weak", "strong"],
    "degrees": [25.0, 20.0, 15.0, 11.0, 8.0, 27.0, 14.0, None],
}
PLAY = ["yes", "yes", "no", "no", "no", "yes", "yes", "no"]
ROWS = [dict(zip(DAYS, cells, strict=True)) for cells in zip(*DAYS.values(), strict=True)]


@cache
def base() -> Fitted:
    """A model of eight days."""
    settings = Settings(families=COLUMNS, tune=None, threads=1)
    return fit.fit(settings, pa.table(DAYS), PLAY)


def saved(folder: Path, fitted: Fitted | None = None) -> Path:
    """A model file."""
    path = folder / "model.dcb"
    model_file.save(path, base() if fitted is None else fitted)
    return path


def copied(model: Path, folder: Path) -> Path:
    """The model file and its journal as they are on the disk now, somewhere else: what a killed process leaves."""
    folder.mkdir()
    for end in ("", ".journal", ".journal-wal"):
        if Path(f"{model}{end}").exists():
            shutil.copy(f"{model}{end}", folder)
    return folder / model.name


class RowLearner(Learner):
    """A learner that is given what a request holds, which is checked as a body is; what is wrong is in the answer."""

    def learn(self, records: Any, labels: Any, ids: Any = None, weights: Any = None) -> "Future[Any]":  # type: ignore[override]
        return asked(lambda: Learner.learn(self, checked_rows(records, labels, ids, weights)))

    def learn_later(self, ids: list[Any], labels: list[Any]) -> "Future[Any]":
        rows = LearnableRows(None, labels, checked_ids(ids), [1.0] * len(ids))
        return Learner.learn(self, rows)

    def forget_ids(self, ids: list[Any]) -> "Future[Any]":
        return Learner.forget(self, LearnableRows(None, (), checked_ids(ids), ()))

    def forget_rows(self, records: Any, labels: Any, weights: Any = None) -> "Future[Any]":
        return asked(lambda: Learner.forget(self, checked_rows(records, labels, None, weights)))

    def add_pending(self, ids: Any, records: Any) -> "Future[None]":
        return Learner.add_pending(self, [str(one) for one in ids], records)


def checked_ids(ids: list[Any]) -> list[str | None]:
    return [None if one is None else parse_id(one, f"ids[{place}]") for place, one in enumerate(ids)]


def checked_rows(records: Any, labels: Any, ids: Any, weights: Any) -> LearnableRows:
    size = len(check_list(records, "rows"))
    names = [None] * size if ids is None else checked_ids(ids)
    amounts = [1.0] * size if weights is None else check_weights(weights)
    check_lengths({"ids": names, "labels": labels, "weights": amounts}, size)
    return LearnableRows(records, labels, names, amounts)


def asked(ask: Callable[[], "Future[Any]"]) -> "Future[Any]":
    try:
        return ask()
    except Problem as problem:
        failed: Future[Any] = Future()
        failed.set_exception(problem)
        return failed


class Open:
    """A learner, and the states that it has published."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.states: list[State] = []
        learner = RowLearner.open(path, LearnSettings(**settings), self.states.append)
        assert isinstance(learner, RowLearner)
        self.learner = learner
        while (
            self.learner._maintenance.busy
        ):  # with what a killed process may have left: copies of files are whole after it
            time.sleep(0.001)

    @property
    def counts(self) -> Counts:
        return self.states[-1].fitted.counts

    def __enter__(self) -> "Open":
        return self

    def __exit__(self, *problem: object) -> None:
        self.learner.close()


def counts_of(rows: list[tuple[dict[str, Any], str, float]], start: Fitted | None = None) -> Counts:
    """The counts of the model of eight days after (record, label, weight) of these rows, by another way."""
    fitted = base() if start is None else start
    if not rows:
        return fitted.counts
    table = pa.table({name: pa.array([record.get(name) for record, _, _ in rows]) for name in COLUMNS})
    return update.learn_more(fitted, table, [label for _, label, _ in rows], [weight for _, _, weight in rows]).counts


def same(one: Any, other: Any, tolerance: float = 0.0) -> bool:
    """Whether two counts are the same: sums of weights within a tolerance, and moments within 1e-9 or that."""
    if isinstance(one, Counts):
        facts = ("classes", "rows", "unlabeled", "class_weight", "statistics")
        return all(same(getattr(one, name), getattr(other, name), tolerance) for name in facts)
    if type(one).__name__ in ("Moments", "Scatter"):
        return all(
            np.allclose(a, b, rtol=max(1e-9, tolerance), atol=max(1e-9, tolerance))
            for a, b in zip(one.comparison_key(), other.comparison_key(), strict=True)
        )
    if isinstance(one, tuple):
        return len(one) == len(other) and all(same(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if isinstance(one, pa.Array):
        return bool(one.equals(other)) or (not len(one) and not len(other))
    if isinstance(one, np.ndarray) and one.dtype.kind == "f":
        return one.shape == other.shape and bool(np.allclose(one, other, rtol=tolerance, atol=tolerance))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name), tolerance) for f in fields(one))
    return bool(one == other)


def problem_of(answer: "Future[Any]") -> Problem:
    with pytest.raises(Problem) as caught:
        answer.result(10)
    return caught.value


def some(*places: int, label: str | None = None, weight: float = 1.0) -> list[tuple[dict[str, Any], str, float]]:
    return [(ROWS[k], label or PLAY[k], weight) for k in places]
