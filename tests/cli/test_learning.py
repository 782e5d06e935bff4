"""learn, forget and merge add and subtract exactly, and say what does not fit."""

import json
import os
from pathlib import Path

import numpy as np
from pyarrow import parquet

from deciban import load
from tests.support.command import HEADER, Deciban, rows, table
from tests.support.sources import mixed, parts


def test_learn_forget_and_merge_add_and_subtract_exactly(deciban: Deciban) -> None:
    """(a + b) - b = a, and a merged with b is a + b, as their predictions say."""
    for name, seed in (("a", 1), ("b", 2)):
        Path(f"{name}.csv").write_text(table(150, seed))
        assert deciban("fit", f"{name}.csv", "-t", "kind", "-o", f"{name}.dcb", "--tune", "none").code == 0
    assert deciban("fit", "a.csv", "b.csv", "-t", "kind", "-o", "ab.dcb", "--tune", "none").code == 0
    assert "150 rows added; now 300 rows" in deciban("learn", "a.dcb", "b.csv", "-o", "learned.dcb").out
    assert "150 rows removed; now 150 rows" in deciban("forget", "ab.dcb", "b.csv", "-o", "forgot.dcb").out
    assert "2 models merged; now 300 rows" in deciban("merge", "a.dcb", "b.dcb", "-o", "merged.dcb").out
    for one, other in (("learned", "ab"), ("merged", "ab"), ("forgot", "a")):
        left, right = (load(f"{name}.dcb").predict_proba("a.csv") for name in (one, other))
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-9)


def test_a_merged_model_is_retuned_on_the_rows_of_all(deciban: Deciban) -> None:
    """Its tuning is then that of Python's `retune` on all rows, in any order of files."""
    for name, seed in (("a", 1), ("b", 2)):
        Path(f"{name}.csv").write_text(table(150, seed))
        assert deciban("fit", f"{name}.csv", "-t", "kind", "-o", f"{name}.dcb").code == 0
    merged = deciban("merge", "a.dcb", "b.dcb", "-o", "merged.dcb").out
    assert (
        "the tuning is unchanged; to tune the merged model, run deciban merge a.dcb b.dcb -o merged.dcb --retune"
        in merged
    )
    Path("b.txt").write_text(Path("b.csv").read_text().replace(",", ";"))
    retuned = deciban("merge", "a.dcb", "b.dcb", "-o", "retuned.dcb", "--retune", "a.csv", "--retune", "b.txt")
    assert (retuned.code, "unchanged" in retuned.out) == (0, False)
    assert "\ntuned on 300 rows" in retuned.out
    found = json.loads(deciban("inspect", "retuned.dcb", "--json").out)
    assert (found["rows"], found["tuned_rows"], found["stale"]) == (300, 300, False)
    wanted = load("merged.dcb")
    wanted.retune(["a.csv", "b.csv"], "kind")
    np.testing.assert_array_equal(load("retuned.dcb").predict_proba("a.csv"), wanted.predict_proba("a.csv"))
    answer = deciban("merge", "a.dcb", "b.dcb", "-o", "a.csv", "--retune", "a.csv")
    assert answer.code == 2
    assert deciban("merge", "a.dcb", "b.dcb", "-o", "x.dcb", "--retune", "no.csv").code == 5
    assert not Path("x.dcb").exists()


def test_an_outlier_learned_by_mistake_is_forgotten_without_a_trace(deciban: Deciban) -> None:
    numbers = np.random.default_rng(0).normal(size=60)
    lines = [f"{number + k % 2},{('no', 'yes')[k % 2]}" for k, number in enumerate(numbers)]
    Path("table.csv").write_text("\n".join(["a,label", *lines]))
    Path("bad.csv").write_text("a,label\n1700000000000000000,no\n")
    assert deciban("fit", "table.csv", "-t", "label", "-o", "model.dcb", "--tune", "none").code == 0
    before = load("model.dcb").predict_proba([{"a": 2.0}])
    assert deciban("learn", "model.dcb", "bad.csv").code == 0
    assert deciban("forget", "model.dcb", "bad.csv").code == 0
    np.testing.assert_array_equal(load("model.dcb").predict_proba([{"a": 2.0}]), before)


def test_the_same_rows_are_not_learned_twice(deciban: Deciban, model: str) -> None:
    Path("more.csv").write_text(table(50, seed=3))
    assert deciban("learn", model, "more.csv").code == 0
    before = Path(model).read_bytes()
    for name in ("more.csv", "base.csv"):
        answer = deciban("learn", model, name)
        words = f"{name}: {model} was already trained on these rows; pass --force to add them again"
        assert (answer.code, words in answer.err) == (3, True)
    answer = deciban("merge", model, model, "-o", "x.dcb")
    assert (answer.code, "were trained on the same rows" in answer.err) == (3, True)
    assert Path(model).read_bytes() == before
    assert "now 300 rows" in deciban("learn", model, "more.csv", "--force").out
    assert deciban("merge", model, model, "-o", "x.dcb", "--force").code == 0


def test_columns_that_are_missing_or_new_are_told(deciban: Deciban, model: str) -> None:
    """A misspelled name would else be learned beside the right one without a word."""
    Path("more.csv").write_text(table(50, seed=5).replace("age,town", "aeg,town"))
    answer = deciban("learn", model, "more.csv", "--output", "x.dcb")
    assert answer.code == 0
    assert "warning: more.csv has no column 'age': treated as missing" in answer.err
    assert "warning: more.csv has a new column, 'aeg': added too; use --ignore to leave a column out" in answer.err
    assert "more.csv has no column 'age'" in deciban("evaluate", model, "more.csv").err
    Path("good.csv").write_text(table(50, seed=5))
    assert deciban("learn", model, "good.csv", "--output", "x.dcb").err == ""


