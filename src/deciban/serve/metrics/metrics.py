"""The figures of a service for Prometheus, by its own client.

With several worker processes each writes its figures to a folder that all of them read (`worker_metrics`), so that
whichever worker answers tells the figures of all: counters and histograms are summed; the estimated prior is that of
the worker that estimated last, from the rows that it has seen itself; what is told of models and of learning is what
the worker that answers knows.

No request makes a new label without bound: routes, columns and models are known beforehand, and columns and classes
beyond the first `MOST_LABELS` of a model are counted as "other" (`ClassLabels`).
"""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from deciban.serve.metrics.model_metrics import ClassLabels, OfModels, Served, labels_of
from deciban.serve.metrics.watch import Watch
from deciban.serve.metrics.watched_model import EstimatedNow, Seen
from deciban.serve.metrics.worker_metrics import FOLDER_VARIABLE
from deciban.serve.state import State
from deciban.tables.table import Table
from deciban.util.arrays import Floats

# The bounds between which the times of requests are counted, in seconds.
REQUEST_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

# when a figure was first there, beside each figure, is what nobody asks for
disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no types


class Metrics:
    """What a service counts. All `observe_…` may be called from any thread and take a few microseconds."""

    # What `text` gives, for the header Content-Type.
    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._children: dict[tuple[Any, ...], Any] = {}
        self._watch = Watch(self)
        self._classes = ClassLabels()
        self._priors_told: dict[str, set[str]] = {}
        self._requests = Histogram(
            "deciban_request_duration_seconds",
            "How long requests took, from when their head was there until their answer was handed over",
            ["route", "status"],
            buckets=REQUEST_SECONDS,
            registry=self._registry,
        )
        self._cut = self._counter(
            "connections_cut", "Connections that were cut off, and heads that were refused", "reason"
        )
        of_model = "model"
        self._predicted = self._counter("rows_predicted", "Rows that were predicted or decided", of_model)
        self._watched = self._counter(
            "rows_watched", "Rows of these that the figures below are of; fewer when the service is busy", of_model
        )
        self._by_class = self._counter("rows_by_class", "Rows watched, by the class predicted", of_model, "class")
        self._missing = self._counter("cells_missing", "Cells of rows watched that were missing", of_model, "column")
        self._unseen = self._counter(
            "cells_unseen", "Cells of rows watched that held a value never seen in training", of_model, "column"
        )
        self._judged = self._counter(
            "rows_judged", "Rows watched of which it is known whether they are strangers", of_model
        )
        self._strange = self._counter(
            "rows_strange",
            "Strangers: rows less probable than all but 1 in 1,000 drawn from the model; real rows have more of them, "
            "so compare their share of deciban_rows_judged_total with what it was before",
            of_model,
        )
        self._prior = self._gauge(
            "prior_estimated_ratio", "Share of each class that the last rows watched show", "mostrecent", "class"
        )
        self._prior_rows = self._gauge("prior_estimated_rows", "Rows it was estimated from", "mostrecent")
        self._decisions = self._counter("decisions", "Decisions made", of_model)
        self._cost = self._gauge(
            "decisions_expected_cost",
            "Expected costs of all decisions together; divide by deciban_decisions_total for their mean",
            "sum",
        )

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"deciban_{name}", what, labels, registry=self._registry)

    def _gauge(self, name: str, what: str, together: Any, *labels: str) -> Gauge:
        """together: what becomes of the figures of several workers."""
        every = ("model", *labels)
        return Gauge(f"deciban_{name}", what, every, registry=self._registry, multiprocess_mode=together)

    def _child(self, metric: Any, *labels: str) -> Any:
        """The figure with these labels; finding it by prometheus_client itself takes longer."""
        key = (metric, labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    # what requests tell

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """A request was answered. route: one of a known set."""
        self._child(self._requests, route, str(status)).observe(seconds)

    def observe_cut(self, reason: str) -> None:
        """A connection was cut off, or what it said was no request. reason: one of a known set."""
        self._child(self._cut, reason).inc()

    def observe_rows(
        self, name: str, state: State, table: Table, posterior: Floats, body_bytes: int | None = None
    ) -> None:
        """Rows were predicted. table: as the model reads it; posterior: row by class. Neither is changed by anyone.

        body_bytes: of the request that they came in. Where it is not given the table is measured, which takes far
        longer than all else here: a microsecond for each column.
        """
        self._child(self._predicted, name).inc(len(posterior))
        self._watch.add_rows(name, state, table, posterior, body_bytes)

    def observe_decisions(self, name: str, risks: Floats) -> None:
        """Decisions were made. risks: the expected cost of each."""
        known = risks[np.isfinite(risks)]
        self._child(self._decisions, name).inc(known.size)
        self._child(self._cost, name).inc(float(known.sum()))

    # what the watch tells

    def rows_seen(self, model: str, seen: Seen) -> None:
        """Rows were looked at."""
        self._child(self._watched, model).inc(seen.rows)
        classes = seen.state.fitted.classes.tolist()
        known = dict(zip(classes, self._classes.of(model, classes), strict=True))
        for label, rows in seen.by_class.items():
            self._child(self._by_class, model, known.get(label, "other")).inc(rows)
        columns = labels_of(seen.state.fitted.schema.column_names)
        for metric, cells in ((self._missing, seen.missing), (self._unseen, seen.unseen)):
            for column, number in cells.items():
                self._child(metric, model, columns[column]).inc(number)
        if seen.judged:
            self._child(self._judged, model).inc(seen.judged)
            self._child(self._strange, model).inc(seen.strange)

    def prior_estimated(self, model: str, found: EstimatedNow) -> None:
        """The last rows show this prior."""
        shares: dict[str, float] = {}
        classes = self._classes.of(model, found.classes.tolist())
        for label, share in zip(classes, found.shares.tolist(), strict=True):
            shares[label] = shares.get(label, 0.0) + share
        for label in self._priors_told.get(model, set()) - shares.keys():
            self._child(self._prior, model, label).set(0.0)  # the class is gone; what workers share is not removed
            del self._children[self._prior, (model, label)]
            self._prior.remove(model, label)
        self._priors_told[model] = set(shares)
        for label, share in shares.items():
            self._child(self._prior, model, label).set(share)
        self._child(self._prior_rows, model).set(found.rows)

    # what Prometheus asks

    def text(self, models: Iterable[Served]) -> bytes:
        """All figures as Prometheus reads them. models: those that are served."""
        asked = CollectorRegistry()
        if FOLDER_VARIABLE in os.environ:
            MultiProcessCollector(asked)  # type: ignore[no-untyped-call]  # it has no types
        else:
            asked.register(self._registry)  # a registry has `collect`, which is all that is asked of a collector
        asked.register(OfModels(models, self._classes))
        return generate_latest(asked)

    def settle(self) -> None:
        """Look at all rows that wait, now: for whoever cannot wait for the thread."""
        self._watch.settle()

    def close(self) -> None:
        """End the thread that looks at rows."""
        self._watch.close()
