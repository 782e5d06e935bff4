"""Monitoring of predicted rows in the background.

A request only hands over a reference to its rows. A thread processes them a few times per second, many small tables at
once, and uses at most a tenth of one core. Under higher load some rows are skipped, and are missing from the number of
monitored rows.
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
from deciban.model.model import choose_class
from deciban.scoring.outliers import MISSING, UNSEEN, CellKinds, OutlierDetector
from deciban.serve.predictions import State
from deciban.tables.labels import LabelArray
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Floats

# Rows examined per round; further rows only count as predicted.
MAX_ROWS_EXAMINED = 20_000

# Seconds after which densities and known values are derived again: with online learning, the model changes with every
# row.
RENEW_SECONDS = 60.0

# Number of recent rows from which the prior is estimated.
PRIOR_ROWS = 10_000

# Maximum number of values (rows times classes) kept for that, to bound memory.
PRIOR_NUMBERS = 2_000_000

# Steps of expectation maximization. Some tens are enough if rows separate the classes well. If they hardly do, it would
# take seconds; the estimate then stays near the prior of the model, from which the steps start.
PRIOR_STEPS = 500


@dataclass(frozen=True)
class QueuedRows:
    """Predicted rows: name and state of the model, the table as it reads it, and the posterior, row by class."""

    model: str
    state: State
    table: Table
    posterior: Floats


@dataclass(frozen=True)
class RowStatistics:
    """Statistics of monitored rows.

    by_class: number of rows per predicted class. missing, unseen: number of cells without evidence, by column index.
    checked: rows checked for being outliers; outliers: number of outliers among them.
    """

    state: State
    rows: int
    by_class: Counter[object]
    missing: dict[int, int]
    unseen: dict[int, int]
    checked: int
    outliers: int


@dataclass(frozen=True)
class EstimatedPrior:
    """Estimated share of each class among recent rows, and the number of these rows."""

    classes: LabelArray
    shares: Floats
    rows: int


class ModelMonitor:
    """Monitor of the rows of one model, with a window of recent rows."""

    def __init__(self, state: State) -> None:
        self._renew(state)
        self._window = _Window(state.fitted.classes)

    def _renew(self, state: State) -> None:
        self._state = state
        self._renewed = time.monotonic()
        self._kinds = CellKinds(state.fitted.plain)
        self._outliers = OutlierDetector(state.fitted)

    def examine(self, waiting: Sequence[QueuedRows]) -> list[RowStatistics]:
        """Return statistics of rows, which may come from several states of the model."""
        newest = waiting[-1].state
        width = self._state.fitted.schema.width
        is_old = newest is not self._state and time.monotonic() - self._renewed >= RENEW_SECONDS
        if is_old or newest.fitted.schema.width != width:
            self._renew(newest)
        return [self._examine(list(group)) for _, group in groupby(waiting, key=lambda rows: rows.table.width)]

    def _examine(self, waiting: Sequence[QueuedRows]) -> RowStatistics:
        by_class: Counter[object] = Counter()
        for _, group in groupby(waiting, key=lambda rows: id(rows.state)):
            same = list(group)
            posterior = np.concatenate([rows.posterior for rows in same])
            model = same[0].state.fitted.model
            classes = model.classes
            number = np.bincount(choose_class(posterior, model.order), minlength=classes.size)
            by_class.update({label: int(rows) for label, rows in zip(classes.tolist(), number, strict=True) if rows})
            self._window = self._window.of(classes)
            self._window.add(posterior, np.exp(same[0].state.fitted.log_prior))
        missing: Counter[int] = Counter()
        unseen: Counter[int] = Counter()
        checked = outliers = 0
        for table in _join_tables([rows.table for rows in waiting]):
            if table.width != self._state.fitted.schema.width:
                continue  # the model has been replaced since
            kinds = self._kinds.of(table)
            for found, kind in ((missing, MISSING), (unseen, UNSEEN)):
                number = (kinds == kind).sum(axis=0)
                found.update({int(column): int(number[column]) for column in np.flatnonzero(number)})
            if self._outliers.can_sample:
                counted = self._outliers.count(table, kinds)
                checked, outliers = checked + counted[0], outliers + counted[1]
        rows = sum(len(rows.posterior) for rows in waiting)
        return RowStatistics(waiting[-1].state, rows, by_class, dict(missing), dict(unseen), checked, outliers)

    def estimate(self) -> EstimatedPrior | None:
        """Return the prior of recent rows; None without new rows since the last estimate."""
        return self._window.estimate(np.exp(self._state.fitted.log_prior))


class _Window:
    """Likelihood ratios of recent rows.

    They allow estimating the prior of these rows, whatever prior the model had when they arrived.
    """

    def __init__(self, classes: LabelArray) -> None:
        self._classes = classes
        self._max_rows = max(1, min(PRIOR_ROWS, PRIOR_NUMBERS // classes.size))
        self._parts: deque[Floats] = deque()
        self._rows = 0
        self._is_new = False

    def of(self, classes: LabelArray) -> "_Window":
        """Return this window, or an empty one if the classes have changed."""
        same = classes is self._classes or np.array_equal(classes, self._classes)
        return self if same else _Window(classes)

    def add(self, posterior: Floats, prior: Floats) -> None:
        if not len(posterior):
            return
        part = posterior[-self._max_rows :]
        ratio = np.divide(part, prior, out=np.zeros_like(part), where=prior > 0.0)
        self._parts.append(ratio)
        self._rows += len(ratio)
        while self._rows - len(self._parts[0]) >= self._max_rows:
            self._rows -= len(self._parts.popleft())
        self._is_new = True

    def estimate(self, prior: Floats) -> EstimatedPrior | None:
        if not self._is_new or prior.size != self._classes.size:
            return None
        self._is_new = False
        ratio = np.concatenate(self._parts)[-self._max_rows :]
        self._parts, self._rows = deque([ratio]), len(ratio)
        joint = ratio * prior
        total = joint.sum(axis=1, keepdims=True)
        posterior = np.divide(joint, total, out=np.broadcast_to(prior, joint.shape).copy(), where=total > 0.0)
        found = estimate_shares(posterior, prior, self._classes, 0.95, 0.0, PRIOR_STEPS)
        return EstimatedPrior(self._classes, found.prior, len(ratio))


def _join_tables(tables: Sequence[Table]) -> list[Table]:
    """Return the first rows of the tables, joined into one table if possible."""
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


# Maximum number of queued tables, to bound the length of a round.
MAX_QUEUED_TABLES = 4_000

# Maximum size of queued tables, to bound memory.
MAX_QUEUED_BYTES = 64 << 20

# Minimum seconds between two rounds, so that small requests are processed together.
ROUND_SECONDS = 0.25

# Pause after a round, in multiples of its duration: the thread uses at most a tenth of a core.
RESTS_PER_ROUND = 9

# Seconds between two estimates of the prior.
PRIOR_SECONDS = 15.0

log = logging.getLogger("deciban.serve")


class MonitorListener(Protocol):
    """Receiver of monitoring results."""

    def on_rows(self, model: str, found: RowStatistics) -> None:
        """Handle statistics of monitored rows."""

    def on_prior(self, model: str, found: EstimatedPrior) -> None:
        """Handle a new estimate of the prior."""


class Monitor:
    """Background monitor of predicted rows. `close` stops its thread."""

    def __init__(self, listener: MonitorListener) -> None:
        self._listener = listener
        self._rows: deque[QueuedRows] = deque()
        self._queued_bytes = 0
        self._models: dict[str, ModelMonitor] = {}
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._round_lock = threading.Lock()
        self._closing = threading.Event()

    def add_rows(
        self, model: str, state: State, table: Table, posterior: Floats, body_bytes: int | None = None
    ) -> None:
        """Queue rows, unless too many are waiting. body_bytes: size of the request body; None: unknown."""
        if len(self._rows) >= MAX_QUEUED_TABLES or self._queued_bytes > MAX_QUEUED_BYTES:
            return
        if body_bytes is None:
            body_bytes = table.table.get_total_buffer_size() if isinstance(table, Frame) else 0
        # estimate: text takes about its size in the body, other cells eight bytes. Measuring a new table takes longer
        # than all else here. Races between threads are harmless, since each round resets the total.
        self._queued_bytes += body_bytes + 8 * (posterior.size + len(posterior) * state.fitted.counts.schema.width)
        self._rows.append(QueuedRows(model, state, table, posterior))
        if self._thread is None:
            self._start()

    def flush(self) -> None:
        """Process all queued rows now, and estimate the priors."""
        self._round()
        self._estimate()

    def close(self) -> None:
        """Stop the thread; queued rows are skipped."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(10.0)

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="deciban-monitor", daemon=True)
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
            self._queued_bytes = 0
            for name in dict.fromkeys(queued.model for queued in rows):
                _run_safely(self._examine, name, [queued for queued in rows if queued.model == name])

    def _examine(self, name: str, rows: list[QueuedRows]) -> None:
        if name not in self._models:
            self._models[name] = ModelMonitor(rows[-1].state)
        for found in self._models[name].examine(rows):
            self._listener.on_rows(name, found)

    def _estimate(self) -> None:
        with self._round_lock:
            for name, model in self._models.items():
                _run_safely(self._estimate_one, name, model)

    def _estimate_one(self, name: str, model: ModelMonitor) -> None:
        if (found := model.estimate()) is not None:
            self._listener.on_prior(name, found)


def _run_safely(action: Callable[..., None], *arguments: Any) -> None:
    """Run an action and log its errors: a failure must stop neither monitoring nor the service."""
    try:
        action(*arguments)
    except Exception:
        log.exception("internal error while monitoring rows")
