"""Cells of a column as the type that it was learned with."""

import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import BadCell
from deciban.tables.cell_formats import EXPECTED_CELLS, CellFormat
from deciban.tables.text_types import kind_of, text_type

# What columns of these kinds may hold besides: true and false are 1 and 0.
TAKEN_AS_WELL = {"DOUBLE": ("BOOLEAN",), "BOOLEAN": ("DOUBLE",)}


def fits(kind: str, learned: str) -> bool:
    """Whether cells of this type (Arrow's, by name) are used as they are in a column that was learned as `learned`.

    Text was learned of text alone, which families say themselves.
    """
    wanted, found = kind_of(learned), kind_of(kind)
    if kind in (learned, "null") or wanted in ("", "VARCHAR"):
        return True
    return found == wanted or found in TAKEN_AS_WELL.get(wanted, ())


def as_learned(cells: pa.ChunkedArray, kind: str, learned: str) -> pa.ChunkedArray:
    """Cells that do not fit: missing ones, or text that reads as the learned type; a BadCell for anything else."""
    if cells.null_count == len(cells):
        return pa.chunked_array([pa.nulls(len(cells))])
    wanted = kind_of(learned)
    row = pc.indices_nonzero(cells.is_valid())[0].as_py()
    if kind == "string":
        texts = cells.cast(pa.string())
        whole = wanted == "DOUBLE" and text_type(texts) == "BIGINT"  # beyond what a double holds exactly
        try:
            return CellFormat("BIGINT" if whole else wanted, markers=False).read(texts)
        except BadCell as bad:
            row = bad.row
    text = str(cells[row].as_py()) if kind.startswith(("date", "time")) else repr(cells[row].as_py())
    shown = text if len(text) <= 40 else text[:37] + "..."
    expected = "a number" if wanted == "BOOLEAN" and kind != "string" else EXPECTED_CELLS.get(wanted, "a date")
    raise BadCell(0, row, f"found {shown} ({kind}), expected {expected}", "correct the cell, or leave it empty")
