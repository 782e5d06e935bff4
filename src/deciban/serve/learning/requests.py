"""Requests to learn and to forget: what they hold is checked, and written down row by row."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from deciban.model.fitted import Fitted
from deciban.serve.json_values import JSON_KINDS, Record, row_id, row_weight
from deciban.serve.learning.draft import Draft, record_as_json
from deciban.serve.problems import Problem
from deciban.serve.state import State


@dataclass(frozen=True)
class Learned:
    """What became of each row of a request, and the state in which that shows."""

    results: list[str]
    state: State


@dataclass(frozen=True)
class Request:
    """Something to be written down in a draft; `write` returns what became of each row, or raises a Problem."""

    size: int
    write: Callable[[Draft], list[str]]
    answer: "Future[Learned]" = field(default_factory=Future)


def learning(records: Sequence[Record], labels: Sequence[Any], ids: Any = None, weights: Any = None) -> Request:
    """Learn rows; those with an id that is known already are learned once."""

    def write(draft: Draft) -> list[str]:
        size = len(_list("rows", records, None))
        given, names = _list("labels", labels, size), _ids(ids, size)
        amounts = _weights(weights, size)
        return [draft.learn(names[k], record, given[k], amounts[k], k) for k, record in enumerate(records)]

    return Request(_length(records), write)


def learning_later(ids: Sequence[Any], labels: Sequence[Any]) -> Request:
    """Learn rows that are kept by their ids."""

    def write(draft: Draft) -> list[str]:
        names = _known_ids(ids)
        given = _list("labels", labels, len(names))
        return [draft.learn(name, None, given[k], 1.0, k) for k, name in enumerate(names)]

    return Request(_length(ids), write)


def forgetting_ids(ids: Sequence[Any]) -> Request:
    """Forget the rows of these ids."""

    def write(draft: Draft) -> list[str]:
        return [draft.forget_id(name, k) for k, name in enumerate(_known_ids(ids))]

    return Request(_length(ids), write)


def forgetting_rows(records: Sequence[Record], labels: Sequence[Any], weights: Any = None) -> Request:
    """Forget rows that were learned without an id."""

    def write(draft: Draft) -> list[str]:
        size = len(_list("rows", records, None))
        given, amounts = _list("labels", labels, size), _weights(weights, size)
        return [draft.forget_row(record, given[k], amounts[k], k) for k, record in enumerate(records)]

    return Request(_length(records), write)


def known_columns(fitted: Fitted) -> Callable[[Record, int], None]:
    """A function that raises a Problem for a record with a column that the model does not know."""
    names = fitted.counts.schema.names
    if names is None:
        return lambda record, row: None
    known = frozenset(names) | frozenset(fitted.origin.ignored)

    def check(record: Record, row: int) -> None:
        if not isinstance(record, dict):
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(422, f"found {found}, expected an object", "send {column: value, ...}", f"rows[{row}]")
        if not record.keys() <= known:
            name = next(name for name in record if name not in known)
            near = get_close_matches(str(name), names, 1)
            remedy = f"did you mean {near[0]!r}?" if near else "leave it out"
            raise Problem(422, "the model has no such column", remedy, f"rows[{row}].{str(name)[:80]}")

    return check


def rows_to_keep(fitted: Fitted, ids: Any, records: Any) -> list[tuple[str, str]]:
    """Ids and records, as JSON and without the columns that the model does not know.

    A record that has none of its columns is left out: learned, it would be a row of which everything is missing.
    """
    known = frozenset(fitted.counts.schema.names or ())
    rows = []
    for place, (name, record) in enumerate(zip(_known_ids(ids), _list("rows", records, len(ids)), strict=True)):
        if known and isinstance(record, dict):
            record = {column: cell for column, cell in record.items() if column in known}
            if not record:
                continue
        elif known or not isinstance(record, list):
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(422, f"found {found} as a row", "send rows as the model has them", f"rows[{place}]")
        rows.append((name, record_as_json(record, place)))
    return rows


def _length(rows: Any) -> int:
    return len(rows) if isinstance(rows, list | tuple) else 1


def _list(name: str, values: Any, size: int | None) -> Sequence[Any]:
    if not isinstance(values, list | tuple):
        raise Problem(
            422, f"found {JSON_KINDS.get(type(values), 'null')}, expected a list", f"send a list of {name}", name
        )
    if size is not None and len(values) != size:
        raise Problem(422, f"there are {len(values)} {name} for {size} rows", "send one for each row", name)
    return values


def _known_ids(ids: Any) -> list[str]:
    return [row_id(given, f"ids[{k}]") for k, given in enumerate(_list("ids", ids, None))]


def _ids(ids: Any, size: int) -> list[str | None]:
    """The id of each row; null for a row that has none."""
    if ids is None:
        return [None] * size
    given = enumerate(_list("ids", ids, size))
    return [None if name is None else row_id(name, f"ids[{k}]") for k, name in given]


def _weights(weights: Any, size: int) -> list[float]:
    if weights is None:
        return [1.0] * size
    return [row_weight(weight, f"weights[{k}]") for k, weight in enumerate(_list("weights", weights, size))]
