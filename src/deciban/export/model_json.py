"""Model as JSON for the JavaScript and Python scorers; this module defines the format.

Numbers and arrays are exact to the last bit. Numbers that JSON cannot represent are strings: "inf", "-inf", "nan". A
short array is a list. An array that is long or has many digits is an object with one entry: its key is the type (f8,
i4, i2, u2, u1: NumPy's names, little-endian) and its value is base64.
"""

import base64
import math
import unicodedata
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.errors import Place as Where, UsageError
from deciban.export.ir import Block, Column, CorrectionTables, TermModel
from deciban.export.lower import MAX_EXACT, lower_model
from deciban.families.base.lowering import (
    CellPlace,
    CutPlace,
    JointNormalTerm,
    LevelPlace,
    LookupTerm,
    Refusal,
    Term,
    TextTerm,
    TupleTerm,
)
from deciban.families.base.shapley import MAX_ENUMERATED, sample_orders
from deciban.families.text.tokens import MAX_CASED, MAX_COMPOSED, POINTS, build_folding
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.model.partial_rows import PartialRows
from deciban.tables.labels import LabelArray

# Name of the format.
JSON_FORMAT = "deciban model"

# Version of the format; scorers reject other versions.
JSON_VERSION = 2

# Type of class labels by NumPy's kind; others are texts.
CLASS_TYPES = {"b": "flag", "i": "integer", "u": "integer", "f": "number", "M": "date"}

# Cell types that need conversion; other cells are used unchanged.
CONVERTED = ("number", "flag", "date", "time")

# Arrays with at most this many numbers are written as lists, which are shorter than base64.
SHORT_ARRAY = 12


def model_as_json(fitted: Fitted | Model) -> dict[str, Any]:
    """Return the model as strict JSON values for the scorers in JavaScript and Python.

    Parameters
    ----------
    fitted : Fitted or Model
        The fitted state of a classifier, or its model.

    Returns
    -------
    dict
        Lists, dicts, strings, finite numbers and booleans. Doubles and corrections are exact.

    Raises
    ------
    UsageError
        If a column cannot be exported; the message names it.

    See Also
    --------
    deciban.export.javascript.to_javascript : The model with its scorer, as one module.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> found = model_as_json(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> found["classes"], [column["kind"] for column in found["columns"]]
    ({'type': 'text', 'labels': ['no', 'yes']}, ['category', 'category', 'category', 'category'])
    """
    return _Writer(lower_model(fitted)).write()


