"""deciban: Bayes decision theory as one working system."""

from deciban.version import __version__ as __version__

TYPE_CHECKING = False  # what type checkers take for true: typing takes its time, in which a signal is not yet caught
if TYPE_CHECKING:
    from typing import Any

    from deciban.classifier import BayesClassifier, load, merge
    from deciban.counts import Counts
    from deciban.decisions.bayes_error import bayes_error
    from deciban.decisions.decide import decide
    from deciban.decisions.loss import Loss
    from deciban.decisions.minimum_risk import MinimumRisk, cost_scorer, mean_cost
    from deciban.decisions.priors import Empirical, Uniform
    from deciban.decisions.ratio import Threshold
    from deciban.decisions.theorem import bayes
    from deciban.errors import DataError, DecibanError, ForgetError, ModelFileError, SchemaError, UsageError
    from deciban.families import (
        Bernoulli,
        Binned,
        Categorical,
        Complement,
        Gamma,
        Gaussian,
        JointGaussian,
        JointTable,
        LogNormal,
        Multinomial,
        PerClass,
        Poisson,
        Pooled,
        Shrunk,
        Text,
    )
    from deciban.files.locate import scan
    from deciban.leave_one_out import LeaveOneOut
    from deciban.model import Evidence, Model
    from deciban.selection import EvidenceSelector

__all__ = [
    "BayesClassifier",
    "Bernoulli",
    "Binned",
    "Categorical",
    "Complement",
    "Counts",
    "DataError",
    "DecibanError",
    "Empirical",
    "Evidence",
    "EvidenceSelector",
    "ForgetError",
    "Gamma",
    "Gaussian",
    "JointGaussian",
    "JointTable",
    "LeaveOneOut",
    "LogNormal",
    "Loss",
    "MinimumRisk",
    "Model",
    "ModelFileError",
    "Multinomial",
    "PerClass",
    "Poisson",
    "Pooled",
    "SchemaError",
    "Shrunk",
    "Text",
    "Threshold",
    "Uniform",
    "UsageError",
    "bayes",
    "bayes_error",
    "cost_scorer",
    "decide",
    "load",
    "mean_cost",
    "merge",
    "scan",
]

_HOMES = {
    "BayesClassifier": "classifier",
    "load": "classifier",
    "merge": "classifier",
    "scan": "files.locate",
    "EvidenceSelector": "selection",
    "LeaveOneOut": "leave_one_out",
    "Empirical": "decisions.priors",
    "Loss": "decisions.loss",
    "MinimumRisk": "decisions.minimum_risk",
    "Threshold": "decisions.ratio",
    "bayes": "decisions.theorem",
    "bayes_error": "decisions.bayes_error",
    "cost_scorer": "decisions.minimum_risk",
    "decide": "decisions.decide",
    "mean_cost": "decisions.minimum_risk",
    "Uniform": "decisions.priors",
    "Counts": "counts",
    "Evidence": "model",
    "Model": "model",
    **dict.fromkeys(
        ("DataError", "DecibanError", "ForgetError", "ModelFileError", "SchemaError", "UsageError"), "errors"
    ),
}


def __getattr__(name: str) -> "Any":
    """Names are imported on first use: scikit-learn and Arrow take a second that not every program needs."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'families')}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
