"""Messages of the library on the command line: options for arguments, and no word of the user is changed."""

import re
from pathlib import Path

import pytest

from deciban import BayesClassifier
from deciban.cli.messages import as_option, describe_error, describe_warning
from deciban.datasets import weather
from deciban.errors import Argument, DataError, DecibanWarning, Labels, Place, UsageError
from tests.cli.conftest import Deciban


def test_a_cell_that_looks_like_an_argument_stays_as_it_is(deciban: Deciban) -> None:
    lines = [f"{k}.5,{'ab'[k % 2]}" for k in range(20)]
    Path("t.csv").write_text("\n".join(["x,kind", *lines]) + "\n")
    assert deciban("fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").code == 0
    Path("new.csv").write_text("x\n1.5\nalpha=3\n")
    answer = deciban("predict", "m.dcb", "new.csv")
    assert answer.code == 3
    assert "'alpha=3'" in answer.err
    assert "--alpha" not in answer.err


def test_a_column_that_looks_like_a_call_keeps_its_name(deciban: Deciban) -> None:
    lines = [f"{k},{'ab'[k % 2]}" for k in range(20)]
    Path("t.csv").write_text("\n".join(["Rate(),kind", *lines, "x,a"]) + "\n")
    answer = deciban("fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--family", "Rate()=Gaussian")
    assert answer.code == 3
    assert "column 'Rate()'" in answer.err


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        (Argument("prior", "foo"), "--prior foo"),
        (Argument("missing", "n / a"), "--missing 'n / a'"),
        (Argument("date_format", "%d.%m"), "--date-format %d.%m"),
        (Argument("families"), "--family"),
        (Argument("header"), "--no-header"),
        (Argument("families", {("a", "b, c"): "JointTable()"}), "--family 'a,\"b, c\"=JointTable'"),
        (Argument("types", {"x": "text"}), "--type x=text"),
        (Argument("tune", "auto"), "--tune auto"),
        (Argument("if_exists", "append"), "--if-exists append"),
        (Argument("force", True), "--force"),
        (Argument("classes"), "--classes"),
        (Argument("first_row"), "first row"),
        (Argument("family", "Gamma"), "Gamma"),
        (Labels(["a", "b, c", "d"]), "a, 'b, c', d"),
        (Labels([False, True]), "false, true"),
    ],
)
def test_arguments_families_and_labels_as_options(part: Argument | Labels, shown: str) -> None:
    assert as_option(part) == shown


def test_a_table_given_as_a_number_is_named_on_one_line() -> None:
    table = weather().to_pandas()
    with pytest.raises(UsageError) as caught:
        BayesClassifier(tune=None).fit(table, "play").select_columns(table)
    assert re.fullmatch(r"k=outlook temperature .{20,40}…: expected an integer .*", str(caught.value))
    assert str(Argument("ignore", ["a long name " * 20])) == f"ignore={['a long name ' * 20]}"


def test_a_remedy_names_the_option_that_chooses_a_family() -> None:
    remedy = ("use ", Argument("family", "Gamma"), " for this column")
    error = DataError("found -3", place=Place(column="calls made", row=2), remedy=remedy)
    assert describe_error(error) == (
        "column 'calls made', row 2: found -3; use --family 'calls made'=Gamma for this column"
    )
    assert str(error) == "column 'calls made', row 2: found -3; use Gamma() for this column"


def test_the_parameter_comes_first() -> None:
    error = UsageError("choose 'empirical'", parameter=Argument("prior", "foo"))
    assert describe_error(error) == "--prior foo: choose 'empirical'"


def test_warnings_mention_options() -> None:
    warning = DecibanWarning(("leave it out: ", Argument("ignore", "id")))
    assert describe_warning(warning) == "leave it out: --ignore id"
    assert describe_warning(UserWarning("alpha=3")) == "alpha=3"