class _Writer:
    """Writer of the JSON; places and sets of levels or cuts are written once and referenced by number."""

    def __init__(self, model: TermModel) -> None:
        self.model = model
        self.sets: list[dict[str, Any]] = []
        self.places: list[list[int]] = []
        self._numbers: dict[Any, int] = {}

    def write(self) -> dict[str, Any]:
        """Return the whole model."""
        model = self.model
        corrections, partial = model.corrections, model.partial
        return {
            "format": JSON_FORMAT,
            "version": JSON_VERSION,
            "classes": classes_as_json(model.classes),
            "log_prior": [number(value) for value in model.log_prior.tolist()],
            "limit": number(model.limit),
            **({} if model.order is None else {"order": list(model.order)}),
            "partial": None if partial is None else _partial(partial),
            "columns": [self._column(column) for column in model.columns.values()],
            "blocks": [self._block(block) for block in model.blocks],
            "refusals": self._refusals(),
            "corrections": None if corrections is None else self._corrections(corrections),
            "places": self.places,
            "sets": self.sets,
            "characters": _characters(model),
        }

    def _set(self, place: CellPlace) -> int:
        """Return the number of a set of levels or cuts."""
        key = ("cuts", place.cuts) if isinstance(place, CutPlace) else (place.kind, place.levels, place.part)
        if key not in self._numbers:
            self._numbers[key] = len(self.sets)
            if isinstance(place, CutPlace):
                self.sets.append({"type": "cuts", "values": floats(place.cuts)})
            else:
                values = [_level(place.kind, value) for value in place.levels]
                of = {} if place.part is None else {"part": place.part}
                self.sets.append({"type": place.kind, "values": values, **of})
        return self._numbers[key]

    def _place(self, place: CellPlace) -> int:
        """Return the number of a place, which is a column and a set."""
        if place not in self._numbers:
            self._numbers[place] = len(self.places)
            self.places.append([place.column, self._set(place)])
        return self._numbers[place]

    def _column(self, column: Column) -> dict[str, Any]:
        known = {"levels": self._set(column.levels)} if isinstance(column.levels, LevelPlace) else {}
        read_as = column.read_as if column.read_as in CONVERTED else "as it is"
        return {"name": column.name, "kind": column.kind, "read_as": read_as, **known}

    def _block(self, block: Block) -> dict[str, Any]:
        return {
            "name": block.name,
            "columns": list(block.columns),
            "weight": number(block.weight),
            "cap": number(block.cap),
            "terms": [{"term": type(term).__name__, **self._term(term)} for term in block.terms],
        }

    def _term(self, term: Term) -> dict[str, Any]:
        """Return the columns of a term and the data of its scorer."""
        if isinstance(term, LookupTerm):
            assert isinstance(term.place, LevelPlace | CutPlace), "likelihoods look up single cells"
            return {"columns": [term.place.column], "place": self._place(term.place), "table": floats(term.table)}
        if isinstance(term, JointNormalTerm):
            return _joint_normal(term)
        if isinstance(term, TupleTerm):
            return self._tuples(term)
        if isinstance(term, TextTerm):
            return _text(term, self.model.columns[term.column].name)
        written: dict[str, Any] = {}
        for name in (field.name for field in fields(term) if field.name != "column"):
            value = getattr(term, name)
            written[name] = (
                value if isinstance(value, bool) else number(value) if isinstance(value, float) else floats(value)
            )
        return {"columns": [term.column], **written}

    def _tuples(self, term: TupleTerm) -> dict[str, Any]:
        width = len(term.members)
        return {
            "columns": [member.column for member in term.members],
            "places": [self._place(member) for member in term.members],
            "codes": [integers(codes) for codes in term.codes],
            "sizes": list(term.sizes),
            "tuples": integers(term.tuples),
            "counts": amounts(term.counts),
            "alpha": number(term.alpha),
            "orders": integers(list(sample_orders(width))) if width > MAX_ENUMERATED else None,
        }

    def _refusals(self) -> list[dict[str, Any]]:
        """Return the rejection rules, merged if they differ only in their columns."""
        alike: dict[Any, list[Refusal]] = {}
        for one in self.model.refusals:
            key = self._set(one.place), one.places, one.expected, one.never, one.if_weighted is None
            alike.setdefault(key, []).append(one)
        return [
            {
                "places": integers([self._place(one.place) for one in some]),
                "rejected": integers(rejected),
                "expected": expected,
                "never": never,
                "blocks": None
                if always
                else integers([one.if_weighted for one in some if one.if_weighted is not None]),
            }
            for (_, rejected, expected, never, always), some in alike.items()
        ]

    def _corrections(self, tables: CorrectionTables) -> dict[str, Any]:
        """Return the correction tables without unused cells.

        Values are written as differences from the first class, in units.
        """
        corrections, used = tables.corrections, tables.corrections.used_cells
        return {
            "places": [self._place(place) for place in tables.places],
            "depth": integers(corrections.questions),
            "tests": integers(corrections.tests[corrections.tests[:, :, 0] >= 0]),
            "unit": tables.unit,
            "contrasts": integers(tables.contrasts[used]),
            "rows": amounts(corrections.rows[used]),
        }


