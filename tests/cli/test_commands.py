"""What each command says and writes, compared with the library and with computations of others."""

import csv
import gzip
import io
import json
import math
import os
import pty
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest
from pyarrow import parquet
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss

from deciban import BayesClassifier, Loss, load
from deciban.cli import app, run
from tests.cli.conftest import HEADER, Deciban, rows, table

COMMAND = str(Path(sys.executable).with_name("deciban"))
COSTS = ",no,yes\nno,0,10\nyes,1,0\n"
EVIL = "\x1b[31mred\x1b]0;title\x07\x9b1m\u202eleft\u2066"
OBEYED = set("\x00\x07\x1b\x7f\x9b\u202e\u2066")


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def started(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, timeout=60, check=False, **more)


# the command itself


def test_the_module_is_the_command() -> None:
    found = subprocess.run([sys.executable, "-m", "deciban", "--version"], capture_output=True, check=True)
    assert found.stdout == started("--version").stdout


def test_help_is_there_with_examples_for_every_command(deciban: Deciban) -> None:
    assert "Examples:" in deciban("--help").out
    for name in app.commands:
        answer = deciban(name, "--help")
        assert (answer.code, answer.err) == (0, "")
        assert re.search(rf"Examples?:\n(.*\n)*.*deciban {name}", answer.out)
        for option in ("--json", "--debug"):
            assert option in answer.out


def test_help_imports_nothing_heavy() -> None:
    """So that it answers at once."""
    names = [[name, "--help"] for name in app.commands] + [["--help"], ["--version"]]
    code = (
        "import sys, io, contextlib\nfrom deciban.cli import run\nwith contextlib.redirect_stdout(io.StringIO()):\n"
        f"    codes = [run(one) for one in {names!r}]\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'sklearn', 'scipy', 'numba'} & set(sys.modules)\n"
        "print(set(codes), sorted(heavy))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "{0} []\n"


def test_the_version_and_usage(deciban: Deciban) -> None:
    assert re.fullmatch(r"deciban \d+\.\d+\.\d+\n", deciban("--version").out)
    for wrong in (["nonsense"], ["fit"], ["fit", "a.csv"], ["fit", "a.csv", "-t", "x", "-o", "y", "--nonsense"]):
        answer = deciban(*wrong)
        assert (answer.code, "--help" in answer.err) == (2, True)
    answer = deciban()
    assert (answer.code, answer.out) == (2, deciban("--help").out)
    assert answer.err == "deciban: error: give a command, such as demo (see deciban --help)\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, deciban: Deciban) -> None:
    script = deciban("completion", shell).out
    assert "_DECIBAN_COMPLETE" in script
    assert json.loads(deciban("completion", shell, "--json").out)["script"].strip() == script.strip()
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)
        asked = {**os.environ, "_DECIBAN_COMPLETE": "bash_complete", "COMP_WORDS": "deciban pre", "COMP_CWORD": "1"}
        assert subprocess.run([COMMAND], env=asked, capture_output=True, check=False).stdout == b"plain,predict\n"


def test_debug_shows_where_an_error_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert (run(["inspect", "no.dcb"]), "Traceback" in capsys.readouterr().err) == (5, False)
    assert (run(["inspect", "no.dcb", "--debug"]), "Traceback" in capsys.readouterr().err) == (5, True)


def test_every_command_has_json(deciban: Deciban, model: str) -> None:
    """One JSON value, or one a line; numbers that JSON does not have are null."""
    Path("costs.csv").write_text(COSTS)
    Path("few.csv").write_text(table(20, seed=5))
    for command in (
        ["fit", "base.csv", "-t", "kind", "-o", "x.dcb"],
        ["predict", model, "base.csv", "-p"],
        ["predict", model, "base.csv", "-o", "p.csv"],
        ["explain", model, "base.csv"],
        ["decide", model, "base.csv", "--costs", "costs.csv"],
        ["evaluate", model, "base.csv"],
        ["diagnose", model, "base.csv"],
        ["learn", model, "few.csv", "-o", "y.dcb"],
        ["merge", model, "y.dcb", "-o", "z.dcb", "--force"],
        ["forget", "y.dcb", "few.csv"],
        ["inspect", model],
        ["sample", model],
        ["bayes", "--prior", "0.05", "--sensitivity", "0.9", "--false-positive", "0.08"],
        ["demo"],
        ["demo", "--files", "tour"],
    ):
        answer = deciban(*command, "--json")
        assert answer.code == 0, answer.err
        lines = answer.out.splitlines()
        assert lines
        for line in lines:
            json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


