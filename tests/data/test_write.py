"""Tables written to files."""

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest

from deciban import BayesClassifier
from deciban.data.write import to_stream


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_text_of_any_arrow_type_is_written_and_runs_nothing(kind: str, tmp_path: Path) -> None:
    """pandas and polars hold text in their own ways; a spreadsheet must not run any of it."""
    cells = pa.array(["=1+1", "ok", "@x", "a,b"])
    given = cells.dictionary_encode() if kind == "dictionary" else cells.cast(getattr(pa, kind)())
    clf = BayesClassifier(tune=None).fit({"a": [1.0, 2.0, 3.0, 4.0]}, ["u", "v", "u", "v"])
    clf.predict_to(tmp_path / "p.csv", pa.table({"a": [1.0, 2.0, 3.0, 4.0], "note": given}))
    with (tmp_path / "p.csv").open(newline="") as file:
        assert [row["note"] for row in csv.DictReader(file)] == ["'=1+1", "ok", "'@x", "a,b"]


def test_an_empty_chunk_leaves_no_trace() -> None:
    """Arrow's own writer makes NUL bytes of it."""
    rows = pa.table({"a": ["x", "y"], "b": [1.0, 2.0]})
    file = io.BytesIO()
    with to_stream(file, "csv") as write:
        write(pa.concat_tables([rows.slice(0, 0), rows, rows.slice(0, 0), rows]))
    assert file.getvalue() == b"a,b\nx,1\ny,2\nx,1\ny,2\n"
