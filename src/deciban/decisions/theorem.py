"""Bayes' theorem for a few hypotheses: `bayes` and its result, `Belief`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deciban.errors import Argument, Labels, UsageError
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import count_noun

# Larger populations are not tried: a reader cannot picture them.
MAX_POPULATION = 10**9

# Expected numbers below this must be whole: rounding 3.4 people to 3 would distort the ratio.
MIN_ROUNDED = 10.0


@dataclass(frozen=True, repr=False)
class Belief(Result, Mapping[Any, float]):
    """Mapping from each hypothesis to its posterior, with the calculation behind it.

    `str` and `repr` show the calculation and, unless the likelihoods are densities, the same in natural frequencies.

    Attributes
    ----------
    prior : dict
        Prior probability of each hypothesis.
    likelihoods : dict
        Probability (or density) of the evidence under each hypothesis.
    density : bool
        True if the likelihoods are densities. Natural frequencies are then not available.
    """

    prior: dict[Any, float]
    likelihoods: dict[Any, float]
    density: bool = False

    @property
    def joint(self) -> dict[Any, float]:
        """Prior times likelihood of each hypothesis."""
        return {name: self.prior[name] * self.likelihoods[name] for name in self.prior}

    @property
    def evidence(self) -> float:
        """Probability (or density) of the evidence: the sum of `joint`."""
        return sum(self.joint.values())

    @property
    def posterior(self) -> dict[Any, float]:
        """Probability of each hypothesis, given the evidence."""
        possible = [name for name in self.prior if self.prior[name] > 0.0]
        highest = max(self.likelihoods[name] for name in possible)  # keeps products of large densities finite
        joint = {name: self.prior[name] * (self.likelihoods[name] / highest) for name in possible}
        total = sum(joint.values())
        return {name: joint.get(name, 0.0) / total for name in self.prior}

    @property
    def has_frequencies(self) -> bool:
        """True if the likelihoods are probabilities, so that natural frequencies exist."""
        return not self.density and max(self.likelihoods.values()) <= 1.0

    def update(self, likelihoods: Sequence[float] | Mapping[Any, float], *, density: bool = False) -> Belief:
        """Return the belief after one more piece of evidence.

        The new evidence must be independent of the earlier evidence, given the hypothesis.

        Parameters
        ----------
        likelihoods : pair or mapping
            As for `bayes`.
        density : bool, default=False
            As for `bayes`.

        Returns
        -------
        Belief
            A new belief whose prior is the posterior of this one.
        """
        return bayes(self.posterior, likelihoods, density=density)

    def __getitem__(self, name: Any) -> float:
        return self.posterior[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.prior)

    def __len__(self) -> int:
        return len(self.prior)

    def frequencies(self, population: int | None = None) -> str:
        """Return the calculation in natural frequencies.

        Parameters
        ----------
        population : int, default=None
            Number of people. None: 1,000, or the smallest larger power of ten for which whole numbers of people
            reproduce the percentage.

        Returns
        -------
        str
            Two sentences. If rounding to whole people changes the percentage, both percentages are given.
        """
        if not self.has_frequencies:
            raise UsageError(
                "natural frequencies need probabilities: a density is not a share of people",
                remedy="use calculation()",
            )
        exact = _percentage(self[next(iter(self.prior))])
        if population is None:
            population = 1000
            while population < MAX_POPULATION and not self._is_exact_in(population, exact):
                population *= 10
        members, positives = self._whole_numbers(population)
        groups = [
            f"{members[name]:,} are {name}, of whom {positives[name]:,} have this evidence" for name in self.prior
        ]
        first, total = next(iter(self.prior)), sum(positives.values())
        rounded = _percentage(positives[first] / total) if total else exact
        percentage = f"{rounded}%" if rounded == exact else f"{rounded}% ({exact}% before rounding)"
        return (
            f"Of {population:,} people, " + "; ".join(groups) + ".\n"
            f"So of the {total:,} who have it, {positives[first]:,} are {first}: {percentage}."
        )

    def _whole_numbers(self, population: int) -> tuple[dict[Any, int], dict[Any, int]]:
        """Return the number of people per hypothesis, summing to `population`, and how many have the evidence."""
        members, positives, cumulative, assigned = {}, {}, 0.0, 0
        for name, share in self.prior.items():
            cumulative += share
            members[name] = max(round(population * min(cumulative, 1.0)) - assigned, 0)
            assigned += members[name]
            positives[name] = min(round(population * self.joint[name]), members[name])
        return members, positives

    def _is_exact_in(self, population: int, percentage: str) -> bool:
        """Return True if whole numbers of people give this percentage, and the small numbers are not rounded."""
        _, positives = self._whole_numbers(population)
        total = sum(positives.values())
        near = all(
            population * joint >= MIN_ROUNDED or abs(population * joint - positives[name]) <= 1e-9
            for name, joint in self.joint.items()
        )
        return bool(near and total and _percentage(positives[next(iter(positives))] / total) == percentage)

    def calculation(self) -> str:
        """Return a text table of prior, likelihood, joint and posterior.

        Returns
        -------
        str
            A line for each hypothesis.
        """
        return str(self._table())

    def _table(self) -> TextTable:
        lines = []
        for name in self.prior:
            numbers = (f"{part[name]:<9.4g}" for part in (self.prior, self.likelihoods, self.joint))
            lines.append((str(name), *numbers, f"{self[name]:.6g}"))
        return TextTable(lines, ("", "prior", "likelihood", "joint", "posterior"))

    def _columns(self) -> dict[str, Any]:
        """Return the prior, likelihood, joint and posterior of each hypothesis."""
        parts = {"prior": self.prior, "likelihood": self.likelihoods, "joint": self.joint, "posterior": self.posterior}
        columns = {name: [part[one] for one in self.prior] for name, part in parts.items()}
        return {"hypothesis": list(self.prior), **columns}

    def to_dict(self) -> dict[str, Any]:
        """Return the calculation as plain data.

        Returns
        -------
        dict
            ``prior``, ``likelihood`` and ``posterior`` by hypothesis, and ``evidence``, the probability of the
            evidence.
        """
        return {
            "prior": self.prior,
            "likelihood": self.likelihoods,
            "evidence": self.evidence,
            "posterior": self.posterior,
        }

    def _parts(self) -> list[Part]:
        return [replace(self._table(), notes=[self.frequencies()] if self.has_frequencies else [])]


def bayes(
    prior: float | Mapping[Any, float],
    likelihoods: Sequence[float] | Mapping[Any, float],
    names: tuple[Any, Any] = ("A", "B"),
    *,
    density: bool = False,
) -> Belief:
    r"""Apply Bayes' theorem: return the posterior of some hypotheses after some evidence.

    Parameters
    ----------
    prior : float or mapping from hypothesis to float
        Probability of the first of two hypotheses, or of each of any number of hypotheses; these must sum to 1.
    likelihoods : sequence of float or mapping from hypothesis to float
        Probability of the evidence under each hypothesis, in the same order. A density may be above 1.
    names : (label, label), default=("A", "B")
        Names of the two hypotheses, if the prior is a number.
    density : bool, default=False
        True if the likelihoods are densities, such as those of a normal distribution. Natural frequencies are then
        omitted. A likelihood above 1 is always taken as a density.

    Returns
    -------
    Belief
        A mapping from each hypothesis to its posterior, with `joint`, `evidence`, `update(likelihoods)`,
        `frequencies(population)`, `calculation()`, `to_frame()` and `to_dict()`.

    Raises
    ------
    UsageError
        If the priors are not probabilities that sum to 1, or the evidence is impossible under every hypothesis.

    See Also
    --------
    decide : The decision with the least expected loss for such a posterior.

    Notes
    -----
    For hypotheses h and evidence e:

    .. math:: P(h \mid e) = \frac{P(e \mid h) \, P(h)}{\sum_g P(e \mid g) \, P(g)}

    Examples
    --------
    >>> from deciban import bayes
    >>> ill = bayes(0.05, (0.9, 0.08), names=("ill", "well"))     # sensitivity 90%, false-positive rate 8%
    >>> print(ill)
          prior      likelihood  joint      posterior
    ill   0.05       0.9         0.045      0.371901
    well  0.95       0.08        0.076      0.628099
    Of 1,000 people, 50 are ill, of whom 45 have this evidence; 950 are well, of whom 76 have this evidence.
    So of the 121 who have it, 45 are ill: 37.2%.
    >>> round(ill.update((0.9, 0.08))["ill"], 4)   # a second test, independent given the state
    0.8695
    """
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError("expected two different names", parameter=Argument("names", names))
    if not isinstance(prior, Mapping):
        share = _probability("the prior", prior)
        prior = {names[0]: share, names[1]: 1.0 - share}
    priors = {name: _probability(f"the prior of {name!r}", value) for name, value in prior.items()}
    if len(priors) < 2 or abs(sum(priors.values()) - 1.0) > 1e-9:
        raise UsageError(
            f"the priors {priors} sum to {sum(priors.values()):.12g}",
            remedy="give the prior of every hypothesis; they must sum to 1",
        )
    if not isinstance(likelihoods, Mapping):
        try:
            given = list(likelihoods)
        except TypeError:
            raise UsageError(
                "give one for each hypothesis, as (0.9, 0.08)", parameter=Argument("likelihoods", likelihoods)
            ) from None
        if len(given) != len(priors):
            raise UsageError(
                f"{count_noun(len(given), 'likelihood')} for {len(priors)} hypotheses", remedy="give one for each"
            )
        likelihoods = dict(zip(priors, given, strict=True))
    if set(likelihoods) != set(priors):
        raise UsageError(
            ("the likelihoods are for ", Labels(likelihoods), ", but the priors are for ", Labels(priors)),
            remedy="use the same names",
        )
    checked = {name: _likelihood(f"the likelihood under {name!r}", likelihoods[name]) for name in priors}
    if not any(priors[name] > 0.0 and checked[name] > 0.0 for name in priors):
        raise UsageError(
            "the posterior is undefined: the evidence is impossible under every hypothesis",
            remedy="give at least one hypothesis with a positive prior and likelihood",
        )
    return Belief(priors, checked, bool(density))


def _percentage(share: float) -> str:
    """Return a share as a percentage with one decimal; rounding errors do not decide which way 61.05 is rounded."""
    return f"{round(100 * share, 9):.1f}"


def _probability(name: str, value: Any) -> float:
    number = _number(name, value)
    if not 0.0 <= number <= 1.0:
        raise UsageError(f"{name} is {number:g}", remedy="give a probability between 0 and 1")
    return number


def _likelihood(name: str, value: Any) -> float:
    number = _number(name, value)
    if not 0.0 <= number < math.inf:
        raise UsageError(f"{name} is {number:g}", remedy="give a finite number that is at least 0")
    return number


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {value!r}", remedy="give a number") from None
