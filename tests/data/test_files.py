"""Tables read from files."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from deciban import BayesClassifier


def test_a_column_may_be_called_as_duckdb_calls_the_number_of_a_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"File_Row_Number": rng.normal(size=20_000), "kind": rng.integers(0, 2, 20_000)})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = BayesClassifier(tune=None).fit(tmp_path / "t.parquet", "kind")
    expected = BayesClassifier(tune=None).fit(table, "kind")
    assert found.schema_.names == ("File_Row_Number",)
    np.testing.assert_allclose(found.predict_proba(table), expected.predict_proba(table), rtol=1e-12)
