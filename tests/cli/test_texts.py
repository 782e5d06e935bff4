"""Texts on the command line: a table of messages, a folder of documents, mail."""

import json
from pathlib import Path

import pyarrow.csv
import pytest

from deciban import load
from deciban.datasets import messages
from tests.support.command import Deciban


@pytest.fixture
def mail(deciban: Deciban) -> str:
    pyarrow.csv.write_csv(messages(), "messages.csv")
    answer = deciban("fit", "messages.csv", "-t", "label", "-o", "mail.dcb")
    assert answer.code == 0
    assert "Text()" in answer.out
    return "mail.dcb"


def test_the_words_of_each_class(mail: str, deciban: Deciban) -> None:
    answer = deciban("top-words", mail, "--count", "3")
    lines = answer.out.splitlines()
    assert answer.code == 0
    assert lines[0] == "ham"
    assert lines[lines.index("spam") + 2].startswith("free")
    found = json.loads(deciban("top-words", mail, "--class", "spam", "-n", "4", "--json").out)
    assert list(found) == ["spam"]
    assert found["spam"][0]["word"] == "free"
    assert [word["word"] for word in found["spam"]] == [word.word for word in load(mail).top_words("spam", 4)]


def test_words_of_a_class_or_column_that_is_not_there(mail: str, deciban: Deciban) -> None:
    answer = deciban("top-words", mail, "--class", "eggs")
    assert (answer.code, answer.out) == (2, "")
    assert "the classes are ham, spam" in answer.err
    answer = deciban("top-words", mail, "--column", "subject")
    assert answer.code == 2
    assert "subject" in answer.err


def test_a_text_is_explained_word_by_word(mail: str, deciban: Deciban) -> None:
    Path("new.csv").write_text('text\n"Claim your free lunch, call me"\n')
    answer = deciban("explain", mail, "new.csv")
    assert "[Claim +" in answer.out
    assert "lunch -" in answer.out
    found = json.loads(deciban("explain", mail, "new.csv", "--json").out)[0]
    text = next(term["own"] for term in found["evidence"] if term["column"] == "text")
    assert sum(value for _, value in found["words"]["text"]) == pytest.approx(text, abs=1e-9)


def test_a_text_is_written(mail: str, deciban: Deciban) -> None:
    answer = deciban("sample", mail, "--class", "spam", "--length", "30", "--rows", "2", "--seed", "1")
    header, *lines = answer.out.splitlines()
    assert header == "text,label"
    assert [len(line.split()) for line in lines] == [30, 30]
    assert all(line.endswith(",spam") for line in lines)


def test_a_folder_of_documents(deciban: Deciban) -> None:
    for k, row in enumerate(messages().to_pylist()):
        path = Path("corpus") / row["label"] / f"{k}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row["text"])
    assert deciban("fit", "corpus", "-t", "folder", "-o", "documents.dcb").code == 0
    Path("inbox").mkdir()
    Path("inbox/a.txt").write_text("You have won a free prize, claim it now")
    Path("inbox/b.txt").write_text("see you at lunch on Monday")
    answer = deciban("predict", "documents.dcb", "inbox", "--keep", "file")
    assert [line.split(",")[:2] for line in answer.out.splitlines()[1:]] == [["a.txt", "spam"], ["b.txt", "ham"]]
    assert "text" in load("documents.dcb").schema_.columns_with_family
    assert "file" not in load("documents.dcb").schema_.columns_with_family
    judged = deciban("evaluate", "corpus", "-t", "folder", "--folds", "3")
    assert judged.code == 0
