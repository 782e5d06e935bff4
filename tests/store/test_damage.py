"""Files that were damaged by accident, or are no models at all, are refused at once and in one line."""

import gzip
import json
import os
import pickle
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import deciban as dc
from deciban.store import layout
from tests.store.crafted import refused
from tests.store.models import small
from tests.support.model_files import changed, content, find, node, put_together, taken_apart, written


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    data = content(small())
    assert len(data) < 3000
    path = tmp_path / "model.dcb"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(dc.ModelFileError):
            dc.load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(dc.ModelFileError):
        dc.load(path)


def test_every_flipped_bit_is_an_error(tmp_path: Path) -> None:
    data = bytearray(content(small()))
    path = tmp_path / "model.dcb"
    with open(path, "wb", buffering=0) as file:
        file.write(data)
        for place in range(len(data)):
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([data[place] ^ 1 << bit]), place)
                with pytest.raises(dc.ModelFileError):
                    dc.load(path)
            os.pwrite(file.fileno(), bytes([data[place]]), place)
    assert content(dc.load(path)) == bytes(data)


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    """A pipe that nobody writes to would never answer."""
    os.mkfifo(tmp_path / "pipe.dcb")
    for path in (tmp_path / "pipe.dcb", "/dev/zero"):
        with pytest.raises(dc.ModelFileError, match="pipe or a device"):
            dc.load(path)


def test_no_more_is_read_than_a_model_of_this_header_has(tmp_path: Path) -> None:
    """Files of many gigabytes that hold nothing are refused before they are read or kept in memory."""
    data, path = content(small()), tmp_path / "model.dcb"
    header, arrays = taken_apart(data)
    longer = put_together(header, arrays, 1 << 29)
    claimed = changed(header, (*find(header, array=["float64", [2, 3]]), "array", 1), [1 << 40, 3])
    for crafted in (data, longer, put_together(claimed, arrays)):
        path.write_bytes(crafted)
        os.truncate(path, 1 << 33)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(dc.ModelFileError, match="damaged"):
            dc.load(path)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 100 << 10  # kilobytes


def test_files_that_are_no_models(tmp_path: Path) -> None:
    data = content(small())
    for other in (
        b"",
        b"deciban",
        b"\0" * 100,
        pickle.dumps({"a": 1}),
        gzip.compress(data),
        data[1:],
        b"PK\3\4" + data,
    ):
        refused(tmp_path, other, "not a model file")


LOADER = """
import resource, sys, time
from deciban import ModelFileError, load
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    start = time.process_time()
    try:
        load(path)
    except ModelFileError as problem:
        megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(time.process_time() - start, megabytes, problem)
"""


def refused_at_once(paths: list[Path]) -> list[str]:
    """The messages of files that are refused within a second of work and 200 MB, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", LOADER, *paths], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    messages = []
    for path, line in zip(paths, lines, strict=True):
        seconds, megabytes, message = line.split(maxsplit=2)
        assert float(seconds) < 1.0
        assert float(megabytes) < 200.0
        assert message.startswith(str(path))
        messages.append(message.removeprefix(f"{path}: "))
    return messages


def test_large_files_are_refused_at_once(tmp_path: Path) -> None:
    """Two gigabytes of zeros, whatever length they say their header has, and headers of millions of lists or values,
    of which all is read, as their checksum is right, but nothing made."""
    size = 2 << 30
    paths = [tmp_path / f"zeros-{length}.dcb" for length in (0, size - 48, size - 56, 1 << 20)]
    for path in paths:
        with open(path, "wb") as file:
            file.write(b"deciban\n" + int(path.stem.split("-")[1]).to_bytes(8, "little"))
            file.truncate(size)
    for name, repeated in (("lists", b"[]," * 10_000_000), ("values", b"0," * 17_000_000)):
        many = b'{"format":1,"deciban":"1.0.0","parameters":[' + repeated + b"0]}"
        paths.append(written(tmp_path, put_together(many), f"{name}.dcb"))
    messages = refused_at_once(paths)
    assert "10,000,002 lists" in messages[-2]
    assert "values, more than a model can have" in messages[-1]


def test_small_headers_cannot_ask_for_long_work(tmp_path: Path) -> None:
    """Sizes of arrays, lists inside lists, digits and columns are bounded before anything is made of them; the first
    ones also before the checksum, which is wrong here."""
    header, arrays = taken_apart(content(small()))
    array = find(header, array=["float64", [2, 3]])
    shapes = {
        "many": [1] * 1_900_000,
        "huge": [10**19] * 100_000,
        "long": [2**62] * 8,
        "zero": [0, 2**62],
    }
    crafted = {name: changed(header, (*array, "array", 1), shape) for name, shape in shapes.items()}
    texts = {name: json.dumps(one).encode() for name, one in crafted.items()}
    texts["digits"] = json.dumps(header).encode().replace(b"[2, 3]", b"[" + b", ".join([b"7" * 4290] * 1000) + b"]", 1)
    texts["deep"] = json.dumps(header).encode().replace(b'"tuning": null', b'"tuning": ' + b"[" * 900 + b"]" * 900)
    bad_checksum = [written(tmp_path, put_together(one, arrays)[:-1] + b"?", f"{n}.dcb") for n, one in texts.items()]
    messages = dict(zip(texts, refused_at_once(bad_checksum), strict=True))
    for name in ("many", "huge", "long", "zero"):
        assert "an array has the invalid shape [" in messages[name], messages[name]
    assert "a number of 4,290 digits" in messages["digits"]
    assert "nested too deeply" in messages["deep"]

    wide = {**node(header, ("counts", "schema")), "names": None, "types": None, "looks_like": None, "width": 1 << 24}
    many_columns = put_together(changed(header, ("counts", "schema"), wide), arrays)
    assert "too many columns" in refused_at_once([written(tmp_path, many_columns, "wide.dcb")])[0]


def test_a_model_that_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "MAX_LISTS", 10)
    with pytest.raises(dc.UsageError, match="a model file cannot hold"):
        small().save(tmp_path / "model.dcb")
    assert not list(tmp_path.iterdir())


def test_messages_are_one_line_that_names_the_file(tmp_path: Path) -> None:
    data = content(small())
    header, arrays = taken_apart(data)
    bad = [b"", data[:-1], data[:100], put_together([], arrays), put_together({**header, "format": 3}, arrays)]
    bad += [put_together({**header, "counts": "x\n" * 1000}, arrays), put_together({**header, "y" * 10_000: 1}, arrays)]
    bad.append(put_together(changed(header, ("counts", "classes"), {"is": "z\n" * 5000}), arrays))
    bad += [
        put_together({**header, "x\n\x1b[2J": 1}, arrays),
        put_together({**header, "format": "a\n\x1b[31m"}, arrays),
    ]
    bad.append(put_together(changed(header, ("counts", "x\n"), 1), arrays))
    for one in bad:
        with pytest.raises(dc.ModelFileError) as caught:
            dc.load(written(tmp_path, one))
        text = str(caught.value)
        assert text.startswith(str(tmp_path / "crafted.dcb"))
        assert text.isprintable()
        assert len(text) < 400 + len(str(tmp_path))