# predictions


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.jsonl", "p.jsonl.gz", "p.parquet", None])
def test_predictions_are_those_of_the_library(name: str | None, deciban: Deciban, model: str) -> None:
    """To the last digit, in every kind of file, and with the columns of the table before them."""
    output = [] if name is None else ["-o", name]
    answer = deciban("predict", model, "base.csv", "-p", *output)
    assert answer.code == 0
    if name is not None and name.endswith("parquet"):
        found = parquet.read_table(name).to_pylist()
    else:
        content = answer.out.encode() if name is None else Path(name).read_bytes()
        text = (gzip.decompress(content) if name is not None and name.endswith(".gz") else content).decode()
        sign = "\t" if name == "p.tsv" else ","
        found = list(csv.DictReader(io.StringIO(text), delimiter=sign))
        if name is not None and "json" in name:
            found = [json.loads(line) for line in text.splitlines()]
    clf = load(model)
    posterior = clf.predict_proba("base.csv")
    assert list(found[0]) == ["age", "town", "kind", "predicted", "probability", "P(no)", "P(yes)"]
    assert [[float(row["P(no)"]), float(row["P(yes)"])] for row in found] == posterior.tolist()
    assert [row["predicted"] for row in found] == clf.predict("base.csv").tolist()
    assert [float(row["probability"]) for row in found] == posterior.max(axis=1).tolist()
    assert [f"{float(row['age']):.2f},{row['town']},{row['kind']}" for row in found] == rows(200)


def test_columns_to_keep(deciban: Deciban, model: str) -> None:
    assert deciban("predict", model, "base.csv", "--keep", "town").out.startswith("town,predicted,probability\n")
    assert deciban("predict", model, "base.csv", "--keep", "").out.startswith("predicted,probability\n")
    answer = deciban("predict", model, "base.csv", "--keep", "city")
    assert (answer.code, "there are age, town, kind" in answer.err) == (2, True)
    answer = deciban("predict", model, "base.csv", "-o", "p.xls")
    assert (answer.code, ".parquet" in answer.err) == (2, True)


@pytest.mark.parametrize("reject", [None, 0.3])
def test_decisions_are_those_of_the_library(reject: float | None, deciban: Deciban, model: str) -> None:
    Path("costs.csv").write_text(COSTS)
    options = [] if reject is None else ["--reject", str(reject)]
    found = records(deciban("decide", model, "base.csv", "--costs", "costs.csv", *options).out)
    clf = load(model)
    expected = clf.decide("base.csv", Loss.from_csv("costs.csv"), reject=reject)
    assert [row["decision"] for row in found] == [str(one) for one in expected.decision]
    assert [float(row["risk"]) for row in found] == expected.risk.tolist()
    posterior = clf.predict_proba("base.csv")
    by_hand = np.column_stack([10 * posterior[:, 1], posterior[:, 0]])  # of "no" and "yes"
    least = by_hand.min(axis=1) if reject is None else np.minimum(by_hand.min(axis=1), reject)
    np.testing.assert_allclose([float(row["risk"]) for row in found], least, rtol=1e-12)


@pytest.mark.parametrize("command", ["predict", "decide"])
def test_columns_that_the_model_does_not_know_are_passed_on_as_written(
    command: str, deciban: Deciban, model: str
) -> None:
    Path("codes.csv").write_text("code,day,age,town\n1.50,2020-01-02,40,Ulm\n2,2020-01-03,41,Bern\n")
    lines = deciban(command, model, "codes.csv", "--keep", "code,day").out.splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["1.50", "2020-01-02"], ["2", "2020-01-03"]]


def test_explanations_add_up_to_the_log_odds(deciban: Deciban, model: str) -> None:
    clf = load(model)
    logs = clf.predict_log_proba("base.csv")
    for one in json.loads(deciban("explain", model, "base.csv", "--rows", "20", "--json").out):
        for_, against = (clf.classes_.tolist().index(one[key]) for key in ("predicted", "against"))
        odds = logs[one["row"] - 1, for_] - logs[one["row"] - 1, against]
        total = math.fsum(term["decibans"] for term in one["evidence"])
        assert total == pytest.approx(one["sum"])
        assert total == pytest.approx(10 / math.log(10) * odds, abs=1e-9)
    assert deciban("explain", model, "base.csv", "--row", "3").out.startswith("row 3\n")
    answer = deciban("explain", model, "base.csv", "--row", "999")
    assert (answer.code, "the table has fewer rows" in answer.err) == (2, True)


def test_samples(deciban: Deciban, model: str) -> None:
    answer = deciban("sample", model, "--rows", "50", "--seed", "1")
    found = records(answer.out)
    assert len(found) == 50
    assert list(found[0]) == HEADER.split(",")
    assert {row["town"] for row in found} <= {"Ulm", "Bern", "Graz"}
    assert deciban("sample", model, "--rows", "50", "--seed", "1").out == answer.out
    assert deciban("sample", model, "--rows", "50", "--seed", "2").out != answer.out


