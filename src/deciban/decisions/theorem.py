"""Bayes' theorem by itself: the doctor's calculation."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deciban.errors import Argument, Labels, UsageError
from deciban.util.text_tables import align_table

# Natural frequencies speak of at most this many people, and round no number of people below this one.
MAX_PEOPLE = 10**9
MIN_ROUNDED = 10.0


@dataclass(frozen=True)
class Belief(Mapping[Any, float]):
    """A mapping from each hypothesis to its posterior, which knows the prior and the likelihoods it came from.

    Printing shows the calculation and, unless the likelihoods are densities, the same in natural frequencies.

    Attributes
    ----------
    prior : dict
        The prior of each hypothesis.
    likelihoods : dict
        The probability of the evidence under each hypothesis, or its density.
    density : bool
        Whether the likelihoods are densities, which are not shares of people.
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
        """The probability of the evidence over all hypotheses, or its density."""
        return sum(self.joint.values())

    @property
    def posterior(self) -> dict[Any, float]:
        """The probability of each hypothesis, given the evidence."""
        believed = [name for name in self.prior if self.prior[name] > 0.0]
        highest = max(self.likelihoods[name] for name in believed)  # so that products of densities stay finite
        joint = {name: self.prior[name] * (self.likelihoods[name] / highest) for name in believed}
        whole = sum(joint.values())
        return {name: joint.get(name, 0.0) / whole for name in self.prior}

    @property
    def has_frequencies(self) -> bool:
        """Whether the likelihoods are shares of people: not if they are densities, as one above 1 must be."""
        return not self.density and max(self.likelihoods.values()) <= 1.0

    def update(self, likelihoods: Any, *, density: bool = False) -> "Belief":
        """The belief after one more piece of evidence, which is independent of the last one given the hypothesis.

        Parameters
        ----------
        likelihoods : pair or mapping
            As for `bayes`.
        density : bool, default=False
            As for `bayes`.

        Returns
        -------
        Belief
            Its prior is the posterior of this one.
        """
        return bayes(self.posterior, likelihoods, density=density)

    def __getitem__(self, name: Any) -> float:
        return self.posterior[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.prior)

    def __len__(self) -> int:
        return len(self.prior)

    def frequencies(self, population: int | None = None) -> str:
        """The calculation in natural frequencies.

        Parameters
        ----------
        population : int, default=None
            The number of people. None: 1,000, or the smallest power of ten whose whole numbers give the percentage.

        Returns
        -------
        str
            Two sentences. If rounding to the given number of people changes the percentage, both are named.
        """
        if not self.has_frequencies:
            raise UsageError("a likelihood that is a density is not a share of people; there are no frequencies of it")
        exact = f"{100 * self[next(iter(self.prior))]:.1f}"
        if population is None:
            population = 1000
            while population < MAX_PEOPLE and not self._holds_in_whole_numbers(population, exact):
                population *= 10
        has, shown = self._in_whole_numbers(population)
        lines = [f"{has[name]:,} are {name}, of whom {shown[name]:,} show the evidence" for name in self.prior]
        first, total = next(iter(self.prior)), sum(shown.values())
        rounded = f"{100 * shown[first] / total:.1f}" if total else exact
        told = f"{rounded} %" if rounded == exact else f"{rounded} % ({exact} % before rounding)"
        return (
            f"Of {population:,} people " + "; ".join(lines) + ".\n"
            f"So of the {total:,} who show it {shown[first]:,} are {first}: {told}."
        )

    def _in_whole_numbers(self, people: int) -> tuple[dict[Any, int], dict[Any, int]]:
        """How many of so many people each hypothesis holds for, which add up, and how many of these show the
        evidence."""
        has, shown, before, known = {}, {}, 0.0, 0
        for name, share in self.prior.items():
            before += share
            has[name] = max(round(people * min(before, 1.0)) - known, 0)
            known += has[name]
            shown[name] = min(round(people * self.joint[name]), has[name])
        return has, shown

    def _holds_in_whole_numbers(self, people: int, percentage: str) -> bool:
        """Whether whole numbers of so many people give this percentage, and small ones of them are exact."""
        _, shown = self._in_whole_numbers(people)
        total = sum(shown.values())
        near = all(
            people * joint >= MIN_ROUNDED or abs(people * joint - shown[name]) <= 1e-9
            for name, joint in self.joint.items()
        )
        return bool(near and total and f"{100 * shown[next(iter(shown))] / total:.1f}" == percentage)

    def calculation(self) -> str:
        """A table of prior, likelihood, their product, and its share in the sum, for each hypothesis.

        Returns
        -------
        str
            A line for each hypothesis.
        """
        lines: list[tuple[str, ...]] = [("", "prior", "likelihood", "joint", "posterior")]
        for name in self.prior:
            figures = (f"{part[name]:<9.4g}" for part in (self.prior, self.likelihoods, self.joint))
            lines.append((str(name), *figures, f"{self[name]:.6g}"))
        return align_table(lines)

    def __str__(self) -> str:
        return "\n".join([self.calculation(), *([self.frequencies()] if self.has_frequencies else [])])


