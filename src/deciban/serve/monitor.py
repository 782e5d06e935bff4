"""Monitoring of the rows that a service predicts, without making anyone wait.

Whoever answers a request hands over a reference to its rows and goes on. A thread works them off a few times a second,
many small tables as one, and takes a tenth of one core at most. If more rows come than that allows, some are left out
and are missing from the number of watched rows.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from deciban.decisions.shift import estimate_shares
from deciban.scoring.outliers import MISSING, UNSEEN, CellKinds, OutlierDetector
from deciban.serve.predictions import State
from deciban.tables.labels import LabelArray
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Floats

# Rows of a table that are looked at: the first.
MAX_ROWS_EXAMINED = 20_000

# A model that learns on line is another one with every row: densities and known values are those of a model that is at
# most so many seconds old.
RENEW_SECONDS = 60.0

# The prior is estimated from so many rows, the last ones, and so many numbers at most.
PRIOR_ROWS, PRIOR_NUMBERS = 10_000, 2_000_000

# Steps of expectation and maximization. Rows that tell the classes apart need some tens; those that hardly do would
# take seconds, and are left near the learned prior, from which the steps begin.
PRIOR_STEPS = 500


@dataclass(frozen=True)
class WaitingRows:
    """Rows that were predicted: the model, the table as it reads it, and the posterior, row by class."""

    model: str
    state: State
    table: Table
    posterior: Floats


@dataclass(frozen=True)
class Seen:
    """What was found in rows.

    by_class: how many were predicted to be of each class. missing, unseen: the cells without evidence, by the number of
    their column. judged: rows of which it is known whether they are outliers; outliers: those that are.
    """

    state: State
    rows: int
    by_class: Counter[object]
    missing: dict[int, int]
    unseen: dict[int, int]
    judged: int
    outliers: int


@dataclass(frozen=True)
class EstimatedNow:
    """The share of each class that the last rows show, and how many rows these are."""

    classes: LabelArray
    shares: Floats
    rows: int


class WatchedModel:
    """Looks at the rows of one model, and remembers the last ones."""

    def __init__(self, state: State) -> None:
        self._renew(state)
        self._window = _Window(state.fitted.classes)

    def _renew(self, state: State) -> None:
        self._state = state
        self._renewed = time.monotonic()
        self._kinds = CellKinds(state.fitted.plain)
        self._outliers = OutlierDetector(state.fitted)

    def look(self, waiting: Sequence[WaitingRows]) -> list[Seen]:
        """What is found in the rows, which are of this model, whatever it has learned between them."""
        newest = waiting[-1].state
        width = self._state.fitted.schema.width
        is_old = newest is not self._state and time.monotonic() - self._renewed >= RENEW_SECONDS
        if is_old or newest.fitted.schema.width != width:
            self._renew(newest)
        return [self._look(list(alike)) for _, alike in groupby(waiting, key=lambda rows: rows.table.width)]

    def _look(self, waiting: Sequence[WaitingRows]) -> Seen:
        by_class: Counter[object] = Counter()
        for _, alike in groupby(waiting, key=lambda rows: id(rows.state)):
            same = list(alike)
            posterior = np.concatenate([rows.posterior for rows in same])
            classes = same[0].state.fitted.classes
            number = np.bincount(posterior.argmax(axis=1), minlength=classes.size)
            by_class.update({label: int(rows) for label, rows in zip(classes.tolist(), number, strict=True) if rows})
            self._window = self._window.of(classes)
            self._window.add(posterior, np.exp(same[0].state.fitted.log_prior))
        missing: Counter[int] = Counter()
        unseen: Counter[int] = Counter()
        judged = outliers = 0
        for table in _joined([rows.table for rows in waiting]):
            if table.width != self._state.fitted.schema.width:
                continue  # rows of a model that has become another one since
            kinds = self._kinds.of(table)
            for found, kind in ((missing, MISSING), (unseen, UNSEEN)):
                number = (kinds == kind).sum(axis=0)
                found.update({int(column): int(number[column]) for column in np.flatnonzero(number)})
            if self._outliers.can_sample:
                counted = self._outliers.count(table, kinds)
                judged, outliers = judged + counted[0], outliers + counted[1]
        rows = sum(len(rows.posterior) for rows in waiting)
        return Seen(waiting[-1].state, rows, by_class, dict(missing), dict(unseen), judged, outliers)

    def estimate(self) -> EstimatedNow | None:
        """The prior that the last rows show; None where no row has come since the last estimate."""
        return self._window.estimate(np.exp(self._state.fitted.log_prior))


class _Window:
    """The last rows: how many times as probable each class made them as another, so that their prior can be estimated
    whatever prior the model had when they came."""

    def __init__(self, classes: LabelArray) -> None:
        self._classes = classes
        self._most = max(1, min(PRIOR_ROWS, PRIOR_NUMBERS // classes.size))
        self._parts: deque[Floats] = deque()
        self._rows = 0
        self._is_new = False

    def of(self, classes: LabelArray) -> "_Window":
        """This window, or an empty one if the classes are others."""
        same = classes is self._classes or np.array_equal(classes, self._classes)
        return self if same else _Window(classes)

    def add(self, posterior: Floats, prior: Floats) -> None:
        part = posterior[-self._most :]
        ratio = np.divide(part, prior, out=np.zeros_like(part), where=prior > 0.0)
        self._parts.append(ratio)
        self._rows += len(ratio)
        while self._rows - len(self._parts[0]) >= self._most:
            self._rows -= len(self._parts.popleft())
        self._is_new = True

    def estimate(self, prior: Floats) -> EstimatedNow | None:
        if not self._is_new or prior.size != self._classes.size:
            return None
        self._is_new = False
        ratio = np.concatenate(self._parts)[-self._most :]
        self._parts, self._rows = deque([ratio]), len(ratio)
        joint = ratio * prior
        total = joint.sum(axis=1, keepdims=True)
        posterior = np.divide(joint, total, out=np.broadcast_to(prior, joint.shape).copy(), where=total > 0.0)
        found = estimate_shares(posterior, prior, self._classes, 0.95, 0.0, PRIOR_STEPS)
        return EstimatedNow(self._classes, found.prior, len(ratio))


def _joined(tables: Sequence[Table]) -> list[Table]:
    """The first rows of the tables, as one table where they can be joined."""
    few, rows = [], 0
    for table in tables:
        if rows < MAX_ROWS_EXAMINED:
            few.append(table.slice(0, min(table.rows, MAX_ROWS_EXAMINED - rows)))
            rows += few[-1].rows
    frames = [table for table in few if isinstance(table, Frame)]
    if len(frames) < len(few) or len(few) == 1:
        return few
    try:
        joined = pa.concat_tables([frame.table for frame in frames], promote_options="permissive")
        return [Frame(joined.combine_chunks(), frames[0].named)]
    except pa.ArrowException:
        return few


# Tables and bytes that wait at most.
MAX_WAITING_TABLES, MAX_WAITING_BYTES = 4_000, 64 << 20

# Seconds between two rounds, and how many times as long as a round the thread then rests.
ROUND_SECONDS, RESTS_PER_ROUND = 0.25, 9

# Seconds between two estimates of the prior.
PRIOR_SECONDS = 15.0

log = logging.getLogger("deciban.serve")


class Reports(Protocol):
    """Whom the watch tells what it has found."""

    def rows_seen(self, model: str, seen: Seen) -> None:
        """Rows were looked at."""

    def prior_estimated(self, model: str, found: EstimatedNow) -> None:
        """The last rows show this prior."""


class Watch:
    """Looks at rows behind the back of those who wait for answers. `close` ends its thread."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._rows: deque[WaitingRows] = deque()
        self._waiting_bytes = 0
        self._models: dict[str, WatchedModel] = {}
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._round_lock = threading.Lock()
        self._closing = threading.Event()

    def add_rows(
        self, model: str, state: State, table: Table, posterior: Floats, body_bytes: int | None = None
    ) -> None:
        """Have rows looked at, unless too many wait. body_bytes: of the request that they came in; None: not known."""
        if len(self._rows) >= MAX_WAITING_TABLES or self._waiting_bytes > MAX_WAITING_BYTES:
            return
        if body_bytes is None:
            body_bytes = table.table.get_total_buffer_size() if isinstance(table, Frame) else 0
        # texts have about the bytes that they came in, whatever else has eight for each cell: asking a new table for
        # its size takes longer than all else here. Not exact where threads meet; each round begins anew.
        self._waiting_bytes += body_bytes + 8 * (posterior.size + len(posterior) * state.fitted.counts.schema.width)
        self._rows.append(WaitingRows(model, state, table, posterior))
        if self._thread is None:
            self._start()

    def settle(self) -> None:
        """Work off all that waits, now, and estimate the priors."""
        self._round()
        self._estimate()

    def close(self) -> None:
        """End the thread; what still waits is left out."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(10.0)

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="deciban-watch", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        rest, estimated = ROUND_SECONDS, -PRIOR_SECONDS
        while not self._closing.wait(rest):
            start = time.monotonic()
            self._round()
            if self._models and start - estimated >= PRIOR_SECONDS:
                estimated = start
                self._estimate()
            rest = max(ROUND_SECONDS, RESTS_PER_ROUND * (time.monotonic() - start))

    def _round(self) -> None:
        with self._round_lock:
            rows = [self._rows.popleft() for _ in range(len(self._rows))]
            self._waiting_bytes = 0
            for name in dict.fromkeys(one.model for one in rows):
                _despite_faults(self._look, name, [one for one in rows if one.model == name])

    def _look(self, name: str, rows: list[WaitingRows]) -> None:
        if name not in self._models:
            self._models[name] = WatchedModel(rows[-1].state)
        for seen in self._models[name].look(rows):
            self._reports.rows_seen(name, seen)

    def _estimate(self) -> None:
        with self._round_lock:
            for name, model in self._models.items():
                _despite_faults(self._estimate_one, name, model)

    def _estimate_one(self, name: str, model: WatchedModel) -> None:
        if (found := model.estimate()) is not None:
            self._reports.prior_estimated(name, found)


def _despite_faults(action: Callable[..., None], *arguments: Any) -> None:
    """A fault in what is measured is no reason to stop measuring, and none to stop answering."""
    try:
        action(*arguments)
    except Exception:
        log.exception("a fault while watching rows")
