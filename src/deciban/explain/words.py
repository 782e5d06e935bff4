"""Evidence of the words of a text, and the most characteristic words of a class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import Argument, Labels, UsageError
from deciban.families.text.family import KnownWords, TextColumn
from deciban.families.text.tokens import Tokens, fold_text
from deciban.model.model import Model
from deciban.tables.table import Table, decode_cells
from deciban.util.arrays import Floats
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import DECIBANS, count_noun, format_amount

# Words that are listed and marked in the text; the others are added up.
MAX_WORDS_NAMED = 12

# Longer texts are truncated.
MAX_CHARACTERS = 1_000

# Factors of the likelihood of a text that are listed; the others are multiplied.
MAX_FACTORS = 12

# Absent words that are listed.
MAX_ABSENT = 6

# Absent words with less evidence than this, in decibans, round to 0.0 or 0.1 and are not listed.
MIN_ABSENT = 0.05


@dataclass(frozen=True)
class WordEvidence:
    """Word of a text: its count, and its evidence for one class against another, in decibans."""

    word: str
    count: float
    decibans: float

    def __str__(self) -> str:
        return f"{self.word} {self.decibans:+z.1f}"


@dataclass(frozen=True)
class TextEvidence:
    """Evidence of a text for one class against another, word by word.

    words: words of the text, most evidence first. absent: absent words with the most evidence, if absence is evidence
        (`Text(kind="bernoulli")`). more_absent, more_absent_decibans: number of the other absent words, and their total
        evidence. tokens: the tokenizer. offset: offset of the column in a tuned model.
    """

    column: str
    text: str
    words: tuple[WordEvidence, ...]
    absent: tuple[WordEvidence, ...]
    more_absent: int
    more_absent_decibans: float
    tokens: Tokens
    offset: float = 0.0

    @property
    def decibans(self) -> float:
        return sum(value for _, value in self.terms)

    @property
    def terms(self) -> list[tuple[str, float]]:
        """Terms of the evidence of the text; absent words are in parentheses."""
        terms = [(word.word, word.decibans) for word in self.words]
        terms += [(f"(no {word.word})", word.decibans) for word in self.absent]
        if self.more_absent:
            terms.append((f"({self._more_absent})", self.more_absent_decibans))
        if self.offset:
            terms.append(("(offset)", self.offset))
        return terms

    @property
    def _more_absent(self) -> str:
        return count_noun(self.more_absent, "other absent word" if self.absent else "absent word")

    @property
    def marked(self) -> str:
        """The text, with the words of most evidence in brackets with their decibans."""
        text = self.text[: 10 * MAX_CHARACTERS]
        parts, end = [], 0
        for first, last, value in sorted(self._find_marks(text)):
            if first >= end:
                parts += [text[end:first], f"[{text[first:last]}{value}]"]
                end = last
        return _truncate_line("".join([*parts, text[end:]]), is_part=len(text) < len(self.text))

    def _find_marks(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield start and end of the words with the most evidence, and the text to write behind them."""
        units = [
            unit
            for unit in _find_words(text, self.tokens.lowercase, self.tokens.strip_accents)
            if len(unit[0]) >= self.tokens.min_word_length and unit[0] not in self.tokens.stop_words
        ]
        marked: set[int] = set()
        for word in self.words[:MAX_WORDS_NAMED]:  # of overlapping n-grams the one with the most evidence is marked
            value = f" {word.decibans:+z.1f}"
            size = word.word.count(" ") + 1
            for k in range(len(units) - size + 1):
                here = range(k, k + size)
                if " ".join(units[u][0] for u in here) == word.word and marked.isdisjoint(here):
                    marked.update(here)
                    yield units[k][1], units[k + size - 1][2], value
                    value = ""  # at its first occurrence only

    def __str__(self) -> str:
        named = [word for word in self.words[:MAX_WORDS_NAMED] if round(word.decibans, 1) != 0.0]
        lines = []
        for sign, name in ((1.0, "for"), (-1.0, "against")):
            if some := [str(word) for word in named if sign * word.decibans > 0.0]:
                lines.append(f"  {name + ':':8} {', '.join(some)}")
        if others := [word for word in self.words if word not in named]:
            more = sum(word.decibans for word in others)
            lines.append(f"  {count_noun(len(others), 'other word')} {more:+z.1f}")
        absent = [str(word) for word in self.absent]
        if self.more_absent:
            absent.append(f"{self._more_absent} {self.more_absent_decibans:+z.1f}")
        if absent:
            lines.append(f"  absent:  {', '.join(absent)}")
        if round(self.offset, 1) != 0.0:
            lines.append(f"  offset:  {self.offset:+z.1f}")
        if self.tokens.marks_words:
            lines.append(f"  {self.marked}")
        return "\n".join([f"{self.column}, {count_noun(len(self.words), 'known word')} {self.decibans:+z.1f}:", *lines])


