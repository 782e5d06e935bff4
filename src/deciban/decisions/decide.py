"""Decisions from posteriors alone, whoever found them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from deciban.arrays import Floats
from deciban.decisions.loss import Loss
from deciban.decisions.policy import Decisions, least_risk_decisions
from deciban.errors import DataError, UsageError
from deciban.files.open import open_table
from deciban.tables.table import Table

# Posteriors that were rounded for people need not sum to just 1.
NEARLY_ONE = 1e-3


def decide(
    posterior: Any,
    loss: Any = None,
    *,
    classes: Any = None,
    reject: float | None = None,
    costs: Mapping[str, Any] | None = None,
) -> Decisions:
    """The decision of least expected loss for each row of posteriors, with its risk and the next best one.

    posterior: an array of rows by classes, such as `predict_proba` gives; a table (pandas, polars, Arrow, a dict of
        columns) whose columns are named by the classes, or P(class) as in what `predict` writes; or one mapping from
        class to probability, such as `bayes` gives.
    loss: whatever `Loss.of` takes, decision first, truth second; None is zero-one.
    classes: the labels of the columns of an array, in their order (such as `clf.classes_`), or which columns of a table
        are meant. Without, the columns of an array are 0, 1, ..., and of a table those that the loss names, or all.
    reject: what it costs to leave a row undecided.
    costs: where the loss names columns, an array of costs for each name; without, the columns of the table.

    >>> from deciban import decide
    >>> print(decide({"healthy": [0.98, 0.7], "sick": [0.02, 0.3]}, {"healthy": 1, "sick": 10}))
       decision  risk  runner-up  its risk
    0  healthy   0.2   sick       0.98
    1  sick      0.7   healthy    3
    """
    given = None if loss is None else Loss.of(loss)
    if isinstance(posterior, Mapping) and all(np.ndim(share) == 0 for share in posterior.values()):
        posterior = {str(label): [share] for label, share in posterior.items()}
    table = open_table(posterior)
    loss_classes = None if given is None else given.classes
    if table.names is None:
        labels, columns = _unnamed(table, classes, loss_classes)
    else:
        labels, columns = _named(table, loss_classes if classes is None else classes)
    shares = np.ascontiguousarray(table.numbers(columns), dtype=np.float64)
    _check(shares)
    loss_for_classes = (Loss.zero_one(labels) if given is None else given).for_classes(labels)
    loss_for_classes = loss_for_classes if reject is None else loss_for_classes.with_reject(reject)

    def column(name: str) -> Any:
        if costs is not None and name in costs:
            return costs[name]
        if table.names is None or name not in table.names:
            raise UsageError(f"the loss names the costs {name!r}; give them: costs={{{name!r}: …}}")
        return table.numbers([table.names.index(name)])[:, 0]

    return least_risk_decisions(shares, loss_for_classes, column)


def _unnamed(table: Table, classes: Any, of_loss: Any) -> tuple[list[Any], list[int]]:
    """The classes of the columns of an array, which must be said where a loss knows them by other names."""
    labels = list(range(table.width)) if classes is None else list(classes)
    if classes is None and of_loss is not None and set(of_loss) != set(labels):
        raise UsageError(
            f"say which class each column is of: classes=[…], in their order; the loss has {list(of_loss)}"
        )
    if len(labels) != table.width:
        raise UsageError(
            f"the posteriors have {table.width} columns for {len(labels)} classes {labels}; give one for each"
        )
    return labels, list(range(table.width))


def _named(table: Table, classes: Any) -> tuple[list[Any], list[int]]:
    """The classes, and where their columns are: under their own names, or as P(class)."""
    names = list(table.names or ())
    place = {name[2:-1]: k for k, name in enumerate(names) if name.startswith("P(") and name.endswith(")")}
    place = place or {name: k for k, name in enumerate(names)}
    labels = list(place) if classes is None else list(classes)
    place |= {name.capitalize(): k for name, k in place.items() if name in ("true", "false")}  # as Python has them
    if absent := [label for label in labels if str(label) not in place]:
        raise DataError(f"the posteriors have no column {str(absent[0])!r}; there are {', '.join(map(repr, names))}")
    return labels, [place[str(label)] for label in labels]


def _check(shares: Floats) -> None:
    """Refuse what is no posterior."""
    bad = ~((shares >= 0.0).all(axis=1) & (np.abs(shares.sum(axis=1) - 1.0) <= NEARLY_ONE))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        found = ", ".join(f"{share:.6g}" for share in shares[row, :6]) + (", …" if shares.shape[1] > 6 else "")
        raise DataError(f"row {row}: {found} is no posterior; give probabilities of all classes, which sum to 1")