def test_true_and_false_are_drawn_as_such(deciban: Deciban) -> None:
    lines = [f"{'true' if k % 3 else 'false'},{k},{'yn'[k % 2]}" for k in range(30)]
    Path("flags.csv").write_text("\n".join(["flag,x,kind", *lines]) + "\n")
    assert deciban("fit", "flags.csv", "--target", "kind", "--output", "flags.dcb").code == 0
    assert {row["flag"] for row in records(deciban("sample", "flags.dcb", "--rows", "50").out)} == {"true", "false"}


# judging


def test_new_rows_are_judged_as_scikit_learn_does(deciban: Deciban, model: str) -> None:
    Path("new.csv").write_text(table(300, seed=9))
    Path("costs.csv").write_text(COSTS)
    found = json.loads(deciban("evaluate", model, "new.csv", "--costs", "costs.csv", "--json").out)
    clf, truth = load(model), [line.split(",")[2] for line in rows(300, seed=9)]
    posterior, best = clf.predict_proba("new.csv"), clf.predict("new.csv")
    assert found["accuracy"] == accuracy_score(truth, best)
    assert found["log_loss"] == pytest.approx(log_loss(truth, posterior))
    assert found["confusion"] == confusion_matrix(truth, best).tolist()
    decided = np.column_stack([10 * posterior[:, 1], posterior[:, 0]]).argmin(axis=1)
    matrix = np.array([[0.0, 10.0], [1.0, 0.0]])
    assert found["mean_cost"] == pytest.approx(np.mean(matrix[decided, [("no", "yes").index(one) for one in truth]]))


def test_leave_one_out_is_what_models_of_the_other_rows_say(deciban: Deciban) -> None:
    lines = rows(40)
    Path("a.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain").code == 0
    found = json.loads(deciban("evaluate", "m.dcb", "a.csv", "--leave-one-out", "--json").out)
    posterior = []
    for i in range(len(lines)):
        others = [line.split(",") for j, line in enumerate(lines) if j != i]
        data = {"age": [float(one[0]) for one in others], "town": [one[1] for one in others]}
        clf = BayesClassifier(tune=None).fit(data, [one[2] for one in others])
        age, town, _ = lines[i].split(",")
        posterior.append(clf.predict_proba([{"age": float(age), "town": town}])[0])
    truth = [line.split(",")[2] for line in lines]
    assert found["log_loss"] == pytest.approx(log_loss(truth, posterior))


def test_folds_judge_every_row_once_and_hold_out_a_share(deciban: Deciban, model: str) -> None:
    """Each row by a model of the others: about as good as leave-one-out, and worse than rows judging themselves."""
    folds = json.loads(deciban("evaluate", "base.csv", "-t", "kind", "--folds", "4", "--plain", "--json").out)
    assert (folds["rows"], np.sum(folds["confusion"])) == (200, 200)
    one = json.loads(deciban("evaluate", model, "base.csv", "--leave-one-out", "--json").out)
    itself = json.loads(deciban("evaluate", model, "base.csv", "--json").out)
    assert folds["log_loss"] == pytest.approx(one["log_loss"], abs=0.05)
    assert folds["log_loss"] > itself["as_if_new"]["log_loss"]
    part = json.loads(deciban("evaluate", "base.csv", "-t", "kind", "--hold-out", "0.25", "--plain", "--json").out)
    assert part["rows"] == pytest.approx(50, abs=2)
    assert deciban("evaluate", "base.csv", "-t", "kind", "--leave-one-out").code == 2
    assert deciban("evaluate", model).code == 2
    assert deciban("evaluate", "base.csv").code == 2


def test_a_table_may_come_by_a_pipe(deciban: Deciban, model: str) -> None:
    """Of which nothing is lost by looking whether it is a model."""
    reads, writes = os.pipe()
    os.write(writes, table().encode())
    os.close(writes)
    command = ("--target", "kind", "--folds", 2, "--plain", "--json")
    assert deciban("evaluate", f"/dev/fd/{reads}", *command).out == deciban("evaluate", "base.csv", *command).out
    os.close(reads)


# learning


def test_learn_forget_and_merge_add_and_subtract_exactly(deciban: Deciban) -> None:
    """(a + b) - b = a, and a merged with b is a + b, as their predictions say."""
    for name, seed in (("a", 1), ("b", 2)):
        Path(f"{name}.csv").write_text(table(150, seed))
        assert deciban("fit", f"{name}.csv", "-t", "kind", "-o", f"{name}.dcb", "--plain").code == 0
    assert deciban("fit", "a.csv", "b.csv", "-t", "kind", "-o", "ab.dcb", "--plain").code == 0
    assert "150 rows learned; now 300 rows" in deciban("learn", "a.dcb", "b.csv", "-o", "learned.dcb").out
    assert "150 rows forgotten; now 150 rows" in deciban("forget", "ab.dcb", "b.csv", "-o", "forgot.dcb").out
    assert "2 models merged; now 300 rows" in deciban("merge", "a.dcb", "b.dcb", "-o", "merged.dcb").out
    for one, other in (("learned", "ab"), ("merged", "ab"), ("forgot", "a")):
        left, right = (load(f"{name}.dcb").predict_proba("a.csv") for name in (one, other))
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-9)


