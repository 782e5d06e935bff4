"""What is known of rows with missing cells, as expressions of SQL."""

from collections.abc import Iterator
from itertools import pairwise

from deciban.export.ir import TermModel
from deciban.export.sql.cells import Cells
from deciban.export.sql.engines import Reading
from deciban.families.base.lowering import LevelPlace


class KnownCells:
    """What is known of a row: offsets of columns, whether missing cells are evidence, and the scale of the sums.

    enough: whether enough is known for the missing cells of some columns to be evidence; None where they never are.
    """

    def __init__(self, cells: Cells, terms: TermModel) -> None:
        self.cells, self.partial, self.presence = cells, terms.partial, terms.presence
        self.enough: str | None = None
        self.share: str | None = None
        if self.partial is not None and self.presence:
            number = cells.dialect.number
            parts = [
                f"CASE WHEN {self._is_missing(column)} THEN {number(0.0)} ELSE {number(float(share))} END"
                for column in self.presence
                if (share := self.partial.shares[column]) > 0.0
            ]
            self.share = cells.stages.name("h", cells.stages.sum("k", parts)) if parts else number(0.0)
            if self.partial.informative.size:
                self.enough = cells.stages.name("h", f"{self.share} >= {number(self.partial.least)}")

    def _is_missing(self, column: int) -> str:
        place = self.presence[column]
        reading: Reading = "text" if isinstance(place, LevelPlace) else "number"
        return f"{self.cells.cell(column, reading)} IS NULL"

    def offsets(self) -> Iterator[tuple[int, list[str | None]]]:
        """What each known column adds to each class."""
        if self.partial is None:
            return
        number = self.cells.dialect.number
        for column in self.presence:
            unknown = self._is_missing(column)
            if self.enough is not None and column in self.partial.informative:
                unknown = f"({unknown} AND NOT {self.enough})"
            relative = (self.partial.offsets[column] - self.partial.offsets[column, 0]).tolist()
            yield (
                column,
                [
                    f"CASE WHEN {unknown} THEN {number(0.0)} ELSE {number(value)} END" if value else None
                    for value in relative
                ],
            )

    def scaled(self, sums: list[str]) -> list[str]:
        """The terms of a sum, scaled by how much is known, as one term; as they are where nothing is scaled."""
        if self.partial is None or self.share is None or not sums:
            return sums
        return [f"{self._scale()} * {self.cells.stages.name('k', self.cells.stages.sum('k', sums))}"]

    def _scale(self) -> str:
        assert self.partial is not None, "there are scales"
        number = self.cells.dialect.number
        cases = []
        for (low, before), (high, after) in pairwise(self.partial.scale_points):
            slope = number((after - before) / (high - low))
            line = f"{number(before)} + {slope} * ({self.share} - {number(low)})"
            cases.append(f"WHEN {self.share} < {number(high)} THEN {line}")
        return self.cells.stages.name("h", f"CASE {' '.join(cases)} ELSE {number(1.0)} END")
