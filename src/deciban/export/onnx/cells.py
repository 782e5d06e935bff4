"""Where an ONNX graph finds the cells of columns: in one matrix, or in an input for each column."""

from collections.abc import Container, Mapping, Sequence
from typing import Protocol

import numpy as np

from deciban.export.onnx.tensors import Graph, Tensor


class Cells(Protocol):
    """The cells of columns, which are known by their numbers."""

    @property
    def graph(self) -> Graph: ...

    def rows(self) -> Tensor:
        """How many rows there are, a tensor of one number."""
        ...

    def are_texts(self, column: int) -> bool:
        """Whether the cells of a column are texts."""
        ...

    def numbers(self, columns: Sequence[int]) -> Tensor:
        """Doubles, row by column, NaN where a cell is missing."""
        ...

    def texts(self, columns: Sequence[int]) -> Tensor:
        """Texts, row by column."""
        ...


class MatrixCells:
    """The columns of a matrix of doubles."""

    def __init__(self, matrix: Tensor, width: int) -> None:
        self.matrix, self.width, self.graph = matrix, width, matrix.graph

    def rows(self) -> Tensor:
        return self.matrix.size(0)

    def are_texts(self, column: int) -> bool:
        return False

    def numbers(self, columns: Sequence[int]) -> Tensor:
        return self.matrix if [*columns] == [*range(self.width)] else self.matrix.take(np.array(columns), 1)

    def texts(self, columns: Sequence[int]) -> Tensor:
        raise AssertionError("a matrix of doubles has no texts")


class InputCells:
    """An input for each column, a matrix of one column; some of them are texts."""

    def __init__(self, graph: Graph, inputs: Mapping[int, Tensor], texts: Container[int]) -> None:
        self.graph, self.inputs, self._texts = graph, inputs, texts
        self._found: dict[tuple[int, ...], Tensor] = {}

    def are_texts(self, column: int) -> bool:
        return column in self._texts

    def rows(self) -> Tensor:
        return next(iter(self.inputs.values())).size(0)

    def numbers(self, columns: Sequence[int]) -> Tensor:
        if (key := tuple(columns)) not in self._found:
            self._found[key] = self.graph.side_by_side([self.inputs[column] for column in key])
        return self._found[key]

    texts = numbers
