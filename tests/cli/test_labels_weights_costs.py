"""Labels, weights and costs that are given to commands, and those that cannot be."""

import json
from pathlib import Path

import pytest

from deciban import load
from tests.support.command import Deciban, records, table

TEXT = table()


def test_a_target_that_is_not_there_lists_the_columns_that_are(deciban: Deciban, model: str) -> None:
    answer = deciban("fit", "base.csv", "-t", "Kind", "-o", "x.dcb")
    assert answer.code == 3
    assert "no target column 'Kind'" in answer.err
    assert "'age', 'town', 'kind'" in answer.err


def test_one_class_is_warned_of(deciban: Deciban) -> None:
    Path("a.csv").write_text(TEXT.replace("no", "yes"))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb")
    assert (answer.code, "warning: only one class, 'yes'" in answer.err) == (0, True)


def test_two_thousand_classes(deciban: Deciban) -> None:
    """Tuned too, which once took minutes and ten gigabytes."""
    Path("a.csv").write_text("u,v,kind\n" + "".join(f"{i * 37 % 1000},{i % 3},k{i % 2000}\n" for i in range(4_000)))
    assert "2,000 classes" in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb").out
    assert deciban("inspect", "m.dcb").out.count("\n") < 50
    assert deciban("predict", "m.dcb", "a.csv", "-o", "p.csv").code == 0
    found = records(Path("p.csv").read_text())
    assert len(found) == 4_000
    assert {row["predicted"] for row in found} <= {row["kind"] for row in found}


def test_a_target_with_a_class_per_row_is_refused(deciban: Deciban) -> None:
    rows = [f"{i},{i % 5},{'many' if i % 8 == 0 else f'c{i}'}" for i in range(80)]
    Path("a.csv").write_text("\n".join(["id,v,kind", *rows]) + "\n")
    for command, target in ((["fit", "a.csv", "-o", "m.dcb"], "id"), (["evaluate", "a.csv"], "kind")):
        answer = deciban(*command, "-t", target, "--tune", "none")
        assert answer.code == 3
        assert answer.err.startswith("deciban: error: a.csv: the target has ")
        assert answer.err.endswith("or pass --force\n")
        assert Path("m.dcb").exists() == (command[0] == "evaluate")
        answer = deciban(*command, "-t", target, "--tune", "none", "--force")
        assert (answer.code, "warning: the target has " in answer.err) == (0, True)
    Path("two.csv").write_text("id,v,kind\n" + "".join(f"{i},{i % 5},c{i // 2}\n" for i in range(80)))
    answer = deciban("fit", "two.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert (answer.code, "warning: the target has 40 classes in 80 rows" in answer.err) == (0, True)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1", "2", "3"], [1, 2, 3]),
        (["1.0", "2.0"], [1, 2]),
        (["true", "false"], [False, True]),
        (["2020-01-01", "2021-02-03"], ["2020-01-01", "2021-02-03"]),
        (["01", "02"], ["01", "02"]),
        (["1", "x"], ["1", "x"]),
        (["yes", "no", ""], ["no", "yes"]),
        (["123456789012345678", "123456789012345679"], [123456789012345678, 123456789012345679]),
    ],
)
def test_labels_of_every_kind(labels: list[str], classes: list[object], deciban: Deciban) -> None:
    """They are learned, predicted, compared with and learned on; rows without one are left out and counted."""
    Path("a.csv").write_text("v,kind\n" + "".join(f"{i % 7},{label}\n" for i, label in enumerate(labels * 20)))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.code == 0
    assert ("20 rows without a label ignored" in answer.out) == ("" in labels)
    found = json.loads(deciban("evaluate", "m.dcb", "a.csv", "--json").out)
    assert found["rows"] == 20 * len([label for label in labels if label])
    assert found["classes"] == classes
    assert deciban("learn", "m.dcb", "a.csv", "-o", "n.dcb", "--force").code == 0
    assert load("n.dcb").classes_.tolist() == load("m.dcb").classes_.tolist()


@pytest.mark.parametrize(
    ("labels", "words"), [(["1.5", "2.5"], "labels are fractions"), (["", ""], "every label is missing")]
)
def test_labels_that_cannot_be(labels: list[str], words: str, deciban: Deciban) -> None:
    Path("a.csv").write_text("v,kind\n" + "".join(f"{i % 7},{label}\n" for i, label in enumerate(labels * 20)))
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb")
    assert (answer.code, words in answer.err) == (3, True)


@pytest.mark.parametrize(
    ("weight", "words"), [("-2", "row 2: its weight is -2.0"), ("", "row 2: its weight is nan"), ("x", "not numbers")]
)
def test_weights_that_cannot_be(weight: str, words: str, deciban: Deciban) -> None:
    Path("a.csv").write_text("v,kind,w\n" + f"1,yes,1\n2,no,{weight}\n" * 9)
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--weight", "w")
    assert (answer.code, words in answer.err) == (3, True)
    answer = deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--weight", "z")
    assert (answer.code, "no weight column 'z'" in answer.err) == (3, True)


