"""Each kernel has a test."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from deciban import kernels

HERE = Path(__file__).parent

# Modules whose kernels are tested through their callers, in tests/families/text/ and tests/sources: they pass a
# hash table, buffers or the state of a parser from one to the next, so that one alone has no twin of a few lines.
TESTED_BY_CALLERS = {"tokenize", "word_index", "instructions"}

# Kernels that hand digits, slices or a table of contents from one to the next. Their callers are tested: against exact
# fractions (test_moments.py, test_totals.py), sets of rows (test_row_hashes.py) and all cells
# (fitting/tune/test_missing_cells.py).
TESTED_TOGETHER = {
    *("add_products", "carry", "add_limbs", "multiply_limbs", "limbs_as_doubles", "limb_quotients", "limb_scatters"),
    *("largest_cells", "smallest_cells", "add_sliced_cells", "add_other_cells", "add_rows", "slice_rows"),
    *("add_amounts", "add_sparse_amounts", "Slices", "MomentDigits", "add_partial_corrections", "add_partial_shares"),
    *("Contents", "count_contents", "look_up_contents", "move_contents", "release_contents"),
    *("score_shares", "score_lifts", "score_presence"),  # of left-out texts: tests/families/text
}


def kernels_of(path: Path) -> set[str]:
    """The functions of a module that Python may call."""
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {one.name for one in functions if "compile_kernel" in map(ast.unparse, one.decorator_list)}


def test_every_kernel_is_named_by_a_test() -> None:
    tests = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    named = set(re.findall(r"kernels\.(\w+\.\w+)", tests))
    modules = [path for path in Path(kernels.__path__[0]).glob("*.py") if path.stem not in TESTED_BY_CALLERS]
    found = {f"{path.stem}.{name}" for path in modules for name in kernels_of(path) - TESTED_TOGETHER}
    assert len(found) > 20
    assert not found - named


def test_modules_are_imported_on_first_use() -> None:
    assert kernels.scoring.normalize is import_module("deciban.kernels.scoring").normalize
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kernels.nothing
