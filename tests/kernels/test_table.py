"""The table of kernels is complete, and each kernel has a test."""

import ast
import re
from pathlib import Path
from pkgutil import iter_modules

from deciban import kernels

HERE = Path(__file__).parent

# Modules whose kernels are tested through their callers, in tests/families/text/ and tests/sources: they pass a
# hash table, buffers or the state of a parser from one to the next, so that one alone has no twin of a few lines.
TESTED_BY_CALLERS = {
    *("texts", "words", "word_counts", "word_order", "left_out_texts", "bits"),
    *("csv_cells", "json_cells"),
}

# Kernels that hand digits, slices or a table of contents from one to the next. Their callers are tested: against exact
# fractions (test_moments.py, test_totals.py), sets of rows (test_row_hashes.py) and all cells (tune/test_partial.py).
TESTED_TOGETHER = {
    *("add_products", "carry", "add_limbs", "multiply_limbs", "limbs_as_doubles", "limb_quotients", "limb_scatters"),
    *("largest_cells", "smallest_cells", "add_sliced_cells", "add_other_cells", "add_rows", "slice_rows"),
    *("add_amounts", "add_sparse_amounts", "Slices", "MomentDigits", "add_partial_corrections", "add_partial_shares"),
    *("Contents", "count_contents", "look_up_contents", "move_contents", "release_contents"),
}


def kernels_of(path: Path) -> set[str]:
    """The functions of a module that Python may call."""
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    ways_in = {"compiled", "compiled_to_reorder"}
    return {function.name for function in functions if ways_in & {ast.unparse(one) for one in function.decorator_list}}


def own_table() -> dict[str, str]:
    """The kernels that have a test of their own, and their modules; constants are left out."""
    return {name: home for name, home in kernels._HOMES.items() if home not in TESTED_BY_CALLERS and not name.isupper()}


def test_the_table_names_every_kernel() -> None:
    modules = [path for path in Path(kernels.__path__[0]).glob("*.py") if path.stem not in TESTED_BY_CALLERS]
    found = {name: path.stem for path in modules for name in kernels_of(path)}
    tuples = {name for name in own_table() if hasattr(getattr(kernels, name), "_fields")}
    assert found == {name: home for name, home in own_table().items() if name not in tuples}
    assert all(hasattr(kernels, name) for name in kernels._HOMES)


def test_no_module_stands_in_the_place_of_a_kernel() -> None:
    assert not kernels._HOMES.keys() & {module.name for module in iter_modules(kernels.__path__)}


def test_every_kernel_is_named_by_a_test() -> None:
    tests = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    named = set(re.findall(r"kernels\.(\w+)", tests))
    assert not own_table().keys() - named - TESTED_TOGETHER