def test_the_same_rows_are_not_learned_twice(deciban: Deciban, model: str) -> None:
    Path("more.csv").write_text(table(50, seed=3))
    assert deciban("learn", model, "more.csv").code == 0
    before = Path(model).read_bytes()
    for command in (["learn", model, "more.csv"], ["learn", model, "base.csv"], ["merge", model, model, "-o", "x.dcb"]):
        answer = deciban(*command)
        assert (answer.code, "learned the same rows" in answer.err) == (3, True)
    assert Path(model).read_bytes() == before
    assert "now 300 rows" in deciban("learn", model, "more.csv", "--force").out
    assert deciban("merge", model, model, "-o", "x.dcb", "--force").code == 0


def test_columns_that_are_missing_or_new_are_told(deciban: Deciban, model: str) -> None:
    """A misspelt name would else be learned beside the right one without a word."""
    Path("more.csv").write_text(table(50, seed=5).replace("age,town", "aeg,town"))
    answer = deciban("learn", model, "more.csv", "--output", "x.dcb")
    assert answer.code == 0
    assert "warning: more.csv has no 'age': taken as missing" in answer.err
    assert "warning: more.csv has 'aeg', new to the model: learned too; --ignore leaves a column out" in answer.err
    assert "more.csv has no 'age'" in deciban("evaluate", model, "more.csv").err
    Path("good.csv").write_text(table(50, seed=5))
    assert deciban("learn", model, "good.csv", "--output", "x.dcb").err == ""


def test_new_classes_are_told(deciban: Deciban, model: str) -> None:
    """A slip in a label would else become a class without a word."""
    Path("more.csv").write_text(f"{HEADER}\n40,Ulm,yse\n50,Bern,yes\n41,Ulm,yse\n60,Bern,perhaps\n")
    answer = deciban("learn", model, "more.csv", "--output", "x.dcb")
    translated_errors = (
        "more.csv has classes that are new to the model: 'perhaps' (1 row), 'yse' (2 rows, perhaps 'yes')"
    )
    assert (answer.code, translated_errors in answer.err) == (0, True), answer.err
    Path("good.csv").write_text(f"{HEADER}\n40,Ulm,no\n")
    assert deciban("learn", model, "good.csv", "--output", "x.dcb").err == ""


def test_labels_of_another_type_are_not_learned(deciban: Deciban, model: str) -> None:
    Path("numbers.csv").write_text(f"{HEADER}\n40,Ulm,1\n50,Bern,0\n")
    Path("numbers.jsonl").write_text('{"age": 40, "town": "Ulm", "kind": 1}\n')
    Path("flags.csv").write_text(f"{HEADER}\n40,Ulm,true\n50,Bern,false\n")
    assert deciban("fit", "flags.csv", "-t", "kind", "-o", "flags.dcb", "--plain").code == 0
    for path, labelled, words in (
        (model, "numbers.csv", "the labels are numbers, such as 0, and the model's classes are 'no', 'yes'"),
        (model, "numbers.jsonl", "the labels are numbers, such as 1,"),
        (model, "sql: select * from 'numbers.csv'", "the labels are numbers"),
        (model, "flags.csv", "the labels are true and false, such as false"),
        ("flags.dcb", "base.csv", "the labels are text, and the model's classes are False, True"),
        ("flags.dcb", "numbers.csv", "the labels are numbers"),
        ("flags.dcb", "sql: select * from 'base.csv'", "the labels are text, such as no, and the model's classes"),
    ):
        answer = deciban("learn", path, labelled)
        assert (answer.code, words in answer.err) == (3, True), (labelled, answer.err)
    answer = deciban("learn", model, "numbers.csv", "--type", "kind=text", "--output", "x.dcb")
    assert (answer.code, "new to the model: '0' (1 row), '1' (1 row)" in answer.err) == (0, True)


def test_rows_that_cannot_have_been_learned_are_not_forgotten(deciban: Deciban, model: str) -> None:
    before = Path(model).read_bytes()
    Path("other.csv").write_text(f"{HEADER}\n" + "40,Paris,yes\n" * 3)
    answer = deciban("forget", model, "other.csv")
    assert answer.code == 3
    assert "other.csv" in answer.err
    assert Path(model).read_bytes() == before


