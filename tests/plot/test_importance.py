"""`ImportanceDisplay`: its bars are the importance of the columns, ranked."""

import numpy as np
import pandas as pd
import pytest

from deciban import BayesClassifier, UsageError
from deciban.plot import ImportanceDisplay

from .cases import drawn_rows, fitted


@pytest.mark.parametrize("measure", ["decibans", "bits"])
def test_bars_are_ranked_by_the_measure(measure: str) -> None:
    X, y = drawn_rows(2, 3)
    found = fitted(2, 3).importance(X, y)
    shown = ImportanceDisplay.from_importance(found, measure=measure, max_display=2)
    values = pd.Series(getattr(found, measure), list(found.columns)).nlargest(2)
    assert [bar.get_width() for bar in shown.ax_.patches] == pytest.approx(values.tolist())
    assert [tick.get_text() for tick in shown.ax_.get_yticklabels()] == values.index.tolist()
    assert "(1 less important column not drawn)" in shown.ax_.get_xlabel()
    assert "400 rows, left out" in shown.ax_.get_title(loc="left")
    frame = shown.to_frame("pandas").set_index("column")
    np.testing.assert_array_equal(frame[measure], values)


def test_a_useless_column_has_a_bar_below_zero() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    table = pd.DataFrame({"good": rng.normal(y, 0.5), "noise": rng.integers(0, 60, 200).astype(str)})
    shown = ImportanceDisplay.from_estimator(BayesClassifier(tune=None).fit(table, y), measure="bits")
    good, noise = shown.ax_.patches
    assert good.get_width() > 0.0 > noise.get_width()
    assert good.get_facecolor() != noise.get_facecolor()


def test_other_measures_are_refused() -> None:
    with pytest.raises(UsageError, match="measure='gain': choose 'decibans' or 'bits'"):
        ImportanceDisplay.from_estimator(fitted(2, 3), measure="gain")
