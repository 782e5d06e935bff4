"""Losses: the many ways to say them, and those that are refused."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris

from deciban import Loss, mean_cost
from deciban.scoring.predict import loss_for
from tests import textbook

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
CLF = textbook().fit(X, NAMES[Y])


def test_a_loss_may_be_said_in_many_ways(tmp_path) -> None:
    pairs = {
        ("healthy", "sick"): 100,
        ("sick", "healthy"): 1,
        ("test", "sick"): 5,
        ("test", "healthy"): 5,
        ("healthy", "healthy"): 0,
    }
    loss = Loss.from_costs(pairs)
    expected = [[0.0, 100.0], [1.0, 0.0], [5.0, 5.0]]
    assert loss.for_classes(["healthy", "sick"]).matrix.tolist() == expected
    frame = pd.DataFrame(expected, index=["healthy", "sick", "test"], columns=["healthy", "sick"])
    (tmp_path / "loss.csv").write_text("decide,sick,healthy\nhealthy,100,0\nsick,0,1\ntest,5,5\n")
    for said in (frame, frame[["sick", "healthy"]], tmp_path / "loss.csv", str(tmp_path / "loss.csv"), loss):
        fitting = Loss.from_costs(said).for_classes(["healthy", "sick"])
        assert fitting.matrix.tolist() == expected
        assert fitting.decisions == ("healthy", "sick", "test")
    assert Loss.from_costs({"healthy": 1, "sick": 100}).matrix.tolist() == [[0, 100], [1, 0]]
    assert str(Loss.from_costs(frame)).splitlines() == [
        "decide   if healthy  if sick",
        "healthy           0      100",
        "sick              1        0",
        "test              5        5",
    ]
    numbers = Loss.from_costs({(0, 1): 3, (1, 0): 2}).for_classes(np.array([0, 1]))
    assert numbers.matrix.tolist() == [[0, 3], [2, 0]]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ([[0, 1], [1, 0]], "2 columns, the model 3 classes"),
        ([[0, 1, np.nan]] * 3, "finite"),
        ([[0, 1, 2], [1, 0]], "different lengths"),
        (5, "expected a matrix of costs"),
        ({("a", "b"): 1}, "costs for only one true class, .b.; give every pair"),
        ({"setosa": 1, "b": 2}, "unknown class 'b' in the costs; the classes of the model are"),
        (
            {("setosa", "virginica"): 1, ("virginica", "versicolor"): 2},
            "the cost of deciding 'setosa' when 'versicolor' is true is missing",
        ),
        (np.zeros((5, 3)), "5 decisions for 3 classes"),
        (
            Loss(np.zeros((2, 3)), decisions=["x", "y"], classes=["a", "b", "c"]),
            "the costs name the classes 'a', 'b', 'c'; the",
        ),
        (
            Loss(np.zeros((3, 2)), decisions=["virginica", "setosa", "versicolor"], classes=["keep", "toss"]),
            "exchange rows and columns",
        ),
        ("nowhere.csv", "cannot read the costs"),
    ],
)
def test_bad_losses_are_refused(loss, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CLF.decide(X, loss)


def test_labels_of_a_loss_must_be_different_and_as_many() -> None:
    with pytest.raises(ValueError, match="duplicate decision 'a' in the costs"):
        Loss([[0, 1], [1, 0]], decisions=["a", "a"])
    with pytest.raises(ValueError, match="3 labels"):
        Loss([[0, 1], [1, 0]], classes=["a", "b", "c"])


def test_a_right_decision_that_costs_more_than_a_wrong_one_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="decision first, truth second"):
        Loss([[5, 0], [0, 5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Loss([[0, 5], [9, 0], [20, 20]], decisions=["a", "b", "both"], classes=["a", "b"])


def test_tables_of_any_library_are_read_the_same_way(tmp_path) -> None:
    import polars as pl

    clf = textbook().fit([[0.0], [1.0], [2.0], [3.0]], ["ben", "ben", "mal", "mal"])
    columns = {"ben": [0, 1], "mal": [100, 0]}
    (tmp_path / "loss.csv").write_text('\ufeff"decide, if", ben , mal\nben,0,100\nmal, 1,0\n\n', encoding="utf-8")
    for said in (
        pl.DataFrame(columns),
        pl.DataFrame({"decide": ["ben", "mal"], **columns}),
        pa.table(columns),
        pd.DataFrame(columns),
        tmp_path / "loss.csv",
        {"ben": {"ben": 0, "mal": 100}, "mal": {"ben": 1, "mal": 0}},
    ):
        assert clf.decide([[1.5]], said).decision.tolist() == ["mal"]
        assert loss_for(clf.fitted_, said).matrix.tolist() == [[0, 100], [1, 0]]
    assert loss_for(clf.fitted_, pd.DataFrame(columns))["ben", "mal"] == 100


def test_labels_match_when_they_are_equal_and_by_spelling_only_then() -> None:
    floats = textbook().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 1.0])
    assert floats.decide([[1.0]], {0: 1, 1: 5}).loss.decisions == (0.0, 1.0)
    flags = textbook().fit([[0.0], [1.0], [2.0]], [False, True, True])
    assert flags.decide([[1.0]], {0: 1, 1: 5}).decision.dtype == bool
    with pytest.raises(ValueError, match="unknown class '1' in the costs"):
        Loss([[0, 1, 7], [5, 0, 9]], decisions=[0, 1], classes=[0, 1, "1"]).for_classes([0, 1])
    dates = np.array(["2020-01-01"] * 2 + ["2021-01-01"] * 2, "M8[ns]")
    clf = textbook().fit([[0.0], [1.0], [2.0], [3.0]], dates)
    np.testing.assert_array_equal(clf.decide([[1.0]]).decision, clf.predict([[1.0]]))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ([[0, 10**400], [1, 0]], "finite"),
        ([], "empty"),
        ({("a", "b"): 1, "b": 1}, "neither all pairs nor all classes"),
        ([[0, np.bool_(True)], [1, 0]], "give a number"),
        ([[0, [[1.0]]], [1, 0]], "give a number"),
        ([[0, ["x", "y"]], [1, 0]], "are not numbers"),
    ],
)
def test_more_bad_losses(loss, message: str) -> None:
    clf = textbook().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    with pytest.raises(ValueError, match=message):
        clf.decide([[1.0], [2.0]], loss)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d,a,b\na,0,\nb,1,0\n", "empty cell"),
        ("", "the file is empty"),
        ("d,a,b\n", "not a table of decisions by classes"),
        ("d\na\n", "not a table of decisions by classes"),
        ("d,a,b\na,0\n", "cannot read the costs"),
    ],
)
def test_bad_loss_files(tmp_path, text: str, message: str) -> None:
    (tmp_path / "loss.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        Loss.from_costs(tmp_path / "loss.csv")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("d,Büro,b\nBüro,0,1.5\nb,1,0\n", "utf-8"),
        ("d,Büro,b\nBüro,0,1.5\nb,1,0\n", "utf-16"),
        ("\ufeff;Büro;b\r\nBüro;0;1,5\r\nb;1;0\r\n", "utf-8"),
        ("\tBüro\tb\nBüro\t0\t1,5\nb\t 1 \t0\n", "utf-8"),
        ('|Büro|b\n"Büro"|0|1.5\nb|1|0\n', "utf-8"),
    ],
)
def test_loss_files_are_read_like_tables(tmp_path, text: str, encoding: str) -> None:
    (tmp_path / "costs.csv").write_text(text, encoding=encoding, newline="")
    loss = Loss.from_costs(tmp_path / "costs.csv")
    assert (loss.classes, loss.decisions) == (("Büro", "b"), ("Büro", "b"))
    assert loss.matrix.tolist() == [[0.0, 1.5], [1.0, 0.0]]


def test_a_loss_file_may_be_typed_or_name_columns(tmp_path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"d": [0, 1], "0": [0.0, 0.1], "1": [2, 0]}), tmp_path / "costs.parquet")
    loss = Loss.from_costs(tmp_path / "costs.parquet").for_classes([0, 1])
    assert (loss.decisions, loss.matrix.tolist()) == ((0, 1), [[0.0, 2.0], [0.1, 0.0]])
    (tmp_path / "costs.csv").write_text(";a;b\na;0;amount\nNA;1,5;0\n")
    loss = Loss.from_costs(tmp_path / "costs.csv")
    assert (loss["a", "b"], loss["NA", "a"]) == ("amount", 1.5)


def test_mean_cost_says_what_is_wrong() -> None:
    assert mean_cost([0, 1, 1], [0, 0, 1], loss={0: 3, 1: 6}) == pytest.approx(2.0)
    assert mean_cost([0, 1], ["0", "1"], loss={"0": 3, "1": 6}) == 0.0
    with pytest.raises(ValueError, match="2 is not a decision"):
        mean_cost([0, 1], [0, 2], loss={0: 1, 1: 1})
    with pytest.raises(ValueError, match="3 truths and 2 decisions"):
        mean_cost([0, 1, 1], [0, 1], loss={0: 3, 1: 5})


def test_a_loss_file_with_semicolons_is_read(tmp_path) -> None:
    (tmp_path / "costs.csv").write_text(";a;b\na;0;5\nb;1;0\n")
    assert Loss.from_csv(tmp_path / "costs.csv").matrix.tolist() == [[0.0, 5.0], [1.0, 0.0]]
