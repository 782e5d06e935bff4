"""Converters of the drop-in classifiers for skl2onnx."""

from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.errors import Argument, UsageError
from deciban.estimators.dropin.base import DropIn
from deciban.estimators.dropin.discriminant import (
    Discriminant,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from deciban.estimators.dropin.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from deciban.export.lower import fold_model
from deciban.export.onnx.cells import MatrixCells
from deciban.export.onnx.model import blank_rejected_rows, log_joint, posterior_and_label
from deciban.export.onnx.tensors import Graph, Tensor, domain_of
from deciban.util.arrays import MAX_AMOUNT

# Oldest supported version of the ONNX operators: earlier ones lack operators for doubles.
MIN_OPSET = 13

CLASSIFIERS = (
    *(BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB),
    *(LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis),
)

# Options of each classifier, as for those of scikit-learn.
CONVERTER_OPTIONS: dict[str, list[Any]] = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [False, True],
}

# Options of classifiers with a decision function.
RAW_SCORES = {"raw_scores": [False, True]}


def register_converters() -> None:
    """Register the drop-in classifiers with skl2onnx, so that it converts them and their pipelines.

    The graph computes in double precision. With float inputs, inputs and outputs have seven digits: use doubles for
    cells such as 1,000,000.1. Missing values are NaN. Rows for which `predict_proba` would raise an error have the
    probabilities NaN, and the label "" or the smallest int64. Boolean and float labels become integers, as in skl2onnx.
    The option `raw_scores` of the discriminants returns their decision function, for two classes one column per class.
    With doubles the option `zipmap` must be False or "columns", as for all classifiers: maps hold floats.

    Raises
    ------
    UsageError
        If skl2onnx is not installed.

    See Also
    --------
    deciban.BayesClassifier.to_onnx : A model with columns of all kinds.

    Examples
    --------
    >>> from deciban.dropin import LinearDiscriminantAnalysis
    >>> from deciban.dropin import register_converters
    >>> register_converters()
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()).fit(X, y)
    >>> model = to_onnx(clf, X[:1], options={"zipmap": False})
    >>> import numpy as np
    >>> from onnxruntime import InferenceSession
    >>> label, probabilities = InferenceSession(model.SerializeToString()).run(None, {"X": X})
    >>> bool(np.abs(probabilities - clf.predict_proba(X)).max() < 1e-12)
    True
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        raise UsageError("skl2onnx is not installed", remedy="run pip install skl2onnx") from None
    for kind in CLASSIFIERS:
        options = CONVERTER_OPTIONS | RAW_SCORES if issubclass(kind, Discriminant) else CONVERTER_OPTIONS
        update_registered_converter(kind, f"Deciban{kind.__name__}", _set_types, _convert, options=options)


class ContainerGraph(Graph):
    """Graph whose nodes are written into a container of skl2onnx."""

    def __init__(self, scope: Any, container: Any) -> None:
        super().__init__(container.target_opset)
        self.scope, self.container = scope, container

    def new_name(self, hint: str) -> str:
        return str(self.scope.get_unique_variable_name(hint))

    def add_node(self, operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        name, domain = self.scope.get_unique_operator_name(operator), domain_of(operator)
        self.container.add_node(operator, inputs, outputs, op_domain=domain, name=name, **attributes)

    def add_constant(self, constant: Any) -> None:
        self.container.initializers.append(constant)


def _set_types(operator: Any) -> None:
    """Set the types of the outputs: a label per row, and a matrix with the type of the input."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType

    classes, rows = _get_labels(operator), operator.inputs[0].get_first_dimension()
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    operator.outputs[0].type = (StringTensorType if classes.dtype == object else Int64TensorType)([rows])
    operator.outputs[1].type = (DoubleTensorType if double else FloatTensorType)([rows, classes.size])


def _get_labels(operator: Any) -> npt.NDArray[Any]:
    """Return the labels as strings or integers."""
    from skl2onnx.common.utils_classifier import get_label_classes

    classes = np.asarray(get_label_classes(operator.scope_inst, operator.raw_operator))
    if classes.dtype.kind in "biuf":
        whole = classes.astype(np.int64)
        if not np.array_equal(whole, classes):
            raise UsageError("skl2onnx does not support fractional class labels", remedy="fit with other labels")
        return whole
    return np.array([str(label) for label in classes], dtype=object)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Write the nodes of a classifier."""
    from skl2onnx.common.data_types import DoubleTensorType

    if container.target_opset < MIN_OPSET:
        raise UsageError(
            f"the drop-in classifiers need at least opset {MIN_OPSET}",
            parameter=Argument("target_opset", container.target_opset),
        )
    classifier: DropIn = operator.raw_operator
    graph, model, labels = ContainerGraph(scope, container), classifier._get_fitted().model, _get_labels(operator)
    matrix = graph.side_by_side([Tensor(graph, one.full_name).cast(np.float64) for one in operator.inputs])
    if isinstance(classifier, CategoricalNB):
        matrix = graph.select(matrix < 0.0, graph.node("Ceil", matrix), matrix.floor())
    joint, refused = log_joint(fold_model(model), MatrixCells(matrix, model.schema.width))
    if isinstance(classifier, CategoricalNB):
        refused = ((matrix < 0.0) | (matrix > MAX_AMOUNT)).any(1, keep=True)
    scores, label = posterior_and_label(joint, model.log_prior, labels)
    if isinstance(classifier, Discriminant) and container.get_options(classifier, {"raw_scores": False})["raw_scores"]:
        scores = _compute_decision(classifier, joint)
    scores, label = blank_rejected_rows(refused, scores, label, labels.dtype.kind)
    kind = np.float64 if isinstance(operator.outputs[1].type, DoubleTensorType) else np.float32
    for found, output in ((label, operator.outputs[0]), (scores.cast(kind), operator.outputs[1])):
        graph.add_node("Identity", [found.name], [output.full_name])


def _compute_decision(classifier: DropIn, log_joint: Tensor) -> Tensor:
    """Return the decision function, row by class; for two classes, the log odds of each."""
    size = classifier.classes_.size
    if size == 2:
        return log_joint @ np.array([[1.0, -1.0], [-1.0, 1.0]])
    is_linear = isinstance(classifier, LinearDiscriminantAnalysis)
    return log_joint - log_joint @ np.full((size, 1), 1.0 / size) if is_linear else log_joint