def classes_as_json(classes: LabelArray) -> dict[str, Any]:
    """Return the class labels and their type.

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
    exact = all(abs(label) < MAX_EXACT for label in labels)
    return {"type": kind, "labels": labels if exact else [str(label) for label in labels]}


def _level(kind: str, value: Any) -> Any:
    """Return a level; large integers and microseconds become strings."""
    if kind == "integer":
        return exact(value)
    if kind in ("date", "time"):
        return str(value)
    return number(value) if kind == "number" else value


def exact(value: int) -> int | str:
    """Return an integer, as a string if a double cannot represent it.

    >>> exact(7), exact(2**60)
    (7, '1152921504606846976')
    """
    return value if abs(value) < MAX_EXACT else str(value)


def _joint_normal(term: JointNormalTerm) -> dict[str, Any]:
    """Return the whitened form for complete rows, and lower triangular matrices for rows with missing cells."""
    form, half = term.form, np.tril_indices(len(term.columns))
    rows = [matrix[m, :reach] for matrix in form.whiten for m, reach in enumerate(form.reach)]
    return {
        "columns": list(term.columns),
        "group": integers(form.group),
        "center": floats(term.center),
        "reach": integers(form.reach),
        "whiten": floats(np.concatenate(rows) if rows else np.zeros(0)),
        "white_mean": floats(form.mean),
        "offset": floats(form.offset),
        "unit": floats(term.unit),
        "mean": floats(term.mean),
        "covariance": floats(term.covariance[:, half[0], half[1]]),
    }


def _text(term: TextTerm, name: str) -> dict[str, Any]:
    """Return the tokenizer settings and the score of each word; raise a UsageError for a custom tokenizer."""
    tokens = term.tokens
    if tokens.tokenizer is not None:
        raise UsageError(
            "Text(tokenizer=…) cannot be exported, because it is a Python function",
            place=Where(column=name),
            remedy="fit again without it; analyzer, ngram_range, stop_words and min_word_length can be exported",
        )
    scores, presence = term.scores, {}
    if term.absent is not None and term.zeros is not None and term.blocked is not None:
        scores = np.concatenate([scores, term.absent], axis=1)
        presence = {"zeros": floats(term.zeros), "blocked": floats(term.blocked)}
    return {
        "columns": [term.column],
        "tokens": {
            "analyzer": tokens.analyzer,
            "least": tokens.ngram_range[0],
            "most": tokens.ngram_range[1],
            "lowercase": tokens.lowercase,
            "strip_accents": tokens.strip_accents,
            "stop_words": list(tokens.stop_words),
            "min_word_length": tokens.min_word_length,
        },
        "words": list(term.words),
        "buckets": term.buckets,
        "seeds": [str(seed) for seed in term.seeds],
        "term_counts": term.term_counts,
        "normalize": term.normalize,
        "tempering": number(term.tempering),
        "presence": bool(presence),
        "scores": floats(scores),
        "row": integers(term.row),
        **presence,
    }


def _partial(partial: PartialRows) -> dict[str, Any]:
    """Return the parameters for missing cells: offsets by column and class, shares by column, and scales."""
    return {
        "offsets": floats(partial.offsets),
        "shares": floats(partial.shares),
        "scales": partial.scale_points,
        "informative": integers(partial.informative),
        "least": partial.min_share,
    }


def number(value: float) -> float | str:
    """Return a double as a JSON value.

    >>> number(0.1), number(float("-inf"))
    (0.1, '-inf')
    """
    if math.isfinite(value):
        return float(value)
    return "nan" if math.isnan(value) else "inf" if value > 0.0 else "-inf"


def floats(array: npt.ArrayLike) -> list[Any] | dict[str, str]:
    """Return doubles in row-major order.

    >>> floats([1.5, float("inf")])
    [1.5, 'inf']
    >>> floats(np.zeros(13))["f8"][:8]
    'AAAAAAAA'
    """
    flat = np.asarray(array, dtype=np.float64).ravel()
    if flat.size <= SHORT_ARRAY:
        listed = [number(value) for value in flat.tolist()]
        if len(str(listed)) < 11 * flat.size + 12:  # base64 would be about as long
            return listed
    return _bytes(flat, "f8")


def integers(array: npt.ArrayLike) -> list[int] | dict[str, str]:
    """Return integers of at most 32 bits in row-major order, in the smallest type that holds them all.

    >>> integers([1, -1])
    [1, -1]
    >>> list(integers(np.full(13, 300)))
    ['u2']
    """
    flat = np.asarray(array, dtype=np.int64).ravel()
    if flat.size <= SHORT_ARRAY:
        return [int(value) for value in flat.tolist()]
    least, most = int(flat.min()), int(flat.max())
    if least >= 0:
        return _bytes(flat, "i4" if most > 0xFFFF else "u2" if most > 0xFF else "u1")
    return _bytes(flat, "i4" if least < -0x8000 or most > 0x7FFF else "i2")


def amounts(array: npt.ArrayLike) -> Any:
    """Return numbers that are mostly counts: as integers if all of them are."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    whole = flat.size and np.abs(flat).max() < 1 << 31 and np.array_equal(flat, np.floor(flat))
    return integers(flat.astype(np.int64)) if whole else floats(flat)


