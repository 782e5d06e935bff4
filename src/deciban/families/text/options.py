"""Parameters of Text, their checks, and the amounts that words count."""

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

# Maximum of `min_word_length` and `max_features`.
MAX_SIZE = 1 << 24

# Functions from the number of occurrences of a word in a text to its amount.
TERM_COUNT_RULES: dict[str, Callable[[Floats], Floats]] = {
    "count": lambda times: times,
    "log": lambda times: 1.0 + np.log(times),
    "root": np.sqrt,
    "presence": np.ones_like,
}


class TermWeights(NamedTuple):
    """Amount of a word that occurs n times in a text: n, 1 + log n, the square root of n, or 1 ("presence").

    normalize: divide the amounts of a text by their Euclidean norm.
    """

    term_counts: Literal["count", "log", "root", "presence"]
    normalize: bool = False

    @property
    def plain(self) -> bool:
        """True if amounts are plain counts."""
        return self.term_counts == "count" and not self.normalize

    @property
    def presence(self) -> bool:
        """True if only the presence of words counts."""
        return self.term_counts == "presence"

    def of(self, rows: SparseRows) -> SparseRows:
        """Return the amounts of the words of texts, one row per text, from their counts."""
        if self.plain:
            return rows
        amounts = TERM_COUNT_RULES[self.term_counts](rows.stored)
        if self.normalize:
            length = np.sqrt(rows.with_values(amounts**2).sum())
            amounts = amounts / np.repeat(np.maximum(length, 1e-300), np.diff(rows.indptr))
        return rows.with_values(amounts)


@dataclass(frozen=True, repr=False)
class TextOptions(ColumnFamily):
    """Parameters of `Text`, which documents them."""

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
        for name, convert in CHECKS.items():
            object.__setattr__(self, name, convert(name, getattr(self, name)))
        if self.min_count > 0.0 and self.max_features is not None:
            raise UsageError(
                ("Text(min_count=, ", Argument("max_features"), "): cannot be combined"),
                remedy="pass one of the two",
            )
        if self.tokenizer is not None and self.analyzer != "word":
            raise UsageError(
                "Text(tokenizer=...): only supported with analyzer='word'",
                remedy=("remove ", Argument("analyzer", self.analyzer)),
            )

    @cached_property
    def tokens(self) -> Tokens:
        """Rules that split a text into words."""
        return Tokens(
            self.analyzer, self.ngram_range, self.lowercase, self.strip_accents, self.stop_words, self.min_word_length,
            self.tokenizer,
        )  # fmt: skip


def _amount(name: str, value: Any) -> float:
    check_amount(name, value)
    return value  # type: ignore[no-any-return]  # it was checked


def _share(name: str, value: Any) -> float:
    if _amount(name, value) > 1.0:
        raise UsageError(f"Text({name}={value!r}): expected a share between 0 and 1")
    return value  # type: ignore[no-any-return]  # it was checked


def _choice(choices: tuple[str, ...], name: str, value: Any) -> str:
    if value not in choices:
        raise UsageError(
            f"Text({name}={value!r}): unknown value", remedy=f"choose one of {', '.join(map(repr, choices))}"
        )
    return value  # type: ignore[no-any-return]  # it was checked


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"Text({name}={value!r}): expected True or False")
    return value


def _accents(name: str, value: Any) -> bool:
    """Convert None and "unicode", as in scikit-learn, to a flag."""
    return _flag(name, {None: False, "unicode": True}.get(value, value) if isinstance(value, str | None) else value)


def _size(min_size: int, name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not min_size <= value <= MAX_SIZE:
        raise UsageError(f"Text({name}={value!r}): expected a whole number from {min_size} to {MAX_SIZE}")
    return value


def _size_or_none(min_size: int, name: str, value: Any) -> int | None:
    return None if value is None else _size(min_size, name, value)


def _words(name: str, value: Any) -> tuple[str, ...]:
    """Return the distinct words, sorted; None, as in scikit-learn, stands for no words."""
    given = () if value is None else value
    words = given if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UsageError(f"Text({name}={words!r}): expected a list of words")
    return tuple(sorted({word.encode(errors="replace").decode() for word in words}))


def _range(name: str, value: Any) -> tuple[int, int]:
    found = tuple(value) if isinstance(value, tuple | list) else ()
    if len(found) != 2 or not all(isinstance(n, int) for n in found) or not 1 <= found[0] <= found[1] <= 100:
        raise UsageError(
            f"Text({name}={value!r}): expected two whole numbers, from 1 to 100, in ascending order",
            remedy="use (1, 2) for single words and pairs",
        )
    return found[0], found[1]


def _function(name: str, value: Any) -> Tokenizer | None:
    if value is not None and not callable(value):
        raise UsageError(f"Text({name}={value!r}): expected a function from a text to its words")
    return value  # type: ignore[no-any-return]  # it was checked


# Functions that check and convert the value of each parameter; they raise UsageError.
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
