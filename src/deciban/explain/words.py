"""The words behind the evidence of a text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.arrays import Floats, decoded_cells
from deciban.errors import UsageError
from deciban.families.text.likelihood import TextColumn, TextLikelihood, shown
from deciban.families.text.tokens import prepared
from deciban.model import Model
from deciban.tables.table import Table
from deciban.text_tables import aligned, amount, counted

DECIBANS = 10.0 / np.log(10.0)

# Words that are named and marked, and the characters of a text that are shown.
MOST_WORDS = 12
MOST_CHARACTERS = 1_000

# Absent words that are named, and what each of them says at least.
MOST_ABSENT = 6
LEAST_ABSENT = 0.05


@dataclass(frozen=True)
class WordEvidence:
    """A word of a text: how much of it there is, and what it says in decibans for one class against another."""

    word: str
    amount: float
    decibans: float

    def __str__(self) -> str:
        return f"{self.word} {self.decibans:+.1f}"


@dataclass(frozen=True)
class TextEvidence:
    """What a text says for one class against another, word by word: all terms of a sum.

    words: those in the text, the most telling first. Where absence is evidence too (`Text(kind="bernoulli")`), absent:
        the absent words that say most by that; others_absent, rest: how many more are absent, and what all these say.
    """

    column: str
    text: str
    words: tuple[WordEvidence, ...]
    absent: tuple[WordEvidence, ...]
    others_absent: int
    rest: float
    column_words: TextColumn

    @property
    def decibans(self) -> float:
        return sum(value for _, value in self.terms)

    @property
    def terms(self) -> list[tuple[str, float]]:
        """What adds up to all that the text says; absent words are in brackets."""
        terms = [(word.word, word.decibans) for word in self.words]
        terms += [(f"(no {word.word})", word.decibans) for word in self.absent]
        if self.others_absent:
            terms.append((f"({self._others_absent})", self.rest))
        return terms

    @property
    def _others_absent(self) -> str:
        return counted(self.others_absent, "other absent word" if self.absent else "absent word")

    @property
    def marked(self) -> str:
        """The text itself, the words that say most in brackets with what they say."""
        family = self.column_words.family
        text = self.text[: 10 * MOST_CHARACTERS]
        units = [
            unit
            for unit in _words_in(text, family.lowercase, family.strip_accents)
            if len(unit[0]) >= family.shortest and unit[0] not in family.stop_words
        ]
        taken: set[int] = set()
        marks: list[tuple[int, int, str]] = []
        for word in self.words[:MOST_WORDS]:  # of n-grams that overlap the one that says most is marked
            value = f" {word.decibans:+.1f}"
            size = word.word.count(" ") + 1
            for k in range(len(units) - size + 1):
                here = range(k, k + size)
                if " ".join(units[u][0] for u in here) == word.word and taken.isdisjoint(here):
                    taken.update(here)
                    marks.append((units[k][1], units[k + size - 1][2], value))
                    value = ""  # said once for all times that it is there
        parts, end = [], 0
        for first, last, value in sorted(marks):
            if first >= end:
                parts += [text[end:first], f"[{text[first:last]}{value}]"]
                end = last
        return _around("".join([*parts, text[end:]]), cut=len(text) < len(self.text))

    def __str__(self) -> str:
        spoken = [word for word in self.words[:MOST_WORDS] if round(word.decibans, 1) != 0.0]
        lines = []
        for sign, name in ((1.0, "for"), (-1.0, "against")):
            if some := [str(word) for word in spoken if sign * word.decibans > 0.0]:
                lines.append(f"  {name + ':':8} {', '.join(some)}")
        if others := [word for word in self.words if word not in spoken]:
            more = sum(word.decibans for word in others)
            lines.append(f"  {counted(len(others), 'other word')} {more:+.1f}")
        absent = [str(word) for word in self.absent]
        if self.others_absent:
            absent.append(f"{self._others_absent} {self.rest:+.1f}")
        if absent:
            lines.append(f"  absent:  {', '.join(absent)}")
        if self.column_words.family.analyzer == "word" and self.column_words.family.tokenizer is None:
            lines.append(f"  {self.marked}")
        return "\n".join([f"{self.column}, {counted(len(self.words), 'known word')} {self.decibans:+.1f}:", *lines])


def _words_in(text: str, lowercase: bool, strip_accents: bool) -> Iterator[tuple[str, int, int]]:
    """The words of a text as the vocabulary has them, and where each begins and ends as it is written."""
    small = text.lower() if lowercase else text  # as a whole: the small form of a letter may depend on its neighbours
    written, place, at = [], [], 0
    for k, character in enumerate(text):
        size = len(character.lower()) if lowercase else 1
        becomes = prepared(small[at : at + size], False, strip_accents)
        written.append(becomes)
        place += [k] * len(becomes)
        at += size
    place.append(len(text))
    for found in re.finditer(r"\w+", "".join(written)):
        last = max(place[found.end() - 1] + 1, place[found.end()])  # with the accents behind it, which became nothing
        yield found[0], place[found.start()], last


def _around(text: str, cut: bool) -> str:
    """A text on one line, cut off where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS and not cut else line[: MOST_CHARACTERS - 1] + "…"