def bayes(
    prior: Any, likelihoods: Any, names: tuple[Any, Any] = ("positive", "negative"), *, density: bool = False
) -> Belief:
    """The posterior of some hypotheses after some evidence: Bayes' theorem.

    Parameters
    ----------
    prior : float or mapping from hypothesis to float
        The probability of the first of two hypotheses, or of each of any number, which sum to 1.
    likelihoods : sequence of float or mapping from hypothesis to float
        The probability of the evidence under each hypothesis, in their order, or its density, which may be above 1.
    names : (label, label), default=("positive", "negative")
        The two hypotheses, where the prior is a number.
    density : bool, default=False
        Whether the likelihoods are densities, such as those of a normal distribution. Then nothing is said in natural
        frequencies, which need shares of people. A likelihood above 1 is always a density.

    Returns
    -------
    Belief
        A mapping from each hypothesis to its posterior, with `joint`, `evidence`, `update(likelihoods)`,
        `frequencies(population)` and `calculation()`.

    Raises
    ------
    UsageError
        If the priors are no probabilities or do not sum to 1, or the evidence is impossible under every hypothesis.

    See Also
    --------
    decide : The decision of least expected loss by such a posterior.

    Examples
    --------
    >>> from deciban import bayes
    >>> ill = bayes(0.05, (0.9, 0.08), names=("ill", "well"))     # sensitivity 90 %, false alarms 8 %
    >>> print(ill)
          prior      likelihood  joint      posterior
    ill   0.05       0.9         0.045      0.371901
    well  0.95       0.08        0.076      0.628099
    Of 1,000 people 50 are ill, of whom 45 show the evidence; 950 are well, of whom 76 show the evidence.
    So of the 121 who show it 45 are ill: 37.2 %.
    >>> round(ill.update((0.9, 0.08))["ill"], 4)                  # a second test, positive too
    0.8695
    """
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError("give two different names", parameter=Argument("names", names))
    if not isinstance(prior, Mapping):
        share = _probability("the prior", prior)
        prior = {names[0]: share, names[1]: 1.0 - share}
    before = {name: _probability(f"the prior of {name!r}", value) for name, value in prior.items()}
    if len(before) < 2 or abs(sum(before.values()) - 1.0) > 1e-9:
        raise UsageError(f"the priors {before} sum to {sum(before.values()):.12g}; those of all hypotheses sum to 1")
    if not isinstance(likelihoods, Mapping):
        try:
            given = list(likelihoods)
        except TypeError:
            raise UsageError(
                "give one for each hypothesis, as (0.9, 0.08)", parameter=Argument("likelihoods", likelihoods)
            ) from None
        if len(given) != len(before):
            raise UsageError(f"{len(given)} likelihoods for {len(before)} hypotheses", remedy="give one for each")
        likelihoods = dict(zip(before, given, strict=True))
    if set(likelihoods) != set(before):
        raise UsageError(
            ("the likelihoods are of ", Labels(likelihoods), ", the priors of ", Labels(before)), remedy="name the same"
        )
    found = {name: _likelihood(f"the likelihood under {name!r}", likelihoods[name]) for name in before}
    if not any(before[name] > 0.0 and found[name] > 0.0 for name in before):
        raise UsageError("no hypothesis with a prior can produce this evidence; the posterior is not defined")
    return Belief(before, found, bool(density))


def _probability(what: str, value: Any) -> float:
    number = _number(what, value)
    if not 0.0 <= number <= 1.0:
        raise UsageError(f"{what} is {number:g}; a probability is between 0 and 1")
    return number


def _likelihood(what: str, value: Any) -> float:
    number = _number(what, value)
    if not 0.0 <= number < math.inf:
        raise UsageError(f"{what} is {number:g}; a probability or a density is a finite number that is at least 0")
    return number


def _number(what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{what} is {value!r}", remedy="give a probability") from None
