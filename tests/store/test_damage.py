"""Files that were damaged by accident, or are no models at all, are refused at once and in one line."""

import gzip
import os
import pickle
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import deciban as dc
from tests.store.crafted import refused
from tests.store.files import changed, content, find, put_together, taken_apart, written
from tests.store.models import small


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


def test_large_files_are_refused_at_once(tmp_path: Path) -> None:
    """Within a second and 200 MB, in a process of its own: two gigabytes of zeros, whatever length they say their
    header has, and a header of millions of lists, of which all is read, as its checksum is right, but nothing made.
    """
    size = 2 << 30
    paths = [tmp_path / f"zeros-{length}.dcb" for length in (0, size - 48, size - 56, 1 << 20)]
    for path in paths:
        with open(path, "wb") as file:
            file.write(b"deciban\n" + int(path.stem.split("-")[1]).to_bytes(8, "little"))
            file.truncate(size)
    lists = b'{"format":1,"deciban":"0.1.0","parameters":[' + b"[]," * 10_000_000 + b"[]]}"
    paths.append(written(tmp_path, put_together(lists), "lists.dcb"))
    done = subprocess.run([sys.executable, "-c", LOADER, *paths], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths)
    for path, line in zip(paths, lines, strict=True):
        seconds, megabytes, message = line.split(maxsplit=2)
        assert float(seconds) < 1.0
        assert float(megabytes) < 200.0
        assert message.startswith(str(path))
    assert "more lists" in lines[-1]


def test_messages_are_one_line_that_names_the_file(tmp_path: Path) -> None:
    data = content(small())
    header, arrays = taken_apart(data)
    bad = [b"", data[:-1], data[:100], put_together([], arrays), put_together({**header, "format": 3}, arrays)]
    bad += [put_together({**header, "counts": "x\n" * 1000}, arrays), put_together({**header, "y" * 10_000: 1}, arrays)]
    bad.append(put_together(changed(header, ("counts", "classes"), {"is": "z\n" * 5000}), arrays))
    for one in bad:
        with pytest.raises(dc.ModelFileError) as caught:
            dc.load(written(tmp_path, one))
        text = str(caught.value)
        assert text.startswith(str(tmp_path / "crafted.dcb"))
        assert "\n" not in text
        assert len(text) < 400 + len(str(tmp_path))
