"""Tables at the edge of what there is to compute get an answer or an error in one line, never a fault."""

import json
from pathlib import Path

import pytest

from tests.support.command import Deciban


def test_rows_of_unknown_classes_alone_are_all_wrong(deciban: Deciban, model: str) -> None:
    """Calibration has no rows then, and says so."""
    Path("strange.csv").write_text("age,town,kind\n40,Ulm,foo\n50,Bern,bar\n")
    said = deciban("evaluate", model, "strange.csv")
    assert said.code == 0
    assert "accuracy 0.0000" in said.out
    assert "nan" not in said.out
    assert "no rows to measure calibration on" in said.out
    found = json.loads(deciban("evaluate", model, "strange.csv", "--json").out)
    assert (found["accuracy"], found["unknown_class_rows"], found["expected_calibration_error"]) == (0, 2, None)


@pytest.mark.parametrize("labels", [("true", "false"), ("1", "2"), ("a", "b")])
def test_a_piece_of_nothing_but_missing_labels_has_no_class(labels: tuple[str, str], deciban: Deciban) -> None:
    """Here all labels of the first fold's rest, or of a whole file, are missing."""
    lines = [f"{k},{labels[k % 2] if k < 5 else ''}" for k in range(40)]
    Path("few.csv").write_text("\n".join(["a,kind", *lines]) + "\n")
    assert deciban("evaluate", "few.csv", "-t", "kind", "--tune", "none", "--folds", "3").code == 0
    assert deciban("evaluate", "few.csv", "-t", "kind", "--tune", "none", "--hold-out", "0.5").code == 0
    Path("none.csv").write_text("a,kind\n1,\n2,\n")
    assert deciban("fit", "few.csv", "-t", "kind", "--tune", "none", "-o", "m.dcb").code == 0
    for command in (["evaluate"], ["evaluate", "--leave-one-out"], ["diagnose"]):
        said = deciban(*command, "m.dcb", "none.csv")
        assert said.code == 3
        assert "no row has a label" in said.err


@pytest.mark.parametrize("options", [["--alpha", "0"], ["--alpha", "0", "--unseen", "smooth"], ["--unseen", "smooth"]])
def test_a_model_of_one_row_is_judged_without_it(options: list[str], deciban: Deciban) -> None:
    """What is left is no row at all, and one class that is certain."""
    Path("one.csv").write_text("town,kind\nUlm,yes\n")
    assert deciban("fit", "one.csv", "-t", "kind", "--tune", "none", "-o", "m.dcb", *options).code == 0
    found = json.loads(deciban("evaluate", "m.dcb", "one.csv", "--leave-one-out", "--json").out)
    assert (found["accuracy"], found["log_loss"]) == (1, 0)
    assert deciban("diagnose", "m.dcb", "one.csv").code == 0


@pytest.mark.parametrize("family", ["c=Poisson", "c,d=Multinomial"])
def test_counts_of_any_size_are_drawn(family: str, deciban: Deciban) -> None:
    Path("big.csv").write_text("c,d,kind\n1e139,1,yes\n2e139,2,no\n3e139,1,yes\n2e139,2,no\n")
    assert deciban("fit", "big.csv", "-t", "kind", "--tune", "none", "--family", family, "-o", "m.dcb").code == 0
    said = deciban("sample", "m.dcb", "--rows", "20", "--json")
    assert said.code == 0
    drawn = [json.loads(line) for line in said.out.splitlines()]
    assert {round(row["c"] / 1e139) for row in drawn} == {2}


def test_no_more_words_are_drawn_than_memory_holds(deciban: Deciban) -> None:
    Path("t.csv").write_text("t,kind\nthe cat sat on the mat,yes\nthe dog barked at the moon,no\n")
    assert deciban("fit", "t.csv", "-t", "kind", "--tune", "none", "--family", "t=Text", "-o", "m.dcb").code == 0
    said = deciban("sample", "m.dcb", "--length", "100000000000000")
    assert said.code == 3
    assert "cannot draw 1e+15 words" in said.err


@pytest.mark.parametrize(
    ("learned", "given", "remedy"),
    [
        (("0", "1"), ("yes", "no"), "correct the labels\n"),
        (("yes", "no"), ("0", "1"), "read them as text with --type play=text\n"),
        (("true", "false"), ("0", "1"), "read them as booleans with --type play=bool\n"),
    ],
)
def test_labels_of_another_type_are_refused_without_a_warning(
    deciban: Deciban, learned: tuple[str, str], given: tuple[str, str], remedy: str
) -> None:
    for name, labels in (("a.csv", learned), ("b.csv", given)):
        Path(name).write_text("x,play\n" + "".join(f"{k},{labels[k % 2]}\n" for k in range(12)))
    assert deciban("fit", "a.csv", "-t", "play", "-o", "a.dcb", "--tune", "none").code == 0
    answer = deciban("learn", "a.dcb", "b.csv")
    assert answer.code == 3
    assert "warning" not in answer.err
    assert answer.err.endswith(remedy)
    if learned[0] != "0":
        kind = remedy.split()[-1]
        assert deciban("learn", "a.dcb", "b.csv", "--type", kind).code == 0


def test_an_internal_error_is_not_blamed_on_the_model_file(
    deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TypeError of the program itself: the file is sound, and no copy would help."""

    def broken(fitted: object) -> None:
        raise TypeError("isinstance() argument 2 cannot be\na parameterized generic")

    monkeypatch.setattr("deciban.store.model_file.check", broken)
    said = deciban("inspect", model)
    assert said.code == 1
    assert said.err == (
        "deciban: error: internal error (TypeError: isinstance() argument 2 cannot be a "
        "parameterized generic); please report it with the output of --debug\n"
    )
