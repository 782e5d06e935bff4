"""Tables read from files."""

import sys
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone

from deciban import BayesClassifier, Categorical, load, merge, scan
from deciban.errors import DataError, UsageError


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
    assert (lines[1][:11], lines[-1][:20]) == (days(1)[0][:10] + ",", "2020-01-01 12:30:00,")
    with pytest.raises(DataError, match="column 'day' contains dates first and timestamps later"):
        clf.predict_to(tmp_path / "p.parquet", tmp_path / "a.csv")


def test_learning_anew_forgets_how_columns_were_read(tmp_path: Path) -> None:
    """Only rows that are added are read as those before them."""
    (tmp_path / "a.csv").write_text("v,w,kind\n" + "x,1,p\ny,2,q\n" * 10)
    (tmp_path / "b.csv").write_text("v,w,kind\n" + "1.5,1,p\n2.5,2,q\n" * 10)
    clf = BayesClassifier(tune=None).fit(scan(tmp_path / "a.csv", ignore=["w"]), "kind")
    assert clf.fitted_.column_types() == {"v": "string"}
    clf.fit(tmp_path / "b.csv", "kind")
    assert clf.fitted_.column_types() == {"v": "double", "w": "int64"}


def test_columns_that_were_left_out_stay_out_of_what_is_learned_later(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v,id,kind\n" + "x,1,p\ny,2,q\n" * 10)
    clf = BayesClassifier(tune=None).fit(scan(tmp_path / "a.csv", ignore=["id"]), "kind")
    clf.save(tmp_path / "m.dcb")
    again = load(tmp_path / "m.dcb").partial_fit(str(tmp_path / "a.csv"), "kind")
    assert again.schema_.names == ("v",)
    assert again.counts_.rows == 40


def test_the_rows_asked_for_are_found_in_their_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deciban.sources.source.STREAM_ROWS", 7)
    (tmp_path / "a.csv").write_text("v\n" + "".join(f"{i}\n" for i in range(40)))
    assert scan(tmp_path / "a.csv").at([30, 2, 8]).column(0).to_pylist() == [30, 2, 8]
    assert scan(tmp_path / "a.csv").at([2, 90]).column(0).to_pylist() == [2]


def test_many_columns_have_the_memory_they_need(tmp_path: Path) -> None:
    """DuckDB holds a piece of every column at a time: 128 MB are too few for 1,500 of text."""
    names = [f"c{j}" for j in range(1500)]
    line = ",".join(f"{j / 7:.3f}" for j in range(1500))
    (tmp_path / "wide.csv").write_text(",".join([*names, "kind"]) + "\n" + f"{line},p\n{line},q\n" * 1100)
    clf = BayesClassifier(tune=None).fit(tmp_path / "wide.csv", "kind")
    assert (clf.counts_.rows, clf.n_features_in_) == (2200, 1500)


@pytest.mark.parametrize(
    "query",
    [
        "select * from 'days.csv'",
        "select d.* from 'days.csv' d join \"days.csv\" using (day)",
        "select days.* from './days.csv' join 'more.csv' on days.day = more.day -- and that is all",
        "with t as (select *, 'ü' as sign from days.csv) select day, sun, play from t where sign in ('ü', 'days.csv')",
    ],
)
def test_yes_and_no_stay_text_in_files_that_a_query_names(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in files that are named alone; true and false are booleans in both."""
    monkeypatch.chdir(tmp_path)
    lines = tuple(f"{day},{str(day % 3 == 0).lower()},{'yes' if day % 2 else 'no'}" for day in range(18))
    for name in ("days.csv", "more.csv"):
        Path(name).write_text("\n".join(["day,sun,play", *lines]) + "\n")
    alone, asked = scan("days.csv").table(), scan(f"sql: {query}").table()
    assert asked.sort_by("day").to_pylist() == alone.sort_by("day").to_pylist()
    assert set(asked["play"].to_pylist()) == {"yes", "no"}
    assert asked.schema.field("sun").type == pa.bool_()
    assert scan("sql: select * from read_csv('days.csv')").table().schema.field("play").type == pa.bool_()


def test_a_file_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor under another name: its rows would count twice."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x,kind\n1,p\n2,q\n")
    Path("b.csv").write_text("x,kind\n1,p\n2,q\n")  # another file with the same rows
    assert scan(["a.csv", "b.csv"]).table().num_rows == 4
    Path("soft.csv").symlink_to("a.csv")
    Path("folder").mkdir()
    Path("folder/hard.csv").hardlink_to("b.csv")
    with open("a.csv") as file:
        monkeypatch.setattr(sys, "stdin", file)
        for twice in ("a.csv a.csv", "a.csv ./a.csv", "*.csv", "folder b.csv", "- -", "- soft.csv"):
            with pytest.raises(UsageError, match="are the same file"):
                scan(twice.split())


def test_predictions_do_not_overwrite_what_they_are_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x,kind\n1,p\n2,q\n")
    clf = BayesClassifier(tune=None).fit("a.csv", "kind")
    for rows in ("a.csv", tmp_path / "a.csv", scan("a.csv"), "sql: select x from 'a.csv'"):
        with pytest.raises(UsageError, match="output and input are the same file"):
            clf.predict_to("a.csv", rows)
    assert Path("a.csv").read_text() == "x,kind\n1,p\n2,q\n"


def test_text_labels_that_look_like_numbers_are_learned_if_they_are_known(tmp_path: Path) -> None:
    """Later files are read as the model has learned its columns; a stranger of another type is no class."""
    files = {"a": "1,a\n2,b\n3,2\n4,1\n", "b": "5,1\n6,2\n", "c": "7,1\n8,3\n"}
    for name, rows in files.items():
        (tmp_path / f"{name}.csv").write_text("x,kind\n" + rows)
    clf = BayesClassifier(tune=None).fit(tmp_path / "a.csv", "kind").partial_fit(tmp_path / "b.csv", "kind")
    assert clf.counts_.class_weight.tolist() == [2.0, 2.0, 1.0, 1.0]
    with pytest.raises(DataError, match="the labels are numbers, such as 3, but the model's classes are '1', '2', 'a'"):
        clf.partial_fit(tmp_path / "c.csv", "kind")
    assert clf.partial_fit(scan(tmp_path / "c.csv", types={"kind": "text"}), "kind").classes_.tolist()[2] == "3"


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize("behind", [0, 40])
def test_a_row_of_many_megabytes_is_read_or_refused_and_never_lost(tmp_path: Path, numbers: bool, behind: int) -> None:
    first = "1" if numbers else "a"
    some = [f"{first},b {i % 5},{'yes' if i % 2 else 'no'}" for i in range(40)]
    for words, read in ((7_000_000, True), (14_000_000, False)):
        rows = [*some, f"{first},{'word ' * words},yes", *some[:behind]]
        (tmp_path / "a.csv").write_text("\n".join(["x,t,kind", *rows]) + "\n")
        if read:
            assert sum(table.num_rows for table in scan(tmp_path / "a.csv").tables()) == len(rows)
            continue
        with pytest.raises(DataError, match=r"a row of 70 MB exceeds the limit of 67 MB; close all quotes"):
            scan(tmp_path / "a.csv")
