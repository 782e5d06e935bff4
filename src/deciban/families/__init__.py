"""The likelihood families, one file each, all with the same verbs: count, merge, estimate, score (and sample).

A new family of the package is imported here and named in FAMILIES. A family of your own is made known by `register`.
Model files, the command and tuning ask `known_families`.
"""

from dataclasses import is_dataclass
from typing import Any, TypeVar

from deciban.errors import UsageError
from deciban.families.base.checks import COUNTS, FINITE, FLAGS, POSITIVE, Support
from deciban.families.base.contract import (
    BaseLikelihood,
    BlockFamily,
    ColumnFamily,
    Family,
    FreeParameters,
    Likelihood,
    ParameterEstimates,
    score_by_refitting,
)
from deciban.families.base.spread import PerClass, Pooled, Shrunk
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

# The families of the package, in the order in which tuning tries them.
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

# Families that `register` was given, by name.
_REGISTERED: dict[str, type[Any]] = {}

Class = TypeVar("Class", bound=type[Any])


def register(family: Class) -> Class:
    """Make a family of your own known: model files may hold it, `--family` takes it, tuning asks it what it suits.

    A family that is only used in Python, and never saved, need not be registered. It counts by the statistics of
    `deciban.statistics`, which model files can hold.

    Parameters
    ----------
    family : class
        A frozen dataclass with the methods of a family; its fields are its parameters.

    Returns
    -------
    class
        The same class, so that this is a decorator.

    Raises
    ------
    UsageError
        If it is not a dataclass, or another family has its name.

    See Also
    --------
    deciban.testing.check_family : Check the laws that a family must keep.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from deciban.families import Bernoulli, register
    >>> @register
    ... @dataclass(frozen=True, repr=False)
    ... class Answers(Bernoulli):
    ...     pass
    >>> Answers(alpha=0.5)
    Answers(alpha=0.5)
    """
    name = getattr(family, "__name__", repr(family))
    if not isinstance(family, type) or not is_dataclass(family):
        raise UsageError(f"register({name}): expected a dataclass", remedy="decorate it with @dataclass(frozen=True)")
    taken = {kind.__name__: kind for kind in (*known_families(), *SPREADS)}.get(name, family)
    if taken is not family and f"{taken.__module__}.{name}" != f"{family.__module__}.{name}":
        raise UsageError(
            f"register({name}): {taken.__module__} has a family of this name", remedy="choose another name"
        )
    _REGISTERED[name] = family
    return family


def known_families() -> tuple[type[Any], ...]:
    """Return the families of the package, and those that were registered."""
    return (*FAMILIES, *_REGISTERED.values())


__all__ = [
    "COUNTS",
    "FINITE",
    "FLAGS",
    "POSITIVE",
    "BaseLikelihood",
    "Bernoulli",
    "Binned",
    "BlockFamily",
    "Categorical",
    "ColumnFamily",
    "Complement",
    "Family",
    "FreeParameters",
    "Gamma",
    "Gaussian",
    "JointGaussian",
    "JointTable",
    "Likelihood",
    "LogNormal",
    "Multinomial",
    "ParameterEstimates",
    "PerClass",
    "Poisson",
    "Pooled",
    "Shrunk",
    "Support",
    "Text",
    "register",
    "score_by_refitting",
]