def _find_words(text: str, lowercase: bool, strip_accents: bool) -> Iterator[tuple[str, int, int]]:
    """Yield the normalized words of a text, with start and end in the original text."""
    small = text.lower() if lowercase else text  # as a whole: the lowercase of a letter may depend on its neighbors
    written, place, at = [], [], 0
    for k, character in enumerate(text):
        size = len(character.lower()) if lowercase else 1
        becomes = fold_text(small[at : at + size], False, strip_accents)
        written.append(becomes)
        place += [k] * len(becomes)
        at += size
    place.append(len(text))
    for found in re.finditer(r"\w+", "".join(written)):
        last = max(place[found.end() - 1] + 1, place[found.end()])  # including removed accents behind it
        yield found[0], place[found.start()], last


def _truncate_line(text: str, is_part: bool) -> str:
    """Return a text on one line, truncated if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARACTERS and not is_part else line[: MAX_CHARACTERS - 1] + "…"


@dataclass(frozen=True)
class TokenizedText:
    """Text of one row, tokenized once for the whole explanation."""

    block: int
    name: str
    text: str
    known: KnownWords | None
    column: TextColumn

    def formula(self, label: int) -> str | None:
        """Return the formula of its likelihood for a class; None if the text has no evidence."""
        return self.column.formula(self.known, label)

    def factors(self) -> list[dict[str, Any]] | None:
        """Return the factors of its likelihood as plain data, most informative first.

        At most MAX_FACTORS are listed, the last one for all others. Values are logarithms by class. None if the text
        has a score instead of a likelihood, or no evidence.
        """
        found = self.column.factors(self.known)
        if not found or self.known is None:
            return None
        listed: list[dict[str, Any]] = []
        if (orders := self.column.log_orders_of_words(self.known)) is not None:
            listed.append({"factor": "orders", "formula": None, "log": [orders] * found[0].logs.size})
        shown = found if len(found) <= MAX_FACTORS else found[: MAX_FACTORS - 1]
        for one in shown:
            word = self.column.words.display(one.word)
            power = "" if one.amount == 1.0 else f"^{one.amount:.3g}"
            formulas = [f"[{how}]{power}" if power else how for how in one.formulas]
            listed.append(
                {"factor": word if one.present else f"no {word}", "formula": formulas, "log": one.logs.tolist()}
            )
        if rest := found[len(shown) :]:
            log = np.sum([one.logs for one in rest], axis=0).tolist()
            listed.append({"factor": f"{len(rest):,} more words", "formula": None, "log": log})
        return listed

    def evidence(self, weight: float, best: int, other: int, offset: float = 0.0) -> TextEvidence | None:
        """Return its evidence for one class against another, with the offset of its column, or None."""
        vocabulary = self.column.words
        if weight == 0.0 or self.known is None or not len(vocabulary):
            return None
        scores = self.column.word_scores(self.known)
        there, not_there = (
            DECIBANS * weight * (each[:, best] - each[:, other]) for each in (scores.present, scores.absent_scores)
        )
        order, by_absence = (np.argsort(-np.abs(each), kind="stable") for each in (there, not_there))
        words = tuple(
            WordEvidence(vocabulary.display(self.known.words[k]), float(self.known.amounts[k]), float(there[k]))
            for k in order
        )
        absent = tuple(
            WordEvidence(vocabulary.display(scores.absent[k]), 0.0, float(not_there[k]))
            for k in by_absence[:MAX_ABSENT]
            if abs(not_there[k]) >= MIN_ABSENT
        )
        more = by_absence[len(absent) :]
        tokens = self.column.options.tokens
        rest = float(not_there[more].sum())
        return TextEvidence(self.name, self.text, words, absent, more.size, rest, tokens, offset)


def tokenize_texts(model: Model, row: Table) -> Iterator[TokenizedText]:
    """Yield the tokenized texts of one row."""
    schema = model.schema
    for group, slots, likelihood in zip(schema.groups, schema.block_slots, model.likelihoods, strict=True):
        if not likelihood.text_columns:
            continue
        cells = group.family.read(row, group.columns)
        for place, block, cell, column in zip(group.columns, slots, cells, likelihood.text_columns, strict=True):
            text = decode_cells(cell)[0] or ""
            yield TokenizedText(int(block), schema.column_name(place), text, column.find_known_words(cell), column)


@dataclass(frozen=True)
class TopWord:
    """Word of a class: its evidence against all other classes in decibans, and its counts in and outside the class."""

    word: str
    decibans: float
    count: float
    elsewhere: float


class TopWords(Result, list[TopWord]):
    """Most characteristic words of a class, most informative first: a list of `TopWord`.

    `to_frame` returns a line for each word: ``word``, ``decibans``, ``count`` and ``elsewhere``.
    """

    def _columns(self) -> dict[str, list[Any]]:
        return self.to_dict()

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of `to_frame` as lists.

        Returns
        -------
        dict
            ``word``, ``decibans``, ``count`` and ``elsewhere``.
        """
        return {name: [getattr(word, name) for word in self] for name in ("word", "decibans", "count", "elsewhere")}

    def _parts(self) -> list[Part]:
        lines = [(w.word, f"{w.decibans:+z.1f}", format_amount(w.count), format_amount(w.elsewhere)) for w in self]
        head = ("word", "decibans", "in class", "elsewhere")
        return [TextTable(lines, head, right=[1, 2, 3], bars=[(0.0, word.decibans) for word in self])]