def test_forgetting_needs_every_column_that_was_learned(deciban: Deciban, model: str) -> None:
    before = Path(model).read_bytes()
    few = table(200).splitlines()[:11]
    Path("few.csv").write_text("\n".join(few) + "\n")
    Path("misnamed.csv").write_text("\n".join(["aeg,town,kind", *few[1:]]) + "\n")
    for name in ("misnamed.csv", "sql: select town, kind from 'few.csv'"):
        answer = deciban("forget", model, name)
        assert (answer.code, "the model has learned 'age', which the table does not have" in answer.err) == (3, True)
    assert Path(model).read_bytes() == before
    answer = deciban("forget", model, "sql: select *, 7 as reason from 'few.csv'")
    assert "10 rows forgotten; now 190 rows" in answer.out
    assert "warning: the query has 'reason', new to the model: left out" in answer.err


def test_models_that_do_not_fit_together_are_both_named(deciban: Deciban, model: str) -> None:
    Path("other.csv").write_text("age,kind\n" + "".join(f"{'xyz'[i % 3]},{i % 2}\n" for i in range(30)))
    assert deciban("fit", "other.csv", "-t", "kind", "-o", "other.dcb", "--plain").code == 0
    answer = deciban("merge", model, "other.dcb", "-o", "x.dcb")
    assert answer.code == 3
    assert "m.dcb and other.dcb do not fit together" in answer.err


def test_a_table_that_breaks_in_the_middle_changes_no_model(deciban: Deciban, model: str) -> None:
    before = Path(model).read_bytes()
    Path("more.csv").write_text("\n".join([HEADER, *rows(30_000, 4), "40,Ulm", *rows(10)]))
    for command in ("learn", "forget"):
        answer = deciban(command, model, "more.csv")
        assert (answer.code, "more.csv, line 30002: found 2 cells" in answer.err) == (3, True)
    assert Path(model).read_bytes() == before
    assert sorted(os.listdir()) == ["base.csv", "m.dcb", "more.csv"]


# outputs


def test_the_output_is_checked_before_any_work(deciban: Deciban) -> None:
    """The table is not even there."""
    os.mkdir("folder")
    for path, words in (("no/m.dcb", "no/m.dcb: there is no folder no"), ("folder", "folder: this is a folder")):
        answer = deciban("fit", "not-there.csv", "-t", "kind", "-o", path)
        assert (answer.code, words in answer.err) == (5, True)


def test_what_can_be_known_is_checked_before_the_table_is_read(
    deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is broken in the middle, which is not found out; standard input is not even opened."""
    monkeypatch.setattr(sys, "stdin", None)
    Path("long.csv").write_text("\n".join([HEADER, *rows(1_000) * 150, "40,Ulm", *rows(10)]))
    Path("costs.csv").write_text(COSTS.replace("yes", "yse"))
    fit, predict, decide = ["fit", "-t", "kind", "-o", "x.dcb"], ["predict", model], ["decide", model]
    for command, words, code in (
        ([*fit, "-", "--prior", "foo"], "--prior foo: choose empirical", 2),
        ([*fit, "-", "--prior", "yes=0.5,no=0.6"], "the prior sums to 1.1", 2),
        ([*fit, "-", "--prior", "yes=0.5,no=x"], "give a number for each class", 2),
        ([*fit, "long.csv", "--prior", "yes=0.4,nein=0.6"], "'no' has none", 2),
        ([*fit, "-", "--family", "age=Gauss"], "--family age=Gauss", 2),
        ([*fit, "-", "--alpha", "-1"], "alpha", 2),
        ([*fit, "long.csv", "--family", "aeg=Gaussian"], "there is no column 'aeg'; did you mean 'age'", 2),
        ([*fit, "long.csv", "--family", "town,kind=JointTable"], "there is no column 'kind'", 2),
        ([*fit, "long.csv", "--weight", "w"], "no column 'w'", 3),
        ([*predict, "-", "-o", "x.txt"], "x.txt: the name does not say what to write", 2),
        ([*predict, "long.csv", "--keep", "id", "-o", "x.csv"], "--keep id: there is no such column", 2),
        ([*decide, "-", "--costs", "costs.csv", "-o", "x.csv"], "costs.csv", 3),
        ([*decide, "-", "--costs", "not.csv", "-o", "x.csv"], "not.csv: there is no such file", 5),
        (["evaluate", model, "-", "--costs", "costs.csv"], "costs.csv", 3),
    ):  # fmt: skip
        answer = deciban(*command)
        assert (answer.code, words in answer.err) == (code, True), (command, answer.err)
    assert sorted(os.listdir()) == ["base.csv", "costs.csv", "long.csv", "m.dcb"]


def test_files_without_permission_are_refused(
    model: str, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By somebody who is not root."""
    Path("mine.dcb").write_bytes(b"")
    Path("old.dcb").write_bytes(b"")
    os.chmod("old.dcb", 0o666)  # can be written, and not replaced
    Path("secret.csv").write_text("a")
    os.chmod("mine.dcb", 0o400)
    os.chmod("secret.csv", 0o000)
    os.chmod(".", 0o555)

    def as_nobody(*arguments: str) -> tuple[int, bytes]:
        child = os.fork()
        if child == 0:
            try:
                if os.getuid() == 0:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                os._exit(run(arguments))
            finally:
                os._exit(99)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), capfdbinary.readouterr().err

    try:
        for command, words in (
            (("fit", "base.csv", "-t", "kind", "-o", "mine.dcb"), b"mine.dcb: you may not write this file"),
            (("fit", "base.csv", "-t", "kind", "-o", "new.dcb"), b"new.dcb: you may not write into the folder ."),
            (("fit", "not-there.csv", "-t", "kind", "-o", "old.dcb"), b"old.dcb: you may not write into the folder ."),
            (("predict", model, "secret.csv"), b"secret.csv: you may not read this file"),
        ):
            code, err = as_nobody(*command)
            assert (code, words in err) == (5, True), err
    finally:
        os.chmod(".", 0o755)


