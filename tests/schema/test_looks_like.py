"""What a column may be meant as is one value: found in its cells, said in words, kept in files."""

from pathlib import Path

import pyarrow as pa
import pytest

from deciban import BayesClassifier, load
from deciban.schema.infer import Defaults, infer_schema
from deciban.schema.schema import LooksLike
from deciban.store.layout import ArrayReader, Content
from deciban.store.values import pack, unpack
from deciban.tables.convert import as_table

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

CASES = {
    "dates": ([f"{1 + i % 28}.{1 + i % 12}.2024" for i in range(60)], LooksLike("dates", "%d.%m.%Y")),
    "American dates": ([f"{1 + i % 12}/{1 + i % 28}/2024" for i in range(60)], LooksLike("dates", "%m/%d/%Y")),
    "dates with times": (
        [f"{1 + i % 28}.{1 + i % 12}.2024 {i % 24}:05" for i in range(60)],
        LooksLike("dates", "%d.%m.%Y %H:%M"),
    ),
    "American dates with times": (
        [f"{1 + i % 12}/{1 + i % 28}/2024, {1 + i % 12}:30:00 PM" for i in range(60)],
        LooksLike("dates", "%m/%d/%Y, %I:%M:%S %p"),
    ),
    "dates with names of months": (
        [f"{1 + i % 28}-{MONTHS[i % 12]}-2024" for i in range(60)],
        LooksLike("dates", "%d-%b-%Y"),
    ),
    "dates in words": (
        [f"{MONTHS[0]}uary {1 + i % 28}, {1960 + i}" for i in range(60)],
        LooksLike("dates", "%B %d, %Y"),
    ),
    "dates and times in words": (
        [f"{1 + i % 28} {MONTHS[i % 12]} 2024 14:{i:02d}" for i in range(60)],
        LooksLike("dates", "%d %b %Y %H:%M"),
    ),
    "short years": ([f"{1 + i % 28}/{1 + i % 12}/24" for i in range(60)], LooksLike("dates", "%d/%m/%y")),
    "ISO dates in memory": ([f"2024-01-{1 + i % 28:02d}T{i % 24:02d}:30:00Z" for i in range(60)], LooksLike("dates")),
    "dates in two formats": (
        [f"2024-{1 + i % 12:02d}-{13 + i % 15}" for i in range(54)] + [f"{20 + i}/12/2024" for i in range(6)],
        LooksLike("dates", "%d/%m/%Y"),
    ),
    "dates, some with times": (
        [f"{1 + i % 28}.{1 + i % 12}.2024{' 14:30' if i > 40 else ''}" for i in range(60)],
        LooksLike("dates", "%d.%m.%Y|%d.%m.%Y %H:%M"),
    ),
    "dates and a word": (
        [f"{1 + i % 28}.{1 + i % 12}.2024" for i in range(59)] + ["soon"],
        LooksLike("dates", "%d.%m.%Y", exception="soon"),
    ),
    "dates and one before the year 1 in UTC": (
        [f"2024-01-{1 + i % 28:02d}T{i % 24:02d}:30:00+01:00" for i in range(59)] + ["0001-01-01T00:00+01:00"],
        LooksLike("dates", exception="0001-01-01T00:00+01…"),
    ),
    "days or months": (
        [f"{1 + i % 12}/{1 + i // 12}/2024" for i in range(60)],
        LooksLike("dates", "%d/%m/%Y", otherwise="%m/%d/%Y"),
    ),
    "part numbers like dates": ([f"{i:02d}-{70 + i % 20}-{1000 + i}" for i in range(60)], LooksLike("identifier")),
    "commas between thousands": ([f"{i},{i:03d}" for i in range(1, 60)], LooksLike("thousands", ",")),
    "points between thousands": ([f"{i}.{i:03d}.000" for i in range(1, 60)], LooksLike("thousands", ".")),
    "apostrophes between thousands": ([f"{i}'{i:03d}" for i in range(1, 60)], LooksLike("thousands", "'")),
    "numbers": ([f"{i}.5" for i in range(60)], LooksLike("numbers")),
    "decimal commas": ([f"{i},5" for i in range(60)], LooksLike("numbers", decimal_comma=True)),
    "a word": ([f"{i}.5" for i in range(60)] + ["it's no 'number'"], LooksLike("numbers", "it's no 'number'")),
    "an empty text": ([f"{i}.5" for i in range(60)] + [""], LooksLike("numbers", "")),
    "a long word": ([f"{i}.5" for i in range(60)] + ["x" * 50], LooksLike("numbers", "x" * 19 + "…")),
    "units": ([f"{i}.5 kg" for i in range(60)], LooksLike("units", "0.5 kg")),
    "units and decimal commas": ([f"{i},5 kg" for i in range(60)], LooksLike("units", "0,5 kg", decimal_comma=True)),
    "money": ([f"€{i}" for i in range(60)], LooksLike("units", "€0")),
    "dollars with thousands": ([f"${i},{237 + i}.50" for i in range(1, 61)], LooksLike("units", "$1,238.50")),
    "euros with thousands": (
        [f"€ {i}.{237 + i},50" for i in range(1, 61)],
        LooksLike("units", "€ 1.238,50", decimal_comma=True),
    ),
    "a currency behind": ([f"{i},{237 + i}.50 USD" for i in range(1, 61)], LooksLike("units", "1,238.50 USD")),
    "negative in parentheses": (
        [f"({i},237)" if i % 3 else f"{i},500" for i in range(1, 61)],
        LooksLike("units", "(1,237)"),
    ),
    "all in parentheses": ([f"({i})" for i in range(200, 248)], None),  # area codes; amounts are not all negative
    "names": ([f"name{i}" for i in range(60)], LooksLike("identifier")),
    "numbered rows": (list(range(60)), LooksLike("identifier")),
    "codes": ([f"{i:05d}" for i in range(40)], None),
    "categories": (["red", "green"] * 30, None),
    "few dates": (["1.1.2024", "2.1.2024"] * 30, None),
}
WORDS = {
    LooksLike("dates", "%d.%m.%Y"): "looks like dates (%d.%m.%Y)",
    LooksLike("thousands", ","): "looks like numbers with ',' between thousands",
    LooksLike("thousands", "'"): 'looks like numbers with "\'" between thousands',
    LooksLike("numbers"): "looks like numbers",
    LooksLike("numbers", decimal_comma=True): "looks like numbers with decimal commas",
    LooksLike("numbers", "n/a"): "looks like numbers, except for 'n/a'",
    LooksLike("units", "0.5 kg"): "looks like numbers with a unit ('0.5 kg')",
    LooksLike("identifier"): "looks like an identifier",
    LooksLike("dates"): "looks like dates",
    LooksLike(
        "dates", "%d.%m.%Y|%d.%m.%y", exception="soon"
    ): "looks like dates (%d.%m.%Y, %d.%m.%y), except for 'soon'",
    LooksLike("dates", "%d/%m/%Y", otherwise="%m/%d/%Y"): "looks like dates (%d/%m/%Y, or %m/%d/%Y)",
    LooksLike("units", "(1,237)"): "looks like numbers in parentheses ('(1,237)')",
}


