"""Parts of dates are those of Python's calendar, and parts of texts those of its strings."""

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Categorical
from deciban.errors import DataError, UsageError
from deciban.families.base.parts import read_part, sample_moments

RNG = np.random.default_rng(0)
MOMENTS = [
    *(datetime(1970, 1, 1) + timedelta(microseconds=int(us)) for us in RNG.integers(-(6 * 10**16), 2 * 10**17, 3_000)),
    *(datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2000, 2, 29), datetime(1900, 3, 1), datetime(1, 1, 1)),
]
CALENDAR: dict[Any, Any] = {"month": lambda x: x.month, "weekday": lambda x: x.isoweekday(), "hour": lambda x: x.hour}


@pytest.mark.parametrize("part", CALENDAR)
def test_parts_of_dates_are_those_of_the_calendar(part: Any) -> None:
    cells = pa.array([*MOMENTS, None], pa.timestamp("us"))
    expected = [*map(CALENDAR[part], MOMENTS), None]
    assert read_part(cells, part).to_pylist() == expected
    assert read_part(cells.dictionary_encode(), part).to_pylist() == expected
    assert read_part(cells.cast(pa.timestamp("us", "UTC")), part).to_pylist() == expected


def test_dates_without_a_time_have_parts() -> None:
    days = [date(2024, 2, 29), date(1969, 12, 31), None]
    assert read_part(pa.array(days), "month").to_pylist() == [2, 12, None]
    assert read_part(pa.array(days), "weekday").to_pylist() == [4, 3, None]


@pytest.mark.parametrize(("part", "values"), [("month", range(1, 13)), ("weekday", range(1, 8)), ("hour", range(24))])
def test_sampled_moments_have_the_part(part: Any, values: range) -> None:
    assert read_part(sample_moments(np.array(values), part), part).to_pylist() == list(values)


def test_parts_of_texts_are_counted_in_characters() -> None:
    texts = ["ford torino", "𝒳yz", "", " a", "Grün-weiß x", None]
    cells = pa.array(texts)
    assert read_part(cells, "first word").to_pylist() == [None if x is None else x.split(" ")[0] for x in texts]
    assert read_part(cells, "first 2 characters").to_pylist() == [None if x is None else x[:2] for x in texts]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("s"), pa.date32()], ids=str)
@pytest.mark.parametrize("part", CALENDAR)
def test_infinite_dates_are_missing(kind: Any, part: Any) -> None:
    bits = 32 if kind == pa.date32() else 64
    ends = pa.array([2 ** (bits - 1) - 1, -(2 ** (bits - 1)) + 1, 0], pa.int32() if bits == 32 else pa.int64())
    assert read_part(ends.cast(kind), part).is_valid().to_pylist() == [False, False, True]


def test_units_of_time_do_not_change_a_part() -> None:
    seconds = pa.array([253_402_300_800 + 86_400 * 31, -(10**13)], pa.int64())  # microseconds overflow in 292278
    assert read_part(seconds.cast(pa.timestamp("s")), "month").to_pylist()[0] == 2
    late = pa.array([9_300_000_000_000], pa.int64()).cast(pa.timestamp("s"))
    assert read_part(late, "hour").to_pylist() == [9_300_000_000_000 // 3_600 % 24]
    before = pa.array([-1], pa.int64()).cast(pa.timestamp("ns"))
    assert read_part(before, "hour").to_pylist() == [23]


def test_other_cells_are_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"'size'.*found double, expected dates, to read the month.*Categorical\(\)"):
        BayesClassifier({"size": Categorical(part="month")}).fit({"size": [1.5, 2.5]}, ["a", "b"])
    with pytest.raises(DataError, match="found string, expected dates"):
        BayesClassifier({"size": Categorical(part="hour")}).fit({"size": ["x", "y"]}, ["a", "b"])
    with pytest.raises(UsageError, match="expected one of 'month'"):
        Categorical(part="minute")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="only one of them"):
        Categorical(part="month", levels=(1, 2))


def test_textbook_counts_of_a_month() -> None:
    days = [date(2023, 1, 5), date(2024, 1, 9), date(2024, 7, 1), date(2022, 7, 3)]
    clf = BayesClassifier({"day": Categorical(part="month")}, tune=None).fit({"day": days}, ["no", "no", "no", "yes"])
    # P(July | no) = (1 + 1) / (3 + 2), P(July | yes) = (1 + 1) / (1 + 2), and 3 of 4 rows are "no"
    assert clf.predict_proba([{"day": date(1999, 7, 31)}])[0, 0] == pytest.approx(0.3 / (0.3 + 1.0 / 6.0))
    assert clf.estimates()["month of day"].values == (1, 7)


def test_months_and_weekdays_have_their_names() -> None:
    year = [date(2024, 1, 1) + timedelta(days=k) for k in range(366)]
    families = {"month": "%B", "weekday": "%A", "hour": None}
    for part, form in families.items():
        clf = BayesClassifier({"day": Categorical(part=part)}, tune=None).fit({"day": year}, ["a", "b"] * 183)
        shown, estimates = clf.explain({"day": year[-1:]}, by="block").calculation(0), str(clf.estimates())
        for day in year[::30]:
            assert f"P({'0' if form is None else day.strftime(form)})" in estimates
        assert f"{part} of day = {'0' if form is None else year[-1].strftime(form)}" in shown