def list_top_words(model: Model, label: int, max_words: int, column: str | None = None) -> TopWords:
    """Return the most characteristic words of a class in a text column; `column` is required if there are several."""
    if not isinstance(max_words, int | np.integer) or max_words < 0:
        raise UsageError("expected an integer of at least 0", parameter=Argument("n", max_words))
    texts = {
        model.schema.column_name(place): text
        for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True)
        for place, text in zip(group.columns, likelihood.text_columns, strict=False)
    }
    if not texts or (column is not None and column not in texts):
        if column is None:
            raise UsageError("the model has no text column", remedy=("fit a column as ", Argument("family", "Text")))
        text = Argument("family", "Text")
        remedy = ("choose from ", Labels(texts)) if texts else ("fit it as ", text)
        raise UsageError(("this column is not ", text), remedy=remedy, parameter=Argument("column", column))
    if column is None and len(texts) > 1:
        raise UsageError(
            f"the model has several text columns: {', '.join(texts)}",
            remedy=("choose one with ", Argument("column")),
        )
    return find_top_words(texts[column] if column is not None else next(iter(texts.values())), label, max_words)


def find_top_words(column: TextColumn, label: int, max_words: int) -> TopWords:
    """Return the words with the largest product of evidence and frequency in the class.

    Ties are sorted alphabetically.
    """
    counts, total = column.counts.counts[:, label], column.counts.total
    own, rest = _smooth_shares(column, counts), _smooth_shares(column, total - counts)
    evidence = np.log(own) - np.log(rest)
    gain = own * evidence
    min_gain = np.partition(gain, -max_words)[-max_words] if 0 < max_words < gain.size else 0.0
    enough = np.flatnonzero((gain >= min_gain) & (evidence > 0.0))
    order = sorted(enough.tolist(), key=lambda k: (-gain[k], column.words[k]))[:max_words]
    return TopWords(
        TopWord(column.words.display(k), float(DECIBANS * evidence[k]), float(counts[k]), float(total[k] - counts[k]))
        for k in order
    )


def _smooth_shares(column: TextColumn, counts: Floats) -> Any:
    """Return the smoothed share of each word, so that no share is 0."""
    alpha = max(column.options.alpha, 1e-3)
    return (counts + alpha) / (counts.sum() + alpha * counts.size)
