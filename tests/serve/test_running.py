"""`deciban serve` as a process: how it starts, answers, learns and ends."""

import datetime as dt
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from deciban.serve.middleware import ACCESS_FIELDS
from tests import PATIENCE
from tests.serve.conftest import mixed_table
from tests.serve.servers import read_all
from tests.support.model_files import changed, nodes, put_together, taken_apart

BLOCKED = "import sys; sys.modules['msgspec'] = None; from deciban.__main__ import main; main()"


@contextmanager
def serving(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service that answers, and its address; it is ended if the test has not."""
    command = [sys.executable, "-m", "deciban", "serve", *map(str, arguments), "--port", "0", "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)["address"]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its workers too
        process.communicate()


def refused(*arguments: str | Path) -> tuple[int, str]:
    """The exit code and the error of a service that does not start."""
    command = [sys.executable, "-m", "deciban", "serve", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    return done.returncode, done.stderr


def children_of(process: int) -> set[int]:
    """The processes that another one has started to answer requests."""
    found = subprocess.run(["ps", "-ww", "-o", "pid=,args=", "--ppid", str(process)], capture_output=True, text=True)
    return {int(line.split()[0]) for line in found.stdout.splitlines() if "spawn_main" in line}


def status_of(address: str) -> int:
    """The status of an answer; 0 for none."""
    try:
        return httpx.get(address, timeout=5).status_code
    except httpx.HTTPError:
        return 0


def until(true: Callable[[], bool], then: Callable[[], Any] = lambda: None) -> Any:
    """Wait until something is true, and then do something."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)
    return then()


def test_it_answers_and_ends_in_order_at_a_signal(models: Path) -> None:
    with serving(models / "weather.dcb") as (process, address):
        with httpx.Client(base_url=address) as client:
            found = client.post("/predict", json=[{"outlook": "sunny"}])
            assert found.json()["rows"][0]["predicted"] == "no"
            assert "server" not in found.headers
            assert client.get("/health/ready").json()["ready"]
            assert client.get("/").status_code == 200
            assert client.post("/predict", json=[{}], headers={"host": "evil.example"}).status_code == 421
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, error) == (0, "", "")


def test_requests_under_way_are_answered_when_it_ends(models: Path) -> None:
    body = json.dumps([{"age": 40.0 + k % 7, "note": "please call back"} for k in range(2000)]).encode()
    head = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with serving(models / "mixed.dcb") as (process, address):
        place = ("127.0.0.1", int(address.rpartition(":")[2]))
        with socket.create_connection(place, timeout=PATIENCE) as client:
            client.sendall(f"POST /predict HTTP/1.1\r\n{head}Expect: 100-continue\r\n\r\n".encode())
            assert client.recv(4096).startswith(b"HTTP/1.1 100 ")  # it is under way
            process.send_signal(signal.SIGINT)
            until(lambda: status_of(f"{address}/health/ready") in (0, 503))  # the service ends
            client.sendall(body)
            answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["rows"]) == 2000
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0


def test_health_is_told_while_many_rows_are_scored(models: Path) -> None:
    rows = [{"age": 40.0 + k % 7, "note": "please call back"} for k in range(80_000)]
    with serving(models / "mixed.dcb") as (_, address), httpx.Client(base_url=address, timeout=PATIENCE) as client:
        client.get("/health/live")
        ask = threading.Thread(target=lambda: httpx.post(f"{address}/predict", json=rows, timeout=PATIENCE))
        ask.start()
        waited = []
        while ask.is_alive():
            start = time.perf_counter()
            assert client.get("/health/live").status_code == 200
            waited.append(time.perf_counter() - start)
        assert len(waited) > 3  # it was answered meanwhile


def test_workers_answer(models: Path) -> None:
    with serving(models / "weather.dcb", "--workers", "2") as (process, address):
        for _ in range(4):
            assert httpx.post(f"{address}/predict", json=[{"outlook": "sunny"}]).status_code == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_every_ending_signal_ends_it(models: Path, number: signal.Signals, options: tuple[str, ...]) -> None:
    with serving(models / "weather.dcb", *options) as (process, address):
        assert status_of(f"{address}/health/ready") == 200
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        until(lambda: status_of(f"{address}/health/ready") == 0)


