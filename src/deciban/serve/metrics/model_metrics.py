"""Figures of models and of learning as they are when they are asked for: ages, priors, journals, problems."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

import numpy as np
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from deciban.serve.state import State
from deciban.util.text_tables import class_name, shortened

# Columns, and classes, of a model that are told one by one, the first; the rest together, as "other".
MOST_LABELS, REST_OF_LABELS = 200, "other"

# Characters of the name of a column or class.
LONGEST_LABEL = 100

# What is told of a learner: its name in `Learner.status`, the name of the figure, and what it is.
LEARNER_GAUGES = (
    ("sequence", "sequence", "Number of the last change that was learned on line"),
    ("unsaved", "unsaved_changes", "Changes that are in the journal and not yet in the model file"),
    ("waiting", "waiting_rows", "Rows that wait to be learned or forgotten"),
    ("journal_bytes", "journal_bytes", "Bytes of the journal on disk"),
    ("model_bytes", "model_bytes", "Bytes of the model file when it was last written"),
    ("rows_kept", "kept_rows", "Learned rows that are known by their ids"),
    ("pending", "pending_rows", "Predicted rows that are kept to be labelled later"),
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
        shortened(class_name(name), LONGEST_LABEL) if place < MOST_LABELS else REST_OF_LABELS
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
            for name in classes[: None if len(seen) < MOST_LABELS else 0]:
                if name not in seen and len(seen) < MOST_LABELS:
                    seen[name] = shortened(class_name(name), LONGEST_LABEL)
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
