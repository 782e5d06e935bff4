"""From the log joint to the posterior and the label, as nodes of an ONNX graph."""

from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.arrays import Floats
from deciban.export.onnx.tensors import Tensor

# The label of a row that deciban would refuse to score: a text, or a whole number, that is no class.
NO_TEXT, NO_NUMBER = "", np.iinfo(np.int64).min


def posterior_and_label(
    log_joint: Tensor, log_prior: Floats, classes: npt.NDArray[Any], refused: Tensor | None
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
    label = graph.constant(classes).take(graph.where(impossible, log_prior.argmax(), best), 0)
    if refused is not None:
        none = np.array(NO_TEXT, dtype=object) if classes.dtype == object else np.array(NO_NUMBER)
        posterior, label = graph.where(refused, np.array(np.nan), posterior), graph.where(refused, none, label)
    return posterior, label.reshape(-1)
