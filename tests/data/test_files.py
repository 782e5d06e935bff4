"""Tables read from files."""

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone

from deciban import BayesClassifier, Categorical, merge
from deciban.errors import DataError


def test_a_column_may_be_called_as_duckdb_calls_the_number_of_a_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"File_Row_Number": rng.normal(size=20_000), "kind": rng.integers(0, 2, 20_000)})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = BayesClassifier(tune=None).fit(tmp_path / "t.parquet", "kind")
    expected = BayesClassifier(tune=None).fit(table, "kind")
    assert found.schema_.names == ("File_Row_Number",)
    np.testing.assert_allclose(found.predict_proba(table), expected.predict_proba(table), rtol=1e-12)


def days(rows: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [f"2020-0{1 + (k + m) % 3}-01,{'ab'[k]}" for k, m in rng.integers(0, 2, (rows, 2))]


def test_dates_of_a_csv_file_are_dates_in_every_piece(tmp_path: Path) -> None:
    """As levels they are the same in a short file, a long one and a table in memory, and go out as they came."""
    lines = days(40_000)
    for name, part in {"short": lines[:500], "long": lines[500:], "all": lines}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["day,kind", *part]) + "\n")
    cells = [line.split(",") for line in lines]
    table = pa.table({"day": pa.array([date.fromisoformat(day) for day, _ in cells]), "kind": [c for _, c in cells]})
    clf = BayesClassifier({"day": Categorical()}, tune=None)
    short, long, whole = (clone(clf).fit(tmp_path / f"{name}.csv", "kind") for name in ("short", "long", "all"))
    memory = clone(clf).fit(table, "kind")
    expected = memory.predict_proba(table)
    for model in (merge([short, long]), whole, memory):
        np.testing.assert_array_equal(model.predict_proba(tmp_path / "all.csv"), expected)
    assert whole.shards_ == memory.shards_
    whole.predict_to(tmp_path / "p.csv", tmp_path / "all.csv")
    assert [line.split(",")[0] for line in (tmp_path / "p.csv").read_text().splitlines()[1:]] == [c for c, _ in cells]


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_time_of_the_day_that_comes_late_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n".join(["day,kind", *days(70_000), "2020-01-01 12:30:00,a"]) + "\n")
    clf = BayesClassifier(tune=None).fit(tmp_path / "a.csv", "kind")
    clf.predict_to(tmp_path / "p.csv", tmp_path / "a.csv")
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert (lines[1][:11], lines[-1][:20]) == (days(1)[0][:10] + ",", "2020-01-01 12:30:00.")
    with pytest.raises(DataError, match="column 'day' has dates first and times of the day later"):
        clf.predict_to(tmp_path / "p.parquet", tmp_path / "a.csv")
