"""Pictures of models, evidence and decisions, drawn by matplotlib: `pip install 'deciban[plot]'`."""

from deciban.plot.column import ColumnDisplay
from deciban.plot.decision import DecisionDisplay
from deciban.plot.decision_map import DecisionMapDisplay
from deciban.plot.nomogram import NomogramDisplay
from deciban.plot.pair import PairDisplay

__all__ = ["ColumnDisplay", "DecisionDisplay", "DecisionMapDisplay", "NomogramDisplay", "PairDisplay"]
