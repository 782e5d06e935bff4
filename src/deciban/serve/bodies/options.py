"""What a request says beside its rows: ids, labels, weights, and what a decision costs; each is checked."""

import math
from collections.abc import Sequence
from typing import Any

from deciban.serve.bodies.sizes import refuse_rows
from deciban.serve.json_values import JSON_KINDS, row_id, row_weight
from deciban.serve.problems import Problem
from deciban.serve.settings import ServeSettings
from deciban.tables.table import repeated


def refuse_unknown(name: str, place: str, known: Sequence[str]) -> Problem:
    """The problem of something that was sent to an address that does not take it."""
    return Problem(422, f"{name[:80]!r} is not taken here", f"leave it out, or send {', '.join(known)}", place)


def checked_options(options: dict[str, Any], rows: int | None, settings: ServeSettings) -> dict[str, Any]:
    """The options, each of the right type and length. rows: how many there are; None where ids stand for them."""
    if "ids" in options:
        refuse_rows(len(a_list(options["ids"], "ids")), settings, "ids")
        options["ids"] = _checked_ids(options["ids"])
        rows = len(options["ids"]) if rows is None else rows
    if "weights" in options:
        options["weights"] = _checked_weights(options["weights"])
    if "labels" in options:
        _check_labels(options["labels"])
    for name in ("ids", "weights", "labels"):
        if name in options and len(options[name]) != rows:
            raise Problem(422, f"found {len(options[name])} {name} for {rows} rows", "send one for each row", name)
    if "reject" in options:
        options["reject"] = _checked_reject(options["reject"])
    return options


def a_list(value: Any, name: str) -> list[Any]:
    """The value, if it is a list; else a Problem."""
    if type(value) is not list:
        found = JSON_KINDS.get(type(value), "null")
        raise Problem(422, f"found {found}, expected a list", "send one for each row", name)
    return value


def _checked_ids(ids: list[Any]) -> list[str]:
    """The ids as texts, each of them once; whole numbers are taken for the text they are written as."""
    found = []
    for place, one in enumerate(ids):
        if type(one) is float and one.is_integer() and abs(one) < 2.0**53:
            one = int(one)  # a CSV file knows no other numbers
        found.append(row_id(one, f"ids[{place}]"))
    if (twice := repeated(found)) is not None:
        place = len(found) - 1 - found[::-1].index(twice)
        raise Problem(422, f"the id {twice!r} is there twice", "send each row once", f"ids[{place}]")
    return found


def _checked_weights(weights: Any) -> list[float]:
    return [row_weight(one, f"weights[{place}]") for place, one in enumerate(a_list(weights, "weights"))]


def _check_labels(labels: Any) -> None:
    for place, label in enumerate(a_list(labels, "labels")):
        if type(label) in (dict, list):
            cause = f"found {JSON_KINDS[type(label)]}, expected a class"
            raise Problem(422, cause, "send text or a number", f"labels[{place}]")


def _checked_reject(reject: Any) -> float:
    """What it costs to leave a row undecided."""
    try:
        cost = float(reject) if type(reject) in (int, float) else math.nan
    except OverflowError:
        cost = math.inf
    if not 0.0 <= cost < math.inf:
        remedy = "send what it costs to leave a row undecided: a number that is at least 0"
        raise Problem(422, "this is no cost", remedy, "reject")
    return cost
