"""Sampling of rows from the generative model of a classifier."""

from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, UsageError
from deciban.model.fitted import Fitted
from deciban.tables.cells import from_numbers
from deciban.tables.labels import LabelArray


def sample_rows(
    fitted: Fitted, n_samples: int = 1, random_state: Any = None, label: Any = None, length: int | None = None
) -> tuple[Any, LabelArray]:
    """Return rows sampled from the generative model, and their classes.

    The rows are an Arrow table, or an array if all columns are numbers. label: class of all rows. length: number of
    words in each text.
    """
    for name, value in (("n_samples", n_samples), ("length", length)):
        if value is not None and (not isinstance(value, int | np.integer) or value < 0):
            raise UsageError("use an integer >= 0", parameter=Argument(name, value))
    model = fitted.generative
    if length is not None and not any(likelihood.accepts_length for likelihood in model.likelihoods):
        raise UsageError(
            (
                "no column has the family ",
                Argument("family", "Text"),
                " or ",
                Argument("family", "Multinomial"),
                ", to which it applies",
            ),
            remedy="omit it",
            parameter=Argument("length", length),
        )
    place = None if label is None else fitted.class_index(label)
    columns, labels = model.sample(int(n_samples), generator(random_state), place, length)
    names = model.schema.column_names
    types = model.schema.types or ("",) * len(names)
    for column in (column for group in model.schema.groups if group.family.is_binned for column in group.columns):
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
    """Return a NumPy Generator for a scikit-learn `random_state` (None, seed, RandomState or Generator)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng(np.random.randint(0, 2**31 - 1))
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    return np.random.default_rng(random_state.randint(0, 2**31 - 1))
