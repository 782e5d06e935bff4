"""Assembly of an ONNX model: inputs, log joint, posterior, label and outputs."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.errors import Place, UsageError
from deciban.export.ir import TermModel
from deciban.export.lower import fit_as_categories, fold_model
from deciban.export.onnx.cells import Cells, InputCells, KnownCells, Places
from deciban.export.onnx.evidence import (
    always,
    corrections,
    density_terms,
    find_rejected_rows,
    flags,
    is_flag,
    joint_normal,
    linear_terms,
    sum_lookups,
)
from deciban.export.onnx.tensors import ML_DOMAIN, Graph, Tensor, declare_value, library
from deciban.families.base.lowering import (
    CellPlace,
    HalfLineTerm,
    JointNormalTerm,
    LevelPlace,
    LinearTerm,
    LookupTerm,
    NormalTerm,
    Term,
    TuplePlace,
)
from deciban.model.fitted import Fitted
from deciban.model.model import MIN_HALF, Model
from deciban.util.arrays import Floats
from deciban.util.version import __version__

# Version of ONNX's file format; onnxruntime 1.22 supports this and the following versions.
FILE_VERSION = 10

# Version of ONNX's operators.
OPSET = 18

# Version of ONNX's machine learning operators.
ML_OPSET = 5

# Name of the output with the predicted label. An input of the same name gets the suffix "_".
LABEL_OUTPUT = "label"

# Name of the output with the probabilities.
PROBABILITIES_OUTPUT = "probabilities"

# Description of an input, by its cell type.
INPUTS = {
    "number": "a number; NaN if missing",
    "flag": "1 for true, 0 for false; NaN if missing",
    "date": "days since 1970-01-01, with the time as fraction; NaN if missing",
    "time": "seconds since midnight; NaN if missing",
    "text": 'a text; "" if missing, unless "" is one of its values',
}


def to_onnx(fitted: Fitted | Model) -> Any:
    """Return the model as an ONNX model that computes in doubles, for onnxruntime 1.22 or later.

    Parameters
    ----------
    fitted : Fitted or Model
        The fitted state of a classifier, or its model.

    Returns
    -------
    onnx.ModelProto
        The inputs are the columns that the model reads, each of shape (rows, 1): texts, or doubles for all other types
        (dates are days since 1970, times are seconds since midnight). Missing cells are NaN, or "" for texts unless ""
        is one of the values. The outputs are `label`, of shape (rows,), and `probabilities`, of shape (rows, classes),
        in the order of the classes, which are also in the metadata. A row that deciban would reject has the
        probabilities NaN and the label "", the smallest int64, or NaN.

    Raises
    ------
    UsageError
        If onnx is not installed, or if a column cannot be exported; the message names it.

    See Also
    --------
    deciban.dropin.register_converters : Conversion of scikit-learn pipelines with a drop-in classifier.
    deciban.export.javascript.to_javascript : Export of every family, with the evidence of columns.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> model = to_onnx(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> [one.name for one in model.graph.input], [one.name for one in model.graph.output]
    (['outlook', 'temperature', 'humidity', 'wind'], ['label', 'probabilities'])
    """
    onnx, terms = library(), fold_model(fitted)
    _check_supported(terms)
    names = dict(zip(terms.columns, input_names(column.name for column in terms.columns.values()), strict=True))
    texts = {column for column, one in terms.columns.items() if one.read_as == "text"}
    graph = Graph(OPSET, {*names.values(), LABEL_OUTPUT, PROBABILITIES_OUTPUT})
    inputs = {column: Tensor(graph, name) for column, name in names.items()}
    joint, rejected = log_joint(terms, InputCells(graph, inputs, texts))
    labels = as_labels(terms.classes)
    posterior, label = posterior_and_label(joint, terms.log_prior, labels, terms.order)
    posterior, label = blank_rejected_rows(rejected, posterior, label, labels.dtype.kind)
    for found, name in ((label, LABEL_OUTPUT), (posterior, PROBABILITIES_OUTPUT)):
        graph.add_node("Identity", [found.name], [name])
    given = [declare_value(name, object if c in texts else np.float64, ["rows", 1]) for c, name in names.items()]
    for one, column in zip(given, terms.columns.values(), strict=True):
        one.doc_string = INPUTS[column.read_as]
    answers = [
        declare_value(LABEL_OUTPUT, labels.dtype, ["rows"]),
        declare_value(PROBABILITIES_OUTPUT, np.float64, ["rows", labels.size]),
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
    """Return the name of the input of each column; "_" is added to names that are taken, and for empty names.

    >>> input_names(["age", "label", ""])
    ['age', 'label_', '_']
    """
    found = dict.fromkeys((LABEL_OUTPUT, PROBABILITIES_OUTPUT))
    for column in columns:
        name = column.replace("\0", "_")  # onnxruntime would truncate the name there
        while not name or name in found:
            name += "_"
        found[name] = None
    return [*found][2:]


def _check_supported(model: TermModel) -> None:
    """Raise a UsageError for columns that cannot be exported to ONNX."""
    if not model.columns:
        raise UsageError("the model uses no column, so it cannot be exported to ONNX", remedy="fit with other columns")
    for place in model.places:
        if isinstance(place, LevelPlace) and place.part is not None and place.kind == "text":
            name = model.columns[place.column].name
            raise UsageError(
                f"ONNX has no operator for the {place.part} of a text",
                place=Place(column=name),
                remedy=fit_as_categories(name),
            )
        if isinstance(place, LevelPlace) and place.kind == "integer":
            raise UsageError(
                "integers beyond 2**53 cannot be represented as doubles",
                place=Place(column=model.columns[place.column].name),
                remedy="convert the column to text and fit again",
            )


def log_joint(model: TermModel, cells: Cells) -> tuple[Tensor, Tensor | None]:
    """Return the log joint up to a term common to all classes, row by class, and flags of rejected rows.

    The flags are a matrix of one column; None if no row is rejected.
    """
    places = Places(cells, _places(model))
    known = None if model.partial is None or not model.presence else KnownCells(model, cells, places, model.partial)
    parts = [*_parts(model, cells, places, known)]
    if model.corrections is not None:
        parts.append(_for_each_row(always(model.corrections), cells))
    if known is not None:
        parts.append(known.bias())
    if not parts:
        return _for_each_row(model.log_prior, cells), find_rejected_rows(cells, places, model.refusals)
    joint = reduce(add, parts)
    if known is not None:
        joint = joint * known.scale()
    if model.limit < np.inf:
        raised = cells.graph.node("Max", joint, joint.max(1, keep=True) - model.limit)
        joint = cells.graph.select(joint.equals(-np.inf), joint, raised)
    return joint + model.log_prior, find_rejected_rows(cells, places, model.refusals)


def _for_each_row(numbers: Floats, cells: Cells) -> Tensor:
    """Return the same numbers for each row."""
    shape = cells.graph.node("Concat", cells.rows(), np.array([1]), axis=0)
    return cells.graph.node("Expand", numbers[None], shape)


def _places(model: TermModel) -> Iterator[CellPlace]:
    """Return the places to compute; flags, trees and rejections use numbers directly."""
    for term in (term for block in model.blocks for term in block.terms):
        if isinstance(term, LookupTerm) and not is_flag(term):
            yield from term.place.members if isinstance(term.place, TuplePlace) else (term.place,)
    asked = () if model.corrections is None else model.corrections.places
    for place in (*asked, *model.presence.values(), *(refusal.place for refusal in model.refusals)):
        if isinstance(place, LevelPlace):
            yield place


def _parts(model: TermModel, cells: Cells, places: Places, known: KnownCells | None) -> Iterator[Tensor]:
    """Return the summands, row by class, with terms of one kind computed together."""
    alike: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for block in model.blocks:
        assert block.cap == np.inf or len(block.terms) == 1, "what is capped is one term"
        for term in block.terms:
            alike[*_kind(term), block.cap].append(term)
    for (kind, *_, cap), terms in alike.items():
        if kind is LookupTerm:
            yield flags(cells, terms) if is_flag(terms[0]) else sum_lookups(places, terms)
        elif kind is LinearTerm:
            yield linear_terms(cells, terms)
        elif kind is JointNormalTerm:
            yield from (joint_normal(cells, term, cap) for term in terms)
        else:
            yield density_terms(cells, terms, cap)
    tables = model.corrections
    if tables is not None and model.classes.size > 1 and tables.corrections.questions.any():
        yield corrections(cells, places, tables, known)


def _kind(term: Term) -> tuple[Any, ...]:
    """Return a key; terms with equal keys are computed together."""
    if isinstance(term, LookupTerm):
        return LookupTerm, is_flag(term)
    of_numbers = isinstance(term, NormalTerm) and term.of_log, isinstance(term, HalfLineTerm) and term.counts
    return type(term), *of_numbers


# Label of a rejected row if labels are texts.
NO_TEXT = np.array("", dtype=object)

# The same if labels are integers.
NO_WHOLE_NUMBER = np.array(np.iinfo(np.int64).min)

# The same if labels are doubles.
NO_NUMBER = np.array(np.nan)


def as_labels(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return class labels in an ONNX type: integers (also for booleans), doubles, else texts.

    >>> as_labels(np.array([False, True])), as_labels(np.array(["a", "b"]))
    (array([0, 1]), array(['a', 'b'], dtype=object))
    """
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    if np.can_cast(classes.dtype, np.int64) and classes.dtype.kind in "biu":
        return classes.astype(np.int64)
    return np.array([str(label) for label in classes.tolist()], dtype=object)


def posterior_and_label(
    log_joint: Tensor, log_prior: Floats, labels: npt.NDArray[Any], order: tuple[int, ...] | None = None
) -> tuple[Tensor, Tensor]:
    """Return the posterior, row by class, and the label of the predicted class of each row.

    That is the most probable class, the first of equal ones, or the median of classes with an `order`. If every class
    has probability 0, the posterior is the prior.
    """
    graph, top = log_joint.graph, log_joint.max(1, keep=True)
    impossible = top.equals(-np.inf)
    share = (log_joint - graph.select(impossible, np.array(0.0), top)).exp()
    posterior = graph.select(impossible, np.exp(log_prior)[None], share / share.sum(1, keep=True))
    if order is not None:
        up_to = (np.argsort(order)[:, None] <= np.arange(len(order))).astype(np.float64)
        place = graph.node("ArgMax", (posterior @ up_to >= MIN_HALF).cast(np.int64), axis=1, keepdims=0)
        return posterior, graph.constant(labels[list(order)]).take(place, 0)
    best = graph.node("ArgMax", log_joint, axis=1, keepdims=1)
    place = graph.select(impossible, np.array(log_prior.argmax()), best)
    return posterior, graph.constant(labels).take(place.reshape(-1), 0)


def blank_rejected_rows(rejected: Tensor | None, scores: Tensor, label: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Return scores and labels with placeholders in rejected rows.

    rejected: matrix of one column. kind: NumPy's kind of the labels.
    """
    if rejected is None:
        return scores, label
    none = {"O": NO_TEXT, "i": NO_WHOLE_NUMBER, "f": NO_NUMBER}[kind]
    graph = scores.graph
    return graph.select(rejected, NO_NUMBER, scores), graph.select(rejected.reshape(-1), none, label)
