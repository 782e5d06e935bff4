"""Descriptions of a served model: JSON for programs, web pages and the report."""

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.decisions.loss import Loss
from deciban.errors import DecibanError
from deciban.export.lower import READ_AS
from deciban.export.model_json import model_as_json
from deciban.model.fitted import Fitted
from deciban.page.build import render_folder_page, render_page
from deciban.report.data import ReportData, collect_report_data
from deciban.report.form import form_data
from deciban.report.report import render_sections
from deciban.serve.predictions import Predictor
from deciban.serve.service import ServedModel
from deciban.tables.cells import kind_of
from deciban.util.text_tables import to_json

# Maximum number of levels listed per column.
MAX_LEVELS_SHOWN = 1_000


def describe_model(served: ServedModel, predictor: Predictor) -> dict[str, Any]:
    """Return the description of a model: classes, columns, tuning, learning and age."""
    state = predictor.state
    fitted = state.fitted
    return {
        "model": state.version,
        "version": state.version,
        "name": served.name,
        "target": fitted.origin.target,
        "about": fitted.about.to_dict(),
        "rows": _whole(float(fitted.counts.class_weight.sum())),
        "classes": describe_classes(predictor),
        "columns": describe_columns(fitted),
        "tuning": describe_tuning(fitted),
        "learning": None if served.learner is None else to_json(served.learner.status()),
        "loaded_at": datetime.fromtimestamp(state.loaded, UTC).isoformat(timespec="seconds"),
        "age_seconds": max(0.0, time.time() - state.loaded),
    }


def describe_classes(predictor: Predictor) -> list[dict[str, Any]]:
    """Return each class with the weight of its rows and its prior."""
    fitted = predictor.state.fitted
    weights, priors = fitted.counts.class_weight.tolist(), np.exp(fitted.model.log_prior).tolist()
    triples = zip(predictor.labels, weights, priors, strict=True)
    return [{"class": label, "rows": _whole(weight), "prior": prior} for label, weight, prior in triples]


def _whole(weight: float) -> float:
    """Return a weight as an integer if it is one."""
    return int(weight) if weight.is_integer() else weight


def describe_columns(fitted: Fitted) -> list[dict[str, Any]]:
    """Return each column with its name, type, family, the reason for the family, kind and levels."""
    schema = fitted.schema
    types = schema.types or ("double",) * schema.width
    kinds, levels = kinds_and_levels(fitted)
    entries = []
    for column, (name, family, why) in enumerate(schema.descriptions()[: schema.width]):
        entry: dict[str, Any] = {"name": name, "type": types[column], "family": family, "why": why}
        entry["kind"] = kinds.get(column, "unused")
        if column in levels:
            known = levels[column]
            entry["levels"] = [to_json(level) for level in known.slice(0, MAX_LEVELS_SHOWN).to_pylist()]
            entry["level_count"] = len(known)
        entries.append(entry)
    return entries


def kinds_and_levels(fitted: Fitted) -> tuple[dict[int, str], dict[int, pa.Array]]:
    """Return the kind of input of each modeled column, and the known values of categorical columns."""
    model = fitted.plain
    types = model.schema.types or ("double",) * model.schema.width
    kinds: dict[int, str] = {}
    levels: dict[int, pa.Array] = {}
    for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
        known = likelihood.list_known_values()
        for place, column in enumerate(group.columns):
            read_as = READ_AS.get(kind_of(types[column]), "number")
            kinds[column] = "text" if group.family.is_text else read_as if read_as in ("date", "time") else "number"
            if known is not None:
                levels[column] = known[place]
                if kinds[column] == "number":
                    kinds[column] = "yes/no" if pa.types.is_boolean(known[place].type) else "category"
            elif read_as == "flag":
                kinds[column] = "yes/no"
    return kinds, levels


def describe_tuning(fitted: Fitted) -> dict[str, Any]:
    """Return the state of the tuning: on how many rows it was done, and whether counts have changed since."""
    tuning = fitted.tuning
    if tuning is None:
        return {"tuned": False, "rows": 0, "stale": False, "accuracy": None, "log_loss": None, "note": ""}
    return {
        "tuned": fitted.is_tuned,
        "rows": tuning.rows,
        "stale": fitted.is_tuned and tuning.stale,
        "accuracy": tuning.accuracy,
        "log_loss": tuning.log_loss,
        "note": tuning.note,
    }


# Note in the report instead of metrics that need rows.
KEEPS_NO_ROWS = (
    "The service has no rows to evaluate the model on. Run deciban evaluate MODEL TABLE for metrics, or deciban report "
    "MODEL TABLE for the full report."
)


@lru_cache(maxsize=256)
def model_page(name: str) -> tuple[str, str]:
    """Return the page of a model, which loads its data by requests, and its Content-Security-Policy."""
    return render_page(None, service=True, title=name)


@lru_cache(maxsize=1)
def folder_page() -> tuple[str, str]:
    """Return the page that lists the models of a folder, and its Content-Security-Policy."""
    return render_folder_page("Models")


def report_fragment(predictor: Predictor, title: str, loss: Loss | None) -> str:
    """Return the sections of the report of a model, computed from its counts only."""
    return str(render_sections(_report_data(predictor, title, loss)))


def form_json(predictor: Predictor, title: str, loss: Loss | None) -> dict[str, Any]:
    """Return the data for the input form of the page, and whether the page can score rows itself."""
    try:
        model_as_json(predictor.state.fitted)
    except DecibanError:
        exportable = False
    else:
        exportable = True
    data: dict[str, Any] = to_json(form_data(_report_data(predictor, title, loss), scorer=exportable))
    return data


def _report_data(predictor: Predictor, title: str, loss: Loss | None) -> ReportData:
    return collect_report_data(predictor.state.fitted, title, loss=loss, keeps_no_rows=KEEPS_NO_ROWS)
