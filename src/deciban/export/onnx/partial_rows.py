"""What is known of rows with missing cells, as nodes of an ONNX graph."""

from collections.abc import Sequence

import numpy as np

from deciban.export.ir import TermModel
from deciban.export.onnx.cells import Cells
from deciban.export.onnx.places import Places
from deciban.export.onnx.tensors import Tensor
from deciban.families.base.lowering import MISSING_PLACE, CutPlace
from deciban.model.corrections import PartialRows


class KnownCells:
    """Which cells are unknown, the bias of the known columns, and the scale of each row."""

    def __init__(self, model: TermModel, cells: Cells, places: Places, partial: PartialRows) -> None:
        numbers = [column for column, place in model.presence.items() if isinstance(place, CutPlace)]
        texts = [column for column in model.presence if column not in numbers]
        found = [cells.numbers(numbers).is_nan()] if numbers else []
        if texts:
            found.append(places.of([model.presence[column] for column in texts]).equals(np.array(MISSING_PLACE)))
        self._columns = {column: k for k, column in enumerate((*numbers, *texts))}
        self.partial, self._order = partial, [*numbers, *texts]
        missing = cells.graph.side_by_side(found)
        present = (~missing).cast(np.float64)
        self.share = present @ partial.shares[self._order][:, None]
        evident = np.isin(self._order, partial.informative)[None, :]
        self._unknown = missing & ~((self.share >= np.array(partial.least)) & evident) if evident.any() else missing

    def unknown(self, columns: Sequence[int]) -> Tensor:
        """Whether cells of these columns are unknown, row by column; they all have a share of the evidence."""
        return self._unknown.take(np.array([self._columns[column] for column in columns]), 1)

    def bias(self) -> Tensor:
        """The sum of the offsets of the known columns, row by class."""
        return (~self._unknown).cast(np.float64) @ self.partial.offsets[self._order]

    def scale(self) -> Tensor:
        """What the sum of each row is multiplied by, a matrix of one column."""
        shares, scales = (np.array(some) for some in zip(*self.partial.scale_points, strict=True))
        slopes = np.diff(scales) / np.diff(shares)
        turns = np.diff(slopes, prepend=0.0, append=0.0)
        beyond = (self.share - shares[None, :]).at_least(np.array(0.0))
        return beyond @ turns[:, None] + np.array(scales[0])
