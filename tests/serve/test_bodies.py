"""Bodies that are wrong are told so, with place, cause and remedy, and nothing that is sent is a fault."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from deciban.serve.bodies.body import ARROW_STREAM, CSV, JSON
from deciban.serve.bodies.strict_json import check_repeated_names, decode_json
from deciban.serve.problems import Problem
from tests import example_count
from tests.serve.conftest import Opened
from tests.serve.requests import as_stream

WRONG_JSON = {
    "empty": (b"", "byte 0"),
    "cut off": (b'[{"age": 1', "byte 10"),
    "NaN": (b'[{"age": NaN}]', "byte 9"),
    "Infinity": (b'[{"age": Infinity}]', "byte 9"),
    "minus infinity": (b'[{"age": -Infinity}]', "byte 10"),
    "beyond doubles": (b'[{"age": 1e999}]', "rows[0]"),
    "lone surrogate": (b'[{"city": "\\ud800"}]', "byte 11"),
    "low surrogate": (b'[{"city": "a\\udc00 b"}]', "byte 12"),
    "comma at the end": (b'[{"age": 1},]', "byte 12"),
    "single quotes": (b"[{'age': 1}]", "byte 2"),
    "comment": (b'[{"age": 1}] // x', "byte 14"),
    "no UTF-8": (b'[{"city": "\xff"}]', "byte 11"),
    "byte order mark": (b"\xef\xbb\xbf[]", "byte 0"),
    "control character": (b'[{"city": "a\x00b"}]', "byte 12"),
    "deep": (b"[" * 100_000, "the body"),
    "deep and whole": (b'[{"age": ' + b"[" * 3_000 + b"]" * 3_000 + b"}]", "the body"),
    "a number": (b"3", "the body"),
    "null": (b"null", "the body"),
    "text": (b'"rows"', "the body"),
    "a row alone": (b'{"age": 1}', "the body"),
    "no rows": (b"{}", "rows"),
    "rows are null": (b'{"rows": null}', "rows"),
    "rows are an object": (b'{"rows": {}}', "rows"),
    "unknown option": (b'{"rows": [], "color": 1}', "color"),
    "row is a number": (b"[1]", "rows[0]"),
    "row is a list": (b"[[1, 2]]", "rows[0]"),
    "row is null": (b"[{}, null]", "rows[1]"),
    "name twice": (b'{"rows": [{}, {"age": 1, "age": 2}]}', "rows[1].age"),
    "name twice in another column": (b'[{"x": {"a": 1, "a": 2}}]', "the body"),
    "name twice behind a colon": (b'[{"city": "a\\u003a", "age": 1, "age": 2}]', "rows[0].age"),
    "rows twice": (b'{"rows": [], "rows": []}', "the body"),
    "cell is an object": (b'[{"age": {"a": 1}}]', "rows[0].age"),
    "cell is a list": (b'[{"age": 1}, {"age": [1]}]', "rows[1].age"),
    "text among numbers": (b'[{"age": 1}, {"age": null}, {"age": "x"}]', "rows[2].age"),
    "no number": (b'[{"age": 1}, {"age": 2}]'.replace(b"1", b'"a"').replace(b"2", b'"b"'), "rows[0].age"),
    "no date": (b'[{"since": "soon"}]', "rows[0].since"),
    "a number for a date": (b'[{"since": 5}]', "rows[0].since"),
    "number for text": (b'[{"note": 5}]', "rows[0].note"),
    "enormous number": (b'[{"age": 1' + b"0" * 400 + b"}]", "rows[0].age"),
    "endless number": (b'[{"age": ' + b"9" * 5_000 + b"}]", "rows[0]"),
    "ids are text": (b'{"rows": [{}], "ids": "a"}', "ids"),
    "ids are few": (b'{"rows": [{}, {}], "ids": ["a"]}', "ids"),
    "id is null": (b'{"rows": [{}], "ids": [null]}', "ids[0]"),
    "id is empty": (b'{"rows": [{}], "ids": [""]}', "ids[0]"),
    "id is long": (b'{"rows": [{}], "ids": ["' + b"a" * 600 + b'"]}', "ids[0]"),
    "ids are alike": (b'{"rows": [{}, {}], "ids": ["1", 1]}', "ids[1]"),
    "true for a number": (b'[{"age": 1}, {"age": true}]', "rows[1].age"),
    "text for a number": (b'[{"age": "12"}]', "rows[0].age"),
    "empty text for a number": (b'[{"age": ""}]', "rows[0].age"),
    "empty text for a date": (b'[{"since": ""}]', "rows[0].since"),
    "number for a category": (b'[{"city": null}, {"city": 3}]', "rows[1].city"),
    "number for a flag": (b'[{"member": 2}]', "rows[0].member"),
    "none of the columns": (b'[{}, {"color": 1}]', "rows"),
    "nine levels": (b'[{"x": [[[[[[[]]]]]]]}]', "the body"),
}


@pytest.mark.parametrize("what", WRONG_JSON)
def test_wrong_json_is_refused_with_its_place(opened: Opened, what: str) -> None:
    body, place = WRONG_JSON[what]
    found = opened("mixed.dcb").post("/predict", content=body, headers={"content-type": JSON})
    assert found.status_code == 422, found.text
    assert found.headers["content-type"] == "application/problem+json"
    told = found.json()
    assert told["place"] == place, told
    assert told["cause"]
    assert told["remedy"]


def test_what_is_right_though_it_looks_wrong(opened: Opened) -> None:
    client = opened("mixed.dcb")
    rights = (
        b'[{"city": "a:b", "note": "c: d :"}]',
        b'[{"city": "\\ud83d\\ude00"}]',
        b'[{"age": 123456789012345678901234567890}, {"age": null}]',
        b'[{"member": true}, {"member": 0}]',
        b'[{"age": 1, "x": [[[[[["]]]]"]]]]]]}, {"city": "[[[[[[[[[[{"}]',
        b'[{"calls": 2.5, "member": 1}]',
        b'[{"since": "2020-05-01", "at": "10:30:00", "seen": "2020-05-01 10:30:00"}]',
        b"[{}, {}]",
        b' [ { "age" : 1 } ] \n',
        b'[{"age": 1, "x": {"a": 1, "b": {"a": 2}}, "y": [[[]]]}]',
    )
    for body in rights:
        found = client.post("/predict", content=body, headers={"content-type": JSON})
        assert found.status_code == 200, (body, found.text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from(["age", "city", "note"]), inside),
    max_leaves=8,
)


@settings(max_examples=example_count(150), suppress_health_check=list(HealthCheck))
@given(st.lists(st.dictionaries(st.sampled_from(["age", "city", "since", "member", "at", "note", ":"]), JSON_VALUES)))
def test_any_json_is_answered_or_refused(opened: Opened, rows: list[dict[str, object]]) -> None:
    import json

    client = opened("mixed.dcb")
    for path in ("/predict", "/explain", "/decide"):
        content = json.dumps(rows).encode()
        found = client.post(path, content=content, headers={"content-type": JSON})
        assert found.status_code in (200, 422), (content, found.text)
        told = found.json()
        if found.status_code == 200:
            assert len(told["rows"]) == len(rows)


@settings(max_examples=example_count(300))
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "a:", "\\u003a"]), st.sampled_from(["1", '":"', '"\\u003a"', "{}"])),
        max_size=4,
    )
)
def test_a_name_that_is_there_twice_is_always_found(pairs: list[tuple[str, str]]) -> None:
    body = ("[{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}]").encode()
    names = [name.replace("\\u003a", ":") for name, _ in pairs]
    value = decode_json(body)
    if len(set(names)) == len(names):
        check_repeated_names(body, value, value)
    else:
        with pytest.raises(Problem, match="duplicate name"):
            check_repeated_names(body, value, value)


def test_limits_of_rows_and_columns(opened: Opened) -> None:
    client = opened("weather.dcb", max_rows=3, max_columns=5)
    assert client.post("/predict", json=[{}] * 3).status_code == 200
    assert client.post("/predict", json=[{}] * 4).status_code == 413
    assert client.post("/predict", json=[{str(k): k for k in range(6)}]).status_code == 413
    lines = "outlook\n" + "rain\n" * 4
    assert client.post("/predict", content=lines, headers={"content-type": CSV}).status_code == 413
    wide = ",".join("abcdefg") + "\n" + ",".join("1234567") + "\n"
    assert client.post("/predict", content=wide, headers={"content-type": CSV}).status_code == 413
    for table in (pa.table({"outlook": ["rain"] * 4}), pa.table({c: [1] for c in "abcdefg"})):
        assert (
            client.post("/predict", content=as_stream(table), headers={"content-type": ARROW_STREAM}).status_code == 413
        )


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": ""},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "text/plain"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "multipart/form-data; boundary=x"},
    ],
    ids=str,
)
def test_other_content_types_are_refused(opened: Opened, headers: dict[str, str]) -> None:
    assert opened("weather.dcb").post("/predict", content=b"[{}]", headers=headers).status_code == 415


WRONG_CSV = {
    "empty": b"",
    "ragged": b"outlook,wind\nrain\n",
    "quotes": b'outlook,wind\n"rain,weak\n',
    "packed": gzip.compress(b"outlook\nrain\n" * 10),
    "zeros": b"\x00" * 100,
    "noise": bytes(range(256)) * 20,
    "JSON": b'[{"outlook": "rain"}]',
    "Parquet": b"PAR1" + bytes(100),
    "names twice": b"outlook,outlook\nrain,rain\n",
    "none of the columns": b"a,b\n1,2\n",
    "no UTF-8": b"outlook\n\xff\xfe\xfd\n",
    "UTF-16": "outlook\nrain\n".encode("utf-16"),
}


@pytest.mark.parametrize("what", WRONG_CSV)
def test_wrong_csv_is_refused_and_tells_no_path(opened: Opened, what: str) -> None:
    found = opened("weather.dcb").post("/predict", content=WRONG_CSV[what], headers={"content-type": CSV})
    assert found.status_code == 422, found.text
    assert "/proc" not in found.text
    assert "/tmp" not in found.text
    assert found.json()["remedy"]


def test_habits_of_csv_are_those_that_were_learned(opened: Opened, tmp_path: Path) -> None:
    from deciban import BayesClassifier, scan

    lines = [f"{'-' if k % 9 == 0 else f'1.{k:03d},5'};{'a' if k < 40 else 'b'}" for k in range(80)]
    (tmp_path / "euros.csv").write_text("price;kind\n" + "\n".join(lines) + "\n")
    clf = BayesClassifier(tune=None).fit(scan(tmp_path / "euros.csv", thousands="."), "kind")
    clf.save(tmp_path / "euros.dcb")
    body = b"price;note\n1.010,5;x\n-;y\n"
    (tmp_path / "new.csv").write_bytes(body)
    found = opened(tmp_path / "euros.dcb").post("/predict", content=body, headers={"content-type": CSV, "accept": JSON})
    told = [[row["probabilities"][c] for c in "ab"] for row in found.json()["rows"]]
    np.testing.assert_array_equal(told, clf.predict_proba(tmp_path / "new.csv"))


def test_wrong_cells_of_csv_have_line_and_column(opened: Opened) -> None:
    body = b"age,city\n3,Bern\nsoon,Zug\n"
    told = opened("mixed.dcb").post("/predict", content=body, headers={"content-type": CSV}).json()
    assert told["status"] == 422
    assert "soon" in told["cause"]
    assert "age" in told["detail"]


def arrow_bodies() -> dict[str, bytes]:
    good = as_stream(pa.table({"outlook": ["rain", "sunny"], "wind": ["weak", None]}))
    sink = pa.BufferOutputStream()
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    bomb = pa.table({"outlook": pa.array(["a" * 1_000] * 20_000)})
    with pa.ipc.new_stream(sink, bomb.schema, options=packed) as writer:
        writer.write_table(bomb)
    nested = pa.table({"outlook": [[1, 2], [3]]})
    endless = bytearray(as_stream(pa.table({"outlook": pa.nulls(77)})))
    at = endless.find(struct.pack("<q", 77))
    while at >= 0:
        endless[at : at + 8] = struct.pack("<q", 1 << 60)
        at = endless.find(struct.pack("<q", 77))
    bad_text = as_stream(pa.table({"outlook": ["rainrain"]})).replace(b"rainrain", b"\xff\xfe\xfd\xfcrain")
    return {
        "empty": b"",
        "noise": bytes(range(256)) * 10,
        "cut off": good[: len(good) // 2],
        "only a head": good[:8],
        "compressed": sink.getvalue().to_pybytes(),
        "nested": as_stream(nested),
        "endless": bytes(endless),
        "no UTF-8": bad_text,
        "names twice": as_stream(pa.Table.from_arrays([pa.array(["a"])] * 2, names=["outlook", "outlook"])),
        "binary": as_stream(pa.table({"outlook": [b"a"]})),
    }


@pytest.mark.parametrize("what", list(arrow_bodies()))
def test_wrong_arrow_is_refused(opened: Opened, what: str) -> None:
    found = opened("weather.dcb").post("/predict", content=arrow_bodies()[what], headers={"content-type": ARROW_STREAM})
    assert found.status_code in (413, 422), found.text


@settings(max_examples=example_count(200), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_arrow_with_changed_bytes_is_never_a_fault(opened: Opened, data: st.DataObject) -> None:
    body = bytearray(
        as_stream(pa.table({"outlook": pa.array(["rain", None, "x"]).dictionary_encode(), "wind": ["a"] * 3}))
    )
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    found = opened("weather.dcb").post("/predict", content=bytes(body), headers={"content-type": ARROW_STREAM})
    assert found.status_code in (200, 413, 422), found.text


@settings(max_examples=example_count(60), suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=60), st.sampled_from(["", "outlook,wind\n", "outlook;wind\n"]))
def test_any_bytes_as_csv_are_never_a_fault(opened: Opened, noise: bytes, head: str) -> None:
    found = opened("weather.dcb").post("/predict", content=head.encode() + noise, headers={"content-type": CSV})
    assert found.status_code in (200, 413, 422), found.text
    assert "/proc" not in found.text


def test_wrong_costs_are_refused(opened: Opened) -> None:
    wrong = (
        3, [], {}, {"go": 1}, {"go": {}}, {"go": {"no": None}}, {"go": {"no": [1]}}, {"go": {"maybe": 1}},
        {"go": {"no": 1}}, {"go": {"no": True, "yes": 1}}, {"go": {"no": 10**400, "yes": 1}},
    )  # fmt: skip
    client = opened("weather.dcb")
    for costs in wrong:
        found = client.post("/decide", json={"rows": [{"wind": "weak"}], "costs": costs})
        assert found.status_code == 422, (costs, found.text)
        assert found.json()["place"].startswith(("costs", "the body"))
    told = client.post("/decide", json={"rows": [{}], "costs": {"go": {"no": 1, "yes": 0, "maybe": 1}}}).json()
    assert (told["place"], "'no', 'yes'" in told["remedy"]) == ("costs.go.maybe", True), told
    for reject in (-1, "a", None, [], True, 10**400):
        found = client.post("/decide", json={"rows": [{}], "reject": reject})
        assert found.status_code == 422, (reject, found.text)
        assert found.json()["place"] == "reject"


def test_a_service_that_does_not_learn_says_so(opened: Opened) -> None:
    for path in ("/learn", "/forget"):
        assert opened("weather.dcb").post(path, json=[{}]).status_code == 403
