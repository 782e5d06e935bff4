"""A model as JSON, for programs without deciban: the one home of its format."""

from typing import Any

import numpy as np

from deciban.export.characters import accents, letters, small_letters, spaces
from deciban.export.columns import columns_as_json
from deciban.export.encoding import amounts, fixed, floats, integers, number
from deciban.export.level_sets import LARGEST_EXACT, LevelSets
from deciban.export.likelihoods import Group, likelihood_as_json
from deciban.model.corrections import Corrections, PartialRows
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.schema.schema import Schema
from deciban.tables.labels import LabelArray

# The name and version of the format; a scorer refuses a version that it does not know.
JSON_FORMAT, JSON_VERSION = "deciban model", 1

# By how much the sum of all corrections may err, in nats; in a model that is to be small, and by what share of the
# largest the weights of their cells may, by which they are shared out among columns.
CORRECTIONS_ERROR = 4e-13
SMALL_CORRECTIONS_ERROR = 1e-4
SMALL_ROWS_ERROR = 1e-5

# What labels of classes are, by NumPy's kind of their array; others are texts.
CLASS_TYPES = {"b": "flag", "i": "integer", "u": "integer", "f": "number", "M": "date"}


def model_as_json(fitted: Fitted | Model, small: bool = False) -> dict[str, Any]:
    """A model as plain values of strict JSON: what the scorers in JavaScript and Python read.

    Parameters
    ----------
    fitted : Fitted or Model
        What is known, or the model of it.
    small : bool, default=False
        Whether corrections are rounded so that they take half the room: their sum is then off by at most 1e-4, as a
        rule by less than 1e-6.

    Returns
    -------
    dict
        Lists, dicts, texts, finite numbers, true and false. Doubles are exact, the sum of all corrections
        to 4e-13 unless the model is `small`.

    Raises
    ------
    UsageError
        If a column cannot be exported; it is named.

    See Also
    --------
    deciban.export.javascript.to_javascript : The same with the scorer, as one module.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> found = model_as_json(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> found["classes"], [column["kind"] for column in found["columns"]]
    ({'type': 'text', 'labels': ['no', 'yes']}, ['category', 'category', 'category', 'category'])
    """
    model = fitted.model if isinstance(fitted, Fitted) else fitted
    levels = LevelSets()
    groups, kinds = _groups(model, levels)
    corrections = None if model.corrections is None else _corrections(model.corrections, model.schema, levels, small)
    return {
        "format": JSON_FORMAT,
        "version": JSON_VERSION,
        "classes": classes_as_json(model.classes),
        "log_prior": [number(value) for value in model.log_prior.tolist()],
        "partial": None if model.partial is None else _partial(model.partial),
        "cap": number(model.cap),
        "columns": columns_as_json(model.schema, kinds),
        "blocks": _blocks(model),
        "groups": groups,
        "corrections": corrections,
        "levels": levels.sets,
        "characters": _characters(model),
    }


def classes_as_json(classes: LabelArray) -> dict[str, Any]:
    """The labels of the classes and what they are.

    >>> classes_as_json(np.array([False, True]))
    {'type': 'flag', 'labels': [False, True]}
    """
    kind = CLASS_TYPES.get(classes.dtype.kind, "text")
    if kind == "date":
        return {"type": kind, "labels": [str(label) for label in classes]}
    labels = classes.tolist()
    if kind == "text":
        same = all(isinstance(label, str) for label in labels)
        return {"type": kind, "labels": labels if same else [str(label) for label in labels]}
    exact = all(abs(label) < LARGEST_EXACT for label in labels)
    return {"type": kind, "labels": labels if exact else [str(label) for label in labels]}


def _groups(model: Model, levels: LevelSets) -> tuple[list[dict[str, Any]], dict[int, tuple[str, int | None]]]:
    """Each column group with what the scorer reads of it, and what each column is to people."""
    schema, found = model.schema, []
    kinds: dict[int, tuple[str, int | None]] = {}
    for group, likelihood, slots in zip(schema.groups, model.likelihoods, schema.block_slots, strict=True):
        names = [schema.column_name(column) for column in group.columns]
        exported = likelihood_as_json(likelihood, Group(group.family, names, levels))
        found.append(
            {"family": str(group.family), "columns": list(group.columns), "blocks": slots.tolist()}
            | exported.parameters
        )
        for column, kind in zip(group.columns, exported.columns, strict=True):
            if not group.auxiliary or column not in kinds:
                kinds[column] = kind
    return found, kinds


def _blocks(model: Model) -> list[dict[str, Any]]:
    """Each block: its name, its columns, its weight, and whether it is words, which are never capped."""
    schema = model.schema
    found = []
    for b, (name, weight) in enumerate(zip(schema.block_names, model.weights.tolist(), strict=True)):
        p, place = schema.group_of_block(b)
        group = schema.groups[p]
        columns = group.columns if group.family.joint else group.columns[place : place + 1]
        words = bool(group.family.holds_texts or group.family.absorbs)
        found.append({"name": name, "columns": list(columns), "weight": number(weight), "words": words})
    return found


def _corrections(corrections: Corrections, schema: Schema, levels: LevelSets, small: bool) -> dict[str, Any]:
    """The tables without cells that they do not have; of their values only how classes differ from the first."""
    depth = (corrections.tests[:, :, 0] >= 0).sum(axis=1)
    used = np.arange(corrections.values.shape[1]) < (1 << depth)[:, None]
    contrasts = corrections.values[:, :, 1:] - corrections.values[:, :, :1]
    columns: list[dict[str, Any]] = []
    for one in corrections.columns:
        if one.cuts is not None:
            columns.append({"column": one.column, "cuts": floats(one.cuts)})
        else:
            place = levels.place_of(one.levels, schema.column_name(one.column))
            columns.append({"column": one.column, "levels": place})
    rows, error = corrections.rows[used], SMALL_CORRECTIONS_ERROR if small else CORRECTIONS_ERROR
    return {
        "columns": columns,
        "depth": integers(depth),
        "tests": integers(corrections.tests[corrections.tests[:, :, 0] >= 0]),
        "contrasts": fixed(contrasts[used], error / max(len(depth), 1)),
        "rows": fixed(rows, SMALL_ROWS_ERROR * float(rows.max(initial=1.0))) if small else amounts(rows),
    }


def _partial(partial: PartialRows) -> dict[str, Any]:
    """How rows with missing cells are scored: offsets column by class, shares by column, scales by known share."""
    return {
        "offsets": floats(partial.offsets),
        "shares": floats(partial.shares),
        "scales": partial.scale_points,
        "informative": integers(partial.informative),
        "least": partial.least,
    }


def _characters(model: Model) -> dict[str, Any]:
    """What characters are, as far as texts need it."""
    tokens = [column.options.tokens for likelihood in model.likelihoods for column in likelihood.texts]
    found: dict[str, Any] = {}
    if any(one.analyzer == "word" for one in tokens):
        found["letters"] = letters()
    if any(one.analyzer != "word" for one in tokens):
        found["spaces"] = spaces()
    if any(one.lowercase for one in tokens):
        found["small"] = small_letters()
    if any(one.strip_accents for one in tokens):
        found["accents"] = accents()
    return found
