"""The likelihood families, one file each, all with the same verbs: count, merge, estimate, score (and sample).

A new family is imported here and named in FAMILIES: model files, the command and tuning read that list.
"""

from typing import Any

from deciban.families.base.contract import Family as Family, Likelihood as Likelihood
from deciban.families.base.variance import PerClass, Pooled, Shrunk
from deciban.families.bernoulli import Bernoulli
from deciban.families.binned import Binned
from deciban.families.categorical import Categorical
from deciban.families.gamma import Gamma
from deciban.families.gaussian import Gaussian
from deciban.families.joint_gaussian import JointGaussian
from deciban.families.joint_table import JointTable
from deciban.families.log_normal import LogNormal
from deciban.families.multinomial import Complement, Multinomial
from deciban.families.poisson import Poisson
from deciban.families.text.family import Text

# Every family: those that model files may hold, that `--family` knows, and that tuning tries, in this order.
FAMILIES: tuple[type[Any], ...] = (
    Gaussian,
    Binned,
    LogNormal,
    Gamma,
    Poisson,
    Categorical,
    Bernoulli,
    Multinomial,
    Complement,
    JointGaussian,
    JointTable,
    Text,
)

# The kinds of variances and covariances that families take as parameters.
SPREADS: tuple[type[Any], ...] = (PerClass, Pooled, Shrunk)

__all__ = [
    "Bernoulli",
    "Binned",
    "Categorical",
    "Complement",
    "Gamma",
    "Gaussian",
    "JointGaussian",
    "JointTable",
    "LogNormal",
    "Multinomial",
    "PerClass",
    "Poisson",
    "Pooled",
    "Shrunk",
    "Text",
]