def test_workers_end_when_the_process_that_started_them_is_killed(models: Path) -> None:
    with serving(models / "weather.dcb", "--workers", "2") as (process, address):
        until(lambda: len(children_of(process.pid)) == 2)
        children = children_of(process.pid)
        process.kill()
        process.wait(PATIENCE)
        until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
        with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
            pass  # the port is free again


def test_a_file_that_becomes_something_else_does_not_stop_the_service(models: Path, tmp_path: Path) -> None:
    """A pipe, a device, a sparse file of gigabytes and a crafted header: each is a problem that passes."""
    path = tmp_path / "weather.dcb"
    good = (models / "weather.dcb").read_bytes()
    header, arrays = taken_apart(good)
    at = next(at for at in nodes(header) if at[-1:] == ("array",))
    frozen = put_together(changed(header, (*at, 1), [3] * 1_900_000), arrays)

    def sparse() -> None:
        path.write_bytes(good)
        os.truncate(path, 4 << 30)

    ways: list[tuple[str, Callable[[], Any]]] = [
        ("pipe", lambda: os.mkfifo(path)),
        ("device", lambda: path.symlink_to("/dev/zero")),
        ("damaged", sparse),
        ("shape", lambda: path.write_bytes(frozen)),
    ]
    path.write_bytes(good)
    with serving(path) as (process, address):

        def problems() -> str:
            return str(httpx.get(f"{address}/health/ready", timeout=PATIENCE).json()["problems"])

        for word, put in ways:
            path.unlink()
            put()
            until(lambda word=word: word in problems())  # type: ignore[misc]
            assert httpx.post(f"{address}/predict", json=[{"outlook": "sunny"}]).status_code == 200
            path.unlink()
            path.write_bytes(good)
            until(lambda: problems() == "[]")
        path.unlink()
        os.mkfifo(path)
        until(lambda: "pipe" in problems())
        memory = Path(f"/proc/{process.pid}/status").read_text()
        assert int(memory.partition("VmHWM:")[2].split()[0]) < 1 << 20  # kilobytes
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0


def test_no_name_or_content_of_a_file_writes_lines_of_its_own_to_the_log(models: Path, tmp_path: Path) -> None:
    header, arrays = taken_apart((models / "weather.dcb").read_bytes())
    (tmp_path / "bad\nFAKE: INFO ok\x1b[2J.dcb").write_bytes(b"no model")
    (tmp_path / "key.dcb").write_bytes(put_together({**header, "x\nFAKE: INFO: all is well \x1b[2J": 1}, arrays))
    (tmp_path / "format.dcb").write_bytes(put_together({**header, "format": "a\nFAKE \x1b[31m"}, arrays))
    command = [sys.executable, "-m", "deciban", "serve", tmp_path, "--port", "0", "--access-log"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert "3 cannot be loaded: bad\\nFAKE: INFO ok\\x1b[2J" in line
        address = line.split()[-1]
        assert httpx.get(f"{address}/models?token=secret").status_code == 200
        assert httpx.get(f"{address}/a%0aFAKE%1b%5b2J").status_code == 400
    finally:
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=PATIENCE)
    lines = error.splitlines()
    record = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} deciban: (INFO|WARNING): .+")
    assert all(record.fullmatch(line) and line.isprintable() for line in lines), error
    assert len(lines) == 5
    assert re.search(r'127\.0\.0\.1:\d+ "GET /models" 200 \d+\.\d ms', error)
    assert "secret" not in error


