"""Labels, and numbers of rows, that are probably not meant as they stand."""

import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits

from deciban import BayesClassifier, DataError
from deciban.tables.labels import Labels, check_class_count
from tests.support.command import Deciban


def test_a_number_as_target_is_warned_of() -> None:
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(UserWarning, match="the target has 214 classes in 442 rows: it looks like a quantity"):
        BayesClassifier(tune=None).fit(X, y.astype(int))


def test_an_identifier_as_target_is_warned_of() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 1))
    with pytest.warns(UserWarning, match="the target has 200 classes in 200 rows: it looks like an identifier"):
        BayesClassifier(tune=None).fit(rows, [f"name {i}" for i in range(200)])


def test_labels_that_differ_in_case_or_spaces_are_warned_of_in_parts_too() -> None:
    rows = np.arange(8.0).reshape(-1, 1)
    with pytest.warns(UserWarning, match=r"differ only in case or spaces \(' yes', 'YES', 'yes'\)"):
        BayesClassifier(tune=None).fit(rows, [" yes", "yes", "YES", "no"] * 2)
    clf = BayesClassifier(tune=None).fit(rows, ["yes", "no"] * 4)
    with pytest.warns(UserWarning, match=r"\('yes', 'Yes'\)"):
        clf.partial_fit(rows, ["Yes", "no"] * 4)


def test_classes_of_digits_and_letters_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesClassifier(tune=None).fit(*load_digits(return_X_y=True))
        BayesClassifier(tune=None).fit(np.arange(60.0).reshape(-1, 1), [f"class {i % 15}" for i in range(60)])


def test_the_rows_of_a_few_classes_are_not_looked_at_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are those of many sorted: sorting a million labels takes longer than learning them."""
    assert (
        check_class_count(Labels(np.array([0, 1]), np.lib.stride_tricks.as_strided(np.int32(0), (1 << 50,), (0,))))
        == ""
    )
    monkeypatch.delattr(np, "unique")
    codes = np.array([*range(20), -1, 3], dtype=np.int32)
    assert check_class_count(Labels(np.arange(25), codes)).startswith(
        "the target has 20 classes in 21 rows: it looks like a q"
    )


def test_numbered_rows_of_a_long_file_are_warned_of(deciban: Deciban) -> None:
    draw = random.Random(0)
    lines = (f"{i},{draw.randint(0, 30_000)},{'yes' if i % 2 else 'no'}" for i in range(20_000))
    Path("a.csv").write_text("\n".join(["id,amount,kind", *lines]) + "\n")
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert "column 'id' looks like an identifier; use --ignore id to leave it out" in answer.err
    assert "amount" not in answer.err


TABLE = "x,kind\n" + "".join(f"{i},{'yes' if i % 2 else 'no'}\n" for i in range(30))


@pytest.mark.parametrize("end", ["31,ye", '31,"ye"', "31,y"])
def test_a_file_that_is_cut_off_in_its_last_label_is_warned_of(deciban: Deciban, end: str) -> None:
    Path("a.csv").write_text(TABLE + end)
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.code == 0
    assert "the last line does not end with a newline, and no other row has its label 'y" in answer.err
    Path("whole.csv").write_text(TABLE)
    deciban("fit", "whole.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    Path("more.csv").write_text("x,kind\n3,yes\n" + end)
    assert "the file may be truncated" in deciban("learn", "m.dcb", "more.csv").err


@pytest.mark.parametrize("end", ["31,ye\n", "31,yes", "31,yes\n31,ye\n32,ye"])
def test_a_file_that_ends_as_it_should_is_not(deciban: Deciban, end: str) -> None:
    Path("a.csv").write_text(TABLE + end)
    assert "truncated" not in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").err


@pytest.mark.parametrize("text", [TABLE + "31,ye\0s\n", TABLE.replace("kind", "ki\0nd", 1), "a\0b," + TABLE])
def test_nul_bytes_in_labels_and_names_are_damage(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match="NUL byte; the file is damaged"):
        BayesClassifier(tune=None).fit(tmp_path / "a.csv", "kind")
