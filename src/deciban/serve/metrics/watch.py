"""What a service learns of the rows that it predicts, without making anyone wait.

Whoever answers a request hands over a reference to its rows and goes on. A thread works them off a few times a second,
many small tables as one, and takes a tenth of one core at most: where more rows come than that allows, some are left
out, and are missing from the number of rows that were watched.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from deciban.serve.metrics.watched_model import EstimatedNow, Seen, WaitingRows, WatchedModel
from deciban.serve.state import State
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Floats

# Tables and bytes that wait at most.
MOST_WAITING_TABLES, MOST_WAITING_BYTES = 4_000, 64 << 20

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
        if len(self._rows) >= MOST_WAITING_TABLES or self._waiting_bytes > MOST_WAITING_BYTES:
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