@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_line_of_the_log_can_be_json(models: Path, tmp_path: Path, workers: str) -> None:
    path = tmp_path / "m.dcb"
    path.write_bytes((models / "weather.dcb").read_bytes())
    command = [sys.executable, "-m", "deciban", "serve", path, "--port", "0", "--access-log", "--json"]
    process = subprocess.Popen(
        [*command, "--workers", workers], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        address = json.loads(process.stdout.readline())["address"]
        end = time.monotonic() + PATIENCE
        while httpx.post(f"{address}/predict?token=secret", json=[{"outlook": "rain"}]).status_code != 200:
            assert time.monotonic() < end
        assert httpx.get(f"{address}/a%0aFAKE%1b%5b2J").status_code == 400
        path.write_bytes(b"broken\n")
        while not httpx.get(f"{address}/health/ready").json()["problems"]:
            assert time.monotonic() < end
    finally:
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=PATIENCE)
    lines = [json.loads(line) for line in error.splitlines()]
    requests = [line for line in lines if "path" in line]
    for line in lines:
        when = dt.datetime.fromisoformat(line.pop("time"))
        assert abs(dt.datetime.now(dt.UTC) - when) < dt.timedelta(seconds=2 * PATIENCE)
        assert line.keys() == {"level", "message", *(ACCESS_FIELDS if line in requests else ())}
    (predicted,) = (line for line in requests if (line["path"], line["status"]) == ("/predict", 200))
    assert (predicted["method"], predicted["level"]) == ("POST", "INFO")
    assert 0.0 <= predicted["milliseconds"] < 1e3 * PATIENCE
    assert any(line["level"] == "WARNING" and "not a model file" in line["message"] for line in lines)
    assert "secret" not in error


def test_health_is_answered_while_a_client_holds_every_connection(models: Path) -> None:
    with serving(models / "weather.dcb", "--max-connections-per-address", "40") as (_, address):
        place = ("127.0.0.1", int(address.rpartition(":")[2]))
        held = [socket.create_connection(place) for _ in range(300)]
        try:
            assert status_of(f"{address}/health/ready") == 200
            assert httpx.post(f"{address}/predict", json=[{}]).status_code == 503
            transport = httpx.HTTPTransport(local_address="127.0.0.2")
            with httpx.Client(transport=transport) as other:
                assert other.post(f"{address}/predict", json=[{}]).status_code == 200
        finally:
            for one in held:
                one.close()


@pytest.mark.parametrize("journal", ["of a killed service", "none", "in a folder"])
def test_predictions_are_served_after_a_start_on_a_full_disk(small_disk: Path, models: Path, journal: str) -> None:
    """By all that was learned; learning is refused until there is room, and the reason is told."""
    path, before = small_disk / "weather.dcb", "/models/weather" if journal == "in a folder" else ""
    served = path.parent if before else path
    shutil.copy(models / "weather.dcb", path)
    row = {"outlook": "sunny", "play": "no"}
    rows = 14
    if journal == "of a killed service":
        with serving(path, "--learn") as (process, address):
            assert httpx.post(f"{address}/learn", json={"rows": [row], "ids": ["a"]}).status_code == 200
            rows = 15
            process.kill()
    ballast = small_disk / "ballast"
    with open(ballast, "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    with serving(served, "--learn") as (process, address):
        assert httpx.post(f"{address}{before}/predict", json=[{"outlook": "sunny"}]).status_code == 200
        assert httpx.get(f"{address}{before}/model").json()["rows"] == rows
        large = {"rows": [{**row, "outlook": "x" * 4000}] * 20}
        assert httpx.post(f"{address}{before}/learn", json=large).status_code == 503
        told = httpx.get(f"{address}/health/ready")
        assert told.status_code == 200
        assert "cannot write the journal" in told.text
        assert str(small_disk) not in told.text
        ballast.unlink()

        def learned() -> bool:
            return httpx.post(f"{address}{before}/learn", json={"rows": [row], "ids": ["b"]}).status_code == 200

        until(learned)
        until(lambda: httpx.get(f"{address}/health/ready").json() == {"ready": True, "problems": []})
        assert httpx.get(f"{address}{before}/model").json()["rows"] == rows + 1
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    with serving(served, "--learn") as (_, address):
        assert httpx.get(f"{address}{before}/model").json()["rows"] == rows + 1


def test_a_worker_starts_also_while_the_model_cannot_be_read(models: Path, tmp_path: Path) -> None:
    """It refuses requests, says why, and answers when the file is good again; nobody is started again and again."""
    path = tmp_path / "weather.dcb"
    good = (models / "weather.dcb").read_bytes()
    path.write_bytes(good)
    with serving(path, "--workers", "2") as (process, address):
        path.write_bytes(b"no model")
        until(lambda: len(children_of(process.pid)) == 2)
        before = children_of(process.pid)
        for child in before:
            os.kill(child, signal.SIGKILL)
        told = until(lambda: status_of(f"{address}/health/ready") == 503, lambda: httpx.get(f"{address}/health/ready"))
        assert "weather.dcb" in told.json()["problems"][0]["problem"]
        assert httpx.post(f"{address}/predict", json=[{}]).status_code == 503
        until(lambda: len(children_of(process.pid)) == len(before))
        after = children_of(process.pid)
        assert not after & before
        path.write_bytes(good)
        until(lambda: all(status_of(f"{address}/health/ready") == 200 for _ in range(8)))
        assert httpx.post(f"{address}/predict", json=[{}]).status_code == 200
        assert children_of(process.pid) == after
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=PATIENCE)
        assert "Traceback" not in error
        assert 1 <= error.count("weather.dcb: ") <= 4, error  # a worker may have seen the good file alone


