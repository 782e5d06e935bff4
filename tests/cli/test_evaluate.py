"""What evaluate says of rows that a model has learned, and of others."""

import json
from pathlib import Path

import pytest

from deciban import load
from tests.support.command import HEADER, Deciban, rows, table

LEARNED = "training rows, exact leave-one-out"
NEW = "new rows"


def how(deciban: Deciban, *arguments: str) -> str:
    answer = deciban("evaluate", *arguments)
    assert answer.code == 0
    return answer.out.splitlines()[0]


def test_rows_that_were_learned_are_left_out_in_turn(deciban: Deciban, model: str) -> None:
    answer = deciban("evaluate", model, "base.csv")
    assert answer.out.splitlines()[0] == LEARNED
    found = json.loads(deciban("evaluate", model, "base.csv", "--json").out)
    asked_for = json.loads(deciban("evaluate", model, "base.csv", "--leave-one-out", "--json").out)
    as_new = found.pop("not_left_out")
    assert {**found, "method": ""} == {**asked_for, "method": ""}
    assert as_new["log_loss"] < found["log_loss"]
    clf = load(model)
    assert as_new["accuracy"] == pytest.approx(clf.score("base.csv", "kind"))
    assert f"accuracy {as_new['accuracy']:.4f}, log-loss {as_new['log_loss']:.4f}" in answer.out.splitlines()[-1]


def test_the_order_of_rows_and_other_columns_hide_nothing(deciban: Deciban, model: str) -> None:
    lines = [f"{line},{number}" for number, line in enumerate(reversed(rows(200)))]
    Path("turned.csv").write_text("\n".join([f"{HEADER},number", *lines]) + "\n")
    assert how(deciban, model, "turned.csv") == LEARNED


def test_other_rows_are_new(deciban: Deciban, model: str) -> None:
    Path("other.csv").write_text(table(200, seed=2))
    assert how(deciban, model, "other.csv") == NEW
    lines = rows(200)
    lines[7] = lines[7].replace(lines[7].split(",")[0], "61.17")
    Path("changed.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    assert how(deciban, model, "changed.csv") == NEW


def test_each_set_of_rows_of_a_merged_model_is_known_and_all_together(deciban: Deciban) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        Path(f"{name}.csv").write_text(table(100, seed=seed))
        assert deciban("fit", f"{name}.csv", "-t", "kind", "-o", f"{name}.dcb", "--tune", "none").code == 0
    assert deciban("merge", "a.dcb", "b.dcb", "-o", "both.dcb").code == 0
    assert how(deciban, "both.dcb", "b.csv") == LEARNED
    assert how(deciban, "both.dcb", "a.csv", "b.csv") == LEARNED
    assert how(deciban, "a.dcb", "b.csv") == NEW


def test_rows_that_have_faded_are_taken_as_new_with_a_warning(deciban: Deciban, model: str) -> None:
    load(model).decay(0.5).save("faded.dcb")
    answer = deciban("evaluate", "faded.dcb", "base.csv")
    assert answer.code == 0
    assert answer.out.splitlines()[0] == "training rows, not left out"
    assert "too optimistic" in answer.err


def test_json_counts_rows_in_whole_numbers(deciban: Deciban, model: str) -> None:
    found = deciban("evaluate", model, "base.csv", "--json").out
    assert '"rows": 200,' in found
    assert '"unknown_class_rows": 0,' in found
    counts = json.loads(found)["confusion"]
    assert all(isinstance(cell, int) for row in counts for cell in row)


def test_rows_that_are_learned_twice_are_refused_with_the_option_that_forces_it(deciban: Deciban, model: str) -> None:
    assert (
        "base.csv: m.dcb was already trained on these rows; pass --force to add them again"
        in deciban("learn", model, "base.csv").err
    )


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([], "the table has no rows"),
        (["yes"], "only one row has a label, too few for folds"),
        ([""] * 14, "no row has a label; fill in 'kind'"),
        ([f"P{k}" for k in range(40)], "the target has 40 classes in 40 rows: it looks like an identifier; name the"),
        (["yes", "no"], "no class has two rows"),
        (["yes", "no", "yes"], "no class has more than 2 rows, too few for 5 folds; pass more rows, or --folds 2"),
    ],
)
def test_a_table_that_cannot_be_cut_into_folds_is_called_what_it_is(
    deciban: Deciban, labels: list[str], said: str
) -> None:
    Path("few.csv").write_text(f"{HEADER}\n" + "".join(f"4{k},Ulm,{label}\n" for k, label in enumerate(labels)))
    answer = deciban("evaluate", "few.csv", "--target", "kind")
    assert answer.code == 3
    assert said in answer.err


def test_as_many_folds_as_the_commonest_class_has_rows_are_judged(deciban: Deciban) -> None:
    Path("few.csv").write_text(f"{HEADER}\n41,Ulm,yes\n42,Bern,no\n43,Ulm,yes\n")
    assert deciban("evaluate", "few.csv", "--target", "kind", "--folds", 2).code == 0


def test_diagnose_of_an_exclusive_or_has_the_option_to_type(deciban, tmp_path) -> None:
    lines = [f"{a},{b},{'odd' if a != b else 'even'}" for a in "tf" for b in "tf" for _ in range(100)]
    (tmp_path / "xor.csv").write_text("\n".join(["A,B,kind", *lines]))
    file, model = str(tmp_path / "xor.csv"), str(tmp_path / "xor.dcb")
    assert deciban("fit", file, "-t", "kind", "--tune", "none", "-o", model).code == 0
    shown = deciban("diagnose", model, file).out
    assert "model A and B jointly, because they interact: --family A,B=JointTable" in shown
    assert "drop" not in shown
    found = json.loads(deciban("diagnose", model, file, "--json").out)["dependences"][0]
    assert found["kind"] == "interaction"
    assert "predict best" not in shown
    selected = deciban("diagnose", model, file, "--select").out
    assert selected == f"{shown}\ncolumns that predict best together: A, B\n"
    assert json.loads(deciban("diagnose", model, file, "--select", "--json").out)["selected"] == ["A", "B"]
    family = found["option"].removeprefix("--family ").strip("'")
    assert deciban("fit", file, "-t", "kind", "--tune", "none", "--family", family, "-o", model).code == 0
    assert json.loads(deciban("evaluate", model, file, "--json").out)["accuracy"] == 1.0
