"""Explanations of predictions: `Explanation`, evidence by column or by block, as text, table and plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from textwrap import wrap
from typing import Any

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.explain.calculation import (
    BLOCK_KEYS,
    COLUMN_KEYS,
    MAX_TERMS,
    Term,
    clip_infinite,
    format_calculation,
    format_decibans,
    format_shared_columns,
    format_sum,
    make_block_terms,
    make_column_terms,
    roll_up,
)
from deciban.explain.columns import (
    Block,
    ColumnEvidence,
    add_up_by_block,
    check_by,
    compute_column_evidence,
    compute_offsets,
    label_blocks,
    read_row_values,
    share_corrections,
)
from deciban.explain.words import TextEvidence, TokenizedText, tokenize_texts
from deciban.model.model import Evidence, Model, choose_class
from deciban.model.partial_rows import MissingAdjustment
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Flags, Floats, Integers
from deciban.util.results import Aligned, Part, Result, TextTable
from deciban.util.text_tables import (
    DECIBANS,
    DEFAULT_WIDTH,
    count_noun,
    format_class,
    format_digits,
    line_width,
    note_hidden,
)

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


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """Explanation of the predictions of some rows: the evidence of each column, or of each block.

    `BayesClassifier.explain` returns it. By column, `str` and `repr` show the prediction and the evidence of each
    column. By block, they show the textbook calculation and the evidence of each block. A notebook shows bars. `repr`
    and the notebook show the first rows only.
    `to_frame` returns a line for each row and each term of its sum, with the fields of `to_dict`.

    Parameters
    ----------
    evidence : Evidence
        Evidence of each block for each row.
    model : Model
        The model.
    table : Table
        The rows, with the columns of the model.
    by : {"column", "block"}, default="column"
        Unit of the evidence in `to_dict`, `summary` and `to_frame`.
    against : ndarray of int or None, default=None
        Index of the class that the most probable class of each row is compared with. None: the second-best class.

    See Also
    --------
    BayesClassifier.evidence : The same as arrays, for every class.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> clf = BayesClassifier(alpha=0, tune=None).fit(weather(), "play")
    >>> print(clf.explain([{"outlook": "sunny", "wind": "strong"}]))
    predicted: no (P(no) = 0.72973, P(yes) = 0.27027)
    evidence for no against yes, in decibans:
    prior            -2.55
    outlook = sunny  +4.31
    wind = strong    +2.55
    2 others         +0.00
    sum              +4.31
    """

    _made_with = ("evidence",)

    evidence: Evidence
    model: Model
    table: Table
    by: str = "column"
    against: Codes | None = None

    @classmethod
    def from_model(cls, model: Model, table: Table, by: str = "column") -> Explanation:
        """Explain rows with a model.

        Parameters
        ----------
        model : Model
            The model.
        table : Table
            Rows with the columns of the model, in its order.
        by : {"column", "block"}, default="column"
            Unit of the evidence.

        Returns
        -------
        Explanation
        """
        check_by(by)
        return cls(model.evidence(table), model, table, by)

    def _parts(self) -> list[Part]:
        rows = self.table.rows
        shown = [part for row in range(min(rows, MAX_ROWS_SHOWN)) for part in self._row_parts(row)]
        return [*(shown or [NO_ROWS]), *_count_hidden_rows(rows)]

    def _row_parts(self, row: int) -> Iterator[Part]:
        """Yield the prediction and its sum of evidence, as a waterfall of bars."""
        found = self.to_dict(row)
        prediction = _format_prediction(found)
        if found["against"] is None:
            yield prediction + (f"\n{IMPOSSIBLE}" if self._impossible[row] else "")
            return
        terms = self.terms(row)
        rolled = roll_up(terms, MAX_TERMS_SHOWN)
        ends = list(accumulate(clip_infinite([value for _, value in rolled]), initial=0.0))
        best, other = (format_class(found[name]) for name in ("predicted", "against"))
        yield TextTable(
            [(label, format_decibans(value, 2)) for label, value in (*rolled, ("sum", found["sum"]))],
            (f"evidence for {best} against {other}", "decibans"),
            right=[1],
            title=prediction,
            notes=self._notes(row, terms),
            bars=[*pairwise(ends), (0.0, ends[-1])],
            bar_reach=1.0,  # less than a deciban has no long bar
            total=True,
        )
        if self.by == "block":
            yield Aligned(self._format_calculation(row, DEFAULT_WIDTH, MAX_TERMS, evidence=False))
        yield from (Aligned(str(text)) for text in self.words(row))

    def __str__(self) -> str:
        return self._format_rows(self.table.rows)

    def __repr__(self) -> str:
        """Return the text of the first rows."""
        return "\n\n".join([self._format_rows(MAX_ROWS_SHOWN), *_count_hidden_rows(self.table.rows)])

    def _format_rows(self, rows: int) -> str:
        width = line_width()

        def format_row(row: int) -> str:
            return self.summary(row, width) if self.by == "column" else self._format_calculation(row, width, MAX_TERMS)

        return "\n\n".join(map(format_row, range(min(rows, self.table.rows)))) or NO_ROWS

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        return tuple(Block.of(self.model, b) for b in range(len(self.model.schema.block_names)))

    @cached_property
    def columns(self) -> ColumnEvidence:
        """Evidence of each row by column, for every class."""
        return compute_column_evidence(self.model, self.table, self.evidence)

    @cached_property
    def _log_posterior(self) -> Floats:
        return self.evidence.log_posterior

    @cached_property
    def _log_joint(self) -> Floats:
        return self.evidence.log_joint

    @cached_property
    def _impossible(self) -> Flags:
        return self.evidence.impossible

    @cached_property
    def _cache(self) -> dict[int, _Row]:
        return {}

    def _row(self, row: int) -> _Row:
        """Return the intermediate results of a row; those of the last row are cached."""
        found = self._cache.get(row)
        if found is None:
            found = _Row(self, row)
            self._cache.clear()
            self._cache[row] = found
        return found

    def _order(self, row: int) -> Integers:
        """Return the classes: the predicted one, that of `against`, and the others by probability."""
        if not 0 <= row < self.table.rows:
            raise UsageError(
                f"the table has {count_noun(self.table.rows, 'row')}, numbered from 0", parameter=Argument("row", row)
            )
        order = np.argsort(-self._log_posterior[row], kind="stable")
        if self.model.order is not None:
            best = choose_class(np.exp(self._log_posterior[row : row + 1]), self.model.order)
            order = np.concatenate([best, order[order != best]])
        if self.against is None or order[0] == self.against[row]:
            return order
        rest = order[1:]
        return np.array([order[0], self.against[row], *rest[rest != self.against[row]]])

    def calculation(self, row: int, width: int = DEFAULT_WIDTH) -> str:
        """Return the textbook calculation as text, and the evidence of each block in decibans.

        Parameters
        ----------
        row : int
            Row number, from 0.
        width : int, default=100
            Maximum number of characters per line.

        Returns
        -------
        str
        """
        return self._format_calculation(row, width, len(self._blocks))

    def _format_calculation(self, row: int, width: int, max_blocks: int, *, evidence: bool = True) -> str:
        """Return the calculation with the first blocks, and the evidence; of more blocks, the largest evidence."""
        order = self._order(row)
        shown = np.sort(order[:MAX_CLASSES_SHOWN])
        names = [format_class(label) for label in self.evidence.classes]
        labels, steps = label_blocks(self._blocks, self._row(row).cells), self.steps(row)
        more = len(self._blocks) - max_blocks
        if more > 0:
            labels, steps = labels[:max_blocks], {**steps, "blocks": steps["blocks"][:max_blocks]}
        text = format_calculation(steps, labels, [names[c] for c in shown], width)
        if more > 0:
            text += f"\n({count_noun(more, 'block')} not shown: calculation(row) shows them)"
        if self._impossible[row]:
            text += f"\n{IMPOSSIBLE}"
        if hidden := len(names) - len(shown):
            text += f"\n({count_noun(hidden, 'less probable class')} not shown)"
        text += f"\ndecision: {names[order[0]]}"
        if evidence and len(order) > 1 and not self._impossible[row]:
            text += "\n" + self._decibans(row, self._block_terms(row), width, short=more > 0)
        return text

    def steps(self, row: int) -> dict[str, Any]:
        """Return the calculation as plain data: prior, likelihoods with their formulas, joint and posterior.

        Parameters
        ----------
        row : int
            Row number, from 0.

        Returns
        -------
        dict
            ``prior``, ``blocks``, ``log_offset``, ``log_correction``, ``log_limit``, ``log_joint`` and ``posterior``,
            by class. The offset and the correction of each block are those of its columns.
        """
        evidence = self.evidence
        names = [format_class(label) for label in evidence.classes]

        def by_class(values: Floats) -> dict[str, float]:
            return dict(zip(names, values.tolist(), strict=True))

        texts = self._row(row).texts
        read = [group.family.read(self._row(row).table, group.columns) for group in self.model.schema.groups]
        offsets = add_up_by_block(self._blocks, self._row(row).offsets)
        corrections = add_up_by_block(self._blocks, self._row(row).corrections)
        blocks = []
        for b, block in enumerate(self._blocks):
            likelihood = self.model.likelihoods[block.group]
            if b in texts:
                how = [texts[b].formula(c) for c in range(len(names))]
            else:
                how = [likelihood.formula(read[block.group], 0, block.place, c) for c in range(len(names))]
            found = {
                **block.to_dict(self._row(row).cells),
                "weight": float(evidence.weights[b]),
                "capped": bool(evidence.capped is not None and evidence.capped[row, b]),
                "formula": dict(zip(names, how, strict=True)),
                "log_likelihood": by_class(evidence.values[row, b]),
                "log_offset": by_class(offsets[b]),
                "log_correction": by_class(corrections[b]),
            }
            if b in texts and (factors := texts[b].factors()):
                found["factors"] = [
                    {
                        "factor": one["factor"],
                        "formula": None if one["formula"] is None else dict(zip(names, one["formula"], strict=True)),
                        "log": dict(zip(names, one["log"], strict=True)),
                    }
                    for one in factors
                ]
            blocks.append(found)
        return {
            "prior": by_class(np.exp(evidence.row_log_prior(row))),
            "blocks": blocks,
            "log_offset": by_class(evidence.row_bias(row)),
            "log_correction": by_class(evidence.values[row, len(self._blocks) :].sum(axis=0)),
            "log_limit": by_class(evidence.raised[row]),
            "log_joint": by_class(self._log_joint[row]),
            "posterior": by_class(np.exp(self._log_posterior[row])),
        }

    def summary(self, row: int, width: int = DEFAULT_WIDTH) -> str:
        """Return the prediction and the evidence against the second-best class as text, in decibans.

        Parameters
        ----------
        row : int
            Row number, from 0.
        width : int, default=100
            Maximum number of characters per line.

        Returns
        -------
        str
        """
        found = self.to_dict(row)
        text = _format_prediction(found)
        text = "\n".join(wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
        if found["against"] is None:
            return f"{text}\n{IMPOSSIBLE}" if self._impossible[row] else text
        return f"{text}\n{self._decibans(row, self.terms(row), width, short=True)}"

    def to_dict(self, row: int = 0) -> dict[str, Any]:
        """Return the prediction, the posterior and the evidence against the second-best class of one row as plain data.

        ``deciban explain --json`` prints a list of these, each with its ``row``, counted from 1.

        Parameters
        ----------
        row : int, default=0
            Row number, from 0.

        Returns
        -------
        dict
            ``predicted`` and ``against`` are the two most probable classes, ``posterior`` the probability of each
            class. ``evidence`` lists the terms of the sum: the prior, the columns, most evidence first, and the limit
            (if it changes the row). A column has its ``value`` and its evidence in ``decibans`` and ``nats``; ``own``,
            ``joint`` (its share of joint blocks) and ``correction`` are the parts, in decibans. By block, each term has
            the columns of the block, their values, its weight and, in a tuned model, the parts ``likelihood`` and
            ``offset``. ``sum`` is the sum of the decibans. ``words`` holds the evidence of each word of a text.
            ``sharing_rules`` gives the rule by which each joint block is shared among its columns.
        """
        evidence = self.evidence
        order, posterior = self._order(row), self._log_posterior[row]
        labels = evidence.classes.tolist()
        chances = {format_class(label): float(np.exp(posterior[c])) for c, label in enumerate(labels)}
        found: dict[str, Any] = {"predicted": labels[order[0]], "posterior": chances, "against": None, "evidence": []}
        if len(order) == 1 or self._impossible[row]:
            return found
        terms = self.terms(row)
        found["evidence"] = [term.to_dict() for term in terms]
        if texts := self.words(row):
            found["words"] = {text.column: text.terms for text in texts}
        if self.by == "column" and self.columns.sharing_rules:
            found["sharing_rules"] = self.columns.sharing_rules
        return {**found, "against": labels[order[1]], "sum": sum(term.decibans for term in terms)}

    def _columns(self) -> dict[str, list[Any]]:
        lines = []
        for row in range(self.table.rows):
            found = self.to_dict(row)
            shared = {"row": row, "predicted": found["predicted"], "against": found["against"]}
            lines += [{**shared, **term} for term in found["evidence"]]
        names = ("row", "predicted", "against", *(COLUMN_KEYS if self.by == "column" else BLOCK_KEYS))
        return {name: [line.get(name) for line in lines] for name in names}

    def words(self, row: int = 0) -> list[TextEvidence]:
        """Return the evidence of each word in the texts of a row, for the best class against the second best.

        Parameters
        ----------
        row : int, default=0
            Row number, from 0.

        Returns
        -------
        list of TextEvidence
            One per text column.
        """
        return list(self._row(row).words)

    def terms(self, row: int) -> list[Term]:
        """Return the evidence for the best class against the second best as a sum.

        Parameters
        ----------
        row : int
            Row number, from 0.

        Returns
        -------
        list of Term
            The prior, the columns (or blocks), most evidence first, and the limit, if it changes the row. Empty if
            there is only one class.
        """
        return list(self._row(row).terms)

    def _block_terms(self, row: int) -> list[Term]:
        best, other = map(int, self._order(row)[:2])
        one = self._row(row)
        return make_block_terms(self.model, self.evidence, row, one.cells, one.offsets, best, other, self._blocks)

    def _decibans(self, row: int, terms: list[Term], width: int, short: bool = False) -> str:
        """Return the terms of the sum as text; `short` omits columns without evidence."""
        best, against = map(format_class, self.evidence.classes[self._order(row)[:2]].tolist())
        head = wrap(f"evidence for {best} against {against}, in decibans:", width, subsequent_indent="  ")
        notes = self._parts_notes(terms) + self._notes(row, terms)
        lines = [line for note in notes for line in wrap(note, width, subsequent_indent="  ")]
        return "\n".join([*head, format_sum(terms, width, short), *lines, *map(str, self.words(row))])

    def _parts_notes(self, terms: list[Term]) -> list[str]:
        """Return notes on the parts of the terms."""
        notes = []
        if any(term.parts.get("joint") for term in terms):
            rules = ", ".join(sorted(set(self.columns.sharing_rules.values())))
            notes.append(f"(joint: the share of the column in the evidence from columns modeled together, by {rules})")
        if any(term.parts.get("offset") for term in terms):
            notes.append("(offset: the part that does not depend on the value; 0 if the value is missing)")
        return notes

    def _notes(self, row: int, terms: list[Term]) -> list[str]:
        """Return notes on the limit, and on columns with several blocks of their own."""
        notes = []
        if terms[-1].role == "limit":
            most = DECIBANS * self.model.limit
            notes.append(f"(limit: the training rows support at most {most:.0f} decibans of total evidence)")
        if self.by == "column":
            notes += format_shared_columns(self._block_terms(row), terms, self._row(row).cells)
        return notes


class _Row:
    """One row of an explanation, with its cells, texts, terms and words cached."""

    def __init__(self, whole: Explanation, row: int) -> None:
        self.whole, self.row = whole, row
        self.order = whole._order(row)

    @cached_property
    def table(self) -> Table:
        return self.whole.table.slice(self.row, self.row + 1)

    @cached_property
    def cells(self) -> list[Any]:
        """Values of the row, None if missing."""
        return read_row_values(self.table)

    @cached_property
    def texts(self) -> dict[int, TokenizedText]:
        """Texts by block."""
        return {text.block: text for text in tokenize_texts(self.whole.model, self.table)}

    @cached_property
    def known(self) -> MissingAdjustment | None:
        return self.whole.model.adjust_for_missing(self.table)

    @cached_property
    def offsets(self) -> Floats:
        """Offset of each column for each class; 0 without tuning."""
        model = self.whole.model
        if model.partial is None:
            return np.zeros((model.schema.width, model.classes.size))
        offsets: Floats = compute_offsets(model.partial, self.known)[0]
        return offsets

    @cached_property
    def corrections(self) -> Floats:
        """Correction of each column for each class."""
        whole, model = self.whole, self.whole.model
        found = np.zeros((model.schema.width, model.classes.size))
        if model.corrections is not None:
            given = whole.evidence.values[self.row : self.row + 1, len(whole._blocks) :]
            places = [one.column for one in model.corrections.columns]
            found[places] = share_corrections(model, self.table, given, self.known)[0]
        return found

    @cached_property
    def terms(self) -> list[Term]:
        whole = self.whole
        if whole.evidence.classes.size == 1:
            return []
        if whole.by == "block":
            return whole._block_terms(self.row)
        best, other = map(int, self.order[:2])
        return make_column_terms(whole.model, whole.evidence, whole.columns, self.row, self.cells, best, other)

    @cached_property
    def words(self) -> list[TextEvidence]:
        model = self.whole.model
        if self.order.size == 1 or self.whole._impossible[self.row] or not self.texts:
            return []
        best, other = int(self.order[0]), int(self.order[1])
        scale = 1.0 if self.known is None else float(self.known.scale[0])
        found = []
        for block, text in self.texts.items():
            own = self.offsets[model.schema.column_names.index(text.name)]
            weight, offset = scale * float(model.weights[block]), float(DECIBANS * (own[best] - own[other]))
            found.append(text.evidence(weight, best, other, offset))
        return [evidence for evidence in found if evidence is not None]


def _count_hidden_rows(rows: int) -> list[str]:
    """Return a note on rows that are not shown."""
    return note_hidden(rows - MAX_ROWS_SHOWN, "more row", ": print it, or use summary(row) or to_frame()")


def _format_prediction(found: dict[str, Any]) -> str:
    """Return the predicted class and the posterior of the most probable classes, from `Explanation.to_dict`."""
    chances = sorted(found["posterior"].items(), key=lambda item: -item[1])[:MAX_CLASSES_SHOWN]
    shown = ", ".join(f"P({name}) = {format_digits(p)}" for name, p in chances)
    return f"predicted: {format_class(found['predicted'])} ({shown})"
