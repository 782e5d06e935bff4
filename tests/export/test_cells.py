"""Cells are read as Python reads them: numbers in texts, flags, dates, times, long integers, and what is no cell."""

import math
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Bernoulli, Categorical, Gaussian, JointTable
from tests.export.agreement import assert_agree, expected_of
from tests.export.targets import everywhere

RNG = np.random.default_rng(11)
ROWS = 200
LABELS = RNG.integers(0, 2, ROWS)
WORDS = np.array(["a", "b", '"q"', "</script>", "\u2028", "\u00e9", "e\u0301", ""])
DAYS = [date(2020, 1, 1) + timedelta(int(day)) for day in RNG.integers(0, 900, ROWS)]
STAMPS = [datetime(2020, 1, 1) + timedelta(seconds=3601.25 * int(hour)) for hour in RNG.integers(0, 900, ROWS)]
TIMES = [time(int(hour), int(minute), 5) for hour, minute in RNG.integers(0, 24, (ROWS, 2))]

VALUES = pa.table(
    {
        "long": [2**60 + int(k) for k in RNG.integers(0, 4, ROWS)],
        "flag": RNG.integers(0, 2, ROWS).astype(bool),
        "half": RNG.integers(0, 4, ROWS) / 2,
        "real": RNG.normal(size=ROWS),
        "word": WORDS[RNG.integers(0, WORDS.size, ROWS)],
    }
)
CELLS: list[Any] = [
    *(2**60, 2**60 + 7, float(2**60), 2**70, -(2**64), -5, 0, 1, 2, 0.5, 1.5, True, False, None, math.nan, math.inf),
    *("1", "0", "true", "TRUE", "yes", "N", "t", "abc", "", " ", str(2**60 + 1), f"+{2**60 + 1}", f"{2**60 + 1}.0"),
    *("1e3", "inf", "-inf", "nan", "NaN(12)", "Infinity", "0x10", ".5", "5.", "+.5e-3", "1e400", "1_000", "1,5"),
    *("\u00a01.5\u2003", "\ufeff1", "\x1c1\x1f", "1\x00", "\u00e9", "e\u0301", "\ud800", "\ud800x", "</script>", "'\\"),
    *(-0.0, 5e-324, 1e308, -math.inf),
]  # fmt: skip
SPECS: list[dict[Any, Any]] = [
    {"long": Categorical(), "flag": Categorical(), "half": Categorical(unseen="smooth"), "real": Gaussian()},
    {"long": Categorical(unseen="error"), "flag": Bernoulli(), "half": Bernoulli(threshold=0.7), "word": Categorical()},
    {
        ("long", "flag", "word"): JointTable(alpha=0.0, unseen="smooth"),
        ("half", "real"): JointTable(cuts=((0.6,), (-1.0, 1.0))),
    },
    {
        ("long", "flag", "word"): JointTable(alpha=0.5, unseen="error"),
        ("half", "real"): JointTable(alpha=0.0, cuts=(None, (0.0,))),
    },
]


