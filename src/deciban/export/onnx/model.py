"""A model as an ONNX model: its inputs and outputs, the log joint, the posterior and the label."""

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
from deciban.export.lower import fold_model
from deciban.export.onnx.cells import Cells, InputCells, KnownCells, Places
from deciban.export.onnx.evidence import (
    always,
    corrections,
    density_terms,
    flags,
    is_flag,
    joint_normal,
    linear_terms,
    looked_up,
    refused_rows,
)
from deciban.export.onnx.tensors import ML_DOMAIN, Graph, Tensor, declared, library
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
from deciban.model.model import Model
from deciban.util.arrays import Floats
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
        raise UsageError(
            "the model reads no column, so there is nothing to score in ONNX", remedy="fit with more columns"
        )
    for place in model.places:
        if isinstance(place, LevelPlace) and place.kind == "integer":
            raise UsageError(
                "whole numbers beyond 2**53 have no place in a double",
                place=Place(column=model.columns[place.column].name),
                remedy="turn the column into text, and fit again",
            )


def log_joint(model: TermModel, cells: Cells) -> tuple[Tensor, Tensor | None]:
    """The log joint of each row, row by class, but for what is the same for every class; and which rows are refused, a
    matrix of one column, or None where no row is."""
    places = Places(cells, _places(model))
    known = None if model.partial is None or not model.presence else KnownCells(model, cells, places, model.partial)
    parts = [*_parts(model, cells, places, known)]
    if model.corrections is not None:
        parts.append(_for_each_row(always(model.corrections), cells))
    if known is not None:
        parts.append(known.bias())
    if not parts:
        return _for_each_row(model.log_prior, cells), refused_rows(cells, places, model.refusals)
    joint = reduce(add, parts)
    joint = joint + model.log_prior if known is None else joint * known.scale() + model.log_prior
    return joint, refused_rows(cells, places, model.refusals)


def _for_each_row(numbers: Floats, cells: Cells) -> Tensor:
    """The same numbers for each row."""
    shape = cells.graph.node("Concat", cells.rows(), np.array([1]), axis=0)
    return cells.graph.node("Expand", numbers[None], shape)


def _places(model: TermModel) -> Iterator[CellPlace]:
    """The places that must be found; flags, trees and refusals ask for numbers as they are."""
    for term in (term for block in model.blocks for term in block.terms):
        if isinstance(term, LookupTerm) and not is_flag(term):
            yield from term.place.members if isinstance(term.place, TuplePlace) else (term.place,)
    asked = () if model.corrections is None else model.corrections.places
    for place in (*asked, *model.presence.values(), *(refusal.place for refusal in model.refusals)):
        if isinstance(place, LevelPlace):
            yield place


def _parts(model: TermModel, cells: Cells, places: Places, known: KnownCells | None) -> Iterator[Tensor]:
    """What is added up, row by class: terms of one kind at a time."""
    alike: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for block in model.blocks:
        assert block.cap == np.inf or len(block.terms) == 1, "what is capped is one term"
        for term in block.terms:
            alike[*_kind(term), block.cap].append(term)
    for (kind, *_, cap), terms in alike.items():
        if kind is LookupTerm:
            yield flags(cells, terms) if is_flag(terms[0]) else looked_up(places, terms)
        elif kind is LinearTerm:
            yield linear_terms(cells, terms)
        elif kind is JointNormalTerm:
            yield from (joint_normal(cells, term, cap) for term in terms)
        else:
            yield density_terms(cells, terms, cap)
    tables = model.corrections
    if tables is not None and model.classes.size > 1 and any(table.columns for table in tables.tables):
        yield corrections(cells, places, tables, known)


def _kind(term: Term) -> tuple[Any, ...]:
    """Terms of one kind are written together."""
    if isinstance(term, LookupTerm):
        return LookupTerm, is_flag(term)
    of_numbers = isinstance(term, NormalTerm) and term.of_log, isinstance(term, HalfLineTerm) and term.counts
    return type(term), *of_numbers


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
