"""From the log joint to the posterior and the label, as nodes of an ONNX graph."""

from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.export.onnx.tensors import Tensor
from deciban.util.arrays import Floats

# The label of a row that deciban would refuse to score: a text, or a number.
NO_TEXT, NO_WHOLE_NUMBER, NO_NUMBER = np.array("", dtype=object), np.array(np.iinfo(np.int64).min), np.array(np.nan)


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


def posterior_and_label(log_joint: Tensor, log_prior: Floats, labels: npt.NDArray[Any]) -> tuple[Tensor, Tensor]:
    """The posterior, row by class, and the label of the most probable class of each row, the first of equals.

    Where every class has probability 0 the posterior is the prior.
    """
    graph, top = log_joint.graph, log_joint.max(1, keep=True)
    impossible = top.equals(-np.inf)
    share = (log_joint - graph.where(impossible, np.array(0.0), top)).exp()
    posterior = graph.where(impossible, np.exp(log_prior)[None], share / share.sum(1, keep=True))
    best = graph.node("ArgMax", log_joint, axis=1, keepdims=1)
    place = graph.where(impossible, np.array(log_prior.argmax()), best)
    return posterior, graph.constant(labels).take(place.reshape(-1), 0)


def unless_refused(refused: Tensor | None, scores: Tensor, label: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Scores and labels, of which refused rows have none. `refused` is a matrix of one column; `kind` is NumPy's kind
    of the labels."""
    if refused is None:
        return scores, label
    none = {"O": NO_TEXT, "i": NO_WHOLE_NUMBER, "f": NO_NUMBER}[kind]
    graph = scores.graph
    return graph.where(refused, NO_NUMBER, scores), graph.where(refused.reshape(-1), none, label)
