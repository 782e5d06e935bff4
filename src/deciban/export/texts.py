"""Columns of texts for the scorer: how they are cut into words, and what each word says."""

from typing import Any

import numpy as np

from deciban.errors import UsageError
from deciban.export.encoding import floats, integers, number
from deciban.families.bernoulli import Exchange
from deciban.families.text.family import TextColumn
from deciban.families.text.tokens import Tokens
from deciban.statistics.vocabulary import BUCKET_SEEDS, buckets_beyond
from deciban.tables.table import decoded_cells
from deciban.util.arrays import Floats


def text_as_json(column: TextColumn, name: str) -> dict[str, Any]:
    """What the scorer reads of one column; a UsageError that names it where it has a tokenizer of the user's."""
    options = column.options
    if options.tokenizer is not None:
        raise UsageError(
            f"column {name!r}: Text(tokenizer=…) is a function of Python, which cannot be exported; "
            f"leave it out (analyzer, ngram_range, stop_words and shortest can be), and fit again"
        )
    weights = column.term_weights
    return {
        "tokens": _tokens(options.tokens),
        "words": decoded_cells(column.words.array),
        "buckets": buckets_beyond(options.most_words),
        "seeds": [str(seed) for seed in BUCKET_SEEDS.tolist()] if options.most_words is not None else [],
        "amounts": weights.amounts,
        "normalize": weights.normalize,
        "tempering": number(options.tempering),
        **_word_scores(column),
    }


def _tokens(tokens: Tokens) -> dict[str, Any]:
    return {
        "analyzer": tokens.analyzer,
        "least": tokens.ngram_range[0],
        "most": tokens.ngram_range[1],
        "lowercase": tokens.lowercase,
        "strip_accents": tokens.strip_accents,
        "stop_words": list(tokens.stop_words),
        "shortest": tokens.shortest,
    }


def _word_scores(column: TextColumn) -> dict[str, Any]:
    """What each word adds to each class. Where words are there or not: then what it adds if it is not, and the sums of
    that over all words."""
    size = len(column.words)
    scores = column.kind.word_scores(np.arange(size), np.ones(size)).present
    if not column.term_weights.presence:
        return {"presence": False, **_distinct(scores)}
    absent = column.kind.word_scores(np.zeros(0, dtype=np.int64), np.zeros(0)).absent_scores
    sums = Exchange.of(scores, absent, np.ones(size))
    found = {"presence": True, "zeros": floats(sums.zeros), "blocked": floats(sums.blocked)}
    return found | _distinct(np.concatenate([scores, absent], axis=1))


def _distinct(scores: Floats) -> dict[str, Any]:
    """Rows of scores, each once, and which of them a word has: rare words have the same."""
    rows, place = np.unique(scores, axis=0, return_inverse=True)
    return {"scores": floats(rows), "row": integers(place.ravel())}
