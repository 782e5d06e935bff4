"""What was learned on line since the model file was written, made again from the journal."""

import sqlite3
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

import msgspec

from deciban.errors import ModelFileError, naming_source
from deciban.model.fitted import Fitted
from deciban.serve.learning.changes import Delta, Row, applied
from deciban.serve.learning.class_labels import ClassLabels
from deciban.serve.learning.journal import DECAY, FORGET, Change, Journal
from deciban.serve.learning.journal_database import damaged
from deciban.serve.learning.numbers import Numbers

# Changes that are replayed at once.
REPLAYED = 5_000


def replayed(journal: Journal, fitted: Fitted, saved: Numbers, labels: ClassLabels) -> Fitted:
    """The model of the file with the changes behind it; a ModelFileError where one is missing or cannot be made."""
    end = journal.numbers()
    now = replace(saved, weight_ever=max(saved.weight_ever, end.weight_ever))
    try:
        for some in _runs(journal, saved):
            fitted, now = _with_changes(fitted, some, now, labels)
        if now.sequence != end.sequence:
            raise ModelFileError(f"changes behind the {now.sequence:,}th are missing")
    except sqlite3.Error as problem:
        raise damaged(journal.path, problem) from problem
    except Exception as problem:  # whatever a damaged journal holds
        raise naming_source(
            ModelFileError(
                f"{journal.path}: what was learned on line cannot be replayed ({problem}); restore the journal and the "
                f"model file from one copy, or move the journal away"
            )
        ) from problem
    return fitted


def _runs(journal: Journal, saved: Numbers) -> Iterator[list[Change]]:
    """The changes behind the model file, those together that can be applied at once.

    Rows that were forgotten without an id may be those of an id, and then the order of changes shows: what is taken
    away by that id later is not there any more. From the first such row on changes are applied in the batches in which
    they were learned. Before it no order shows, so larger batches, which are faster, come to the same.
    """
    exact, some = saved.unverified > 0, list[Change]()
    for _, found in groupby(journal.changes_after(saved.sequence), attrgetter("batch")):
        batch = list(found)
        if not exact and any(change.kind == FORGET and change.row is None for change in batch):
            exact = True
            if some:
                yield some
                some = []
        some += batch
        if exact or len(some) >= REPLAYED:
            yield some
            some = []
    if some:
        yield some


def _with_changes(
    fitted: Fitted, changes: Sequence[Change], before: Numbers, labels: ClassLabels
) -> tuple[Fitted, Numbers]:
    delta, now = Delta(), copy(before)
    for change in changes:
        now.sequence += 1
        if change.sequence != now.sequence:
            raise ModelFileError(f"change {now.sequence:,} is missing")
        if change.kind == DECAY:
            now.decay += change.weight
            continue
        now.unverified += change.kind == FORGET and change.row is None
        if change.record is None or change.label is None:
            raise ModelFileError(f"the row of change {change.sequence:,} is missing")
        row = Row(msgspec.json.decode(change.record), msgspec.json.decode(change.label), change.weight, now.decay)
        (delta.removed if change.kind == FORGET else delta.added).append(row)
    return applied(fitted, delta, before.decay, now, labels), now
