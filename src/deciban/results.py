"""Classes of results, for annotations: functions and methods of deciban return them, nobody else creates them.

Further results, such as `Explanation` and `Evaluation`, are in `deciban` itself.
"""

from deciban.decisions.bayes_error import BayesError
from deciban.decisions.decide import CoverageCurve, Decisions
from deciban.decisions.sets import PredictionSets
from deciban.decisions.shift import EstimatedPrior
from deciban.decisions.theorem import Belief
from deciban.evaluation.comparison import Comparison
from deciban.evaluation.diagnose import Diagnosis
from deciban.evaluation.model_risk import BayesRiskEstimate
from deciban.explain.estimates import Estimates, ParameterCount
from deciban.explain.words import TopWords
from deciban.model.linear_forms import Form
from deciban.model.tuning import Tuning
from deciban.report.report import Report
from deciban.schema.schema import Schema
from deciban.scoring.predict import Intervals
from deciban.scoring.simulate import Sample

__all__ = [
    "BayesError",
    "BayesRiskEstimate",
    "Belief",
    "Comparison",
    "CoverageCurve",
    "Decisions",
    "Diagnosis",
    "EstimatedPrior",
    "Estimates",
    "Form",
    "Intervals",
    "ParameterCount",
    "PredictionSets",
    "Report",
    "Sample",
    "Schema",
    "TopWords",
    "Tuning",
]