def test_it_learns_and_knows_after_a_restart(models: Path, tmp_path: Path) -> None:
    shutil.copy(models / "plain.dcb", tmp_path / "model.dcb")
    rows = [
        {"age": 30.0, "city": "Bern", "since": "2020-03-01", "at": "10:30:00", "note": "thank you", "kind": "low"},
        {"age": None, "member": True, "seen": "2021-05-01 12:00:00", "kind": "high"},
    ]
    with serving(tmp_path / "model.dcb", "--learn") as (process, address):
        with httpx.Client(base_url=address) as client:
            before = client.get("/model").json()
            found = client.post("/learn", json={"rows": rows, "ids": ["a", "b"]}).json()
            assert [row["result"] for row in found["rows"]] == ["learned", "learned"]
            assert (
                client.post("/learn", json={"rows": rows[:1], "ids": ["a"]}).json()["rows"][0]["result"]
                == "already learned"
            )
            client.post("/predict", json={"rows": [{"age": 33, "color": 1}], "ids": ["later"]})
            assert (
                client.post("/learn", json={"ids": ["later"], "labels": ["mid"]}).json()["rows"][0]["result"]
                == "learned"
            )
            assert client.get("/model").json()["rows"] == before["rows"] + 3
            assert client.post("/forget", json={"ids": ["b", "c"]}).json()["rows"] == [
                {"id": "b", "result": "forgotten"},
                {"id": "c", "result": "not found"},
            ]
            for wrong in ([{"age": 3, "kind": "new"}], [{"age": 3, "color": 1, "kind": "low"}], [{"age": 3}]):
                assert client.post("/learn", json=wrong).status_code == 422, wrong
            table = "age,since,kind\n41.5,2020-02-03,low\nNA,,mid\n"
            told = client.post("/learn", content=table, headers={"content-type": "text/csv"}, params={"target": "kind"})
            assert told.text.splitlines() == ["result", "learned", "learned"]
            after = client.get("/model").json()
            assert after["rows"] == before["rows"] + 4
            assert after["learning"]["sequence"] > 0
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    with serving(tmp_path / "model.dcb", "--learn") as (_, address):
        assert httpx.get(f"{address}/model").json()["rows"] == after["rows"]


