"""A model as an ONNX model, with an input for each column."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from deciban.errors import UsageError
from deciban.export.ir import TermModel
from deciban.export.lower import fold_model
from deciban.export.onnx.cells import InputCells
from deciban.export.onnx.graph import log_joint
from deciban.export.onnx.posterior import as_labels, posterior_and_label, unless_refused
from deciban.export.onnx.tensors import ML_DOMAIN, Graph, Tensor, declared, library
from deciban.families.base.lowering import LevelPlace
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.util.version import __version__

# The versions of ONNX's file format, of its operators, and of those for machine learning: onnxruntime 1.22 has them.
FILE_VERSION, OPSET, ML_OPSET = 10, 18, 5

# The outputs; an input of the same name has a "_" behind it.
LABEL_OUTPUT, PROBABILITIES_OUTPUT = "label", "probabilities"

# What the cells of an input are, by what they are read as.
INPUTS = {
    "number": "a number; NaN where it is missing",
    "flag": "1 or 0, true or false; NaN where it is missing",
    "date": "days since 1970-01-01, of which hours are fractions; NaN where it is missing",
    "time": "seconds since midnight; NaN where it is missing",
    "text": 'a text; "" where it is missing, unless that is one of its values',
}


def to_onnx(fitted: Fitted | Model) -> Any:
    """A model as an ONNX model that computes in doubles, for onnxruntime 1.22 or later.

    Parameters
    ----------
    fitted : Fitted or Model
        What is known, or the model of it.

    Returns
    -------
    onnx.ModelProto
        Its inputs are the columns that the model reads, each of shape (rows, 1): texts, or doubles for all else, of
        dates days since 1970 and of times seconds since midnight. Missing is NaN, and "" of texts unless that is one of
        their values. Its outputs are `label`, of shape (rows,), and `probabilities`, of shape (rows, classes), in the
        order of the classes, which are in its metadata too. A row that deciban would refuse has probabilities NaN and
        the label "", the least int64 or NaN.

    Raises
    ------
    UsageError
        If onnx is not installed, or if a column cannot be scored there; it is named.

    See Also
    --------
    deciban.dropin.register_converters : Pipelines of scikit-learn with a drop-in classifier.
    deciban.export.javascript.to_javascript : Every family, texts too, with the evidence of columns.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> model = to_onnx(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> [one.name for one in model.graph.input], [one.name for one in model.graph.output]
    (['outlook', 'temperature', 'humidity', 'wind'], ['label', 'probabilities'])
    """
    onnx, terms = library(), fold_model(fitted)
    _refuse(terms)
    names = dict(zip(terms.columns, input_names(column.name for column in terms.columns.values()), strict=True))
    texts = {column for column, one in terms.columns.items() if one.read_as == "text"}
    graph = Graph(OPSET, {*names.values(), LABEL_OUTPUT, PROBABILITIES_OUTPUT})
    inputs = {column: Tensor(graph, name) for column, name in names.items()}
    joint, refused = log_joint(terms, InputCells(graph, inputs, texts))
    labels = as_labels(terms.classes)
    posterior, label = posterior_and_label(joint, terms.log_prior, labels)
    posterior, label = unless_refused(refused, posterior, label, labels.dtype.kind)
    for found, name in ((label, LABEL_OUTPUT), (posterior, PROBABILITIES_OUTPUT)):
        graph.add_node("Identity", [found.name], [name])
    given = [declared(name, object if c in texts else np.float64, ["rows", 1]) for c, name in names.items()]
    for one, column in zip(given, terms.columns.values(), strict=True):
        one.doc_string = INPUTS[column.read_as]
    answers = [
        declared(LABEL_OUTPUT, labels.dtype, ["rows"]),
        declared(PROBABILITIES_OUTPUT, np.float64, ["rows", labels.size]),
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, "deciban", given, answers, graph.constants),
        ir_version=FILE_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid(ML_DOMAIN, ML_OPSET)],
        producer_name="deciban",
        producer_version=__version__,
    )
    onnx.helper.set_model_props(model, {"classes": json.dumps(labels.tolist())})
    return model


def input_names(columns: Iterable[str]) -> list[str]:
    """The name of the input of each column: its own, with "_" behind it where that is taken, and never empty.

    >>> input_names(["age", "label", ""])
    ['age', 'label_', '_']
    """
    found = dict.fromkeys((LABEL_OUTPUT, PROBABILITIES_OUTPUT))
    for column in columns:
        name = column.replace("\0", "_")  # where onnxruntime would cut it off
        while not name or name in found:
            name += "_"
        found[name] = None
    return [*found][2:]


def _refuse(model: TermModel) -> None:
    """A UsageError that names what ONNX cannot be given."""
    if not model.columns:
        raise UsageError("the model reads no column, so there is nothing to score in ONNX; fit with more columns")
    for place in model.places:
        if isinstance(place, LevelPlace) and place.kind == "integer":
            raise UsageError(
                f"column {model.columns[place.column].name!r}: whole numbers beyond 2**53 have no place in a double; "
                f"turn the column into text, and fit again"
            )
