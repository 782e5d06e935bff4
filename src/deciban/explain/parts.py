"""Explanations as parts of a result: for each row the prediction, and its sum of evidence as a waterfall of bars."""

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from deciban.explain.calculation import MAX_TERMS, clip_infinite, format_decibans, roll_up
from deciban.util.results import Aligned, Part, TextTable
from deciban.util.text_tables import DEFAULT_WIDTH, count_noun, format_class, format_digits

if TYPE_CHECKING:
    from deciban.explain.explanation import Explanation

# Note for a row that is impossible in every class.
IMPOSSIBLE = "this row is impossible in every class: the posterior is the prior"

# Text of an explanation without rows.
NO_ROWS = "no rows"

# More classes than this do not fit side by side; the most probable ones are shown.
MAX_CLASSES_SHOWN = 4

# Rows shown by `repr` and in a notebook: about two screens.
MAX_ROWS_SHOWN = 5

# Terms with a bar of their own; the others share one, as in the report.
MAX_TERMS_SHOWN = 15


def explanation_parts(explanation: "Explanation") -> Iterator[Part]:
    """Yield the parts of the first rows, and a note on the others."""
    if not explanation.table.rows:
        yield NO_ROWS
    for row in range(min(explanation.table.rows, MAX_ROWS_SHOWN)):
        yield from _row_parts(explanation, row)
    yield from count_hidden_rows(explanation.table.rows)


def count_hidden_rows(rows: int) -> list[str]:
    """Return a note on rows that are not shown."""
    more = rows - MAX_ROWS_SHOWN
    return [f"… ({count_noun(more, 'more row')}: print it, or use summary(row) or to_frame())"] if more > 0 else []


def format_prediction(found: dict[str, Any]) -> str:
    """Return the predicted class and the posterior of the most probable classes, from `Explanation.to_dict`."""
    chances = sorted(found["posterior"].items(), key=lambda item: -item[1])[:MAX_CLASSES_SHOWN]
    shown = ", ".join(f"P({name}) = {format_digits(p)}" for name, p in chances)
    return f"predicted: {format_class(found['predicted'])} ({shown})"


def _row_parts(explanation: "Explanation", row: int) -> Iterator[Part]:
    found = explanation.to_dict(row)
    prediction = format_prediction(found)
    if found["against"] is None:
        yield prediction + (f"\n{IMPOSSIBLE}" if explanation.evidence.impossible[row] else "")
        return
    terms = explanation.terms(row)
    rolled = roll_up(terms, MAX_TERMS_SHOWN)
    decibans = [value for _, value in rolled]
    ends = list(accumulate(clip_infinite(decibans), initial=0.0))
    best, other = (format_class(found[name]) for name in ("predicted", "against"))
    yield TextTable(
        [(label, format_decibans(value, 2)) for label, value in (*rolled, ("sum", found["sum"]))],
        (f"evidence for {best} against {other}", "decibans"),
        right=[1],
        title=prediction,
        notes=explanation._notes(row, terms),
        bars=[*pairwise(ends), (0.0, ends[-1])],
        bar_reach=1.0,  # less than a deciban has no long bar
        total=True,
    )
    if explanation.by == "block":
        yield Aligned(explanation._format_calculation(row, DEFAULT_WIDTH, MAX_TERMS, evidence=False))
    yield from (Aligned(str(text)) for text in explanation.words(row))