def test_rows_learned_from_csv_are_those_of_json(models: Path, tmp_path: Path) -> None:
    """Every kind of column, learned from Arrow and from records: the same model."""
    from deciban.serve.bodies.records import table_to_records
    from tests.serve.test_predicting import as_stream

    table = mixed_table(20, seed=5)
    priors = []
    for form in ("json", "arrow"):
        path = tmp_path / f"{form}.dcb"
        shutil.copy(models / "plain.dcb", path)
        with serving(path, "--learn") as (_, address), httpx.Client(base_url=address) as client:
            if form == "json":
                found = client.post("/learn", json=table_to_records(table))
            else:
                kind = {"content-type": "application/vnd.apache.arrow.stream", "accept": "application/json"}
                found = client.post("/learn", content=as_stream(table), headers=kind, params={"target": "kind"})
            assert found.status_code == 200, found.text
            priors.append(
                client.post("/predict", json=[{"age": 30, "since": "2020-05-01", "at": "09:30:00"}]).json()["rows"]
            )
    assert priors[0] == priors[1]


def test_tokens(models: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {'r' * 20}\nlearn {'l' * 20}\n")
    tokens.chmod(0o600)
    with serving(models / "weather.dcb", "--token-file", tokens, "--host", "0.0.0.0") as (_, address):
        address = address.replace("0.0.0.0", "127.0.0.1")
        assert httpx.post(f"{address}/predict", json=[{}]).status_code == 401
        told = httpx.post(f"{address}/predict", json=[{}], headers={"authorization": f"Bearer {'r' * 20}"})
        assert told.status_code == 200
        told = httpx.post(f"{address}/learn", json=[{}], headers={"authorization": f"Bearer {'r' * 20}"})
        assert told.status_code == 403
        assert httpx.get(f"{address}/health/ready").status_code == 200


def test_what_cannot_be_is_refused_with_its_exit_code(models: Path, tmp_path: Path) -> None:
    model = models / "weather.dcb"
    (tmp_path / "broken.dcb").write_bytes(b"no model")
    (tmp_path / "costs.csv").write_text(",no,maybe\ngo,3,0\nstay,0,1\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        wrong = [
            (2, "--token-file", (model, "--host", "0.0.0.0")),
            (2, "--learn", (model, "--new-classes")),
            (2, "--workers", (model, "--learn", "--workers", "2")),
            (2, "token", (model, "--token-file", tmp_path / "nothing")),
            (3, "maybe", (model, "--costs", tmp_path / "costs.csv", "--port", "0")),
            (4, "broken.dcb", (tmp_path / "broken.dcb", "--port", "0")),
            (5, "no such file", (tmp_path / "nothing.dcb",)),
            (5, "--port", (model, "--port", taken.getsockname()[1])),
        ]
        for code, word, arguments in wrong:
            found, error = refused(*arguments)
            assert found == code, (arguments, error)
            assert word in error
            assert len(error.splitlines()) == 1, error


def test_without_the_extra_it_says_how_to_install_it(models: Path) -> None:
    command = [sys.executable, "-c", BLOCKED, "serve", str(models / "weather.dcb")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 2
    assert "run pip install '.[serve]' in the source folder of deciban" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="folders are watched alike everywhere")
def test_a_folder_is_served(models: Path) -> None:
    with serving(models) as (_, address):
        found = httpx.post(f"{address}/models/weather/predict", json=[{"outlook": "sunny"}])
        assert found.json()["rows"][0]["predicted"] == "no"
        assert httpx.post(f"{address}/models/..%2f..%2fetc%2fpasswd/predict", json=[{}]).status_code == 404


def test_metrics_tell_of_rows_and_requests(models: Path) -> None:
    with serving(models / "weather.dcb") as (_, address), httpx.Client(base_url=address) as client:
        client.post("/predict", json=[{"outlook": "hail", "wind": None}] * 3)
        client.post("/predict", content=b"[")
        for _ in range(100):
            told = client.get("/metrics").text
            if 'deciban_unseen_cells_total{column="outlook",model="weather"} 3.0' in told:
                break
            time.sleep(0.1)
        assert 'deciban_unseen_cells_total{column="outlook",model="weather"} 3.0' in told
        assert 'deciban_predicted_rows_total{model="weather"} 3.0' in told
        assert 'route="/predict",status="415"' in told
