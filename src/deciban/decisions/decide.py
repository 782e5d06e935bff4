"""Decisions from posteriors alone, whoever found them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from deciban.decisions.loss import Loss
from deciban.decisions.policy import Decisions, least_risk_decisions
from deciban.errors import DataError, UsageError
from deciban.sources.open import open_table
from deciban.tables.table import Table
from deciban.util.arrays import Floats

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

    Posteriors alone are enough, whichever classifier they come from.

    Parameters
    ----------
    posterior : array-like of shape (n_rows, n_classes), table, or mapping from class to float
        An array such as `predict_proba` gives; a table (pandas, polars, Arrow, a dict of columns) whose columns are
        named by the classes, or P(class) as `deciban predict` writes them; or the probabilities of one row, such as
        `bayes` gives.
    loss : Loss or anything `Loss.of` takes, default=None
        What each decision costs under each truth, decision first. None is zero-one loss: every mistake costs 1.
    classes : sequence of labels, default=None
        The labels of the columns of an array, in their order (such as `clf.classes_`), or the columns of a table that
        are meant. None: the columns of an array are 0, 1, …, those of a table are the classes of the loss, or all.
    reject : float, default=None
        What it costs to leave a row undecided. None: every row is decided.
    costs : mapping from str to array-like of shape (n_rows,), default=None
        Where the loss names columns, the costs of each name. None: they are columns of the table.

    Returns
    -------
    Decisions
        With `decision`, `risk`, `runner_up` and `runner_up_risk` of each row, `to_frame()` and `to_arrow()`. Ties go
        to the decision that stands first in the loss.

    Raises
    ------
    DataError
        If a row is no posterior, or a class has no column.
    UsageError
        If the loss does not fit the classes, or costs that it names are nowhere to be found.

    See Also
    --------
    Loss : What mistakes cost.
    MinimumRisk : The same as a classifier of scikit-learn's kind.
    BayesClassifier.decide : The same for the rows of a table.

    Examples
    --------
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
    """The classes of the columns of an array, which must be given where the loss has other labels."""
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
