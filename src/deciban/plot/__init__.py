"""Pictures of models, evidence and decisions, drawn by matplotlib: `pip install 'deciban[plot]'`."""

from deciban.plot.column import ColumnDisplay
from deciban.plot.nomogram import NomogramDisplay
from deciban.plot.pair import PairDisplay

__all__ = ["ColumnDisplay", "NomogramDisplay", "PairDisplay"]