def runs(points: npt.ArrayLike) -> list[int]:
    """Return increasing integers as run lengths: the number skipped, the number included, and so on.

    >>> runs([3, 4, 5, 9])
    [3, 3, 3, 1]
    """
    flat = np.asarray(points, dtype=np.int64).ravel()
    if not flat.size:
        return []
    breaks = np.flatnonzero(np.diff(flat) != 1)
    first, last = flat[np.append(0, breaks + 1)], flat[np.append(breaks, flat.size - 1)]
    gaps = first - np.append(0, last[:-1] + 1)
    return [int(value) for value in np.stack([gaps, last - first + 1], axis=1).ravel()]


def _bytes(flat: npt.NDArray[Any], kind: str) -> dict[str, str]:
    return {kind: base64.b64encode(np.ascontiguousarray(flat.astype(f"<{kind}")).tobytes()).decode()}


# Python's character tables, so that JavaScript splits texts into the same words. Its own tables may be newer.


def _characters(model: TermModel) -> dict[str, Any]:
    """Return the character tables that texts need."""
    terms = [term for block in model.blocks for term in block.terms if isinstance(term, TextTerm)]
    tokens = [term.tokens for term in terms]
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


@cache
def letters() -> list[int]:
    """Return the code points of word characters, as runs."""
    return runs(np.flatnonzero(build_folding(False, False, False).folded))


@cache
def spaces() -> list[int]:
    """Return the code points of white space, as runs; includes NUL."""
    return runs(np.flatnonzero(build_folding(False, False, True).folded != _list_unchanged_points()))


def _list_unchanged_points() -> np.ndarray:
    points = np.arange(POINTS)
    points[0xD800:0xE000] = 0xFFFD
    return points


@cache
def small_letters() -> dict[str, Any]:
    """Return the lower case of capital letters.

    single: runs of (first, count, step, change). several: capital letters that become more than one character, each
    followed by these.
    """
    single, several = [], []
    for point in _points(MAX_CASED):
        small = chr(point).lower()
        if len(small) > 1:
            several.append(chr(point) + small)
        elif small != chr(point):
            single.append((point, ord(small) - point))
    return {"single": _strides(single), "several": several}


def _strides(changes: list[tuple[int, int]]) -> list[list[int]]:
    """Return points and their changes as runs of equal changes at equal distances."""
    found: list[list[int]] = []
    for point, change in changes:
        if found and found[-1][3] == change:
            first, count, step, _ = found[-1]
            if count == 1 or point == first + count * step:
                found[-1] = [first, count + 1, point - first if count == 1 else step, change]
                continue
        found.append([point, 1, 1, change])
    return found


@cache
def accents() -> dict[str, list[int]]:
    """Return the code points with a decomposition, and those that are accents, as runs."""
    composed = [point for point in _points(MAX_COMPOSED) if unicodedata.normalize("NFKD", chr(point)) != chr(point)]
    marks = [point for point in _points(MAX_COMPOSED) if unicodedata.combining(chr(point))]
    return {"composed": runs(composed), "marks": runs(marks)}


def _points(end: int) -> Iterable[int]:
    return (point for point in range(end) if not 0xD800 <= point < 0xE000)
