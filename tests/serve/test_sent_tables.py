"""Tables that are sent as CSV and Arrow teach what JSON teaches, and no cell of them is a fault."""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from deciban import BayesClassifier
from deciban.datasets import weather
from deciban.schema.schema import Schema
from deciban.serve.app import create_app
from deciban.serve.bodies.body import ARROW_STREAM, CSV, JSON, Body, read_body
from deciban.serve.bodies.checks import check_options
from deciban.serve.predictions import Predictor
from deciban.serve.problems import Problem
from deciban.serve.service import Service
from deciban.serve.settings import ServeSettings
from deciban.store.model_file import load
from tests.serve.conftest import Opened, mixed_table
from tests.serve.requests import as_stream


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a service that learns, of every kind of column."""
    yield from learning(mixed_table(60), "kind", tmp_path_factory.mktemp("learner"))


def learning(table: object, target: str, folder: Path) -> Iterator[TestClient]:
    BayesClassifier(tune=None).fit(table, target).save(folder / "model.dcb")
    service = Service(ServeSettings.of(str(folder / "model.dcb"), learn=True))
    service.open()
    try:
        with TestClient(create_app(service)) as client:
            yield client
    finally:
        service.close()


def send(client: TestClient, path: str, body: bytes | str | pa.Table) -> tuple[int, dict[str, object]]:
    kind = ARROW_STREAM if isinstance(body, pa.Table) else CSV
    content = as_stream(body) if isinstance(body, pa.Table) else body
    found = client.post(path, content=content, headers={"content-type": kind, "accept": JSON})
    return found.status_code, found.json()


@pytest.mark.parametrize("labels", [[True, False], [3, 7]], ids=str)
def test_csv_teaches_classes_that_are_no_text(tmp_path: Path, labels: list[object]) -> None:
    table = {"x": np.arange(20.0), "y": np.array(labels * 10)}
    for client in learning(table, "y", tmp_path):
        for path in ("/learn", "/learn?target=y", "/forget"):
            status, told = send(client, path, f"x,y\n1.5,{labels[0]}\n2.5,{labels[1]}\n")
            assert status == 200, told
        status, told = send(client, "/learn?weight=w", f"x,y,w\n1.5,{labels[0]},3\n")
        assert status == 200, told
        assert client.get("/model").json()["rows"] == 25.0


@pytest.mark.parametrize("form", ["csv", "arrow"])
def test_tables_of_ids_label_later_and_forget(tmp_path: Path, form: str) -> None:
    def table(**columns: list[str]) -> pa.Table | str:
        rows = zip(*columns.values(), strict=True)
        return pa.table(columns) if form == "arrow" else "\n".join(map(",".join, [tuple(columns), *rows])) + "\n"

    for client in learning(weather(), "play", tmp_path):
        client.post("/predict", json={"rows": [{"wind": "weak"}, {"wind": "strong"}], "ids": ["a", "b"]})
        for path in ("/learn?id=day&target=play", "/learn?id=day"):
            status, told = send(client, path, table(day=["a", "b"], play=["yes", "no"]))
            assert status == 200, told
        assert client.get("/model").json()["rows"] == 16.0
        status, told = send(client, "/forget?id=day", table(day=["a", "c"]))
        assert [row["result"] for row in told["rows"]] == ["forgotten", "not found"]  # type: ignore[attr-defined]


def extreme_columns() -> dict[str, pa.Array]:
    """Cells of every type of Arrow's that a stream may have, at the ends of its range."""
    found: dict[str, pa.Array] = {}
    ends = [2**63 - 1, -(2**63), 2**40, 0, None]
    for unit in ("s", "ms", "us", "ns"):
        found[f"timestamp {unit}"] = pa.array(ends, pa.timestamp(unit))
        found[f"zoned {unit}"] = pa.array(ends, pa.timestamp(unit, "Europe/Berlin"))
        found[f"duration {unit}"] = pa.array([2**62, *ends[1:]], pa.duration(unit))
    for zone in ("No/Where", "../../etc/passwd", "+99:99"):
        found[zone] = pa.array([0, 1], pa.int64()).cast(pa.timestamp("s", zone))
    found["nanoseconds"] = pa.array([1, None], pa.timestamp("ns"))
    found["time ns"] = pa.array([1, None], pa.time64("ns"))
    found["date32"] = pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32())
    found["null in a dictionary"] = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    found["far in a dictionary"] = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([2**40], pa.timestamp("s")))
    for kind in (pa.uint64(), pa.int64(), pa.int8()):
        bits = kind.bit_width
        found[str(kind)] = pa.array([(1 << bits - (kind != pa.uint64())) - 1, 0, None], kind)
    found["float"] = pa.array([float("inf"), -1e308, float("nan")])
    found["half"] = pa.array(np.array([65504.0, np.inf], np.float16))
    found["decimal"] = pa.array([10**75, None], pa.decimal256(76))
    found["interval"] = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    found["null"] = pa.nulls(2)
    found["flag"] = pa.array([True, None])
    found["view"] = pa.array(["a", None], pa.string_view())
    found["text"] = pa.array(["", "\0", "9" * 400, "9999-12-31 23:59:59-23:00"])
    return found