@pytest.mark.parametrize("spec", SPECS, ids=["alone", "errors", "together", "together-errors"])
def test_cells_of_any_type_are_read_alike(spec: dict[Any, Any]) -> None:
    """Some are refused, by both."""
    model = BayesClassifier(spec, tune=None).fit(VALUES, LABELS).model_
    rows = [*VALUES.slice(0, 20).to_pylist(), *({name: cell} for cell in CELLS for name in VALUES.column_names)]
    assert_agree([model], [rows])
    assert sum(expected_of(model, row).error is not None for row in rows) > 20


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"day": Categorical(), "at": Categorical(unseen="smooth"), "time": Categorical()},
        {("day", "at", "time"): JointTable()},
    ],
    ids=["numbers", "values", "together"],
)
def test_dates_and_times_are_read_alike(spec: Any) -> None:
    model = BayesClassifier(spec, tune=None).fit({"day": DAYS, "at": STAMPS, "time": TIMES}, LABELS).model_
    some = list(zip(DAYS[:10], STAMPS[:10], TIMES[:10], strict=True))
    rows: list[dict[str, Any]] = [{"day": day, "at": at, "time": str(clock)} for day, at, clock in some]
    rows += [{"day": str(day), "at": str(at), "time": str(clock)[:5]} for day, at, clock in some]
    cells = ["2020-02-30", "x", "2020-01-01T10", "2020-01-01 24:00", "", "  2020-01-01 ", 5, 5.5, True, None]
    cells += ["2020-01-01 10:00:05.1234567", "0001-01-01", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.5"]
    cells += ["10:00", "25:00", "10", "10:61", "10:00:61", "12:34:56.789"]
    assert_agree([model], [rows + [{name: cell} for cell in cells for name in ("day", "at", "time")]])


def test_times_with_a_zone_are_those_of_utc_everywhere() -> None:
    """Whether or not those that were learned had one: as in files and requests."""
    zoned = pa.array(STAMPS, pa.timestamp("us", "Europe/Berlin"))
    at = ["2020-01-09T18:19:51Z", "2020-01-09 18:19:51.25+00:00", "2020-01-09T20:19+02:00", "2020-01-09 15:49-0230"]
    at += ["2020-01-09T18:19+02", "2020-01-09T18Z", "2020-01-09Z", "2020-01-09T18:19:51z", "2020-01-09T18:19+24:00"]
    at += ["2020-01-09T18:19+02:60", "2020-01-09T24:00Z", "2020-02-30T18:00Z", " 2020-01-09T18:19:51Z ", "18:19Z"]
    for cells in (zoned, pa.array(STAMPS)):
        model = BayesClassifier(tune=None).fit(pa.table({"at": cells}), LABELS).model_
        assert_agree([model], [[{"at": one} for one in at]])
        proba = BayesClassifier(tune=None).fit(pa.table({"at": cells}), LABELS).predict_proba
        same = [{"at": "2020-01-09 18:19:00"}, {"at": "2020-01-09T18:19Z"}, {"at": "2020-01-09T20:19+02:00"}]
        same += [{"at": datetime(2020, 1, 9, 19, 19, tzinfo=timezone(timedelta(hours=1)))}]
        assert proba([same[3]]).tolist() == proba(same[:3]).tolist()[:1] == proba(same[:3]).tolist()[2:]


def test_python_takes_times_with_a_zone() -> None:
    clf = BayesClassifier(tune=None).fit(pa.table({"at": pa.array(STAMPS)}), LABELS)
    scope: dict[str, Any] = {"__name__": "model"}
    exec(compile(clf.to_python(), "model.py", "exec"), scope)
    at = datetime(2020, 1, 9, 20, 19, tzinfo=timezone(timedelta(hours=2)))
    assert scope["predict_proba"]({"at": at}) == scope["predict_proba"]({"at": "2020-01-09T18:19Z"})


def test_what_is_no_cell_is_refused_with_the_name_of_the_column() -> None:
    model = BayesClassifier(tune=None).fit(VALUES, LABELS).model_
    rows: list[dict[str, Any]] = [{"real": [1, 2]}, {"real": {"a": 1}}, {"nothing": 1}, {}]
    for answers in everywhere([model], [rows]):
        *bad, none, empty = answers[0].rows
        assert all("column 'real': found a value of type" in answer["error"] for answer in bad)
        assert "the row has none of the model's columns; it has nothing" in none["error"]
        assert empty["predict_log_proba"] == pytest.approx(model.log_prior.tolist(), abs=1e-15)


def test_a_cell_that_is_not_given_is_a_missing_one() -> None:
    """undefined, null, and a column that is not named."""
    model = BayesClassifier(tune=None).fit(VALUES, LABELS).model_
    rows: list[dict[str, Any]] = [{"half": 0.5, "word": {"undefined": 1}}, {"half": 0.5, "word": None}, {"half": 0.5}]
    for answers in everywhere([model], [rows]):
        first, second, third = answers[0].rows
        assert first == second == third
        assert first["predict_log_proba"] != model.log_prior.tolist()
