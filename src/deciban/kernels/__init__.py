"""Compiled loops over arrays: no objects, no policy, no messages.

Names are looked up on first use, so that importing deciban imports neither numba nor a kernel. No module may have the
name of a kernel: once imported it would stand in its place.
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
    "count_bins": "bins",
    "occupy_bins": "bins",
    "hash_rows": "row_hashes",
    "hash_numbers": "row_hashes",
    "hash_texts": "row_hashes",
    "Contents": "row_hashes",
    "count_contents": "row_hashes",
    "look_up_contents": "row_hashes",
    "release_contents": "row_hashes",
    "move_contents": "row_hashes",
    "left_out_normal": "left_out_moments",
    "left_out_lookup": "left_out_levels",
    "left_out_cholesky": "left_out_scatter",
    "left_out_linear": "left_out_totals",
    "left_out_shares": "left_out_texts",
    "left_out_lifts": "left_out_texts",
    "left_out_presence": "left_out_texts",
    "NormalColumns": "left_out_moments",
    "NormalClasses": "left_out_moments",
    "VarianceRule": "left_out_moments",
    "LevelCounts": "left_out_levels",
    "JointClasses": "left_out_scatter",
    "ShareCounts": "left_out_totals",
    "normalize": "posterior",
    "least_risk": "risks",
    "learn_corrections": "correcting",
    "CorrectedRows": "correcting",
    "TableSearch": "correcting",
    "GrownTables": "correcting",
    "add_corrections": "corrections",
    "add_partial_corrections": "corrections",
    "add_partial_shares": "corrections",
    "find_cells": "corrections",
    "WhitenedNormals": "scoring_normal",
    "JointNormals": "scoring_normal",
    "BinaryTerms": "scoring",
    "score_normal": "scoring_normal",
    "score_joint_normal": "scoring_normal",
    "score_holed_normal": "scoring_normal",
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