COSTS_THAT_ARE_WRONG = {
    "one line": (",yes,no\n", "not a table of decisions by classes"),
    "an empty cell": (",yes,no\nyes,0,\nno,1,0\n", "row 'yes' has an empty cell"),
    "a word": (",yes,no\nyes,0,much\nno,1,0\n", "costs.csv, row 'yes', column 'no': 'much' is n"),
    "infinite": (",yes,no\nyes,0,inf\nno,1,0\n", "of deciding 'yes' when 'no' is true"),
    "another class": (
        ",yes,perhaps\nyes,0,1\nno,1,0\n",
        "unknown class 'perhaps' in the costs; the classes of the model are no, yes",
    ),
    "a class too many": (",yes,no,perhaps\nyes,0,1,1\nno,1,0,1\n", "unknown class 'perhaps' in the costs; "),
    "a class too few": (",yes\nyes,0\nno,1\n", "no costs for the class 'no'; the classes of the model are no, yes"),
    "the same twice": (",yes,no\nyes,0,1\nyes,1,0\n", "duplicate decision 'yes' in the costs"),
    "no text": ("\udcff,yes\n", "0xff is not valid utf-8; save the file as CSV in UTF-8"),
    "a line too short": (",yes,no\nyes,0\nno,1,0\n", "cannot read the costs: "),
}


@pytest.mark.parametrize("case", COSTS_THAT_ARE_WRONG)
@pytest.mark.parametrize("command", ["decide", "evaluate"])
def test_costs_that_are_wrong_are_data_and_their_file_is_named(
    case: str, command: str, deciban: Deciban, model: str
) -> None:
    content, words = COSTS_THAT_ARE_WRONG[case]
    Path("costs.csv").write_bytes(content.encode(errors="surrogateescape"))
    answer = deciban(command, model, "base.csv", "--costs", "costs.csv")
    assert answer.code == 3
    assert answer.err.startswith(("deciban: error: costs.csv: ", "deciban: error: costs.csv, "))
    assert "base.csv" not in answer.err
    assert words in answer.err


def test_costs_are_read_like_tables(deciban: Deciban, model: str) -> None:
    Path("costs.csv").write_text(",no,yes\nno,0,1.5\nyes,1,0\n")
    wanted = deciban("decide", model, "base.csv", "--costs", "costs.csv").out
    Path("costs.csv").write_text(";no;yes\nno;0;1,5\nyes;1;0\n")
    assert deciban("decide", model, "base.csv", "--costs", "costs.csv").out == wanted
    Path("costs.csv").write_text(",no,yes\nno,0,15\nyes,1,0\n")
    assert deciban("decide", model, "base.csv", "--costs", "costs.csv").out != wanted


def test_costs_that_do_not_fit_folds_are_data_too(deciban: Deciban, model: str) -> None:
    Path("costs.csv").write_text(",yes,perhaps\nyes,0,1\nno,1,0\n")
    answer = deciban("evaluate", "base.csv", "-t", "kind", "--tune", "none", "--folds", "2", "--costs", "costs.csv")
    assert (answer.code, answer.err.startswith("deciban: error: costs.csv: ")) == (3, True)


def test_costs_may_name_a_column(deciban: Deciban, model: str) -> None:
    Path("costs.csv").write_text(",yes,no\nyes,0,age\nno,1,0\n")
    for row in records(deciban("decide", model, "base.csv", "--costs", "costs.csv", "-p").out):
        risks = {"yes": float(row["age"]) * float(row["P(no)"]), "no": float(row["P(yes)"])}
        assert row["decision"] == min(risks, key=lambda one: risks[one])
        assert float(row["risk"]) == pytest.approx(min(risks.values()))


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "base.csv", "-t", "kinds", "-o", "x.dcb"],
        ["evaluate", "base.csv", "-t", "kinds"],
        ["evaluate", "m.dcb", "base.csv", "-t", "kinds"],
        ["learn", "m.dcb", "base.csv", "-t", "kinds"],
        ["forget", "m.dcb", "base.csv", "-t", "kinds"],
        ["fit", "base.csv", "-t", "kind", "--weight", "kinds", "-o", "x.dcb"],
    ],
)
def test_a_column_that_the_table_lacks_is_data(command: list[str], deciban: Deciban, model: str) -> None:
    answer = deciban(*command)
    assert answer.code == 3
    assert answer.err.startswith("deciban: error: base.csv: ")
    role = "weight" if "--weight" in command else "target"
    assert f"no {role} column 'kinds'" in answer.err
    assert "did you mean 'kind'?" in answer.err
