"""Bayes' theorem by itself: the doctor's calculation."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deciban.errors import UsageError
from deciban.text_tables import aligned


@dataclass(frozen=True)
class Belief(Mapping[Any, float]):
    """A mapping from each hypothesis to its posterior, which knows the prior and the likelihoods it came from.

    Printing shows the calculation and, unless a density is above 1, the same in natural frequencies.

    Attributes
    ----------
    before : dict
        The prior of each hypothesis.
    likelihoods : dict
        The probability of the evidence under each hypothesis, or its density.
    """

    before: dict[Any, float]
    likelihoods: dict[Any, float]

    @property
    def joint(self) -> dict[Any, float]:
        """Prior times likelihood of each hypothesis."""
        return {name: self.before[name] * self.likelihoods[name] for name in self.before}

    @property
    def evidence(self) -> float:
        """The probability of the evidence over all hypotheses, or its density."""
        return sum(self.joint.values())

    @property
    def posterior(self) -> dict[Any, float]:
        """The probability of each hypothesis, given the evidence."""
        believed = [name for name in self.before if self.before[name] > 0.0]
        highest = max(self.likelihoods[name] for name in believed)  # so that products of densities stay finite
        joint = {name: self.before[name] * (self.likelihoods[name] / highest) for name in believed}
        whole = sum(joint.values())
        return {name: joint.get(name, 0.0) / whole for name in self.before}

    @property
    def counts_people(self) -> bool:
        """Whether the likelihoods may be shares of people; a density above 1 is none."""
        return max(self.likelihoods.values()) <= 1.0

    def update(self, likelihoods: Any) -> "Belief":
        """The belief after one more piece of evidence, which is independent of the last one given the hypothesis.

        Parameters
        ----------
        likelihoods : pair or mapping
            As for `bayes`.

        Returns
        -------
        Belief
            Its prior is the posterior of this one.
        """
        return bayes(self.posterior, likelihoods)

    def __getitem__(self, name: Any) -> float:
        return self.posterior[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.before)

    def __len__(self) -> int:
        return len(self.before)

    def frequencies(self, people: int | None = None) -> str:
        """The calculation in natural frequencies.

        Parameters
        ----------
        people : int, default=None
            Of how many people. None: 1,000, or more where whole numbers need it.

        Returns
        -------
        str
            Two sentences.
        """
        if not self.counts_people:
            raise UsageError("a likelihood above 1 is a density, not a share of people; there are no frequencies of it")
        if people is None:
            people = 1000
            while people < 10**9 and not all(_is_near_whole(people * joint) for joint in self.joint.values()):
                people *= 10
        shown = {name: round(people * self.joint[name]) for name in self.before}
        lines = [
            f"{round(people * self.before[name]):,} are {name}, of whom {shown[name]:,} show the evidence"
            for name in self.before
        ]
        first = next(iter(self.before))
        return (
            f"Of {people:,} people " + "; ".join(lines) + ".\n"
            f"So of the {sum(shown.values()):,} who show it {shown[first]:,} are {first}: {100 * self[first]:.1f} %."
        )

    def calculation(self) -> str:
        """A table of prior, likelihood, their product, and its share in the sum, for each hypothesis.

        Returns
        -------
        str
            A line for each hypothesis.
        """
        lines: list[tuple[str, ...]] = [("", "prior", "likelihood", "joint", "posterior")]
        for name in self.before:
            figures = (f"{part[name]:<9.4g}" for part in (self.before, self.likelihoods, self.joint))
            lines.append((str(name), *figures, f"{self[name]:.6g}"))
        return aligned(lines)

    def __str__(self) -> str:
        return "\n".join([self.calculation(), *([self.frequencies()] if self.counts_people else [])])


def bayes(prior: Any, likelihoods: Any, names: tuple[Any, Any] = ("positive", "negative")) -> Belief:
    """The posterior of some hypotheses after some evidence: Bayes' theorem.

    Parameters
    ----------
    prior : float or mapping from hypothesis to float
        The probability of the first of two hypotheses, or of each of any number, which sum to 1.
    likelihoods : sequence of float or mapping from hypothesis to float
        The probability of the evidence under each hypothesis, in their order, or its density, which may be above 1.
    names : (label, label), default=("positive", "negative")
        The two hypotheses, where the prior is a number.

    Returns
    -------
    Belief
        A mapping from each hypothesis to its posterior, with `joint`, `evidence`, `update(likelihoods)`,
        `frequencies(people)` and `calculation()`.

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
        raise UsageError(f"names={names!r}: give two different names")
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
            raise UsageError(f"likelihoods={likelihoods!r}: give one for each hypothesis, as (0.9, 0.08)") from None
        if len(given) != len(before):
            raise UsageError(f"{len(given)} likelihoods for {len(before)} hypotheses; give one for each")
        likelihoods = dict(zip(before, given, strict=True))
    if set(likelihoods) != set(before):
        raise UsageError(f"the likelihoods are of {list(likelihoods)}, the priors of {list(before)}; name the same")
    found = {name: _likelihood(f"the likelihood under {name!r}", likelihoods[name]) for name in before}
    if not any(before[name] > 0.0 and found[name] > 0.0 for name in before):
        raise UsageError("no hypothesis with a prior can produce this evidence; the posterior is not defined")
    return Belief(before, found)


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
        raise UsageError(f"{what} is {value!r}; give a probability") from None


def _is_near_whole(amount: float) -> bool:
    """Whether a number of people may be rounded: to itself, or by less than a twentieth."""
    return amount == 0.0 or abs(amount - round(amount)) <= 1e-9 or (amount >= 10.0 and amount % 1.0 != 0.5)
