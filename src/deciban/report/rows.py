"""A few rows of a table, explained: the surest that is right, the least sure, the one that is most wrong."""

from typing import Any

import numpy as np

from deciban.arrays import Codes, Floats, Integers
from deciban.explain.explanation import Explanation
from deciban.explain.terms import Term
from deciban.fitted import Fitted
from deciban.tables.table import Table
from deciban.text_tables import class_name

# Terms of a row that are told one by one.
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
    """A few rows as data: why each was chosen, its cells, its true class, and the terms of its evidence."""
    found = []
    for place, why in telling_rows(posterior, labels, most):
        explanation = Explanation.of(fitted.model, table.slice(place, place + 1))
        reasons = explanation.reasons(0)
        terms = [
            {"label": term.label, **{key: term.as_dict[key] for key in ("decibans", "nats")}}
            for term in (_prior_first(explanation.terms(0)) if reasons["against"] is not None else [])
        ]
        found.append(
            {
                "why": why,
                "truth": class_name(fitted.classes.tolist()[labels[place]]),
                "predicted": class_name(reasons["predicted"]),
                "against": None if reasons["against"] is None else class_name(reasons["against"]),
                "posterior": reasons["posterior"],
                "terms": terms,
                "words": {
                    text.column: [[word.word, word.decibans] for word in text.words[:MOST_TERMS_TOLD]]
                    for text in explanation.words(0)
                },
                "cells": {
                    term["column"]: term["value"] for term in reasons["evidence"] if term.get("term") == "column"
                },
            }
        )
    return found


def _prior_first(terms: list[Term]) -> list[Term]:
    """The terms in the order of a sum that begins with the prior."""
    return sorted(terms, key=lambda term: not term.is_start)
