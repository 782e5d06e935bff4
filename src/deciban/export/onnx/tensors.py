"""Tensors of an ONNX graph, whose operators add nodes; the only module that imports onnx."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Union

import numpy as np
import numpy.typing as npt

from deciban.errors import missing_package

# From this operator version on, all reductions take their axes as an input; earlier only sums did.
AXES_ARE_INPUTS = 18

# Domain of the machine learning operators.
ML_DOMAIN = "ai.onnx.ml"

# Operators in this domain instead of ONNX's own.
ML_OPERATORS = ("LabelEncoder", "TreeEnsemble")

Operand = Union["Tensor", npt.NDArray[Any], float]


def library() -> Any:
    """Return the package onnx; raise a UsageError with install instructions if it is missing."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise missing_package("export to ONNX", "onnx", "onnx") from None
    return onnx


def declare_value(name: str, kind: npt.DTypeLike, shape: Sequence[int | str] | None) -> Any:
    """Return the name, type and shape of an input or output.

    A size given as text, and a shape of None, are unknown.
    """
    helper = library().helper
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)


def as_constant(array: npt.NDArray[Any], name: str | None = None) -> Any:
    """Return an array as an ONNX tensor; objects become strings."""
    return library().numpy_helper.from_array(array, name)


def domain_of(operator: str) -> str:
    """Return the domain of an operator; ONNX's own is empty."""
    return ML_DOMAIN if operator in ML_OPERATORS else ""


