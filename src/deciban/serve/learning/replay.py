"""What was learned on line since the model file was written, made again from the journal."""

import sqlite3
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import msgspec

from deciban.errors import DecibanError, ModelFileError, naming_source
from deciban.fitted import Fitted
from deciban.serve.learning.changes import Delta, Row, applied
from deciban.serve.learning.class_labels import ClassLabels
from deciban.serve.learning.journal import DECAY, FORGET, Change, Journal
from deciban.serve.learning.numbers import Numbers
from deciban.serve.problems import Problem

# Changes that are replayed at once.
REPLAYED = 5_000


def replayed(journal: Journal, fitted: Fitted, saved: Numbers, labels: ClassLabels) -> Fitted:
    """The model of the file with the changes behind it; a ModelFileError where one is missing or cannot be made."""
    end = journal.numbers()
    now, some = replace(saved, heft=max(saved.heft, end.heft)), list[Change]()
    try:
        for change in journal.changes_after(saved.sequence):
            some.append(change)
            if len(some) == REPLAYED:
                fitted, now, some = *_with_changes(fitted, some, now, labels), []
        fitted, now = _with_changes(fitted, some, now, labels)
        if now.sequence != end.sequence:
            raise ModelFileError(f"changes behind the {now.sequence:,}th are missing")
    except (Problem, DecibanError, msgspec.DecodeError) as problem:
        raise naming_source(
            ModelFileError(
                f"{journal.path}: what was learned on line cannot be replayed ({problem}); restore the journal and the "
                f"model file from one copy, or move the journal away"
            )
        ) from problem
    except sqlite3.Error as problem:
        raise naming_source(
            ModelFileError(f"{journal.path}: the journal is damaged ({problem}); restore it from a copy")
        ) from problem
    return fitted


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
        if change.record is None or change.label is None:
            raise ModelFileError(f"the row of change {change.sequence:,} is missing")
        row = Row(msgspec.json.decode(change.record), msgspec.json.decode(change.label), change.weight, now.decay)
        (delta.removed if change.kind == FORGET else delta.added).append(row)
    return applied(fitted, delta, before.decay, now, labels), now
