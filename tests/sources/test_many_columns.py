"""Time grows in proportion to the number of columns."""

import ast
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deciban
from deciban import BayesClassifier, Gaussian
from deciban.schema.schema import GIVEN, ColumnGroup, Schema
from deciban.sources.csv import CsvRead, CsvSource
from deciban.sources.source import ColumnType
from deciban.sources.write import to_stream
from deciban.store.model_file import identity
from deciban.tables.table import Frame, with_columns

# What takes as long as a table has columns, so that nobody may do it once for each of them.
LONG = {"set_column", "append_column", "add_column", "remove_column"}


def wide(columns: int) -> pa.Table:
    cells = {f"n{j}": np.arange(2.0) for j in range(columns // 2)}
    return pa.table({**cells, **{f"t{j}": ["red", "blue"] for j in range(columns // 2)}})


def csv(table: pa.Table) -> None:
    with to_stream(io.BytesIO(), "csv") as write:
        write(table)


def resolve_types(table: pa.Table) -> None:
    names = tuple(table.column_names)
    types = {name: ColumnType("VARCHAR") for name in names}
    _, found = CsvSource("table.csv", names, (CsvRead((), ()),), types=types).resolve_types(table)
    assert found.schema.types[0] == pa.int64()


def named_blocks(table: pa.Table) -> None:
    part = ColumnGroup(Gaussian(), tuple(range(table.num_columns)), (GIVEN,) * table.num_columns)
    assert Schema(tuple(table.column_names), table.num_columns, (part,)).block_names[1] == "n1"


WORK: dict[str, Callable[[pa.Table], None]] = {
    "CSV is written": csv,
    "types are resolved": resolve_types,
    "blocks are named": named_blocks,
    "columns are added": lambda table: with_columns(
        Frame(table), {str(j): np.zeros(2) for j in range(table.num_columns)}
    ) and None,
}  # fmt: skip


@pytest.mark.parametrize("what", WORK)
def test_the_time_of_work_on_columns_grows_in_proportion_to_their_number(what: str) -> None:
    few, many = wide(200), wide(3_200)

    def seconds(table: pa.Table) -> float:
        start = time.process_time()
        WORK[what](table)
        return time.process_time() - start

    seconds(few)
    # sixteen times as many, some time for their cache; squares would take 256 times as long
    assert min(seconds(many) for _ in range(2)) < 64 * max(min(seconds(few) for _ in range(5)), 1e-3)


def test_a_shard_gets_its_name_in_proportion_to_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: the columns that are handed on to be split off."""
    from deciban.statistics import Moments

    handed = 0
    original = Moments.reindex_columns

    def counted(self: Moments, positions: np.ndarray, size: int) -> Moments:
        nonlocal handed
        handed += positions.size
        return original(self, positions, size)

    monkeypatch.setattr(Moments, "reindex_columns", counted)
    columns = 512
    rows = np.random.default_rng(0).normal(size=(4, columns))
    identity(BayesClassifier(tune=None).fit(rows, [0, 1, 0, 1]).counts_)
    assert handed <= 2 * columns * np.log2(columns)


def loops(tree: ast.AST) -> Iterator[ast.AST]:
    kinds = (ast.For, ast.While, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def test_no_loop_sets_one_column_of_an_arrow_table_after_the_other() -> None:
    sources = Path(deciban.__file__).parent.rglob("*.py")
    found = [
        f"{path.name}:{call.lineno}"
        for path in sources
        for loop in loops(ast.parse(path.read_text()))
        for call in ast.walk(loop)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in LONG
    ]
    assert not found


def test_tables_of_many_columns_are_written_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = wide(8_000)
    with open("wide.jsonl", "wb") as file, to_stream(file, "json") as write:
        write(table)
    lines = Path("wide.jsonl").read_bytes().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(b'{"n0":0.0,')
