"""The parameters of Text, what they may be, and what the words of a text count."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.families.base.checks import check_amount
from deciban.families.base.contract import ColumnFamily
from deciban.families.text.tokens import Analyzer, Tokenizer, Tokens
from deciban.util.arrays import Floats
from deciban.util.sparse import SparseRows

TermCounts = Literal["count", "log", "root"]

KindName = Literal["multinomial", "bernoulli", "complement", "lift"]

# The largest sizes that can be asked for.
MAX_SIZE = 1 << 24

TERM_COUNT_RULES: dict[str, Callable[[Floats], Floats]] = {
    "count": lambda times: times,
    "log": lambda times: 1.0 + np.log(times),
    "root": np.sqrt,
    "presence": np.ones_like,
}


class TermWeights(NamedTuple):
    """What a word that is in a text n times counts: n, 1 + log n, the root of n, or 1 ("presence").

    normalize: the amounts of a text are divided by their length, the root of the sum of their squares.
    """

    term_counts: Literal["count", "log", "root", "presence"]
    normalize: bool = False

    @property
    def plain(self) -> bool:
        """Whether each word counts as often as it is there."""
        return self.term_counts == "count" and not self.normalize

    @property
    def presence(self) -> bool:
        """Whether words are there or not."""
        return self.term_counts == "presence"

    def of(self, rows: SparseRows) -> SparseRows:
        """The amounts of the words of texts, each a row, from how often they are there."""
        if self.plain:
            return rows
        amounts = TERM_COUNT_RULES[self.term_counts](rows.stored)
        if self.normalize:
            length = np.sqrt(row_sums(rows.with_values(amounts**2)))
            amounts = amounts / np.repeat(np.maximum(length, 1e-300), np.diff(rows.indptr))
        return rows.with_values(amounts)


def row_sums(rows: SparseRows) -> Floats:
    """The sum of what is stored in each row."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.bincount(row, rows.stored, rows.shape[0]).astype(np.float64)


@dataclass(frozen=True, repr=False)
class TextOptions(ColumnFamily):
    """The parameters of Text, which describes them."""

    kind: KindName = "multinomial"
    alpha: float = 1.0
    analyzer: Analyzer = "word"
    ngram_range: tuple[int, int] = (1, 1)
    lowercase: bool = True
    strip_accents: bool = False
    stop_words: tuple[str, ...] = ()
    tokenizer: Tokenizer | None = None
    min_word_length: int = 2
    term_counts: TermCounts = "count"
    normalize: bool = False
    min_count: float = 0.0
    max_features: int | None = None
    tempering: float = 0.0
    linear: float = 0.0

    def __post_init__(self) -> None:
        for name, checked in CHECKS.items():
            object.__setattr__(self, name, checked(name, getattr(self, name)))
        if self.min_count > 0.0 and self.max_features is not None:
            raise UsageError(
                ("Text(min_count=, ", Argument("max_features"), "): a bound already drops rare words"),
                remedy="give one of the two",
            )
        if self.tokenizer is not None and self.analyzer != "word":
            raise UsageError(
                "Text(tokenizer=...): a tokenizer finds words",
                remedy=("leave out ", Argument("analyzer", self.analyzer)),
            )

    @cached_property
    def tokens(self) -> Tokens:
        """What of a text is a word."""
        return Tokens(
            self.analyzer, self.ngram_range, self.lowercase, self.strip_accents, self.stop_words, self.min_word_length,
            self.tokenizer,
        )  # fmt: skip


def _amount(name: str, value: Any) -> float:
    check_amount(name, value)
    return value  # type: ignore[no-any-return]  # it was checked


def _share(name: str, value: Any) -> float:
    if _amount(name, value) > 1.0:
        raise UsageError(f"Text({name}={value!r}): give a share between 0 and 1")
    return value  # type: ignore[no-any-return]  # it was checked


def _choice(choices: tuple[str, ...], name: str, value: Any) -> str:
    if value not in choices:
        raise UsageError(f"Text({name}={value!r}): choose one of {', '.join(map(repr, choices))}")
    return value  # type: ignore[no-any-return]  # it was checked


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"Text({name}={value!r}): give True or False")
    return value


def _accents(name: str, value: Any) -> bool:
    """A flag, or None or "unicode" as in scikit-learn."""
    return _flag(name, {None: False, "unicode": True}.get(value, value) if isinstance(value, str | None) else value)


def _size(least: int, name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_SIZE:
        raise UsageError(f"Text({name}={value!r}): give a whole number from {least} to {MAX_SIZE}")
    return value


def _size_or_none(least: int, name: str, value: Any) -> int | None:
    return None if value is None else _size(least, name, value)


def _words(name: str, value: Any) -> tuple[str, ...]:
    """Words in order, each once; None, as in scikit-learn, is none."""
    given = () if value is None else value
    words = given if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"Text({name}={words!r}): give the words themselves, in a list")
    return tuple(sorted({word.encode(errors="replace").decode() for word in words}))


def _range(name: str, value: Any) -> tuple[int, int]:
    found = tuple(value) if isinstance(value, tuple | list) else ()
    if len(found) != 2 or not all(isinstance(n, int) for n in found) or not 1 <= found[0] <= found[1] <= 100:
        raise UsageError(f"Text({name}={value!r}): give (1, 2) for single words and pairs")
    return found[0], found[1]


def _function(name: str, value: Any) -> Tokenizer | None:
    if value is not None and not callable(value):
        raise UsageError(f"Text({name}={value!r}): give a function from a text to its words")
    return value  # type: ignore[no-any-return]  # it was checked


# What each parameter becomes, from its name and what was given; a UsageError where that cannot be.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "alpha": _amount,
    "min_count": _amount,
    "tempering": _amount,
    "linear": _share,
    "kind": partial(_choice, get_args(KindName)),
    "analyzer": partial(_choice, get_args(Analyzer)),
    "term_counts": partial(_choice, get_args(TermCounts)),
    "lowercase": _flag,
    "strip_accents": _accents,
    "normalize": _flag,
    "stop_words": _words,
    "ngram_range": _range,
    "min_word_length": partial(_size, 1),
    "max_features": partial(_size_or_none, 16),
    "tokenizer": _function,
}
