"""Rows drawn from the generative model of a classifier, and the risk it would have if that model were true."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.decisions.bayes_error import mean_with_interval
from deciban.decisions.decide import least_risk_decisions
from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.explain.decision_curves import exact_risk
from deciban.model.fitted import Fitted
from deciban.model.model import posteriors
from deciban.scoring.predict import score_table
from deciban.tables.cells import from_numbers
from deciban.tables.convert import as_table
from deciban.tables.labels import LabelArray


def sample_rows(
    fitted: Fitted, rows: int = 1, random_state: Any = None, label: Any = None, length: int | None = None
) -> tuple[Any, LabelArray]:
    """Rows drawn from the generative model and their classes: an Arrow table, or an array if all columns are numbers.

    label: the class of all rows. length: the number of words of each text.
    """
    for name, value in (("rows", rows), ("length", length)):
        if value is not None and (not isinstance(value, int | np.integer) or value < 0):
            raise UsageError("give a whole number that is at least 0", parameter=Argument(name, value))
    model = fitted.generative
    if length is not None and not any(likelihood.takes_length for likelihood in model.likelihoods):
        raise UsageError(
            (
                "no column is ",
                Argument("family", "Text"),
                " or ",
                Argument("family", "Multinomial"),
                ", which have words",
            ),
            remedy="leave it out",
            parameter=Argument("length", length),
        )
    place = None if label is None else fitted.place_of(label)
    columns, labels = model.sample(int(rows), generator(random_state), place, length)
    names = model.schema.column_names
    types = model.schema.types or ("",) * len(names)
    for column in (column for group in model.schema.groups if group.family.in_bins for column in group.columns):
        if types[column].startswith(("int", "uint")):
            columns[column] = np.floor(columns[column])
    if model.schema.names is None and all(isinstance(column, np.ndarray) for column in columns):
        matrix = np.stack(columns, axis=1)
        return matrix > 0.5 if set(types) == {"bool"} else matrix, model.classes[labels]
    cells = [
        from_numbers(column, kind)
        if isinstance(column, np.ndarray) and (column.dtype.kind == "f" or kind == "bool")
        else pa.array(column)
        for column, kind in zip(columns, types, strict=True)
    ]
    return pa.table(cells, names=names), model.classes[labels]


def generator(random_state: Any) -> np.random.Generator:
    """What scikit-learn calls random_state (None, a seed, a RandomState or a Generator) as a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng(np.random.randint(0, 2**31 - 1))
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    return np.random.default_rng(random_state.randint(0, 2**31 - 1))


@dataclass(frozen=True, repr=False)
class PlugInRisk:
    """The risk of the best rule if the generative model were true, its interval, and the leave-one-out risk beside it.

    `interval` has no width where the risk is exact. `left_out` is None where the training rows are not known.
    """

    risk: float
    interval: tuple[float, float]
    left_out: float | None
    loss: Loss

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        low, high = self.interval
        how = "exact" if low == high else f"between {max(low, 0.0):.4f} and {high:.4f}"
        found = f"according to the model itself {self.risk:.4f} ({how})"
        return found + ("" if self.left_out is None else f"; leave-one-out {self.left_out:.4f}")


def model_risk(fitted: Fitted, loss: Loss, rows: int, random_state: Any) -> tuple[float, tuple[float, float]]:
    """The risk of the best decisions if the generative model were true, and its 95 % interval.

    Exact, with an interval without width, for one column whose distribution is known exactly; else simulated.
    """
    if not isinstance(rows, int | np.integer) or rows < 100:
        raise UsageError(f"bayes_error(rows={rows!r}): give at least 100 rows to simulate")
    _ = loss.matrix  # refuses costs that differ from row to row, which simulated rows do not have
    if (exact := exact_risk(fitted, loss)) is not None:
        return exact, (exact, exact)
    drawn, _ = sample_rows(fitted, rows, random_state)
    model = fitted.generative
    table = model.schema.table_as_learned(as_table(drawn))
    posterior = score_table(model, table, posteriors, False, fitted.settings.threads)
    return mean_with_interval(least_risk_decisions(posterior, loss).risk)
