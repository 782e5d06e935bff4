"""The likelihood families, one file each, all with the same verbs: count, merge, estimate, score (and sample)."""

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
from deciban.families.protocols import Family, Likelihood
from deciban.families.spreads import PerClass, Pooled, Shrunk
from deciban.families.text.family import Text
from deciban.tables.readable import Readable

__all__ = [
    "Bernoulli",
    "Binned",
    "Categorical",
    "Complement",
    "Family",
    "Gamma",
    "Gaussian",
    "JointGaussian",
    "JointTable",
    "Likelihood",
    "LogNormal",
    "Multinomial",
    "PerClass",
    "Poisson",
    "Pooled",
    "Readable",
    "Shrunk",
    "Text",
]
