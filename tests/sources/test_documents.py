"""Folders of documents as a stream."""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from deciban import BayesClassifier, Categorical, load, scan
from deciban.cli import run
from deciban.errors import DataError, UsageError
from deciban.evaluation.validation import cross_validate
from deciban.model.fitted import Settings
from deciban.sources.documents import Documents
from deciban.sources.streams import LabeledStream

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 4


def corpus(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def rows(source: Path | str | list[str]) -> list[dict[str, str | None]]:
    found: list[dict[str, str | None]] = scan(source).table().to_pylist()
    return found


@pytest.fixture
def letters(tmp_path: Path) -> Path:
    """Documents of two classes, told apart by their only word."""
    files: dict[str, str | bytes] = {f"spam/{k:02}.txt": "buy" if k % 5 else "meet" for k in range(30)}
    files |= {f"ham/deeper/{k:02}.txt": "meet" if k % 5 else "buy" for k in range(30)}
    return corpus(tmp_path / "letters", files)


def test_a_folder_of_documents_is_a_table_of_three_columns(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "spam/2.txt": "b",
        "spam/deep/er/1.txt": "c",
        "ham/1.md": "a",
        "alone.txt": "",
        "x y": "d",
    }
    files |= {".hidden": "x", "_index.txt": "x", ".git/a.txt": "x", "__MACOSX/a.txt": "x", ".git/b.json": "{}"}
    assert scan(corpus(tmp_path, files)).table().schema.types == [pa.string(), pa.string(), pa.large_string()]
    assert rows(tmp_path) == [
        {"folder": None, "file": "alone.txt", "text": ""},
        {"folder": "ham", "file": "ham/1.md", "text": "a"},
        {"folder": "spam", "file": "spam/2.txt", "text": "b"},
        {"folder": "spam", "file": "spam/deep/er/1.txt", "text": "c"},
        {"folder": None, "file": "x y", "text": "d"},
    ]


def test_tables_stay_tables(tmp_path: Path) -> None:
    corpus(
        tmp_path,
        {"t/a.csv": "v,kind\n1,x\n", "t/b.txt": "v,kind\n2,y\n", "t/c/note.md": "words", "d.txt": "v,kind\n3,z\n"},
    )
    assert rows(tmp_path / "t") == [{"v": 1, "kind": "x"}, {"v": 2, "kind": "y"}]
    assert rows(tmp_path / "d.txt") == [{"v": 3, "kind": "z"}]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("naïve €".encode(), "naïve €"),
        ("naïve €".encode("utf-8-sig"), "naïve €"),
        ("naïve €".encode("utf-16"), "naïve €"),
        ("naïve €".encode("utf-32"), "naïve €"),
        (b"na\xefve \x80 \x81", "naïve € �"),
        (b"\xef\xbb\xbfna\xefve", "na�ve"),
        (b"\xff\xfea\x00b", "a�"),
        (b"a\x00b\x00\r\n", "a b \r\n"),
        (b"", ""),
    ],
)
def test_no_document_is_lost_for_its_encoding(raw: bytes, text: str, tmp_path: Path) -> None:
    assert rows(corpus(tmp_path, {"a/1.txt": raw}))[0]["text"] == text


def test_an_encoding_may_be_given(tmp_path: Path) -> None:
    corpus(tmp_path, {"a/1.txt": "да".encode("koi8-r")})
    assert scan(tmp_path, encoding="koi8-r").table()["text"].to_pylist() == ["да"]
    with pytest.raises(UsageError, match="encoding='nonsense': unknown encoding; try"):
        scan(tmp_path, encoding="nonsense")


def test_pages_are_read_as_they_are_shown(tmp_path: Path) -> None:
    assert rows(corpus(tmp_path, {"a/1.html": "<p>One &amp;<br>two<script>x</script>"}))[0]["text"] == "One &\ntwo"


def test_what_is_no_text_is_left_out_with_a_word(tmp_path: Path) -> None:
    corpus(tmp_path, {"a/1.txt": "x", "a/photo": PNG, "b/2.docx": b"PK\x03\x04rest", "b/3.txt": b"\0\0\0"})
    with pytest.warns(UserWarning, match=r"2 files are not text and skipped, for example a/photo"):
        found = rows(tmp_path)
    assert [row["file"] for row in found] == ["a/1.txt", "b/3.txt"]