def test_new_classes_are_told(deciban: Deciban, model: str) -> None:
    """A slip in a label would else become a class without a word."""
    Path("more.csv").write_text(f"{HEADER}\n40,Ulm,yse\n50,Bern,yes\n41,Ulm,yse\n60,Bern,perhaps\n")
    answer = deciban("learn", model, "more.csv", "--output", "x.dcb")
    warning = "more.csv has classes new to the model: 'perhaps' (1 row), 'yse' (2 rows, perhaps 'yes')"
    assert (answer.code, warning in answer.err) == (0, True), answer.err
    Path("good.csv").write_text(f"{HEADER}\n40,Ulm,no\n")
    assert deciban("learn", model, "good.csv", "--output", "x.dcb").err == ""


def test_labels_of_another_type_are_not_learned(deciban: Deciban, model: str) -> None:
    Path("numbers.csv").write_text(f"{HEADER}\n40,Ulm,1\n50,Bern,0\n")
    Path("numbers.jsonl").write_text('{"age": 40, "town": "Ulm", "kind": 1}\n')
    Path("flags.csv").write_text(f"{HEADER}\n40,Ulm,true\n50,Bern,false\n")
    assert deciban("fit", "flags.csv", "-t", "kind", "-o", "flags.dcb", "--tune", "none").code == 0
    for path, labeled, words in (
        (model, "numbers.csv", "the labels are numbers, such as 0, but the model's classes are 'no', 'yes'"),
        (model, "numbers.jsonl", "the labels are numbers, such as 1,"),
        (model, "sql: select * from 'numbers.csv'", "the labels are numbers"),
        (model, "flags.csv", "the labels are true and false, such as false"),
        ("flags.dcb", "base.csv", "the labels are text, but the model's classes are False, True"),
        ("flags.dcb", "numbers.csv", "the labels are numbers"),
        ("flags.dcb", "sql: select * from 'base.csv'", "the labels are text, such as no, but the model's classes"),
    ):
        answer = deciban("learn", path, labeled)
        assert (answer.code, words in answer.err) == (3, True), (labeled, answer.err)
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
        assert (answer.code, "they lack the column 'age'" in answer.err) == (3, True)
    assert Path(model).read_bytes() == before
    answer = deciban("forget", model, "sql: select *, 7 as reason from 'few.csv'")
    assert "10 rows removed; now 190 rows" in answer.out
    assert "warning: the query has a new column, 'reason': ignored" in answer.err


def test_models_that_do_not_fit_together_are_both_named(deciban: Deciban, model: str) -> None:
    Path("other.csv").write_text("age,kind\n" + "".join(f"{'xyz'[i % 3]},{i % 2}\n" for i in range(30)))
    assert deciban("fit", "other.csv", "-t", "kind", "-o", "other.dcb", "--tune", "none").code == 0
    answer = deciban("merge", model, "other.dcb", "-o", "x.dcb")
    assert answer.code == 3
    assert "m.dcb and other.dcb cannot be merged" in answer.err


def test_a_table_that_breaks_in_the_middle_changes_no_model(deciban: Deciban, model: str) -> None:
    before = Path(model).read_bytes()
    Path("more.csv").write_text("\n".join([HEADER, *rows(30_000, 4), "40,Ulm", *rows(10)]))
    for command in ("learn", "forget"):
        answer = deciban(command, model, "more.csv")
        assert (answer.code, "' has 2 cells, but the header has 3" in answer.err) == (3, True)
    assert Path(model).read_bytes() == before
    assert sorted(os.listdir()) == ["base.csv", "m.dcb", "more.csv"]


def test_the_command_counts_in_the_engine(deciban: Deciban) -> None:
    whole = mixed(600)
    first, second = parts(whole, 2)
    for name, part in (("first", first), ("second", second), ("both", whole)):
        parquet.write_table(part, f"{name}.parquet")
        made = deciban("fit", f"{name}.parquet", "-t", "label", "-o", f"{name}.dcb", "--tune", "none", "--pushdown")
        assert made.code == 0
    assert deciban("learn", "first.dcb", "second.parquet", "--pushdown", "-o", "learned.dcb").code == 0
    assert deciban("forget", "learned.dcb", "first.parquet", "--pushdown", "-o", "left.dcb").code == 0
    for one, other in (("learned", "both"), ("left", "second")):
        found, model = (load(f"{name}.dcb") for name in (one, other))
        np.testing.assert_allclose(found.predict_proba(first), model.predict_proba(first), rtol=0, atol=1e-9)
    Path("table.csv").write_text("x,label\n1,a\n2,b\n")
    refused = deciban("fit", "table.csv", "-t", "label", "-o", "x.dcb", "--pushdown")
    assert (
        refused.code,
        "table.csv: --pushdown: CSV files cannot be counted by SQL; leave --pushdown out" in refused.err,
    ) == (2, True)


def test_merge_refuses_models_of_different_targets_unless_forced(deciban: Deciban, model: str) -> None:
    Path("base.csv").write_text(table())
    assert deciban("fit", "base.csv", "-t", "town", "-o", "town.dcb", "--tune", "none").code == 0
    said = deciban("merge", model, "town.dcb", "-o", "both.dcb")
    assert said.code == 3
    assert said.err == (
        f"deciban: error: {model} and town.dcb cannot be merged: they predict different columns, 'kind' and 'town'; "
        "merge models with the same target, or pass --force\n"
    )
    assert not Path("both.dcb").exists()
    assert deciban("merge", model, "town.dcb", "-o", "both.dcb", "--force").code == 0