class Graph:
    """Nodes and constants of a graph in order, for one version of ONNX's operators.

    taken: names that must not be used. part_of: the graph in which this one is the body of a loop.
    """

    def __init__(self, opset: int, taken: Iterable[str] = (), part_of: "Graph | None" = None) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple[Any, ...], Tensor] = {}
        self._part_of = part_of
        self._taken, self._numbers = frozenset(taken), count()

    def new_name(self, hint: str) -> str:
        """Return a name that is unique in this graph and the graphs around it."""
        if self._part_of is not None:
            return self._part_of.new_name(hint)
        return next(name for number in self._numbers if (name := f"{hint}_{number}") not in self._taken)

    def add_node(self, operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        """Add a node."""
        domain = domain_of(operator)
        self.nodes.append(library().helper.make_node(operator, inputs, outputs, domain=domain, **attributes))

    def add_constant(self, constant: Any) -> None:
        """Add a constant."""
        self.constants.append(constant)

    def constant(self, value: "npt.NDArray[Any] | float") -> "Tensor":
        """Return a constant; equal constants are shared."""
        array = np.array(value, order="C")
        content = tuple(array.ravel()) if array.dtype == object else array.tobytes()
        key = (array.dtype.str, array.shape, content)
        if key not in self._known:
            self._known[key] = Tensor(self, self.new_name("constant"))
            self.add_constant(as_constant(array, self._known[key].name))
        return self._known[key]

    def outputs(self, operator: str, *inputs: Operand, outputs: int = 1, **attributes: Any) -> "list[Tensor]":
        """Return the outputs of a new node."""
        names = [self.new_name(operator.lower()) for _ in range(outputs)]
        self.add_node(operator, [self.name_of(one) for one in inputs], names, **attributes)
        return [Tensor(self, name) for name in names]

    def node(self, operator: str, *inputs: Operand, **attributes: Any) -> "Tensor":
        """Return the output of a new node with one output."""
        return self.outputs(operator, *inputs, **attributes)[0]

    def name_of(self, operand: Operand) -> str:
        """Return the name of an operand; numbers and arrays become constants."""
        tensor = operand if isinstance(operand, Tensor) else self.constant(operand)
        assert tensor.graph is self, "a loop body can only use its states"
        return tensor.name

    def select(self, condition: "Tensor", then: Operand, otherwise: Operand) -> "Tensor":
        """Return `then` where the condition is true, else `otherwise`."""
        return self.node("Where", condition, then, otherwise)

    def side_by_side(self, columns: "Sequence[Tensor]") -> "Tensor":
        """Return matrices with equal numbers of rows, joined by columns."""
        return columns[0] if len(columns) == 1 else self.node("Concat", *columns, axis=1)

    def repeat(
        self, times: "Tensor", states: "Sequence[Operand]", step: "Callable[..., Sequence[Tensor]]"
    ) -> "list[Tensor]":
        """Return the states (tensors of doubles) after `times` calls of step(number of the step, *states)."""
        onnx = library()
        body = Graph(self.opset, part_of=self)
        number, goes_on = Tensor(body, body.new_name("step")), Tensor(body, body.new_name("condition"))
        before = [Tensor(body, body.new_name("state")) for _ in states]
        after = [body.node("Identity", goes_on), *(body.node("Identity", one) for one in step(number, *before))]
        inputs = [(number, np.int64, ()), (goes_on, np.bool_, ()), *((one, np.float64, None) for one in before)]
        outputs = [(after[0], np.bool_, ()), *((one, np.float64, None) for one in after[1:])]
        ends = ([declare_value(one.name, kind, shape) for one, kind, shape in some] for some in (inputs, outputs))
        graph = onnx.helper.make_graph(body.nodes, "step", *ends, body.constants)
        return self.outputs("Loop", times, np.array(True), *states, outputs=len(before), body=graph)


@dataclass(frozen=True, eq=False)
class Tensor:
    """Output of a node, an input or a constant of a graph; its operators add nodes, with NumPy's meaning."""

    graph: Graph
    name: str

    __array_ufunc__: ClassVar[None] = None  # NumPy arrays leave arithmetic to the tensor

    def __add__(self, other: Operand) -> "Tensor":
        return self.graph.node("Add", self, other)

    def __radd__(self, other: Operand) -> "Tensor":
        return self.graph.node("Add", other, self)

    def __sub__(self, other: Operand) -> "Tensor":
        return self.graph.node("Sub", self, other)

    def __rsub__(self, other: Operand) -> "Tensor":
        return self.graph.node("Sub", other, self)

    def __mul__(self, other: Operand) -> "Tensor":
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Operand) -> "Tensor":
        return self.graph.node("Div", self, other)

    def __matmul__(self, other: Operand) -> "Tensor":
        return self.graph.node("MatMul", self, other)

    def __gt__(self, other: Any) -> "Tensor":
        return self.graph.node("Greater", self, other)

    def __ge__(self, other: Any) -> "Tensor":
        return self.graph.node("GreaterOrEqual", self, other)

    def __lt__(self, other: Any) -> "Tensor":
        return self.graph.node("Less", self, other)

    def __le__(self, other: Any) -> "Tensor":
        return self.graph.node("LessOrEqual", self, other)

    def __or__(self, other: Operand) -> "Tensor":
        return self.graph.node("Or", self, other)

    def __and__(self, other: Operand) -> "Tensor":
        return self.graph.node("And", self, other)

    def __invert__(self) -> "Tensor":
        return self.graph.node("Not", self)

    def equals(self, other: Operand) -> "Tensor":
        """Return flags of equal numbers."""
        return self.graph.node("Equal", self, other)

    def is_nan(self) -> "Tensor":
        """Return flags of missing numbers."""
        return self.graph.node("IsNaN", self)

    def exp(self) -> "Tensor":
        return self.graph.node("Exp", self)

    def log(self) -> "Tensor":
        return self.graph.node("Log", self)

    def floor(self) -> "Tensor":
        return self.graph.node("Floor", self)

    def absolute(self) -> "Tensor":
        return self.graph.node("Abs", self)

    def at_most(self, limit: Operand) -> "Tensor":
        """Return the minimum of each number and the limit."""
        return self.graph.node("Min", self, limit)

    def at_least(self, limit: Operand) -> "Tensor":
        """Return the maximum of each number and the limit."""
        return self.graph.node("Max", self, limit)

    def cast(self, kind: npt.DTypeLike) -> "Tensor":
        """Return the same in a NumPy type."""
        onnx_kind = library().helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        return self.graph.node("Cast", self, to=onnx_kind)

    def sum(self, axis: int, keep: bool = False) -> "Tensor":
        """Return the sums along an axis."""
        return self.graph.node("ReduceSum", self, np.array([axis]), keepdims=int(keep))

    def max(self, axis: int, keep: bool = False) -> "Tensor":
        """Return the maxima along an axis."""
        if self.graph.opset < AXES_ARE_INPUTS:
            return self.graph.node("ReduceMax", self, axes=[axis], keepdims=int(keep))
        return self.graph.node("ReduceMax", self, np.array([axis]), keepdims=int(keep))

    def any(self, axis: int, keep: bool = False) -> "Tensor":
        """Return flags that are True if any element along an axis is."""
        return self.cast(np.int32).max(axis, keep).cast(np.bool_)

    def take(self, places: Operand, axis: int) -> "Tensor":
        """Return the elements at these positions of an axis."""
        return self.graph.node("Gather", self, places, axis=axis)

    def slice(self, start: Operand, stop: Operand, axes: Sequence[int]) -> "Tensor":
        """Return the elements from start to stop (exclusive) along each of these axes."""
        return self.graph.node("Slice", self, start, stop, np.array(axes))

    def reshape(self, *shape: int) -> "Tensor":
        return self.graph.node("Reshape", self, np.array(shape, dtype=np.int64))

    def with_axis(self, axis: int) -> "Tensor":
        """Return the same with an additional axis of size 1."""
        return self.graph.node("Unsqueeze", self, np.array([axis]))

    def size(self, axis: int) -> "Tensor":
        """Return the size of an axis, as a tensor of one number."""
        return self.graph.node("Shape", self).take(np.array([axis]), 0)
