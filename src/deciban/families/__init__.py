"""Families of distributions, one per file, with the same methods: count, estimate, score, sample.

A new family of the package is imported here and listed in FAMILIES. Your own family is made available by `register`.
Model files, the command line and tuning use `list_families`.
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

# Types of the `variance` and `covariance` parameters of families.
SPREADS: tuple[type[Any], ...] = (PerClass, Pooled, Shrunk)

# Families passed to `register`, by name.
_REGISTERED: dict[str, type[Any]] = {}

Class = TypeVar("Class", bound=type[Any])


def register(family: Class) -> Class:
    """Register your own family, so that it can be saved, used with `--family`, and tried by tuning.

    A family that is only used in Python, and never saved, need not be registered. Its statistic must be one of
    `deciban.statistics`, which model files can store.

    Parameters
    ----------
    family : class
        A frozen dataclass with the methods of `Family`; its fields are its parameters.

    Returns
    -------
    class
        The same class, so that `register` can be used as a decorator.

    Raises
    ------
    UsageError
        If it is not a dataclass, or another family has the same name.

    See Also
    --------
    deciban.testing.check_family : Test that a family satisfies the contract.

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
    taken = {kind.__name__: kind for kind in (*list_families(), *SPREADS)}.get(name, family)
    if taken is not family and f"{taken.__module__}.{name}" != f"{family.__module__}.{name}":
        raise UsageError(
            f"register({name}): a family of this name exists in {taken.__module__}", remedy="choose a different name"
        )
    _REGISTERED[name] = family
    return family


def list_families() -> tuple[type[Any], ...]:
    """Return the families of the package and the registered ones."""
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
