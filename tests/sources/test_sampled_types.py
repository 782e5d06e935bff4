"""Rows that are drawn have the types of the rows that were learned."""

import datetime

import pyarrow as pa

from deciban import BayesClassifier


def test_dates_and_times_are_drawn_as_dates_and_times() -> None:
    start = datetime.datetime(2024, 1, 1)
    moments = [start + datetime.timedelta(hours=7 * i) for i in range(60)]
    table = pa.table(
        {
            "day": pa.array([moment.date() for moment in moments]),
            "moment": pa.array(moments, pa.timestamp("s")),
            "clock": pa.array([moment.time() for moment in moments]),
            "span": pa.array([moment - start for moment in moments]),
            "gap": pa.array([None if i % 3 else float(i) for i in range(60)]),
        }
    )
    drawn, _ = BayesClassifier(tune=None).fit(table, [i % 2 for i in range(60)]).sample(50, random_state=1)
    kinds = [str(kind) for kind in drawn.schema.types]
    assert kinds == ["date32[day]", "timestamp[us]", "time64[us]", "duration[us]", "double"]
    assert min(drawn["day"].to_pylist()) > datetime.date(2023, 1, 1)
    assert max(drawn["day"].to_pylist()) < datetime.date(2025, 1, 1)
    assert min(drawn["moment"].to_pylist()) > datetime.datetime(2023, 1, 1)
