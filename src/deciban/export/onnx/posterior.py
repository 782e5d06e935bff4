"""From the log joint to the posterior and the label, as nodes of an ONNX graph."""

from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.arrays import Floats
from deciban.export.onnx.tensors import Tensor

# The label of a row that deciban would refuse to score, by NumPy's kind of the labels.
NO_LABEL: dict[str, Any] = {
    "O": np.array("", dtype=object),
    "i": np.array(np.iinfo(np.int64).min),
    "f": np.array(np.nan),
}


def as_labels(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The labels of classes in a type that ONNX has: whole numbers, also of true and false, doubles, else texts.

    >>> as_labels(np.array([False, True])), as_labels(np.array(["a", "b"]))
    (array([0, 1]), array(['a', 'b'], dtype=object))
    """
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    if np.can_cast(classes.dtype, np.int64) and classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    return np.array([str(label) for label in classes.tolist()], dtype=object)


def posterior_and_label(
    log_joint: Tensor, log_prior: Floats, labels: npt.NDArray[Any], refused: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The posterior, row by class, and the label of the most probable class, the first of equals.

    Where every class has probability 0 it is the prior. `refused`, a matrix of one column, marks the rows whose
    posterior is NaN, and whose label is none.
    """
    graph, top = log_joint.graph, log_joint.max(1, keep=True)
    impossible = top.equals(-np.inf)
    share = (log_joint - graph.where(impossible, np.array(0.0), top)).exp()
    posterior = graph.where(impossible, np.exp(log_prior)[None], share / share.sum(1, keep=True))
    best = graph.node("ArgMax", log_joint, axis=1, keepdims=1)
    label = graph.constant(labels).take(graph.where(impossible, np.array(log_prior.argmax()), best), 0)
    if refused is not None:
        posterior = graph.where(refused, np.array(np.nan), posterior)
        label = graph.where(refused, NO_LABEL[labels.dtype.kind], label)
    return posterior, label.reshape(-1)
