"""A few rows of a table, explained: the surest that is right, the least sure, the one that is most wrong."""

from typing import Any

import numpy as np

from deciban.explain.cells import form_cell, values_of_row
from deciban.explain.explanation import Explanation
from deciban.explain.terms import rolled_up
from deciban.model.fitted import Fitted
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.text_tables import class_name

# Terms and words of a row that are told one by one.
MOST_TERMS_TOLD = 12


def telling_rows(posterior: Floats, labels: Codes, most: int) -> list[tuple[int, str]]:
    """The places of rows that tell most about a model, and why each was chosen."""
    rows, best = np.arange(labels.size), posterior.argmax(axis=1)
    right, chance = best == labels, posterior[rows, labels]
    found: list[tuple[int, str]] = []

    def add(places: Integers, by: Floats, why: str) -> None:
        if places.size and (place := int(places[np.argmax(by[places])])) not in [known for known, _ in found]:
            found.append((place, why))

    add(np.flatnonzero(right), chance, "the surest of those that are right")
    add(rows, -posterior.max(axis=1), "the least sure")
    add(np.flatnonzero(~right), -chance, "the most mistaken")
    return found[:most]


def explained_rows(fitted: Fitted, table: Table, posterior: Floats, labels: Codes, most: int) -> list[dict[str, Any]]:
    """A few rows as data: why each was chosen, its true class, the terms of its evidence, and its cells."""
    chosen = telling_rows(posterior, labels, most)
    return [_explained(fitted, table.slice(place, place + 1), int(labels[place]), why) for place, why in chosen]


def _explained(fitted: Fitted, row: Table, label: int, why: str) -> dict[str, Any]:
    explanation = Explanation.of(fitted.model, row)
    reasons = explanation.reasons(0)
    against = reasons["against"]
    terms = [] if against is None else rolled_up(explanation.terms(0), MOST_TERMS_TOLD)
    words = {
        text.column: [[word.word, word.decibans] for word in text.words[:MOST_TERMS_TOLD]]
        for text in explanation.words(0)
    }
    return {
        "why": why,
        "truth": class_name(fitted.classes.tolist()[label]),
        "predicted": class_name(reasons["predicted"]),
        "against": None if against is None else class_name(against),
        "posterior": reasons["posterior"],
        "terms": [{"label": name, "decibans": decibans} for name, decibans in terms],
        "words": words,
        "cells": dict(zip(fitted.model.schema.column_names, map(form_cell, values_of_row(row)), strict=True)),
    }