@pytest.mark.parametrize("what", CASES)
def test_what_cells_look_like(what: str) -> None:
    cells, meant = CASES[what]
    schema = infer_schema(as_table({"column": cells, "other": [0.5] * len(cells)}), None, Defaults())
    assert schema.looks_like == (None if meant is None else (meant, None))
    assert meant is None or schema.columns_like(meant.kind) == {"column": meant}
    reason = next(reason for name, _, reason in schema.descriptions() if name == "column")
    assert reason.endswith(f", {meant}") or meant is None


@pytest.mark.parametrize("meant", WORDS, ids=str)
def test_it_is_said_in_words(meant: LooksLike) -> None:
    assert str(meant) == WORDS[meant]


@pytest.mark.parametrize("looks", [None, (None, None), (LooksLike("identifier"), None, *WORDS)], ids=str)
def test_it_is_written_and_read_back(looks: tuple[LooksLike | None, ...] | None) -> None:
    arrays = ArrayReader(Content(None, memoryview(b""), "", 0))
    assert unpack(pack(looks, []), arrays) == looks


def test_details_are_kept_with_the_model(tmp_path: Path) -> None:
    columns = {what: cells for what, (cells, _) in CASES.items() if len(cells) == 60}
    table = pa.table({**columns, "kind": ["a", "b"] * 30})
    clf = BayesClassifier(tune=None).fit(table, "kind")
    clf.save(tmp_path / "m.dcb")
    assert load(tmp_path / "m.dcb").schema_.looks_like == clf.schema_.looks_like
    assert clf.schema_.looks_like == tuple(CASES[what][1] for what in columns)
