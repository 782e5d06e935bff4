"""Why columns have their families is a value: who chose, and how that is said."""

from pathlib import Path

import numpy as np
import pytest

from deciban import BayesClassifier, Binned, Gaussian, load
from deciban.schema.schema import GIVEN, ChosenBy, Reason, Schema
from deciban.store.layout import ArrayReader, Content
from deciban.store.values import pack, unpack
from tests.store.make_golden import GOLDEN

FLOATS = Reason(ChosenBy.INFERRED, "floating point")


def sources(schema: Schema) -> list[tuple[str, str, ChosenBy]]:
    """Who chose the families of each column, in each of its groups."""
    return [
        (schema.column_name(column), str(group.family), reason.source)
        for group in schema.groups
        for column, reason in zip(group.columns, group.reasons, strict=True)
    ]


def chosen_by(schema: Schema, *columns: str) -> set[ChosenBy]:
    """Who chose the families of some columns."""
    return {source for column, _, source in sources(schema) if column in columns}


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (GIVEN, "given"),
        (GIVEN.with_note("2 cells such as '?' read as missing"), "given, 2 cells such as '?' read as missing"),
        (FLOATS, "floating point"),
        (Reason(ChosenBy.INFERRED, "text, 3 distinct values"), "text, 3 distinct values"),
        (Reason(ChosenBy.INFERRED, "given away"), "given away"),
    ],
    ids=str,
)
def test_reasons_are_shown_as_texts_and_read_back_from_files(reason: Reason, text: str) -> None:
    assert str(reason) == text
    assert unpack(pack(reason, []), ArrayReader(Content(None, memoryview(b""), "", 0))) == reason


def test_a_note_is_not_said_twice() -> None:
    note = "2 cells read as missing"
    assert FLOATS.with_note(note).with_note(note) == FLOATS.with_note(note)
    assert FLOATS.with_note("") == FLOATS


def table(rows: int = 200) -> dict[str, list[object]]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    numbers = rng.normal(size=(rows, 3)) + y[:, None]
    columns: dict[str, list[object]] = {name: numbers[:, k].tolist() for k, name in enumerate("abc")}
    return {**columns, "kind": [("no", "yes")[k] for k in y]}


def test_who_chose_is_known_before_and_after_a_file(tmp_path: Path) -> None:
    clf = BayesClassifier({"a": Gaussian()}).fit(table(), "kind")
    assert sources(clf.counts_.schema.plain) == [
        ("a", "Gaussian()", ChosenBy.GIVEN),
        ("b", "Gaussian()", ChosenBy.INFERRED),
        ("c", "Gaussian()", ChosenBy.INFERRED),
    ]
    assert chosen_by(clf.tuning_.schema, "a") == {ChosenBy.GIVEN}
    assert chosen_by(clf.tuning_.schema, "b", "c") == {ChosenBy.TUNED}
    clf.save(tmp_path / "m.dcb")
    again = load(tmp_path / "m.dcb")
    assert sources(again.tuning_.schema) == sources(clf.tuning_.schema)
    assert sources(again.counts_.schema) == sources(clf.counts_.schema)
    assert str(again.schema_) == str(clf.schema_)


def test_who_chose_is_known_of_the_golden_file() -> None:
    """It has all three: a family that was given, columns that were tuned, and blocks beside them."""
    clf = load(GOLDEN)
    plain, tuned = clf.counts_.schema.plain, clf.tuning_.schema
    assert chosen_by(plain, "score") == chosen_by(tuned, "score") == {ChosenBy.GIVEN}
    others = ("age", "spent", "since", "visits", "town", "member")
    assert chosen_by(plain, *others) == {ChosenBy.INFERRED}
    assert chosen_by(tuned, *others) == {ChosenBy.TUNED}
    for schema in (clf.counts_.schema, tuned):
        beside = [group for group in schema.groups if group.auxiliary]
        assert {reason.source for group in beside for reason in group.reasons} == {ChosenBy.TUNED}


def test_what_was_not_tuned_is_inferred_after_a_file_too(tmp_path: Path) -> None:
    clf = BayesClassifier().fit(table(10), "kind")
    assert "too few for tuning" in clf.tuning_.note
    clf.save(tmp_path / "m.dcb")
    for one in (clf, load(tmp_path / "m.dcb")):
        assert chosen_by(one.tuning_.schema, *"abc") == {ChosenBy.INFERRED}


def test_a_family_that_is_given_is_kept_though_there_is_a_note_on_its_column(tmp_path: Path) -> None:
    """Cells that are read as missing once hid that the family was given, and tuning chose another."""
    columns = table()
    columns["a"][7] = "n/a"
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    clf = BayesClassifier({"a": Binned(bins=3)}).fit(tmp_path / "t.csv", "kind")
    shown = {name: (family, reason) for name, family, reason in clf.schema_.descriptions()}
    assert shown["a"] == ("Binned(bins=3)", "given, 1 cell such as 'n/a' read as missing")
    clf.save(tmp_path / "m.dcb")
    again = load(tmp_path / "m.dcb")
    assert again.schema_.groups[0].reasons == clf.schema_.groups[0].reasons
    assert again.schema_.groups[0].inferred_columns == []


def test_a_note_is_said_once_where_nothing_could_be_tuned(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,kind\n" + "".join(f"{i}.5,{'xy'[i % 2]}\n" for i in range(9)) + "n/a,x\n")
    clf = BayesClassifier().fit(tmp_path / "t.csv", "kind")
    ((_, _, reason),) = clf.schema_.descriptions()
    assert reason == "floating point, 1 cell such as 'n/a' read as missing"


def test_a_schema_is_shown_and_is_a_frame_and_a_dict() -> None:
    schema = BayesClassifier(tune=None).fit({"size": [1.5, 2.5]}, ["a", "b"]).schema_
    assert repr(schema) == str(schema)
    assert schema.to_dict() == {"size": {"family": "Gaussian()", "why": "floating point"}}
    assert schema.to_frame().columns.tolist() == ["column", "family", "why"]
