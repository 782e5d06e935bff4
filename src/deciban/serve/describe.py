"""Descriptions of a served model: for programs (classes, columns, tuning, age), and its pages and report."""

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
from deciban.serve.predictions import Reader
from deciban.serve.service import ServedModel
from deciban.tables.cells import kind_of
from deciban.util.text_tables import to_json

# The most levels of a column that are told.
MAX_LEVELS_SHOWN = 1_000


def described_model(served: ServedModel, reader: Reader) -> dict[str, Any]:
    """All that is told of a model."""
    state = reader.state
    fitted = state.fitted
    return {
        "model": state.version,
        "version": state.version,
        "name": served.name,
        "target": fitted.origin.target,
        "rows": _whole(float(fitted.counts.class_weight.sum())),
        "classes": described_classes(reader),
        "columns": described_columns(fitted),
        "tuning": described_tuning(fitted),
        "learning": None if served.learner is None else to_json(served.learner.status()),
        "loaded_at": datetime.fromtimestamp(state.loaded, UTC).isoformat(timespec="seconds"),
        "age_seconds": max(0.0, time.time() - state.loaded),
    }


def described_classes(reader: Reader) -> list[dict[str, Any]]:
    """Each class, the weight of its rows and its prior."""
    fitted = reader.state.fitted
    weights, priors = fitted.counts.class_weight.tolist(), np.exp(fitted.model.log_prior).tolist()
    triples = zip(reader.labels, weights, priors, strict=True)
    return [{"class": label, "rows": _whole(weight), "prior": prior} for label, weight, prior in triples]


def _whole(weight: float) -> float:
    """A weight of rows, as a whole number if it is one."""
    return int(weight) if weight.is_integer() else weight


def described_columns(fitted: Fitted) -> list[dict[str, Any]]:
    """Each column: its name, the type it was learned with, its family and why, what it is to people, its levels."""
    schema = fitted.schema
    types = schema.types or ("double",) * schema.width
    kinds, levels = kinds_and_levels(fitted)
    found = []
    for column, (name, family, why) in enumerate(schema.descriptions()[: schema.width]):
        one: dict[str, Any] = {"name": name, "type": types[column], "family": family, "why": why}
        one["kind"] = kinds.get(column, "unused")
        if column in levels:
            known = levels[column]
            one["levels"] = [to_json(level) for level in known.slice(0, MAX_LEVELS_SHOWN).to_pylist()]
            one["level_count"] = len(known)
        found.append(one)
    return found


def kinds_and_levels(fitted: Fitted) -> tuple[dict[int, str], dict[int, pa.Array]]:
    """What people enter in each column that has a family, and the values that each column of categories has had."""
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


def described_tuning(fitted: Fitted) -> dict[str, Any]:
    """Whether weights were learned, from how many rows, and whether the counts have changed since."""
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


# What is told in place of figures that need rows.
KEEPS_NO_ROWS = (
    "The service keeps no rows to judge the model by: deciban evaluate MODEL ROWS tells how good its predictions are, "
    "and deciban report MODEL ROWS has all figures."
)


@lru_cache(maxsize=256)
def model_page(name: str) -> tuple[str, str]:
    """The page of a model, which asks for all that changes, and its Content-Security-Policy."""
    return render_page(None, service=True, title=name)


@lru_cache(maxsize=1)
def folder_page() -> tuple[str, str]:
    """The page of a folder, which asks for the names of its models, and its Content-Security-Policy."""
    return render_folder_page("Models")


def report_fragment(reader: Reader, title: str, loss: Loss | None) -> str:
    """The sections of the report of a model, from its counts alone."""
    return str(render_sections(_figures(reader, title, loss)))


def form_of(reader: Reader, title: str, loss: Loss | None) -> dict[str, Any]:
    """What the page needs to make its form of, and whether it can score rows by itself."""
    try:
        model_as_json(reader.state.fitted)
    except DecibanError:
        exportable = False
    else:
        exportable = True
    found: dict[str, Any] = to_json(form_data(_figures(reader, title, loss), scorer=exportable))
    return found


def _figures(reader: Reader, title: str, loss: Loss | None) -> ReportData:
    return collect_report_data(reader.state.fitted, title, loss=loss, keeps_no_rows=KEEPS_NO_ROWS)
