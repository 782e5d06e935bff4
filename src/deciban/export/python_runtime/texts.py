"""Tokenization of texts, and the evidence of their words."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any, Callable

from deciban.export.python_runtime.cells import Column, Row, add_to, decode_array, zeros
from deciban.export.python_runtime.terms import Term

_WORD = re.compile(r"\w+")
_SPACES = re.compile(r"[\s\0]+")
_SPACES_THAT_CHANGE = re.compile(r"[\s\0]{2,}|\0")
_MASK = (1 << 64) - 1


def fold_text(text: str, tokens: dict[str, Any]) -> str:
    """Return a text in lower case and without accents, if these options are set."""
    text = text.lower() if tokens["lowercase"] else text
    if not tokens["strip_accents"] or text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def units_of(text: str, tokens: dict[str, Any]) -> list[list[str]]:
    """Return the words of a text, or its characters with runs of white space as one space.

    They are one group. For characters within words each word is a group, with a space before and after it.
    """
    if tokens["analyzer"] == "word":
        words = (word for word in _WORD.findall(text) if len(word) >= tokens["min_word_length"])
        return [[word for word in words if word not in tokens["stop_words"]]]
    if tokens["analyzer"] == "char":
        return [list(_SPACES_THAT_CHANGE.sub(" ", text))]
    return [[" ", *word, " "] for word in _SPACES.split(text) if word]


def tokens_of(text: str, tokens: dict[str, Any]) -> list[str]:
    """Return the tokens of a text: words, or n-grams of the units of each group."""
    between = " " if tokens["analyzer"] == "word" else ""
    found = []
    for units in units_of(fold_text(text, tokens), tokens):
        for n in range(tokens["least"], tokens["most"] + 1):
            found += [between.join(units[k : k + n]) for k in range(len(units) - n + 1)]
        if tokens["analyzer"] == "char_wb" and len(units) < tokens["least"]:
            found.append("".join(units))
    return found


def mix_halves(a: int, b: int) -> int:
    """Return the exclusive or of both halves of a product of 64-bit numbers."""
    product = a * b
    return (product & _MASK) ^ (product >> 64)


def bucket_of(word: str, buckets: int, seeds: list[int]) -> int:
    """Return the bucket of a rare word, a hash of its bytes."""
    data = word.encode("utf-8")
    size = len(data)

    def eight(begin: int) -> int:
        return int.from_bytes(data[begin : begin + 8], "little")

    if size < 16:
        first, more = eight(0), eight(8) | size << 56
    else:
        first, more = seeds[0], size | 0xFF << 56
        for place in range(0, size - 8, 8):
            first = mix_halves(first ^ eight(place), seeds[1])
        first = mix_halves(first ^ eight(size - 8), seeds[2])
    return mix_halves(first ^ seeds[3], more ^ seeds[4]) % buckets


def word_numbers(encoded: dict[str, Any]) -> Callable[[str], int | None]:
    """Return a function from a word to its index in the vocabulary; None for unknown words."""
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
    """Return the weight of a word that occurs `count` times."""
    if term_counts == "log":
        return 1.0 + math.log(count)
    return math.sqrt(count) if term_counts == "root" else 1.0 if term_counts == "presence" else float(count)


class Words:
    """Words of a text column, and their evidence."""

    def __init__(self, encoded: dict[str, Any], classes: int) -> None:
        self.encoded, self.classes = encoded, classes
        self.tokens = {**encoded["tokens"], "stop_words": frozenset(encoded["tokens"]["stop_words"])}
        self.number_of = word_numbers(encoded)
        self.scores, self.row = decode_array(encoded["scores"]), decode_array(encoded["row"])
        self.zeros = decode_array(encoded["zeros"]) if encoded["presence"] else []
        self.blocked = decode_array(encoded["blocked"]) if encoded["presence"] else []
        self.tempering = float(encoded["tempering"])

    def find_words(self, text: str) -> list[tuple[int, float]]:
        """Return the known words, each with its amount."""
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
        """Return the sum of the scores of the words times their amounts."""
        total, classes = zeros(self.classes), self.classes
        for number, amount in words:
            at = self.row[number] * classes
            add_to(total, amount, self.scores[at : at + classes])
        return total

    def presence_score(self, words: list[tuple[int, float]]) -> list[float]:
        """Return the score of all words being absent, corrected for those present.

        Terms of -inf are counted separately, so that they can be removed.
        """
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
        """Return the evidence of a text for each class."""
        words = self.find_words(text)
        total = self.presence_score(words) if self.encoded["presence"] else self.amounts_score(words)
        length = sum(amount for _, amount in words)
        power = 1.0 if self.tempering == 0 else max(length, 1.0) ** -self.tempering
        return [power * value for value in total]


def text_term(term: dict[str, Any], columns: list[Column], classes: int) -> Term:
    """Return a term for the words of a text."""
    (column,) = columns
    known = Words(term, classes) if term["words"] else None

    def score(row: Row) -> list[float] | None:
        text = row.text(column)
        return None if text is None or known is None else known.score(text)

    return Term(columns, lambda row: row.text(column), score)
