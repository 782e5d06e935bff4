"""Pictures of models, evidence and decisions, drawn by matplotlib: `pip install '.[plot]'`.

Each is a Display as scikit-learn has them: `from_estimator` (or another way to make it) makes and draws it, `plot`
draws it once more, its arrays are attributes, and `to_frame()` has what is drawn as a table.
"""

from deciban.plot.column import ColumnDisplay
from deciban.plot.cost import CostDisplay
from deciban.plot.coverage import CoverageDisplay
from deciban.plot.decision import DecisionDisplay, DecisionMapDisplay
from deciban.plot.dependence import DependenceDisplay
from deciban.plot.evidence import EvidenceDisplay
from deciban.plot.learning import LearningDisplay
from deciban.plot.nomogram import NomogramDisplay
from deciban.plot.pair import PairDisplay
from deciban.plot.reliability import ReliabilityDisplay

__all__ = [
    "ColumnDisplay",
    "CostDisplay",
    "CoverageDisplay",
    "DecisionDisplay",
    "DecisionMapDisplay",
    "DependenceDisplay",
    "EvidenceDisplay",
    "LearningDisplay",
    "NomogramDisplay",
    "PairDisplay",
    "ReliabilityDisplay",
]
