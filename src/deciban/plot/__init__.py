"""Pictures of models, evidence and decisions, drawn with matplotlib (`pip install '.[plot]'`).

Each picture is a Display in the style of scikit-learn: `from_estimator` creates and draws it, `plot` draws it again,
attributes hold its arrays, and `to_frame()` returns the plotted values as a table.
"""

from deciban.plot.column import ColumnDisplay
from deciban.plot.cost import CostDisplay
from deciban.plot.coverage import CoverageDisplay
from deciban.plot.decision import DecisionDisplay, DecisionMapDisplay
from deciban.plot.dependence import DependenceDisplay
from deciban.plot.evidence import EvidenceDisplay
from deciban.plot.importance import ImportanceDisplay
from deciban.plot.learning import LearningDisplay
from deciban.plot.nomogram import NomogramDisplay
from deciban.plot.pair import PairDisplay
from deciban.plot.reliability import ReliabilityDisplay
from deciban.plot.sets import PredictionSetDisplay

__all__ = [
    "ColumnDisplay",
    "CostDisplay",
    "CoverageDisplay",
    "DecisionDisplay",
    "DecisionMapDisplay",
    "DependenceDisplay",
    "EvidenceDisplay",
    "ImportanceDisplay",
    "LearningDisplay",
    "NomogramDisplay",
    "PairDisplay",
    "PredictionSetDisplay",
    "ReliabilityDisplay",
]
