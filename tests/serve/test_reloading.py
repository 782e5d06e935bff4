"""A model file that changes while it is served: loaded, or, where it is damaged, told of while the old one goes on."""

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from starlette.testclient import TestClient

from deciban import BayesClassifier
from deciban.datasets import weather
from deciban.serve import service as service_module
from deciban.serve.app import create_app
from deciban.serve.predictions import State
from deciban.serve.service import Service
from deciban.serve.settings import ServeSettings


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with two models of the weather."""
    BayesClassifier(tune=None).fit(weather(), "play").save(tmp_path / "served.dcb")
    BayesClassifier(tune=None, alpha=0.5).fit(weather(), "play").save(tmp_path / "other.bin")
    return tmp_path


def version_of(data: bytes) -> str:
    """The version of a model with this content."""
    return hashlib.sha256(data).hexdigest()[:16]


def wait_until(true: Callable[[], bool]) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen in ten seconds")


def version(client: TestClient, path: str = "/predict") -> str:
    return str(client.post(path, json=[{"wind": "weak"}]).json()["model"])


def test_a_changed_file_is_loaded(files: Path) -> None:
    service = Service(ServeSettings.of(str(files / "served.dcb"), reload_interval=0.02))
    service.open()
    try:
        client = TestClient(create_app(service))
        assert version(client) == version_of((files / "served.dcb").read_bytes())
        os.replace(files / "other.bin", files / "served.dcb")
        new = version_of((files / "served.dcb").read_bytes())
        wait_until(lambda: version(client) == new)
        assert client.get("/health/ready").json() == {"ready": True, "problems": []}
    finally:
        service.close()


def test_a_damaged_file_leaves_the_old_model_and_is_told_of(files: Path) -> None:
    good = (files / "served.dcb").read_bytes()
    service = Service(ServeSettings.of(str(files / "served.dcb"), reload_interval=0.02))
    service.open()
    try:
        client = TestClient(create_app(service))
        for damaged in (b"", good[:100], good[:-1] + b"x", b"something else"):
            (files / "served.dcb").write_bytes(damaged)
            wait_until(lambda: bool(client.get("/health/ready").json()["problems"]))
            told = client.get("/health/ready")
            assert told.status_code == 200
            assert told.json()["ready"]
            assert str(files) not in told.text
            assert version(client) == version_of(good)
            (files / "served.dcb").write_bytes(good)
            wait_until(lambda: not client.get("/health/ready").json()["problems"])
        (files / "served.dcb").unlink()
        wait_until(lambda: bool(client.get("/health/ready").json()["problems"]))
        assert version(client) == version_of(good)
    finally:
        service.close()


def test_models_of_a_folder_come_and_go(files: Path) -> None:
    service = Service(ServeSettings.of(str(files), reload_interval=0.02))
    service.open()
    try:
        client = TestClient(create_app(service))
        assert [one["name"] for one in client.get("/models").json()["models"]] == ["served"]
        shutil.copy(files / "served.dcb", files / "new.dcb")
        wait_until(lambda: client.post("/models/new/predict", json=[{}]).status_code == 200)
        (files / ".hidden.dcb").write_bytes(b"")
        (files / "broken.dcb").write_bytes(b"no model")
        wait_until(lambda: client.post("/models/broken/predict", json=[{}]).status_code == 503)
        assert client.post("/models/served/predict", json=[{}]).status_code == 200
        told = client.get("/health/ready").json()
        assert [one["model"] for one in told["problems"]] == ["broken"]
        assert told["ready"]
        (files / "broken.dcb").unlink()
        (files / "new.dcb").unlink()
        wait_until(lambda: client.post("/models/new/predict", json=[{}]).status_code == 404)
        assert not client.get("/health/ready").json()["problems"]
    finally:
        service.close()


@pytest.mark.parametrize("way", ["moved", "unmounted"])
def test_a_folder_that_is_gone_leaves_its_models(files: Path, way: str) -> None:
    folder, away = files / "models", files / "away"
    folder.mkdir()
    shutil.copy(files / "served.dcb", folder)
    service = Service(ServeSettings.of(str(folder), reload_interval=0.0))
    service.open()
    try:
        client = TestClient(create_app(service))
        folder.rename(away)
        if way == "unmounted":
            folder.mkdir()  # what is seen where a file system was
        service.models.refresh()
        told = client.get("/health/ready")
        assert (told.status_code, len(told.json()["problems"])) == (200, 1)
        assert "folder" in told.json()["problems"][0]["problem"]
        assert client.post("/models/served/predict", json=[{}]).status_code == 200
        shutil.rmtree(folder, ignore_errors=True)
        away.rename(folder)
        service.models.refresh()
        assert client.get("/health/ready").json() == {"ready": True, "problems": []}
        (folder / "served.dcb").unlink()  # somebody has removed the last model
        service.models.refresh()
        assert client.get("/health/ready").status_code == 503
        (folder / "broken.dcb").write_bytes(b"no model")
        service.models.refresh()
        told = client.get("/health/ready")
        assert (told.status_code, told.json()["problems"][0]["model"]) == (503, "broken")
    finally:
        service.close()


def test_what_is_wrong_with_a_file_is_logged_when_it_begins_and_when_it_ends(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "deciban.serve")
    good = (files / "served.dcb").read_bytes()
    service = Service(ServeSettings.of(str(files), reload_interval=0.0))
    service.open()
    try:
        for content in (good[:100], good[:100], good, good):
            (files / "served.dcb").write_bytes(content)
            service.models.refresh()
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
        assert all("served" in record.getMessage() for record in caplog.records)
    finally:
        service.close()


def test_no_answer_is_of_two_models(files: Path) -> None:
    """While a model is replaced again and again, each answer has the numbers of the version that it names."""
    contents = [(files / name).read_bytes() for name in ("served.dcb", "other.bin")]
    service = Service(ServeSettings.of(str(files / "served.dcb"), reload_interval=0.001))
    service.open()
    client = TestClient(create_app(service))
    row = [{"outlook": "sunny", "wind": "strong"}]
    known = {}
    for content in contents:
        (files / "next").write_bytes(content)
        os.replace(files / "next", files / "served.dcb")
        wait_until(lambda content=content: version(client) == version_of(content))  # type: ignore[misc]
        known[version(client)] = client.post("/predict", json=row).json()["rows"]
    assert len({str(rows) for rows in known.values()}) == 2
    ended = threading.Event()

    def replace() -> None:
        turn = 0
        while not ended.is_set():
            (files / "next").write_bytes(contents[turn % 2])
            os.replace(files / "next", files / "served.dcb")
            turn += 1

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(300):
            found = client.post("/predict", json=row).json()
            assert found["rows"] == known[found["model"]]
    finally:
        ended.set()
        thread.join()
        service.close()


def test_models_of_a_folder_learn_each_by_itself(files: Path) -> None:
    row = {"outlook": "sunny", "play": "no"}
    shutil.copy(files / "served.dcb", files / "second.dcb")
    service = Service(ServeSettings.of(str(files), learn=True, reload_interval=0.0))
    service.open()
    try:
        client = TestClient(create_app(service))
        names = [one["name"] for one in client.get("/models").json()["models"]]
        before = {name: client.get(f"/models/{name}/model").json()["rows"] for name in names}
        told = client.post(f"/models/{names[0]}/learn", json={"rows": [row], "ids": ["a"]}).json()
        assert told["rows"] == [{"id": "a", "result": "learned"}]
        after = {name: client.get(f"/models/{name}/model").json()["rows"] for name in names}
        assert after == {**before, names[0]: before[names[0]] + 1}
        (files / "new.dcb").write_bytes(b"no model either")
        service.models.refresh()
        told = {one["name"]: one["problem"] for one in client.get("/models").json()["models"]}
        assert "new.dcb" in told["new"]
        assert client.post(f"/models/{names[1]}/predict", json=[row]).status_code == 200
        (files / "new.dcb").unlink()
        service.models.refresh()
        assert "new" not in {one["name"] for one in client.get("/models").json()["models"]}
    finally:
        service.close()


def test_the_name_of_a_model_leads_to_its_page(files: Path) -> None:
    service = Service(ServeSettings.of(str(files), reload_interval=0.0))
    service.open()
    try:
        client = TestClient(create_app(service), follow_redirects=False)
        name = client.get("/models").json()["models"][0]["name"]
        answer = client.get(f"/models/{name}")
        assert (answer.status_code, answer.headers["location"]) == (308, f"{name}/")
        assert "text/html" in client.get(f"/models/{name}/").headers["content-type"]
        assert {"columns", "classes", "scorer"} <= set(client.get(f"/models/{name}/model/form").json())
    finally:
        service.close()


def test_what_is_wrong_with_a_journal_is_told_without_folders(files: Path, tmp_path: Path) -> None:
    """Of a link neither its own folder is told nor that of the file it leads to; and one fault ends no other model."""
    folder = tmp_path / "links"
    folder.mkdir()
    for name in ("damaged", "folder", "good"):
        shutil.copy(files / "served.dcb", files / f"{name}.dcb")
        (folder / f"{name}.dcb").symlink_to(files / f"{name}.dcb")
    (files / "damaged.dcb.journal").write_bytes(b"something else" * 100)
    (files / "folder.dcb.journal").mkdir()
    service = Service(ServeSettings.of(str(folder), learn=True, reload_interval=0.0))
    service.open()
    try:
        told = TestClient(create_app(service)).get("/health/ready")
        problems = {one["model"]: one["problem"] for one in told.json()["problems"]}
        assert str(tmp_path) not in told.text
        assert str(files) not in told.text
        assert problems["damaged"].startswith("damaged.dcb.journal: the journal is damaged (not a database); restore")
        assert problems["folder"].startswith("folder.dcb.journal: cannot open the journal (")
        assert problems["folder"].endswith("make the folder of the model writable for the service")
        assert set(problems) == {"damaged", "folder"}
    finally:
        service.close()


def test_a_fault_in_reading_one_model_does_not_end_the_watch(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load, failing = service_module.load_state, []

    def loading(path: str) -> State:
        if failing:
            raise ZeroDivisionError(path)
        return load(path)

    monkeypatch.setattr(service_module, "load_state", loading)
    service = Service(ServeSettings.of(str(files / "served.dcb"), reload_interval=0.01))
    service.open()
    try:
        client = TestClient(create_app(service))
        failing.append(True)
        other = (files / "other.bin").read_bytes()
        (files / "served.dcb").write_bytes(other)
        wait_until(lambda: bool(client.get("/health/ready").json()["problems"]))
        assert str(files) not in client.get("/health/ready").text
        failing.clear()
        os.utime(files / "served.dcb", (1, 1))
        wait_until(lambda: version(client) == version_of(other))
        assert not client.get("/health/ready").json()["problems"]
    finally:
        service.close()


def test_a_model_that_was_never_tuned_is_never_stale(files: Path) -> None:
    classifier = BayesClassifier(tune="weights").fit(weather().slice(0, 4), "play")
    classifier.save(files / "served.dcb")
    service = Service(ServeSettings.of(str(files / "served.dcb"), learn=True))
    service.open()
    try:
        client = TestClient(create_app(service))
        client.post("/learn", json={"rows": [{"outlook": "sunny", "play": "no"}]})
        tuning = client.get("/model").json()["tuning"]
        assert (tuning["tuned"], tuning["stale"]) == (False, False)
        assert "out of date" not in client.get("/model/report").text
    finally:
        service.close()


def test_a_model_of_another_question_is_refused_and_a_new_version_is_logged(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "deciban.serve")
    good, other = ((files / name).read_bytes() for name in ("served.dcb", "other.bin"))
    service = Service(ServeSettings.of(str(files / "served.dcb"), reload_interval=0.0))
    service.open()
    try:
        client = TestClient(create_app(service))
        table = weather()
        targets = table.rename_columns([*table.column_names[:-1], "game"])
        classes = table.set_column(table.num_columns - 1, "play", [[f"c{k % 2}" for k in range(table.num_rows)]])
        one_less = pa.concat_tables([table, classes]).filter(pc.field("play") != "no")
        for changed, target, said in (
            (targets, "game", "predicts 'game', not 'play'"),
            (classes, "play", "lacks the classes 'no', 'yes'"),
            (one_less, "play", "lacks the class 'no'"),
        ):
            BayesClassifier(tune=None).fit(changed, target).save(files / "served.dcb")
            service.models.refresh()
            told = client.get("/health/ready").json()
            assert told["ready"]
            assert said in told["problems"][0]["problem"]
            assert 'deciban_model_reload_failed{model="served"} 1.0' in client.get("/metrics").text
            assert version(client) == version_of(good)
        caplog.clear()
        (files / "served.dcb").write_bytes(other)
        service.models.refresh()
        assert version(client) == version_of(other)
        assert f"now serving version {version_of(other)} instead of {version_of(good)}" in caplog.text
        more = pa.concat_tables([table, classes])  # has new classes too
        BayesClassifier(tune=None).fit(more, "play").save(files / "served.dcb", note="with\nmore")
        service.models.refresh()
        assert version(client) != version_of(other)
        assert f"now serving version {version(client)} ('with\\nmore') instead of {version_of(other)}" in caplog.text
        assert client.get("/model").json()["about"]["note"] == "with\nmore"
        assert client.get("/health/ready").json()["problems"] == []
    finally:
        service.close()