def test_an_input_is_never_the_output(deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also under another name, as one of the files of a folder or a glob, in SQL, or by standard input."""
    os.symlink("base.csv", "soft.csv")
    os.link("base.csv", "hard.csv")
    os.link(model, "model.csv")
    os.mkdir("all")
    Path("all/a.csv").write_text(table())
    Path("costs.csv").write_text(COSTS)
    before = {name: Path(name).read_bytes() for name in ("base.csv", model, "all/a.csv", "costs.csv")}
    for command in (
        ["fit", "base.csv", "-t", "kind", "-o", "soft.csv"],
        ["fit", "base.csv", "-t", "kind", "-o", "hard.csv", "--force"],
        ["fit", "all", "-t", "kind", "-o", "all/a.csv", "--force"],
        ["fit", "sql: select * from 'base.csv'", "-t", "kind", "-o", "base.csv", "--force"],
        ["fit", "-", "-t", "kind", "-o", "soft.csv"],
        ["predict", model, "base.csv", "-o", "./base.csv"],
        ["predict", model, "b*.csv", "-o", "base.csv"],
        ["predict", model, "all", "-o", "all/a.csv"],
        ["predict", model, "base.csv", "-o", "model.csv"],
        ["predict", model, "-", "-o", "base.csv"],
        ["predict", model, "sql: select * from 'base.csv'", "-o", "hard.csv"],
        ["predict", model, 'sql: from "soft.csv"', "-o", "base.csv"],
        ["predict", model, "sql: from read_csv(['all/a.csv', 'b*.csv'])", "-o", "base.csv"],
        ["decide", model, "sql: with t as (from read_csv($$base.csv$$)) from t", "-o", "base.csv"],
        ["decide", model, "base.csv", "--costs", "costs.csv", "-o", "costs.csv"],
        ["learn", model, "base.csv", "-o", "hard.csv"],
        ["merge", model, model, "-o", model],
    ):
        with open("base.csv") as file:
            monkeypatch.setattr(sys, "stdin", file)
            answer = deciban(*command)
        assert (answer.code, "the output is an input" in answer.err) == (2, True), command
    assert {name: Path(name).read_bytes() for name in before} == before
    assert deciban("predict", model, "sql: select *, 'other.csv' as name from 'base.csv'", "-o", "other.csv").code == 0


def test_what_is_read_is_not_appended_to(deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("base.csv", "a") as file:
        monkeypatch.setattr(sys, "stdout", file)
        answer = deciban("predict", model, "base.csv")
    assert (answer.code, "standard output: the output is an input" in answer.err) == (2, True)
    assert Path("base.csv").read_text() == table()


def test_a_model_replaces_only_a_model(deciban: Deciban, model: str) -> None:
    Path("notes.txt").write_text("mine")
    Path("empty.dcb").touch()
    Path("few.csv").write_text(table(20, seed=5))
    for command in (
        ["fit", "base.csv", "-t", "kind"],
        ["fit", "sql: select * from 'base.csv'", "-t", "kind"],
        ["learn", model, "few.csv"],
        ["forget", model, "base.csv"],
        ["merge", model],
    ):
        answer = deciban(*command, "--output", "notes.txt")
        assert (answer.code, "notes.txt: there is such a file, and it is no model" in answer.err) == (2, True)
        assert Path("notes.txt").read_text() == "mine"
    for path, more in ((model, ()), ("empty.dcb", ()), ("notes.txt", ("--force",))):
        assert deciban("fit", "base.csv", "-t", "kind", "-o", path, "--plain", *more).code == 0
        assert load(path).counts_.rows == 200


def test_a_full_disk(deciban: Deciban, model: str) -> None:
    """It is said which file has no room, and the old one is whole."""
    answer = deciban("fit", "base.csv", "-t", "kind", "-o", "/dev/full")
    assert (answer.code, "/dev/full: No space left" in answer.err) == (5, True)
    before = Path(model).read_bytes()

    def narrow() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    found = started("fit", "base.csv", "-t", "kind", "-o", model, "--plain", preexec_fn=narrow)
    assert (found.returncode, b"m.dcb: File too large" in found.stderr) == (5, True)
    assert Path(model).read_bytes() == before
    assert sorted(os.listdir()) == ["base.csv", "m.dcb"]


def test_spreadsheets_run_nothing(deciban: Deciban) -> None:
    """Cells, names of columns and classes that look like formulas get an apostrophe; --raw leaves them."""
    formulas = ["=1+1", "+A1", "-A1+2", "@sum", "\tx", "\rx"]
    harmless = ["-5", "+7.5", "-1e5", "a=b", "plain"]
    lines = [f'{i},"{cell}",{"=yes" if i % 2 else "@no"}' for i, cell in enumerate((formulas + harmless) * 4)]
    Path("a.csv").write_text("\n".join(["=n,@town,kind", *lines]), newline="")
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain").code == 0
    for command in (["predict", "m.dcb", "a.csv", "-p"], ["decide", "m.dcb", "a.csv"], ["sample", "m.dcb"]):
        for row in csv.reader(io.StringIO(deciban(*command).out, newline="")):
            for cell in row:
                assert not re.match(r"[=@\t\r]|[+-](?![0-9.])", cell), cell
    found = records(deciban("predict", "m.dcb", "a.csv").out)
    assert [row["'@town"] for row in found[:11]] == [*("'" + cell for cell in formulas), *harmless]
    assert found[0]["predicted"] in ("'=yes", "'@no")
    raw = records(deciban("predict", "m.dcb", "a.csv", "--raw").out)
    assert [row["@town"] for row in raw[:11]] == formulas + harmless


def test_terminals_obey_nothing_that_stands_in_data(deciban: Deciban) -> None:
    """Neither in columns, categories and classes nor in names of files and options."""
    Path("a.csv").write_text(f'"{EVIL}",kind\n' + "".join(f"{EVIL}{i % 3},{EVIL}{i % 2}\n" for i in range(40)))
    Path(f"{EVIL}.csv").write_text("x\n1\n")
    for command in (
        ["fit", "a.csv", "-t", "kind", "-o", "m.dcb"],
        ["inspect", "m.dcb"],
        ["inspect", "m.dcb", "--json"],
        ["explain", "m.dcb", "a.csv"],
        ["explain", "m.dcb", "a.csv", "--steps"],
        ["explain", "m.dcb", "a.csv", "--json"],
        ["evaluate", "m.dcb", "a.csv"],
        ["evaluate", "m.dcb", "a.csv", "--json"],
        ["diagnose", "m.dcb", "a.csv"],
        ["fit", "a.csv", "-t", EVIL + "!", "-o", "x.dcb"],
        ["fit", EVIL, "-t", "x", "-o", "x.dcb"],
        ["predict", "m.dcb", f"{EVIL}.csv"],
        ["predict", "m.dcb", "a.csv", "--keep", EVIL + "!"],
        ["fit", "a.csv", "-t", "kind", "-o", f"{EVIL}.dcb"],
        [EVIL],
    ):
        answer = deciban(*command)
        assert not OBEYED & set(answer.out + answer.err), command


def test_a_terminal_shows_predictions_and_does_not_obey_them(tmp_path: Path, deciban: Deciban) -> None:
    """What a file gets unchanged, a terminal gets made harmless; colours are for terminals alone."""
    Path("a.csv").write_text("v,kind\n" + "".join(f"{EVIL}{i % 3},{'yn'[i % 2]}\n" for i in range(40)))
    assert "\x1b" not in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--plain").out
    assert EVIL in deciban("predict", "m.dcb", "a.csv").out
    outer, inner = pty.openpty()
    process = subprocess.Popen([COMMAND, "predict", "m.dcb", "a.csv"], stdout=inner, stderr=inner, stdin=inner)
    os.close(inner)
    seen = b""
    try:
        while part := os.read(outer, 4096):
            seen += part
    except OSError:  # the end, on Linux
        pass
    os.close(outer)
    assert process.wait(timeout=30) == 0
    assert b"predicted" in seen
    assert not OBEYED & set(seen.decode())


def test_whoever_reads_the_output_may_stop(tmp_path: Path, model: str) -> None:
    """`| head` is quiet, and fine."""
    Path("long.csv").write_text(table(60_000))
    line = f"{COMMAND} predict {model} long.csv | head -n 1; exit ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", line], capture_output=True, timeout=60, check=False)
    assert (found.returncode, found.stderr, found.stdout.count(b"\n")) == (0, b"", 1)


# the theorem and the tour


def test_the_theorem(deciban: Deciban) -> None:
    """0.05 · 0.9 / (0.05 · 0.9 + 0.95 · 0.08) = 0.3719; the next test starts from there."""
    numbers = ["bayes", "--prior", "0.05", "--sensitivity", "0.9"]
    assert "0.3719" in deciban(*numbers, "--false-positive", "0.08").out
    believed, results = 0.05, ["positive", "positive", "negative"]
    steps = json.loads(deciban(*numbers, "--specificity", "0.92", "--results", ",".join(results), "--json").out)
    for step, result in zip(steps, results, strict=True):
        hit, alarm = (0.9, 0.08) if result == "positive" else (0.1, 0.92)
        believed = believed * hit / (believed * hit + (1 - believed) * alarm)
        assert step["posterior"]["positive"] == pytest.approx(believed)
    likelihoods = ["--likelihood", "ill=0.9,well=0.08", "--likelihood", "ill=0.2,well=0.1"]
    last = json.loads(deciban("bayes", "--prior", "ill=0.05,well=0.95", *likelihoods, "--json").out)[-1]
    assert last["posterior"]["ill"] == pytest.approx(0.05 * 0.9 * 0.2 / (0.05 * 0.9 * 0.2 + 0.95 * 0.08 * 0.1))
    for wrong in (
        ["--prior", "0.5"],
        ["--prior", "x", "--likelihood", "1,0"],
        ["--prior", "1.5", "--likelihood", "1,0"],
    ):
        assert deciban("bayes", *wrong).code == 2


def test_the_theorem_takes_per_cent_and_densities(deciban: Deciban) -> None:
    shares = ["bayes", "--prior", "0.05", "--sensitivity", "0.999", "--false-positive", "0.08", "--json"]
    for sign in ("%", " %"):
        found = ["bayes", "--prior", f"5{sign}", "--sensitivity", f"99.9{sign}", "--specificity", f"92{sign}", "--json"]
        assert json.loads(deciban(*found).out)[0]["posterior"] == pytest.approx(
            json.loads(deciban(*shares).out)[0]["posterior"], abs=1e-15
        )
    named = deciban("bayes", "--prior", "ill=5%,well=95 %", "--likelihood", "90%,8%")
    assert "ill   0.05       0.9         0.045      0.371901" in named.out
    dense = deciban("bayes", "--prior", "0.3", "--likelihood", "3.5,2.5")
    assert dense.code == 0
    assert f"{0.3 * 3.5 / (0.3 * 3.5 + 0.7 * 2.5):.6g}" in dense.out
    assert "people" not in dense.out
    for wrong in (["--sensitivity", "1.2", "--specificity", "0.9"], ["--likelihood", "%,1"], ["--likelihood", "inf,1"]):
        assert deciban("bayes", "--prior", "0.5", *wrong).code == 2
    assert deciban("bayes", "--prior", "0.5", "--likelihood", "2,1", "--people", 1000).code == 2


def test_the_tour(deciban: Deciban) -> None:
    """It runs, tells of each step, and leaves nothing behind; --files leaves its tables."""
    answer = deciban("demo")
    assert answer.code == 0
    for words in ("$ deciban fit weather.csv", "decision: no", "14 rows", "accuracy 0.9", "decibans", ",reject,"):
        assert words in answer.out
    assert os.listdir() == []
    names = deciban("demo", "--files").out.split()
    assert [(Path(name).is_file(), name.startswith("deciban-demo/")) for name in names] == [(True, True)] * 7
    assert deciban("fit", "deciban-demo/weather.csv", "-t", "play", "-o", "w.dcb").code == 0
    assert pyarrow.csv.read_csv("deciban-demo/cancer.csv").num_rows == 561


def test_the_tables_of_the_tour_overwrite_nothing(deciban: Deciban) -> None:
    Path("costs.csv").write_text("mine")
    answer = deciban("demo", "--files", ".")
    assert (answer.code, "costs.csv: there is such a file already, and it is another one" in answer.err) == (5, True)
    assert (os.listdir(), Path("costs.csv").read_text()) == (["costs.csv"], "mine")
    assert deciban("demo", "--files", "tour").code == 0
    Path("tour/cancer.csv").unlink()
    assert deciban("demo", "--files", "tour").code == 0  # the others are what they were
    assert Path("tour/cancer.csv").is_file()
