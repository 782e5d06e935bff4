"""What the command says to people who have never used it: figures beside a baseline, one spelling, lines that fit."""

import json
import random
from pathlib import Path

import pytest

from deciban import BayesClassifier
from deciban.cli.output import fit_columns, format_columns
from deciban.families import Gaussian, JointGaussian
from deciban.schema.schema import GIVEN, ColumnGroup, Schema
from deciban.util.text_tables import shorten_middle
from tests.support.command import Answer, Deciban


@pytest.fixture
def noise(deciban: Deciban) -> Answer:
    """A fit of a column that knows nothing of two classes that are equally frequent."""
    draw = random.Random(7)
    lines = [f"{draw.gauss(0, 1):.4f},{'ab'[k % 2]}" for k in range(400)]
    Path("noise.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    return deciban("fit", "noise.csv", "-t", "y", "-o", "noise.dcb")


def test_a_model_that_knows_nothing_says_so_and_no_accuracy_of_zero(noise: Answer, deciban: Deciban) -> None:
    nothing = "the columns do not predict the class: no better than always guessing 'a' (0.5000)"
    assert nothing in noise.out
    assert "accuracy" not in noise.out
    assert nothing in deciban("inspect", "noise.dcb").out
    said = deciban("evaluate", "noise.dcb", "noise.csv").out
    assert "baseline (no row left out): accuracy 0.5000 (always a), log-loss" in said
    assert "the log-loss is no better than that of the baseline" in said
    assert "each row is left out of the class shares too" in said


def test_a_fit_names_what_the_commonest_class_alone_is_worth(model: str, deciban: Deciban) -> None:
    said = deciban("fit", "base.csv", "-t", "kind", "-o", "tuned.dcb").out
    labels = [line.rpartition(",")[2] for line in Path("base.csv").read_text().splitlines()[1:]]
    share = max(labels.count("yes"), labels.count("no")) / len(labels)
    commonest = max(("yes", "no"), key=labels.count)
    assert f" (always '{commonest}': {share:.4f}), log-loss" in said
    said = deciban("evaluate", "tuned.dcb", "base.csv").out
    assert "no better than that of the baseline" not in said


@pytest.fixture
def boolean(deciban: Deciban) -> str:
    """A plain model of classes that are true and false."""
    draw = random.Random(3)
    lines = [f"{draw.gauss(k % 2, 1):.4f},{('false', 'true')[k % 2]}" for k in range(60)]
    Path("bool.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    BayesClassifier(tune=None).fit("bool.csv", "y").save("bool.dcb")
    return "bool.dcb"


def test_true_and_false_have_one_spelling_in_all_that_is_written(boolean: str, deciban: Deciban) -> None:
    Path("costs.csv").write_text(",TRUE,False\ntrue,0,1\nFALSE,5,0\nwait,0.1,0.1\n")
    for command in (
        ("predict", boolean, "bool.csv", "-p"),
        ("decide", boolean, "bool.csv", "--costs", "costs.csv"),
        ("decide", boolean, "bool.csv", "--costs", "costs.csv", "--json"),
        ("explain", boolean, "bool.csv"),
        ("explain", boolean, "bool.csv", "--steps", "--json"),
        ("evaluate", boolean, "bool.csv"),
        ("evaluate", boolean, "bool.csv", "--costs", "costs.csv", "--json"),
        ("inspect", boolean, "--estimates"),
        ("inspect", boolean, "--estimates", "--json"),
        ("sample", boolean, "--class", "True", "--rows", "3"),
    ):
        found = deciban(*command)
        assert found.code == 0, (command, found.err)
        assert "true" in found.out, command
        assert not any(word in found.out for word in ("True", "False")), command


@pytest.mark.parametrize("prior", ["true=0.25,false=0.75", "True=0.25,FALSE=0.75"])
def test_a_prior_may_spell_true_and_false_in_any_way(boolean: str, prior: str, deciban: Deciban) -> None:
    assert deciban("fit", "bool.csv", "-t", "y", "-o", "prior.dcb", "--tune", "none", "--prior", prior).code == 0
    row = json.loads(deciban("explain", "prior.dcb", "bool.csv", "--row", 1, "--steps", "--json").out)[0]
    assert row["steps"]["prior"] == pytest.approx({"true": 0.25, "false": 0.75})


def test_stale_weights_name_the_command_that_learns_them_anew(model: str, deciban: Deciban) -> None:
    deciban("fit", "base.csv", "-t", "kind", "-o", "tuned.dcb")
    Path("more.csv").write_text("age,town,kind\n41,Graz,no\n")
    assert deciban("learn", "tuned.dcb", "more.csv").code == 0
    said = deciban("inspect", "tuned.dcb").out
    assert "the rows have changed since; to update it, run deciban learn --retune with more rows, or fit" in said
    warned = deciban("predict", "tuned.dcb", "more.csv", "--coverage", "90%").err
    assert "; deciban learn --retune with more rows or deciban fit computes them again" in warned


def test_what_is_said_to_be_run_next_can_be_pasted(model: str, deciban: Deciban) -> None:
    query = "sql: select * from 'base.csv'"
    said = deciban("fit", query, "-t", "kind", "-o", "plain.dcb", "--tune", "none").out
    assert said.endswith("to evaluate it: deciban evaluate plain.dcb 'sql: select * from '\"'\"'base.csv'\"'\"''\n")


def test_whole_numbers_stay_whole_in_json(model: str, deciban: Deciban) -> None:
    classes = json.loads(deciban("inspect", model, "--json").out)["classes"]
    assert all(isinstance(rows, int) for rows in classes.values())
    assert sum(classes.values()) == 200
    Path("row.csv").write_text("age,town\n41,Bern\n")
    evidence = json.loads(deciban("explain", model, "row.csv", "--json").out)[0]["evidence"]
    (age,) = (term["value"] for term in evidence if term["column"] == "age")
    assert repr(age) == "41"


def test_a_parameter_that_a_family_has_not_is_named(model: str, deciban: Deciban) -> None:
    found = deciban("fit", "base.csv", "-t", "kind", "-o", "n.dcb", "--family", "town=Categorical(foo=1)")
    assert "--family town=Categorical(foo=1): Categorical has no parameter 'foo'" in found.err


def test_blocks_of_the_same_columns_are_told_apart_where_lines_are_cut() -> None:
    columns = ", ".join(f"a_column_with_a_long_name_{k} = {k}.25" for k in range(3))
    one, other = (f"{columns} as JointGaussian(covariance=Shrunk(amount={amount}))" for amount in (0.02, 0.05))
    assert shorten_middle(one, 76) != shorten_middle(other, 76)
    assert all(len(shorten_middle(one, most)) <= most for most in (20, 50, 60, 76, 88))
    assert shorten_middle("town = Bern", 20) == "town = Bern"


def test_blocks_of_many_columns_have_names_of_their_own() -> None:
    blocks = (tuple(range(9)), (0, 1, *range(3, 9)))
    every = (ColumnGroup(JointGaussian(), columns, (GIVEN,) * len(columns), auxiliary=True) for columns in blocks)
    schema = Schema(tuple("abcdefghi"), 9, (ColumnGroup(Gaussian(), tuple(range(9)), (GIVEN,) * 9), *every))
    assert len(set(schema.block_names)) == len(schema.block_names) == 11
    assert len({name for name, _, _ in schema.descriptions()}) == 11
    long = Schema(tuple(f"a column with a long name {k}" for k in range(9)), 9, schema.groups)
    shown = [line.split("  ")[0] for line in format_columns(long).splitlines()]
    assert len(set(shown)) == len(shown) == 12


def test_the_calculation_keeps_to_its_hundred_characters(deciban: Deciban) -> None:
    name = "a_column_with_a_name_that_is_so_long_that_it_takes_up_most_of_the_line_all_alone"
    draw = random.Random(5)
    lines = [f"{draw.gauss(k % 2, 0.1):.6f},{'ab'[k % 2]}" for k in range(60)]
    Path("long.csv").write_text("\n".join([f"{name},y", *lines]) + "\n")
    BayesClassifier(tune=None).fit("long.csv", "y").save("long.dcb")
    said = deciban("explain", "long.dcb", "long.csv", "--steps", "--row", 1).out
    assert "e-" in next(line for line in said.splitlines() if line.startswith("posterior"))
    assert max(map(len, said.splitlines())) <= 100


def test_one_column_that_says_nothing_is_shown_and_not_counted(model: str, deciban: Deciban) -> None:
    Path("row.csv").write_text("age,town\n41,\n")
    said = deciban("explain", model, "row.csv").out
    assert "town = missing" in said
    assert "1 other" not in said


def test_a_name_with_a_comma_that_is_not_kept_comes_with_the_hint_of_quotes(model: str, deciban: Deciban) -> None:
    Path("comma.csv").write_text('"last, first",age,town\nx,41,Bern\n')
    found = deciban("predict", model, "comma.csv", "--keep", "last, first,age")
    assert found.code == 2
    assert 'the columns are "last, first", age, town (put names with a comma in double quotes)' in found.err


def test_the_help_says_that_a_hold_out_is_one_part_of_some(deciban: Deciban) -> None:
    assert "rounded to 1/2, 1/3, 1/4, …" in " ".join(deciban("evaluate", "--help").out.split())


def test_a_merge_says_which_classes_are_new_to_the_first_model(model: str, deciban: Deciban) -> None:
    Path("more.csv").write_text("age,town,kind\n41.5,Graz,No\n51.5,Ulm,yes\n")
    assert deciban("fit", "more.csv", "-t", "kind", "-o", "more.dcb", "--tune", "none").code == 0
    found = deciban("merge", model, "more.dcb", "-o", "both.dcb")
    assert "more.dcb has a class new to the model: 'No' (1 row, perhaps 'no')\n" in found.err


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_table_of_columns_fits_into_the_terminal(width: int) -> None:
    why = "log-loss 0.6938, best of 13 (next: Gaussian(variance=Pooled()) 0.6974)"
    lines = [
        ("column", "type", "family", "why"),
        ("level", "int64", "Gamma(outside='ignore')", why),
        ("when", "timestamp[us, tz=UTC]", "Gaussian()", why),
        ("size", "double", "LogNormal()", "kept (log-loss 0.6684); Binned(bins=4) is hardly better (0.6679)"),
        ("level+when", "", "JointGaussian(covariance=Shrunk(amount=0.02, shrinkage=0.005))", "all of them"),
    ]
    table = fit_columns(lines, width)
    assert max(map(len, table.splitlines())) <= width
    words = " ".join(table.split())
    assert "outside" not in words
    assert words.count("0.6938 (best of 13)") == 2 or width < 100
    assert "…" not in table
    assert why in fit_columns(lines, None)


def test_a_warning_about_the_target_is_said_once_for_all_folds(deciban: Deciban) -> None:
    draw = random.Random(2)
    lines = [f"{draw.gauss(0, 1):.3f},{draw.randint(0, 900) if k > 5 else 7}" for k in range(90)]
    Path("numbers.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    found = deciban("evaluate", "numbers.csv", "-t", "y", "--folds", 3, "--tune", "none", "--force")
    assert found.err.count("warning") == 1, found.err


def test_errors_list_classes_as_people_do(model: str, deciban: Deciban) -> None:
    Path("costs.csv").write_text(",yes,maybe\nyes,0,1\nmaybe,5,0\n")
    found = deciban("decide", model, "base.csv", "--costs", "costs.csv")
    assert "unknown class 'maybe' in the costs; the classes of the model are no, yes" in found.err