def text_evidence(model: Model, row: Table, best: int, other: int) -> Iterator[TextEvidence]:
    """What the texts of one row say for the best class against another."""
    for p, group in enumerate(model.schema.groups):
        likelihood = model.likelihoods[p]
        if not isinstance(likelihood, TextLikelihood):
            continue
        cells = group.family.read(row, group.columns)
        for j, column in enumerate(group.columns):
            weight = float(model.weights[model.schema.block_slots[p][j]])
            mine = likelihood.columns[j]
            if weight == 0.0 or cells[j].null_count or not len(mine.words):
                continue
            terms = mine.terms(cells[j])
            said, unsaid = (
                DECIBANS * weight * (each[:, best] - each[:, other]) for each in (terms.said, terms.said_absent)
            )
            order, missed = (np.argsort(-np.abs(each), kind="stable") for each in (said, unsaid))
            spoken = [
                WordEvidence(shown(mine.words[terms.words[k]]), float(terms.amounts[k]), float(said[k])) for k in order
            ]
            telling = [k for k in missed[:MOST_ABSENT] if abs(unsaid[k]) >= LEAST_ABSENT]
            absent = [WordEvidence(shown(mine.words[terms.absent[k]]), 0.0, float(unsaid[k])) for k in telling]
            others = missed[len(absent) :]
            text = decoded_cells(cells[j])[0] or ""
            yield TextEvidence(
                model.schema.column_name(column), text, tuple(spoken), tuple(absent), others.size,
                float(unsaid[others].sum()), mine,
            )  # fmt: skip


@dataclass(frozen=True)
class TopWord:
    """A word that tells a class: in decibans for it against all others, and its counts there and elsewhere."""

    word: str
    decibans: float
    count: float
    elsewhere: float


class TopWords(list[TopWord]):
    """Words that tell a class, the most telling first; print them."""

    def __str__(self) -> str:
        lines = [("word", "decibans", "in class", "elsewhere")]
        lines += [(w.word, f"{w.decibans:+.1f}", amount(w.count), amount(w.elsewhere)) for w in self]
        return aligned(lines, right=[1, 2, 3])


def top_words_of(model: Model, label: int, most: int, column: str | None = None) -> TopWords:
    """The words by which texts of a class are known, in a column of texts; `column` names it if there are several."""
    if not isinstance(most, int | np.integer) or most < 0:
        raise UsageError(f"top_words(n={most!r}): give a whole number that is at least 0")
    texts = {
        model.schema.column_name(place): text
        for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True)
        for place, text in zip(group.columns, getattr(likelihood, "texts", ()), strict=False)
    }
    if not texts or (column is not None and column not in texts):
        problem = "no column is Text()" if column is None else f"column {column!r} is not Text()"
        raise UsageError(f"top_words: {problem}; see schema_")
    if column is None and len(texts) > 1:
        raise UsageError(f"top_words: several columns are Text(): {', '.join(texts)}; name one in column=")
    return top_words(texts[column] if column is not None else next(iter(texts.values())), label, most)


def top_words(column: TextColumn, label: int, most: int) -> TopWords:
    """The words by which the texts of a class are known: those that say most, times how often they say it.

    Of those that say the same, the first in the alphabet.
    """
    counts, total = column.counts[:, label], column.counts.sum(axis=1)
    own, rest = _share(column, counts), _share(column, total - counts)
    said = np.log(own) - np.log(rest)
    telling = own * said
    least = np.partition(telling, -most)[-most] if 0 < most < telling.size else 0.0
    enough = np.flatnonzero((telling >= least) & (said > 0.0))
    order = sorted(enough.tolist(), key=lambda k: (-telling[k], column.words[k]))[:most]
    return TopWords(
        TopWord(shown(column.words[k]), float(DECIBANS * said[k]), float(counts[k]), float(total[k] - counts[k]))
        for k in order
    )


def _share(column: TextColumn, counts: Floats) -> Any:
    """Their share of all counts, smoothed, so that none is 0."""
    alpha = max(column.family.alpha, 1e-3)
    return (counts + alpha) / (counts.sum() + alpha * counts.size)
