"""Metadata of a model file: a note, the time and the versions, which change neither the model nor its version."""

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import deciban
from deciban import BayesClassifier
from deciban.cli import run
from deciban.datasets import weather
from deciban.errors import ModelFileError, UsageError
from deciban.fitting import update
from deciban.model.fitted import About, Fitted
from deciban.store import model_file

EPOCH = "1700000000"


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> Fitted:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    return BayesClassifier(tune=None).fit(weather(), "play")._get_fitted()


def with_about(fitted: Fitted, text: bytes) -> bytes:
    """The bytes of a file with these metadata, by another way."""
    data = model_file.content(fitted)
    data += len(text).to_bytes(8, "little") + text
    return data + hashlib.sha256(data).digest()


def test_the_file_without_metadata_is_the_one_of_before_and_its_hash_is_the_version(
    fitted: Fitted, tmp_path: Path
) -> None:
    plain, noted = model_file.content(fitted), model_file.content(fitted.with_about(About("churn v7")))
    assert noted == with_about(fitted, b'{"note":"churn v7"}')
    (tmp_path / "m.dcb").write_bytes(noted)
    found = model_file.read(tmp_path / "m.dcb")
    assert found.version == hashlib.sha256(plain).hexdigest()
    assert found.sha256 == hashlib.sha256(noted).hexdigest()
    assert found.fitted.about == About("churn v7")
    assert model_file.content(found.fitted) == noted
    assert model_file.content(replace(found.fitted, about=About())) == plain


def test_save_stores_a_note_with_the_time_rows_and_versions(fitted: Fitted, tmp_path: Path) -> None:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    clf.save(tmp_path / "plain.dcb")
    clf.save(tmp_path / "noted.dcb", note="Übung, 2026 ☂")
    assert model_file.load(tmp_path / "plain.dcb").about == About()
    versions = (deciban.__version__, np.__version__, platform.python_version())
    time = datetime.fromtimestamp(int(EPOCH), UTC).isoformat().replace("+00:00", "Z")
    about = About("Übung, 2026 ☂", time, 14, *versions)
    assert model_file.load(tmp_path / "noted.dcb").about == about
    deciban.load(tmp_path / "noted.dcb").save(tmp_path / "again.dcb")
    assert (tmp_path / "again.dcb").read_bytes() == (tmp_path / "noted.dcb").read_bytes()


def test_rows_keep_the_note_and_models_that_are_merged_keep_it_only_if_it_is_that_of_both(fitted: Fitted) -> None:
    about = About("spring")
    noted = fitted.with_about(about)
    more = update.shard(noted, weather().slice(0, 3), "play")
    assert update.learn_more(noted, weather().slice(0, 3), "play").about == about
    assert update.forget(noted, weather().slice(0, 3), "play").about == about
    assert update.set_prior(noted, "uniform").about == about
    assert update.add(noted, more).about == about
    other = update.learn_more(fitted, weather().slice(0, 3), "play")
    assert update.merge([noted, other.with_about(about)], ["a", "b"], force=True).about == about
    assert update.merge([noted, other.with_about(About("autumn"))], ["a", "b"], force=True).about == About()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'"note"',
        b'{"note":""}',
        b'{"note": "spaces"}',
        b'{"note":"a","note":"a"}',
        b'{"note":3}',
        b'{"note":null}',
        b'{"other":"a"}',
        b'{"rows":true}',
        b'{"rows":1.5}',
        b'{"rows":-1}',
        b'{"rows":1' + b"0" * 30 + b"}",
        b'{"fitted":"yesterday"}',
        b'{"fitted":"2026-02-30T00:00:00Z"}',
        b'{"note":"\xff"}',
        b'{"note":"\\ud800"}',
        b'{"python":"' + b"3" * 65 + b'"}',
        b'{"note":"' + b"n" * 4001 + b'"}',
        b"[" * 60_000,
        b"x" * (1 << 17),
        b'{"note":NaN}',
    ],
)
def test_hostile_metadata_are_refused(fitted: Fitted, text: bytes) -> None:
    with pytest.raises(ModelFileError, match="restore it from a backup"):
        model_file.from_content(with_about(fitted, text), "m.dcb")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:-40] + b"x" + data[-39:],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    ],
)
def test_damaged_metadata_are_refused(fitted: Fitted, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ModelFileError, match="damaged"):
        model_file.from_content(damage(with_about(fitted, b'{"note":"a note of some length, to be damaged"}')), "m")


def test_the_command_stores_and_shows_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)
    Path("t.csv").write_text("a,kind\n" + "1,x\n2,y\n" * 20)
    Path("u.csv").write_text("a,kind\n3,x\n")
    assert run(["fit", "t.csv", "-t", "kind", "-o", "a.dcb"]) == 0
    assert run(["fit", "t.csv", "-t", "kind", "-o", "b.dcb"]) == 0
    assert Path("a.dcb").read_bytes() == Path("b.dcb").read_bytes()
    assert run(["fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--note", "churn v7\nsecond line"]) == 0
    assert run(["learn", "m.dcb", "u.csv"]) == 0
    capfd.readouterr()
    assert run(["inspect", "m.dcb"]) == 0
    shown = capfd.readouterr().out
    assert f"fitted: 2023-11-14T22:13:20Z on 40 rows (deciban {deciban.__version__}, NumPy {np.__version__}" in shown
    assert "note: churn v7\\nsecond line" in shown
    assert run(["inspect", "m.dcb", "--json"]) == 0
    about = json.loads(capfd.readouterr().out)["about"]
    assert (about["note"], about["rows"]) == ("churn v7\nsecond line", 40)
    before = Path("m.dcb").read_bytes()
    for text in ("n" * 4001, "\ud800"):
        assert run(["fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--note", text]) == 2
        assert "the note is not" in capfd.readouterr().err
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    assert run(["fit", "t.csv", "-t", "kind", "-o", "m.dcb"]) == 2
    assert "SOURCE_DATE_EPOCH is 'soon'" in capfd.readouterr().err
    assert Path("m.dcb").read_bytes() == before


def test_the_time_is_that_of_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    start = datetime.now(UTC).replace(microsecond=0)
    BayesClassifier(tune=None).fit(weather(), "play").save(tmp_path / "m.dcb", note="")
    fitted = datetime.fromisoformat(model_file.load(tmp_path / "m.dcb").about.fitted)
    assert start <= fitted <= datetime.now(UTC)


def test_an_invalid_note_is_refused_in_python(fitted: Fitted, tmp_path: Path) -> None:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    with pytest.raises(UsageError, match="the note is not text of at most 4,000 characters"):
        clf.save(tmp_path / "m.dcb", note="n" * 4001)
    assert not (tmp_path / "m.dcb").exists()
