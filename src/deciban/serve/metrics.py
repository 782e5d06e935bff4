"""Prometheus metrics of a service.

Metrics of models and learners (ages, priors, journals, problems) are read when they are collected. With several worker
processes, each writes its metrics to a shared folder (`worker_metrics`), so any worker can report for all of them:
counters and histograms are summed; the estimated prior comes from the worker that estimated last; metrics of models and
learners come from the worker that responds.

The number of time series is bounded: routes, columns and models are known beforehand, and columns and classes beyond
the first `MAX_LABELS` of a model are counted as "other" (`MetricLabels`).
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

from deciban.serve.monitor import EstimatedPrior, Monitor, RowStatistics
from deciban.serve.predictions import State
from deciban.serve.worker_metrics import FOLDER_VARIABLE
from deciban.tables.table import Table
from deciban.util.arrays import Floats
from deciban.util.text_tables import format_class, shorten

# Columns and classes of a model with a label of their own; the others share one label.
MAX_LABELS = 200

# Label of the columns and classes beyond the first `MAX_LABELS`.
REST_OF_LABELS = "other"

# Characters in the label of a column or class; longer names are truncated.
MAX_LABEL_LENGTH = 100

# Gauges of a learner: (key in `Learner.status`, description).
LEARNER_GAUGES = (
    ("sequence", "Sequence number of the last online change"),
    ("unsaved_changes", "Changes in the journal that are not yet in the model file"),
    ("queued_rows", "Rows waiting to be learned or forgotten"),
    ("journal_bytes", "Size of the journal on disk"),
    ("model_bytes", "Size of the model file when it was last written"),
    ("retained_rows", "Learned rows retained by id"),
    ("pending_rows", "Predicted rows retained until they are labeled"),
    ("snapshot_age_seconds", "Time since the model file was last written"),
    ("rows_since_retune", "Rows learned since the evidence weights were last tuned"),
)

# Counters of a learner, in the same form.
LEARNER_COUNTERS = (
    ("snapshots", "Model files written"),
    ("retunes", "Online retunes of the evidence weights"),
    ("dropped_pending_rows", "Predicted rows with ids that could not be retained for labeling"),
)


class LearnerStatus(Protocol):
    """Online learner of a model."""

    def status(self) -> Mapping[str, Any]:
        """Return the state of the learner by metric name."""


class Served(Protocol):
    """Served model. problem: why the current file is not the served model; empty if it is."""

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> State | None: ...

    @property
    def problem(self) -> str | None: ...

    @property
    def learner(self) -> LearnerStatus | None: ...


def column_labels(names: Iterable[object]) -> list[str]:
    """Return the label of each column, in order.

    >>> column_labels(["age", 3]), len(column_labels(["x" * 200])[0]), column_labels(map(str, range(500)))[499]
    (['age', '3'], 100, 'other')
    """
    return [
        shorten(format_class(name), MAX_LABEL_LENGTH) if place < MAX_LABELS else REST_OF_LABELS
        for place, name in enumerate(names)
    ]


class MetricLabels:
    """Labels of the classes of each model.

    The first `MAX_LABELS` classes keep their labels when other classes come or go, so no time series changes meaning.
    """

    def __init__(self) -> None:
        self._seen: dict[str, dict[object, str]] = {}
        self._lock = Lock()

    def of(self, model: str, classes: Sequence[object]) -> list[str]:
        """Return the label of each class of a model, in order."""
        with self._lock:
            found = self._seen.setdefault(model, {})
            for name in classes[: None if len(found) < MAX_LABELS else 0]:
                if name not in found and len(found) < MAX_LABELS:
                    found[name] = shorten(format_class(name), MAX_LABEL_LENGTH)
            return [found.get(name, REST_OF_LABELS) for name in classes]


class ModelCollector(Collector):
    """Collector of metrics that are read from the models on demand."""

    def __init__(self, models: Iterable[Served], classes: MetricLabels) -> None:
        self._models = list(models)
        self._classes = classes

    def collect(self) -> Iterator[Metric]:
        yield from self._collect_files()
        yield from self._collect_states()
        yield from self._collect_learners()

    def _collect_files(self) -> Iterator[Metric]:
        failed = _gauge(
            "model_reload_failed", "1 if the current model file cannot be loaded and an older model is served"
        )
        for model in self._models:
            failed.add_metric([model.name], float(bool(model.problem)))
        yield failed

    def _collect_states(self) -> Iterator[Metric]:
        age = _gauge("model_age_seconds", "Time since the model was loaded")
        rows = _gauge("model_rows", "Training rows of the model, by weight")
        prior = _gauge(
            "model_prior_ratio", "Prior of each class in the model; compare with deciban_estimated_prior_ratio", "class"
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

    def _collect_learners(self) -> Iterator[Metric]:
        statuses = {model.name: model.learner.status() for model in self._models if model.learner is not None}
        for key, help_text in LEARNER_GAUGES:
            yield from _collect_status(_gauge(f"learner_{key}", help_text), statuses, key)
        for key, help_text in LEARNER_COUNTERS:
            family = CounterMetricFamily(f"deciban_learner_{key}", help_text, labels=["model"])
            yield from _collect_status(family, statuses, key)
        problems = _gauge("learner_problems", "Current problems of the learner, listed in /health/ready")
        for model, status in statuses.items():
            problems.add_metric([model], float(len(status.get("problems", ()))))
        if statuses:
            yield problems


def _collect_status(
    family: GaugeMetricFamily | CounterMetricFamily, statuses: Mapping[str, Mapping[str, Any]], key: str
) -> Iterator[Metric]:
    """Yield the family if any learner reports this key."""
    for model, status in statuses.items():
        if isinstance(status.get(key), int | float):
            family.add_metric([model], float(status[key]))
    if family.samples:
        yield family


def _gauge(name: str, help_text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"deciban_{name}", help_text, labels=["model", *labels])


# Buckets of the histogram of request durations, in seconds.
REQUEST_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

# omit the time at which each metric was created: it would double the number of time series
disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no types


class Metrics:
    """Metrics of a service. All `observe_…` methods are thread-safe and take a few microseconds."""

    # Content type of what `text` returns.
    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._children: dict[tuple[Any, ...], Any] = {}
        self._monitor = Monitor(self)
        self._classes = MetricLabels()
        self._prior_labels: dict[str, set[str]] = {}
        self._requests = Histogram(
            "deciban_request_duration_seconds",
            "Time from the last header of a request until its response was handed over",
            ["route", "status"],
            buckets=REQUEST_SECONDS,
            registry=self._registry,
        )
        self._dropped = self._counter("connections_dropped", "Connections dropped and request heads rejected", "reason")
        per_model = "model"
        self._predicted = self._counter("predicted_rows", "Rows predicted or decided", per_model)
        self._monitored = self._counter(
            "monitored_rows", "Predicted rows included in the metrics below; fewer than all under load", per_model
        )
        self._by_class = self._counter("monitored_predictions", "Monitored rows by predicted class", per_model, "class")
        self._missing = self._counter("missing_cells", "Missing cells in monitored rows", per_model, "column")
        self._unseen = self._counter(
            "unseen_cells", "Cells in monitored rows with a value not seen in training", per_model, "column"
        )
        self._checked = self._counter("outlier_checked_rows", "Monitored rows checked for being outliers", per_model)
        self._outliers = self._counter(
            "outlier_rows",
            "Outliers: rows less likely than 99.9% of rows drawn from the model. Compare their share of "
            "deciban_outlier_checked_rows_total with its usual value",
            per_model,
        )
        self._prior = self._gauge(
            "estimated_prior_ratio", "Share of each class estimated from recent rows", "mostrecent", "class"
        )
        self._prior_rows = self._gauge("estimated_prior_rows", "Rows used to estimate the prior", "mostrecent")
        self._decisions = self._counter("decisions", "Decisions made", per_model)
        self._cost = self._gauge(
            "decisions_expected_cost",
            "Sum of the expected costs of all decisions; divide by deciban_decisions_total for the mean",
            "sum",
        )

    def _counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"deciban_{name}", help_text, labels, registry=self._registry)

    def _gauge(self, name: str, help_text: str, mode: Any, *labels: str) -> Gauge:
        """Return a new gauge. mode: how the values of several workers are combined."""
        names = ("model", *labels)
        return Gauge(f"deciban_{name}", help_text, names, registry=self._registry, multiprocess_mode=mode)

    def _child(self, metric: Any, *labels: str) -> Any:
        """Return the child of a metric with these labels, from a cache faster than that of prometheus_client."""
        key = (metric, labels)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = metric.labels(*labels)
        return child

    # called for requests

    def observe_request(self, route: str, status: int, seconds: float) -> None:
        """Count a finished request. route: one of a fixed set."""
        self._child(self._requests, route, str(status)).observe(seconds)

    def observe_drop(self, reason: str) -> None:
        """Count a dropped connection or a malformed request. reason: one of a fixed set."""
        self._child(self._dropped, reason).inc()

    def observe_rows(
        self, name: str, state: State, table: Table, posterior: Floats, body_bytes: int | None = None
    ) -> None:
        """Count predicted rows and hand them to the monitor.

        table: the rows as the model reads them; posterior: row by class. Neither may be changed afterwards.
        body_bytes: size of the request body. Without it the table is measured, which takes far longer than the rest: a
        microsecond per column.
        """
        self._child(self._predicted, name).inc(len(posterior))
        self._monitor.add_rows(name, state, table, posterior, body_bytes)

    def observe_decisions(self, name: str, risks: Floats) -> None:
        """Count decisions. risks: the expected cost of each."""
        known = risks[np.isfinite(risks)]
        self._child(self._decisions, name).inc(known.size)
        self._child(self._cost, name).inc(float(known.sum()))

    # called by the monitor

    def on_rows(self, model: str, found: RowStatistics) -> None:
        """Count what was found in monitored rows."""
        self._child(self._monitored, model).inc(found.rows)
        classes = found.state.fitted.classes.tolist()
        known = dict(zip(classes, self._classes.of(model, classes), strict=True))
        for label, rows in found.by_class.items():
            self._child(self._by_class, model, known.get(label, "other")).inc(rows)
        columns = column_labels(found.state.fitted.schema.column_names)
        for metric, cells in ((self._missing, found.missing), (self._unseen, found.unseen)):
            for column, number in cells.items():
                self._child(metric, model, columns[column]).inc(number)
        if found.checked:
            self._child(self._checked, model).inc(found.checked)
            self._child(self._outliers, model).inc(found.outliers)

    def on_prior(self, model: str, found: EstimatedPrior) -> None:
        """Set the prior estimated from recent rows."""
        shares: dict[str, float] = {}
        classes = self._classes.of(model, found.classes.tolist())
        for label, share in zip(classes, found.shares.tolist(), strict=True):
            shares[label] = shares.get(label, 0.0) + share
        for label in self._prior_labels.get(model, set()) - shares.keys():
            self._child(self._prior, model, label).set(
                0.0
            )  # the class is gone; values shared by workers cannot be removed
            del self._children[self._prior, (model, label)]
            self._prior.remove(model, label)
        self._prior_labels[model] = set(shares)
        for label, share in shares.items():
            self._child(self._prior, model, label).set(share)
        self._child(self._prior_rows, model).set(found.rows)

    # called by the endpoint

    def text(self, models: Iterable[Served]) -> bytes:
        """Return all metrics in the text format of Prometheus. models: the served models."""
        registry = CollectorRegistry()
        if FOLDER_VARIABLE in os.environ:
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # it has no types
        else:
            registry.register(self._registry)  # a registry has `collect`, so it serves as a collector
        registry.register(ModelCollector(models, self._classes))
        return generate_latest(registry)

    def flush(self) -> None:
        """Process all waiting rows now, without waiting for the thread."""
        self._monitor.flush()

    def close(self) -> None:
        """Stop the monitoring thread."""
        self._monitor.close()