PATHS = ("/predict", "/explain", "/decide", "/learn", "/forget")


@pytest.mark.parametrize("what", list(extreme_columns()))
def test_no_cell_of_arrow_is_a_fault(learner: TestClient, what: str) -> None:
    cells = extreme_columns()[what]
    pieces = [cells, *(cells.slice(row, 1) for row in range(len(cells)) if pa.types.is_temporal(cells.type))]
    for piece, path in itertools.product(pieces, PATHS):
        rest = {"kind": ["low"] * len(piece), "income": [1.0] * len(piece)}
        for name in ("age", "city", "calls", "member", "since", "seen", "at", "note"):
            status, told = send(learner, path, pa.table({**rest, name: piece}))
            assert status in (200, 422), (path, name, piece, told)
            assert status == 200 or (told["remedy"] and told["cause"]), told
        for query in ("id", "target", "weight"):
            if query == "id" or path in ("/learn", "/forget"):
                status, told = send(learner, f"{path}?{query}=x", pa.table({**rest, "x": piece}))
                assert status in (200, 422), (path, query, piece, told)


def test_wrong_cells_of_arrow_have_their_place(opened: Opened) -> None:
    client = opened("mixed.dcb")
    far = extreme_columns()
    for name, cells, place, cause in (
        ("seen", far["timestamp s"].slice(2, 1), "rows[0].seen", "years 1 to 9999"),
        ("seen", far["No/Where"], "rows[*].seen", "No/Where"),
        ("city", far["null in a dictionary"], "rows[*].city", "null"),
        ("city", pa.array([None, 3]), "rows[1].city", "expected text, found a number"),
    ):
        status, told = send(client, "/predict", pa.table({name: cells}))
        assert (status, told["place"]) == (422, place), told
        assert cause in str(told["cause"])


def test_times_with_a_zone_are_those_of_utc(opened: Opened, learner: TestClient) -> None:
    client = opened("mixed.dcb")
    asked = ["2021-05-20 10:00:00", "2021-05-20T10:00:00Z", "2021-05-20T12:00:00+02:00", "2021-05-20 06:30-03:30"]
    rows = client.post("/predict", json=[{"seen": one} for one in asked]).json()["rows"]
    assert rows == [rows[0]] * 4
    assert learner.post("/learn", json=[{"seen": one, "kind": "low"} for one in asked]).status_code == 200
    moments = pa.array([1_621_504_800], pa.timestamp("s", "Europe/Berlin"))
    assert send(learner, "/learn", pa.table({"seen": moments, "kind": ["low"]}))[0] == 200
    assert client.post("/predict", json=[{"seen": "2021-05-20T10:00:00+99:00"}]).status_code == 422


def test_learning_by_json_is_strict_too(learner: TestClient) -> None:
    for name, cell in (("age", "12"), ("age", True), ("age", ""), ("city", 3), ("since", ""), ("member", "yes")):
        body = {"rows": [{"kind": "low"}, {"kind": "low", name: cell}]}
        told = learner.post("/learn", json=body).json()
        assert (told["status"], told["place"]) == (422, f"rows[1].{name}"), told


def test_csv_of_a_model_without_names(opened: Opened) -> None:
    client = opened("matrix.dcb")
    status, told = send(client, "/predict", "a,b,c\n0.5,,1\n")
    assert (status, told["rows"]) == (200, client.post("/predict", json=[[0.5, None, 1]]).json()["rows"]), told


