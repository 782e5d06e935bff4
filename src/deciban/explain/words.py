"""The words behind the evidence of a text."""

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
from deciban.util.text_tables import DECIBANS, align_table, count_noun, format_amount

# Words that are named and marked, and the characters of a text that are shown.
MAX_WORDS_NAMED = 12
MAX_CHARACTERS = 1_000

# Factors of the likelihood of a text that are told one by one.
MAX_FACTORS = 12

# Absent words that are named, and the decibans that each of them has at least.
MAX_ABSENT = 6
MIN_ABSENT = 0.05


@dataclass(frozen=True)
class WordEvidence:
    """A word of a text: its amount, and its evidence for one class against another, in decibans."""

    word: str
    count: float
    decibans: float

    def __str__(self) -> str:
        return f"{self.word} {self.decibans:+.1f}"


@dataclass(frozen=True)
class TextEvidence:
    """The evidence of a text for one class against another, word by word: all terms of a sum.

    words: those in the text, those of most evidence first. Where absence is evidence too (`Text(kind="bernoulli")`),
        absent: the absent words of most evidence; more_absent, more_absent_decibans: how many more are absent, and
        their evidence together. tokens: what of the text is a word. offset: that of the column, in a tuned model.
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
        """What adds up to the evidence of the text; absent words are in brackets."""
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
        """The text itself, the words of most evidence in brackets with their decibans."""
        text = self.text[: 10 * MAX_CHARACTERS]
        parts, end = [], 0
        for first, last, value in sorted(self._marks(text)):
            if first >= end:
                parts += [text[end:first], f"[{text[first:last]}{value}]"]
                end = last
        return _on_one_line("".join([*parts, text[end:]]), cut=len(text) < len(self.text))

    def _marks(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where the words of most evidence begin and end in the text, and what is written there."""
        units = [
            unit
            for unit in _words_in(text, self.tokens.lowercase, self.tokens.strip_accents)
            if len(unit[0]) >= self.tokens.min_word_length and unit[0] not in self.tokens.stop_words
        ]
        marked: set[int] = set()
        for word in self.words[:MAX_WORDS_NAMED]:  # of n-grams that overlap the one of most evidence is marked
            value = f" {word.decibans:+.1f}"
            size = word.word.count(" ") + 1
            for k in range(len(units) - size + 1):
                here = range(k, k + size)
                if " ".join(units[u][0] for u in here) == word.word and marked.isdisjoint(here):
                    marked.update(here)
                    yield units[k][1], units[k + size - 1][2], value
                    value = ""  # written once for all times that it is there

    def __str__(self) -> str:
        named = [word for word in self.words[:MAX_WORDS_NAMED] if round(word.decibans, 1) != 0.0]
        lines = []
        for sign, name in ((1.0, "for"), (-1.0, "against")):
            if some := [str(word) for word in named if sign * word.decibans > 0.0]:
                lines.append(f"  {name + ':':8} {', '.join(some)}")
        if others := [word for word in self.words if word not in named]:
            more = sum(word.decibans for word in others)
            lines.append(f"  {count_noun(len(others), 'other word')} {more:+.1f}")
        absent = [str(word) for word in self.absent]
        if self.more_absent:
            absent.append(f"{self._more_absent} {self.more_absent_decibans:+.1f}")
        if absent:
            lines.append(f"  absent:  {', '.join(absent)}")
        if round(self.offset, 1) != 0.0:
            lines.append(f"  offset:  {self.offset:+.1f}")
        if self.tokens.marks_words:
            lines.append(f"  {self.marked}")
        return "\n".join([f"{self.column}, {count_noun(len(self.words), 'known word')} {self.decibans:+.1f}:", *lines])


def _words_in(text: str, lowercase: bool, strip_accents: bool) -> Iterator[tuple[str, int, int]]:
    """The words of a text as the vocabulary has them, and where each begins and ends as it is written."""
    small = text.lower() if lowercase else text  # as a whole: the small form of a letter may depend on its neighbors
    written, place, at = [], [], 0
    for k, character in enumerate(text):
        size = len(character.lower()) if lowercase else 1
        becomes = fold_text(small[at : at + size], False, strip_accents)
        written.append(becomes)
        place += [k] * len(becomes)
        at += size
    place.append(len(text))
    for found in re.finditer(r"\w+", "".join(written)):
        last = max(place[found.end() - 1] + 1, place[found.end()])  # with the accents behind it, which became nothing
        yield found[0], place[found.start()], last


