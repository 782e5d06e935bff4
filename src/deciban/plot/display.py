"""What every display has: the figure that it drew on, and a table of what is drawn."""

from collections.abc import Mapping
from typing import Any

from deciban.errors import UsageError
from deciban.model.fitted import Fitted
from deciban.plot.figures import Axes, Figure


class Display:
    """A picture of scikit-learn's kind: arrays as attributes, `plot` draws them, `ax_` and `figure_` are set then."""

    ax_: Axes
    figure_: Figure

    def _drawn(self, ax: Axes) -> None:
        """Remember where it was drawn."""
        self.ax_ = ax
        self.figure_ = ax.figure


def fitted_of(estimator: Any) -> Fitted:
    """What a classifier of this project has learned; a UsageError for any other."""
    if not hasattr(type(estimator), "model_"):
        raise UsageError(f"this picture is drawn of a BayesClassifier, not of {type(estimator).__name__}; give one")
    _ = estimator.model_  # says that it is not fitted, if so
    fitted: Fitted = estimator.fitted_
    return fitted


def frame_of(columns: Mapping[str, Any]) -> Any:
    """A pandas DataFrame of these columns."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("frame() makes a DataFrame of pandas, which is not installed: pip install pandas") from None
    return pd.DataFrame(dict(columns))