def test_labels_are_sent_once(learner: TestClient) -> None:
    told = learner.post("/learn", json={"rows": [{"age": 1, "kind": "low"}], "labels": ["low"]}).json()
    assert (told["place"], told["remedy"]) == ("rows[0].kind", "send labels once")


def test_ignored_columns_of_tables_are_in_a_header(opened: Opened) -> None:
    body = "outlook,\u00e4 b,c\nrain,1,2\n".encode()
    found = opened("weather.dcb").post("/predict", content=body, headers={"content-type": CSV})
    assert found.headers["deciban-ignored-columns"] == "%C3%A4%20b,c"


def test_a_column_with_an_apostrophe_keeps_its_place(tmp_path: Path) -> None:
    table = pa.table({"it's": [1.5, 2.5, 3.5, 4.5], "kind": ["a", "b", "a", "b"]})
    for client in learning(table, "kind", tmp_path):
        for path in ("/predict", "/learn"):
            wrong = pa.table({"it's": ["1.5", "soon"], "kind": ["a", "b"]})
            status, told = send(client, path, wrong)
            assert (status, told["place"]) == (422, "rows[1].it's")
        status, told = send(client, "/predict", "it's\n1.5\nsoon\n")
        assert (status, told["place"]) == (422, 'the body, line 3, column "it\'s"')


def test_remedies_are_for_clients(opened: Opened) -> None:
    client = opened("mixed.dcb")
    assert send(client, "/predict", "age\nsoon\n")[1]["remedy"] == "correct the cell, or omit it"
    assert send(client, "/predict", "city\nZürich\n".encode("latin-1"))[1]["remedy"] == "send the body in UTF-8"
    told = client.post("/predict", content=b"\xef\xbb\xbf[]", headers={"content-type": JSON}).json()
    assert "byte order mark" in told["cause"]
    assert client.post("/predict", json={"rows": [{}], "labels": []}).json()["cause"] == "unexpected property 'labels'"


def test_bounds_hold_before_anything_is_read(models: Path) -> None:
    fitted, settings = load(models / "weather.dcb"), ServeSettings.of("", max_rows=50_000, max_columns=1_000).requests
    wide = ",".join(f"c{k}" for k in range(100_000)) + "\n" + ",".join("1" * 100_000) + "\n"
    long = "outlook\n" + "rain\n" * 1_000_000
    start = time.process_time()
    for body in (wide.encode(), long.encode()):
        with pytest.raises(Problem) as refused:
            read_body(body, CSV, {}, fitted, settings, ("ids",))
        assert refused.value.status == 413
    with pytest.raises(Problem) as refused:
        check_options({"ids": list(range(60_000))}, None, settings)
    assert refused.value.status == 413
    with pytest.raises(Problem, match="duplicate id"):
        check_options({"ids": [*range(49_000), 48_999]}, 49_001, settings)
    assert time.process_time() - start < 3.0


def test_what_takes_long_is_made_once(models: Path, opened: Opened) -> None:
    reader = opened("weather.dcb").app.state.service.model(None)[1]  # type: ignore[attr-defined]
    fresh, made = Predictor(reader.state), list[int]()

    async def ask() -> list[bytes]:
        async def make() -> bytes:
            made.append(1)
            await asyncio.sleep(0.01)
            return b"report"

        return await asyncio.gather(*(fresh.compute_once("report", make) for _ in range(5)))

    assert asyncio.run(ask()) == [b"report"] * 5
    assert len(made) == 1


def test_a_model_that_cannot_be_read_is_told(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "broken.dcb").write_bytes(b"no model")
    found = opened(tmp_path).post("/models/broken/predict", json=[{}])
    assert (found.status_code, found.json()["cause"]) == (503, "the model is not available")


def test_large_bodies_leave_the_event_loop_alone(learner: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    here, made = Body.records, []

    def watched(self: Body, schema: Schema) -> list[object]:
        made.append(threading.current_thread().name)
        return here(self, schema)

    monkeypatch.setattr(Body, "records", watched)
    rows = [{"city": "Bern", "note": "please call back " * 100}] * 500
    assert learner.post("/predict", json={"rows": rows, "ids": list(range(500))}).status_code == 200
    assert learner.post("/learn", json={"rows": rows, "labels": ["low"] * 500}).status_code == 200
    assert len(made) == 2
    assert all(name.startswith("deciban-work") for name in made)