def test_a_folder_without_any_text_is_refused(tmp_path: Path) -> None:
    corpus(tmp_path, {"a/photo": PNG, "b/photo": PNG})
    with pytest.raises(DataError, match=r"no text files found; for example a/photo is not text; save them as text"):
        rows(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no tables and no documents found in the folder; give a file"):
        scan(tmp_path / "empty")


@given(st.lists(st.tuples(st.sampled_from(["1.txt", "2.html", "3.eml", "5", "6.bin"]), st.binary(max_size=80))))
def test_any_bytes_are_some_documents(tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, bytes]]) -> None:
    folder = tmp_path_factory.mktemp("any")
    corpus(folder, {"a/0.txt": "x", **{f"b/{name}": content for name, content in files}})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = scan(folder).table()
    found.validate(full=True)
    assert not found["text"].null_count
    assert found["file"].to_pylist()[0] == "a/0.txt"


def test_names_may_be_any_bytes(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    with open(folder + b"/\xff.txt", "wb") as file:
        file.write(b"x")
    assert rows(tmp_path) == [{"folder": "caf�", "file": "caf�/�.txt", "text": "x"}]


def test_links_are_followed_once(tmp_path: Path) -> None:
    corpus(tmp_path, {"else/1.txt": "x", "corpus/a/2.txt": "y"})
    (tmp_path / "corpus" / "linked").symlink_to(tmp_path / "else")
    (tmp_path / "corpus" / "a" / "back").symlink_to(tmp_path / "corpus")
    assert [row["file"] for row in rows(tmp_path / "corpus")] == ["a/2.txt", "linked/1.txt"]


def test_pieces_are_bounded_by_rows_and_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus(tmp_path, {f"a/{k:02}.txt": "x" * (100 if k == 3 else 1) for k in range(12)})
    monkeypatch.setattr("deciban.sources.documents.DOCUMENT_ROWS", 5)
    monkeypatch.setattr("deciban.sources.documents.DOCUMENT_BYTES", 50)
    source = scan(tmp_path)
    assert [table.num_rows for table in source.tables()] == [4, 5, 3]
    assert source.expected == 12
    assert source.head(6)["file"].to_pylist() == [f"a/{k:02}.txt" for k in range(6)]
    assert source.at([10, 1])["file"].to_pylist() == ["a/10.txt", "a/01.txt"]


def test_of_long_documents_fewer_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus(tmp_path, {f"a/{k:02}.txt": "x" * 1_000 for k in range(60)})
    monkeypatch.setattr("deciban.sources.documents.DOCUMENT_ROWS", 20)
    monkeypatch.setattr("deciban.tables.row_sampling.LONG_ROWS", 5)
    every, count = scan(tmp_path).sample(30, lambda rows: None)
    monkeypatch.setattr("deciban.tables.row_sampling.SAMPLE_BYTES", 10_500)
    few, again = scan(tmp_path).sample(30, lambda rows: None)
    assert (every.num_rows, few.num_rows, count, again) == (30, 10, 60, 60)
    assert set(few["file"].to_pylist()) < set(every["file"].to_pylist())


@pytest.mark.parametrize(
    "options",
    [{"types": {"text": "text"}}, {"missing": ["?"]}, {"delimiter": ";"}, {"header": False}],
    ids=lambda options: next(iter(options)),
)
def test_options_of_tables_are_refused(letters: Path, options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"letters: {next(iter(options))}= applies to tables, not to documents"):
        scan(letters, **options)  # type: ignore[arg-type]


def test_what_cannot_be_meant_is_refused(letters: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError,
        match="a folder of documents cannot be combined with other inputs; give one folder that contains all documents",
    ):
        scan([str(letters / "spam"), str(letters / "ham")])
    with pytest.raises(UsageError, match="no column 'subject'; the columns are folder, file, text"):
        scan(letters, ignore=["subject"])
    corpus(tmp_path, {"1.eml": "Subject: a\n\nb\n"})
    with pytest.raises(DataError, match=r"1.eml: mail files are not supported; read it with Python's mailbox"):
        scan(tmp_path / "1.eml")
    with pytest.raises(FileNotFoundError, match="no such file"):
        scan("nowhere.txt")


def test_a_file_that_may_not_be_read_is_named(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system refuses nothing to the user who may all, so it is asked to."""

    def refuse(path: str, mode: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("deciban.sources.documents.open", refuse, raising=False)
    with pytest.raises(PermissionError, match=r"ham/deeper/00.txt: permission denied"):
        rows(letters)


# learning


def test_the_name_of_a_file_is_never_learned_and_stays_beside_the_prediction(letters: Path, tmp_path: Path) -> None:
    clf = BayesClassifier({"text": Categorical()}, tune=None).fit(letters, "folder")
    assert clf.schema_.names == ("text",)
    assert clf.classes_.tolist() == ["ham", "spam"]
    (table,) = clf.predict_batches(letters)
    assert table.column_names == ["folder", "file", "text", "predicted", "probability"]
    assert clf.score(letters, "folder") == np.mean(np.array(table["folder"]) == np.array(table["predicted"])) == 0.8
    assert clf.predict(letters / "spam").tolist() == table["predicted"].to_pylist()[30:]
    clf.save(tmp_path / "m.dcb")
    more = load(tmp_path / "m.dcb").partial_fit(letters, "folder")
    assert more.schema_.names == ("text",)
    assert more.counts_.rows == 120
    assert more.forget(letters, "folder").counts_.rows == 60
    assert clf.leave_one_out().accuracy == 0.8
    clf.predict_to(tmp_path / "p.parquet", letters)
    clf.predict_to(tmp_path / "p.csv", letters)
    assert scan(tmp_path / "p.csv").table()["file"].to_pylist() == table["file"].to_pylist()


def test_a_corpus_and_its_table_in_memory_give_the_same_model(letters: Path) -> None:
    stream = BayesClassifier({"text": Categorical()}).fit(letters, "folder")
    table = scan(letters, ignore=["file"]).table()
    memory = BayesClassifier({"text": Categorical()}).fit(table, "folder")
    np.testing.assert_array_equal(stream.predict_proba(letters), memory.predict_proba(table))
    assert stream.shards_ == memory.shards_


def test_documents_without_a_folder_have_no_label(letters: Path) -> None:
    corpus(letters, {"loose.txt": "buy"})
    clf = BayesClassifier({"text": Categorical()}, tune=None).fit(letters, "folder")
    assert (clf.counts_.rows, clf.counts_.unlabeled) == (60, 1)
    assert clf.predict(letters).size == 61


def test_folds_of_a_corpus_do_not_know_the_names_either(letters: Path) -> None:
    rows = LabeledStream.of(scan(letters), "folder", None)
    assert isinstance(rows.stream, Documents)
    found = cross_validate(Settings({"text": Categorical()}, tune=None), rows, 5)
    assert found.accuracy == pytest.approx(0.8)


def test_the_commands_take_a_corpus(letters: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model, out = str(tmp_path / "m.dcb"), str(tmp_path / "p.csv")

    def deciban(*arguments: str) -> str:
        assert run(arguments) == 0
        said = capfd.readouterr()
        assert not said.err
        return said.out

    family = ("--family", "text=Categorical")
    deciban("fit", str(letters), "--target", "folder", "--output", model, *family)
    assert "file" not in deciban("inspect", model)
    deciban("predict", model, str(letters / "spam"), "--keep", "file", "--output", out)
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith("00.txt,ham,")
    assert json.loads(deciban("evaluate", model, str(letters), "--json"))["accuracy"] == 0.8
    deciban("evaluate", model, str(letters), "--leave-one-out")
    deciban("evaluate", str(letters), "--target", "folder", "--folds", "3", "--tune", "none")
    deciban("decide", model, str(letters))
    deciban("explain", model, str(letters), "--row", "31")
    deciban("diagnose", model, str(letters))
    deciban("learn", model, str(letters), "--force")
    deciban("forget", model, str(letters))
    assert run(["fit", str(letters), "-t", "folder", "-o", model, "--delimiter", ";"]) == 2
    assert "delimiter applies to tables, not to documents" in capfd.readouterr().err
