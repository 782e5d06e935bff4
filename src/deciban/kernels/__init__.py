"""Compiled loops over arrays: no objects, no policy, no messages.

Names are looked up on first use, so that importing deciban imports neither numba nor a kernel.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "sum_first_rows": "moments",
    "sum_deviations": "moments",
    "sum_present_deviations": "moments",
    "count_totals": "totals",
    "count_sparse_totals": "totals",
    "all_finite": "checks",
    "all_within": "checks",
    "count_codes": "levels",
    "count_integers": "levels",
    "integer_ranges": "levels",
    "encode_integers": "levels",
    "count_cells": "bins",
    "occupy_cells": "bins",
    "hash_rows": "row_hashes",
    "left_out_normal": "left_out",
    "left_out_lookup": "left_out",
    "left_out_cholesky": "left_out",
    "left_out_linear": "left_out",
    "left_out_shares": "left_out_texts",
    "left_out_lifts": "left_out_texts",
    "left_out_presence": "left_out_texts",
    "normalize": "posterior",
    "least_risk": "least_risk",
    "weight_slope": "weight_slope",
    "score_normal": "scoring",
    "score_joint_normal": "scoring",
    "score_holed_normal": "scoring",
    "score_lookup": "scoring",
    "score_binary": "scoring",
    "score_all_binary": "scoring",
    "score_linear": "scoring",
    "score_sparse_linear": "scoring",
    "score_sparse_binary": "scoring",
    "score_half_line": "scoring",
    "find_words": "texts",
    "number_texts": "texts",
    "find_characters": "texts",
    "keep_words": "words",
    "number_words": "words",
    "index_words": "words",
    "move_entries": "words",
    "list_grams": "words",
    "word_buckets": "words",
    "count_words": "word_counts",
    "count_per_text": "word_counts",
    "first_bytes": "word_order",
    "sort_ties": "word_order",
    "add_counts": "word_counts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kernel = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = kernel
    return kernel