def _on_one_line(text: str, cut: bool) -> str:
    """A text on one line, cut off where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_CHARACTERS and not cut else line[: MAX_CHARACTERS - 1] + "…"


@dataclass(frozen=True)
class TokenizedText:
    """A text of one row, cut into words once for the whole explanation."""

    block: int
    name: str
    text: str
    known: KnownWords | None
    column: TextColumn

    def formula(self, label: int) -> str | None:
        """How its likelihood was found for a class; None where it is no evidence."""
        return self.column.formula(self.known, label)

    def factors(self) -> list[dict[str, Any]] | None:
        """The factors of its likelihood for programs, those that tell the classes apart most first; of more than
        MAX_FACTORS the others as one. None where it is a score, or no evidence. Values are logarithms, by class."""
        found = self.column.factors(self.known)
        if not found or self.known is None:
            return None
        told: list[dict[str, Any]] = []
        if (orders := self.column.log_orders_of_words(self.known)) is not None:
            told.append({"factor": "orders", "formula": None, "log": [orders] * found[0].logs.size})
        shown = found if len(found) <= MAX_FACTORS else found[: MAX_FACTORS - 1]
        for one in shown:
            word = self.column.words.display(one.word)
            power = "" if one.amount == 1.0 else f"^{one.amount:.3g}"
            formulas = [f"[{how}]{power}" if power else how for how in one.formulas]
            told.append(
                {"factor": word if one.present else f"no {word}", "formula": formulas, "log": one.logs.tolist()}
            )
        if rest := found[len(shown) :]:
            log = np.sum([one.logs for one in rest], axis=0).tolist()
            told.append({"factor": f"{len(rest):,} more words", "formula": None, "log": log})
        return told

    def evidence(self, weight: float, best: int, other: int, offset: float = 0.0) -> TextEvidence | None:
        """Its evidence for one class against another, with the offset of its column in decibans; None where it is
        none."""
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


def tokenized_texts(model: Model, row: Table) -> Iterator[TokenizedText]:
    """The texts of one row, each cut into words."""
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
    """A word that is typical of a class: its evidence for it against all others, and its counts there and elsewhere."""

    word: str
    decibans: float
    count: float
    elsewhere: float


class TopWords(list[TopWord]):
    """Words that are typical of a class, the most typical first; print them."""

    def __str__(self) -> str:
        lines = [("word", "decibans", "in class", "elsewhere")]
        lines += [(w.word, f"{w.decibans:+.1f}", format_amount(w.count), format_amount(w.elsewhere)) for w in self]
        return align_table(lines, right=[1, 2, 3])


def top_words_of(model: Model, label: int, most: int, column: str | None = None) -> TopWords:
    """The words by which texts of a class are known, in a column of texts; `column` names it if there are several."""
    if not isinstance(most, int | np.integer) or most < 0:
        raise UsageError("give a whole number that is at least 0", parameter=Argument("n", most))
    texts = {
        model.schema.column_name(place): text
        for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True)
        for place, text in zip(group.columns, likelihood.text_columns, strict=False)
    }
    if not texts or (column is not None and column not in texts):
        if column is None:
            raise UsageError("no column holds texts", remedy=("make one ", Argument("family", "Text")))
        text = Argument("family", "Text")
        remedy = ("choose ", Labels(texts)) if texts else ("make it ", text)
        raise UsageError(("this column is not ", text), remedy=remedy, parameter=Argument("column", column))
    if column is None and len(texts) > 1:
        raise UsageError(
            f"several columns hold texts: {', '.join(texts)}",
            remedy=("name one in ", Argument("column")),
        )
    return top_words(texts[column] if column is not None else next(iter(texts.values())), label, most)


def top_words(column: TextColumn, label: int, most: int) -> TopWords:
    """The words by which the texts of a class are known: those of most evidence, times how often they are there.

    Of equals, the first in the alphabet.
    """
    counts, total = column.counts.counts[:, label], column.counts.total
    own, rest = _share(column, counts), _share(column, total - counts)
    evidence = np.log(own) - np.log(rest)
    gain = own * evidence
    least = np.partition(gain, -most)[-most] if 0 < most < gain.size else 0.0
    enough = np.flatnonzero((gain >= least) & (evidence > 0.0))
    order = sorted(enough.tolist(), key=lambda k: (-gain[k], column.words[k]))[:most]
    return TopWords(
        TopWord(column.words.display(k), float(DECIBANS * evidence[k]), float(counts[k]), float(total[k] - counts[k]))
        for k in order
    )


def _share(column: TextColumn, counts: Floats) -> Any:
    """Their share of all counts, smoothed, so that none is 0."""
    alpha = max(column.options.alpha, 1e-3)
    return (counts + alpha) / (counts.sum() + alpha * counts.size)
