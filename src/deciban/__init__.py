"""Bayes classifiers for tabular and text data: fit, explain, decide, serve.

The public names are those of `__all__` in this module and in `deciban.dropin`, `deciban.plot`, `deciban.results`,
`deciban.datasets`, `deciban.errors` and `deciban.typing`. To write your own families, use `deciban.families`,
`deciban.statistics` and `deciban.testing`. All other modules are private and may change.
"""

from deciban.util.version import __version__ as __version__

TYPE_CHECKING = False  # type checkers assume True; importing typing would delay the catching of signals
if TYPE_CHECKING:
    from deciban.decisions.bayes_error import bayes_error as bayes_error
    from deciban.decisions.decide import decide as decide
    from deciban.decisions.loss import Loss as Loss
    from deciban.decisions.theorem import bayes as bayes
    from deciban.decisions.threshold import Threshold as Threshold
    from deciban.errors import (
        DataError as DataError,
        DecibanError as DecibanError,
        ForgetError as ForgetError,
        ModelFileError as ModelFileError,
        SchemaError as SchemaError,
        UsageError as UsageError,
    )
    from deciban.estimators.classifier import (
        BayesClassifier as BayesClassifier,
        count_batches as count_batches,
        load as load,
        merge as merge,
    )
    from deciban.estimators.minimum_risk import (
        MinimumRisk as MinimumRisk,
        cost_scorer as cost_scorer,
        mean_cost as mean_cost,
    )
    from deciban.estimators.selection import EvidenceSelector as EvidenceSelector
    from deciban.evaluation.importance import Importance as Importance
    from deciban.evaluation.label_issues import LabelIssues as LabelIssues
    from deciban.evaluation.leave_one_out import LeaveOneOut as LeaveOneOut
    from deciban.evaluation.metrics import Evaluation as Evaluation
    from deciban.explain.columns import ColumnEvidence as ColumnEvidence
    from deciban.explain.explanation import Explanation as Explanation
    from deciban.families import (
        Bernoulli as Bernoulli,
        Binned as Binned,
        Categorical as Categorical,
        Complement as Complement,
        Gamma as Gamma,
        Gaussian as Gaussian,
        JointGaussian as JointGaussian,
        JointTable as JointTable,
        LogNormal as LogNormal,
        Multinomial as Multinomial,
        PerClass as PerClass,
        Poisson as Poisson,
        Pooled as Pooled,
        Shrunk as Shrunk,
        Text as Text,
    )
    from deciban.fitting.fit import Plan as Plan
    from deciban.model.counts import Counts as Counts
    from deciban.model.model import Evidence as Evidence, Model as Model
    from deciban.model.priors import Empirical as Empirical, Uniform as Uniform
    from deciban.sources.open import scan as scan
    from deciban.util.progress import Progress as Progress, on_progress as on_progress

# The module of each public name. It is imported on first use, because importing scikit-learn and Arrow takes a second.
_NAMES = {
    "deciban.decisions.bayes_error": ("bayes_error",),
    "deciban.decisions.decide": ("decide",),
    "deciban.decisions.loss": ("Loss",),
    "deciban.decisions.threshold": ("Threshold",),
    "deciban.decisions.theorem": ("bayes",),
    "deciban.errors": ("DataError", "DecibanError", "ForgetError", "ModelFileError", "SchemaError", "UsageError"),
    "deciban.estimators.classifier": ("BayesClassifier", "count_batches", "load", "merge"),
    "deciban.estimators.minimum_risk": ("MinimumRisk", "cost_scorer", "mean_cost"),
    "deciban.estimators.selection": ("EvidenceSelector",),
    "deciban.evaluation.importance": ("Importance",),
    "deciban.evaluation.label_issues": ("LabelIssues",),
    "deciban.evaluation.leave_one_out": ("LeaveOneOut",),
    "deciban.evaluation.metrics": ("Evaluation",),
    "deciban.explain.columns": ("ColumnEvidence",),
    "deciban.explain.explanation": ("Explanation",),
    "deciban.families": (
        *("Bernoulli", "Binned", "Categorical", "Complement", "Gamma", "Gaussian", "JointGaussian", "JointTable"),
        *("LogNormal", "Multinomial", "PerClass", "Poisson", "Pooled", "Shrunk", "Text"),
    ),
    "deciban.fitting.fit": ("Plan",),
    "deciban.model.counts": ("Counts",),
    "deciban.model.model": ("Evidence", "Model"),
    "deciban.model.priors": ("Empirical", "Uniform"),
    "deciban.sources.open": ("scan",),
    "deciban.util.progress": ("Progress", "on_progress"),
}
_HOME_OF = {name: home for home, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME_OF)


if not TYPE_CHECKING:  # else type checkers would accept any name

    def __getattr__(name):
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
