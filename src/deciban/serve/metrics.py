"""Metrics of a service for Prometheus, by its own client.

Metrics of models and of learning (ages, priors, journals, problems) are read from them when they are collected. With
several worker processes each writes its metrics to a folder that all of them read (`worker_metrics`), so that whichever
worker answers gives the metrics of all: counters and histograms are summed; the estimated prior is that of the worker
that estimated last; metrics of models and of learning are those of the worker that answers.

The number of labels is bounded: routes, columns and models are known beforehand, and columns and classes beyond the
first `MAX_LABELS` of a model are counted as "other" (`ClassLabels`).
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from deciban.serve.monitor import EstimatedNow, Seen, Watch
from deciban.serve.predictions import State
from deciban.serve.worker_metrics import FOLDER_VARIABLE
from deciban.tables.table import Table
from deciban.util.arrays import Floats
from deciban.util.text_tables import format_class, shorten

# Columns, and classes, of a model that are told one by one, the first; the rest together, as "other".
MAX_LABELS, REST_OF_LABELS = 200, "other"

# Characters of the name of a column or class.
MAX_LABEL_LENGTH = 100

# What is told of a learner: its name in `Learner.status`, the name of the figure, and what it is.
LEARNER_GAUGES = (
    ("sequence", "sequence", "Number of the last change that was learned on line"),
    ("unsaved", "unsaved_changes", "Changes that are in the journal and not yet in the model file"),
    ("waiting", "waiting_rows", "Rows that wait to be learned or forgotten"),
    ("journal_bytes", "journal_bytes", "Bytes of the journal on disk"),
    ("model_bytes", "model_bytes", "Bytes of the model file when it was last written"),
    ("rows_kept", "kept_rows", "Learned rows that are known by their ids"),
    ("pending", "pending_rows", "Predicted rows that are kept to be labeled later"),
    ("snapshot_age", "snapshot_age_seconds", "Seconds since the model file was last written"),
    ("rows_since_retune", "rows_since_retune", "Rows learned since the weights were last learned anew"),
)
LEARNER_COUNTERS = (
    ("snapshots", "snapshots", "How often the model file was written"),
    ("tunings", "tunings", "How often the weights were learned anew"),
    ("pending_lost", "pending_lost", "Predicted rows with ids that were to be kept and were not"),
)


class Learns(Protocol):
    """Who changes a model on line."""

    def status(self) -> Mapping[str, Any]:
        """Where learning stands."""


class Served(Protocol):
    """A model that is served. problem: why the file that is there now is not what is served; empty if it is."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> State | None: ...

    @property
    def problem(self) -> str | None: ...

    @property
    def learner(self) -> Learns | None: ...


def labels_of(names: Iterable[object]) -> list[str]:
    """The label of each column, by its place.

    >>> labels_of(["age", 3, "x" * 200])[:2], len(labels_of(["x" * 200])[0]), labels_of(map(str, range(500)))[499]
    (['age', '3'], 100, 'other')
    """
    return [
        shorten(format_class(name), MAX_LABEL_LENGTH) if place < MAX_LABELS else REST_OF_LABELS
        for place, name in enumerate(names)
    ]


class ClassLabels:
    """The labels of the classes of models: those of the first classes that were seen, which stay what they are when
    others come or go, so that no time series changes its meaning."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[object, str]] = {}
        self._lock = Lock()

    def of(self, model: str, classes: Sequence[object]) -> list[str]:
        """The label of each class of a model, by its place."""
        with self._lock:
            seen = self._seen.setdefault(model, {})
            for name in classes[: None if len(seen) < MAX_LABELS else 0]:
                if name not in seen and len(seen) < MAX_LABELS:
                    seen[name] = shorten(format_class(name), MAX_LABEL_LENGTH)
            return [seen.get(name, REST_OF_LABELS) for name in classes]


class OfModels(Collector):
    """The figures of models, read from them when they are collected."""

    def __init__(self, models: Iterable[Served], classes: ClassLabels) -> None:
        self._models = list(models)
        self._classes = classes

    def collect(self) -> Iterator[Metric]:
        yield from self._of_files()
        yield from self._of_states()
        yield from self._of_learners()

    def _of_files(self) -> Iterator[Metric]:
        failed = _gauge(
            "model_reload_failed", "1 if the model file that is there now could not be read, and an older one goes on"
        )
        for model in self._models:
            failed.add_metric([model.name], float(bool(model.problem)))
        yield failed

    def _of_states(self) -> Iterator[Metric]:
        age = _gauge("model_age_seconds", "Seconds since the model was read from its file")
        rows = _gauge("model_rows", "Rows that the model has learned, by their weight")
        prior = _gauge(
            "prior_learned_ratio", "Share of each class that the model expects: compare with the estimated", "class"
        )
        for model in self._models:
            if (state := model.state) is None:
                continue
            age.add_metric([model.name], max(0.0, time.time() - state.loaded))
            rows.add_metric([model.name], float(state.fitted.counts.class_weight.sum()))
            shares: dict[str, float] = {}
            labels = self._classes.of(model.name, state.fitted.classes.tolist())
            for label, share in zip(labels, np.exp(state.fitted.log_prior).tolist(), strict=True):
                shares[label] = shares.get(label, 0.0) + share
            for label, share in shares.items():
                prior.add_metric([model.name, label], share)
        yield from (age, rows, prior)

    def _of_learners(self) -> Iterator[Metric]:
        told = {model.name: model.learner.status() for model in self._models if model.learner is not None}
        for key, name, what in LEARNER_GAUGES:
            yield from _told(_gauge(f"learner_{name}", what), told, key)
        for key, name, what in LEARNER_COUNTERS:
            yield from _told(CounterMetricFamily(f"deciban_learner_{name}", what, labels=["model"]), told, key)
        problems = _gauge("learner_problems", "Problems of learning, which /health/ready names")
        for model, status in told.items():
            problems.add_metric([model], float(len(status.get("problems", ()))))
        if told:
            yield problems


def _told(
    family: GaugeMetricFamily | CounterMetricFamily, told: Mapping[str, Mapping[str, Any]], key: str
) -> Iterator[Metric]:
    for model, status in told.items():
        if isinstance(status.get(key), int | float):
            family.add_metric([model], float(status[key]))
    if family.samples:
        yield family


def _gauge(name: str, what: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"deciban_{name}", what, labels=["model", *labels])


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
            "rows_judged", "Rows watched of which it is known whether they are outliers", of_model
        )
        self._outliers = self._counter(
            "rows_strange",
            "Outliers: rows less probable than all but 1 in 1,000 drawn from the model; real rows have more of them, "
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
            self._child(self._outliers, model).inc(seen.outliers)

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
