"""Texts, cut into words or characters, and the evidence of their words."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any, Callable

from deciban.export.python_runtime.cells import Column, Row, add_to, decoded_array, zeros
from deciban.export.python_runtime.terms import Term

_WORD = re.compile(r"\w+")
_SPACES = re.compile(r"[\s\0]+")
_SPACES_THAT_CHANGE = re.compile(r"[\s\0]{2,}|\0")
_MASK = (1 << 64) - 1


def folded_text(text: str, tokens: dict[str, Any]) -> str:
    """A text in small letters and without accents, as far as these are wanted."""
    text = text.lower() if tokens["lowercase"] else text
    if not tokens["strip_accents"] or text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def units_of(text: str, tokens: dict[str, Any]) -> list[list[str]]:
    """The words of a text, or its characters, of several white spaces one space.

    They are one group; of characters in words there is a group for each word, with a space before and behind it.
    """
    if tokens["analyzer"] == "word":
        words = (word for word in _WORD.findall(text) if len(word) >= tokens["min_word_length"])
        return [[word for word in words if word not in tokens["stop_words"]]]
    if tokens["analyzer"] == "char":
        return [list(_SPACES_THAT_CHANGE.sub(" ", text))]
    return [[" ", *word, " "] for word in _SPACES.split(text) if word]


def tokens_of(text: str, tokens: dict[str, Any]) -> list[str]:
    """What is counted of a text: words, or n-grams of the units of each group."""
    between = " " if tokens["analyzer"] == "word" else ""
    found = []
    for units in units_of(folded_text(text, tokens), tokens):
        for n in range(tokens["least"], tokens["most"] + 1):
            found += [between.join(units[k : k + n]) for k in range(len(units) - n + 1)]
        if tokens["analyzer"] == "char_wb" and len(units) < tokens["least"]:
            found.append("".join(units))
    return found


def mixed(a: int, b: int) -> int:
    """Both halves of a product of 64-bit numbers, one on the other."""
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def bucket_of(word: str, buckets: int, seeds: list[int]) -> int:
    """The bucket of a rare word: a hash of its bytes."""
    data = word.encode("utf-8")
    size = len(data)

    def eight(begin: int) -> int:
        return int.from_bytes(data[begin : begin + 8], "little")

    if size < 16:
        first, more = eight(0), eight(8) | size << 56
    else:
        first, more = seeds[0], size | 0xFF << 56
        for place in range(0, size - 8, 8):
            first = mixed(first ^ eight(place), seeds[1])
        first = mixed(first ^ eight(size - 8), seeds[2])
    return mixed(first ^ seeds[3], more ^ seeds[4]) % buckets


def word_numbers(encoded: dict[str, Any]) -> Callable[[str], int | None]:
    """A function from a word to its number in the vocabulary; None where it has none."""
    numbers = {word: number for number, word in enumerate(encoded["words"])}
    if not encoded["buckets"]:
        return numbers.get
    of_bucket = {int(word[1:], 16): number for word, number in numbers.items() if word.startswith("\0")}
    seeds = [int(seed) for seed in encoded["seeds"]]

    def number_of(word: str) -> int | None:
        found = numbers.get(word)
        return of_bucket.get(bucket_of(word, encoded["buckets"], seeds)) if found is None else found

    return number_of


def amount_of(term_counts: str, count: int) -> float:
    """What a word that is there so often amounts to."""
    if term_counts == "log":
        return 1.0 + math.log(count)
    return math.sqrt(count) if term_counts == "root" else 1.0 if term_counts == "presence" else float(count)


class Words:
    """The words of a column of texts, and their evidence."""

    def __init__(self, encoded: dict[str, Any], classes: int) -> None:
        self.encoded, self.classes = encoded, classes
        self.tokens = {**encoded["tokens"], "stop_words": frozenset(encoded["tokens"]["stop_words"])}
        self.number_of = word_numbers(encoded)
        self.scores, self.row = decoded_array(encoded["scores"]), decoded_array(encoded["row"])
        self.zeros = decoded_array(encoded["zeros"]) if encoded["presence"] else []
        self.blocked = decoded_array(encoded["blocked"]) if encoded["presence"] else []
        self.tempering = float(encoded["tempering"])

    def known_words(self, text: str) -> list[tuple[int, float]]:
        """The words that are known, each with its amount."""
        term_counts, normalize = self.encoded["term_counts"], self.encoded["normalize"]
        found = [self.number_of(word) for word in tokens_of(text, self.tokens)]
        numbers = [number for number in found if number is not None]
        if term_counts == "count" and not normalize and self.tempering == 0:
            return [(number, 1.0) for number in numbers]
        times: dict[int, int] = {}
        for number in numbers:
            times[number] = times.get(number, 0) + 1
        words = [(number, amount_of(term_counts, count)) for number, count in times.items()]
        if not normalize:
            return words
        length = max(math.sqrt(sum(amount * amount for _, amount in words)), 1e-300)
        return [(number, amount / length) for number, amount in words]

    def amounts_score(self, words: list[tuple[int, float]]) -> list[float]:
        """What each word adds, times its amount."""
        total, classes = zeros(self.classes), self.classes
        for number, amount in words:
            at = self.row[number] * classes
            add_to(total, amount, self.scores[at : at + classes])
        return total

    def presence_score(self, words: list[tuple[int, float]]) -> list[float]:
        """All words absent, exchanged for those that are there; terms of -inf are counted, to be taken back."""
        found = []
        for c in range(self.classes):
            stops, total = self.blocked[c], 0.0
            for number, _ in words:
                at = 2 * self.row[number] * self.classes + c
                one, zero = self.scores[at], self.scores[at + self.classes]
                stops += (one == -math.inf) - (zero == -math.inf)
                total += (0.0 if one == -math.inf else one) - (0.0 if zero == -math.inf else zero)
            found.append(-math.inf if stops > 0 else self.zeros[c] + total)
        return found

    def score(self, text: str) -> list[float]:
        """The evidence of a text for each class."""
        words = self.known_words(text)
        total = self.presence_score(words) if self.encoded["presence"] else self.amounts_score(words)
        length = sum(amount for _, amount in words)
        power = 1.0 if self.tempering == 0 else max(length, 1.0) ** -self.tempering
        return [power * value for value in total]


def text_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """The words of a text."""
    (column,) = columns
    known = Words(term, classes) if term["words"] else None

    def score(row: Row) -> list[float] | None:
        text = row.text(column)
        return None if text is None or known is None else known.score(text)

    return Term(columns, lambda row: row.text(column), score)
