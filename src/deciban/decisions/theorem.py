"""Bayes' theorem by itself: the doctor's calculation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deciban.errors import UsageError


@dataclass(frozen=True)
class Belief(Mapping[Any, float]):
    """Probabilities of some hypotheses, and what they were before the last evidence.

    before: the prior of each. likelihoods: the probability of the evidence under each. Printing shows the calculation
    and the same in natural frequencies.
    """

    before: dict[Any, float]
    likelihoods: dict[Any, float]

    @property
    def joint(self) -> dict[Any, float]:
        return {name: self.before[name] * self.likelihoods[name] for name in self.before}

    @property
    def evidence(self) -> float:
        """The probability of the evidence."""
        return sum(self.joint.values())

    @property
    def posterior(self) -> dict[Any, float]:
        return {name: joint / self.evidence for name, joint in self.joint.items()}

    def update(self, likelihoods: Any) -> "Belief":
        """What is believed after one more piece of evidence, independent of the last given the hypothesis."""
        return bayes(self.posterior, likelihoods)

    def __getitem__(self, name: Any) -> float:
        return self.posterior[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.before)

    def __len__(self) -> int:
        return len(self.before)

    def frequencies(self, people: int | None = None) -> str:
        """The same in natural frequencies: of 1,000 people, so many ...; of more, where whole ones need it."""
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

    def __str__(self) -> str:
        width = max(len(str(name)) for name in self.before)
        lines = [f"{'':{width}}  prior      likelihood  joint      posterior"]
        lines += [
            f"{name!s:{width}}  {self.before[name]:<9.4g}  {self.likelihoods[name]:<10.4g}  "
            f"{self.joint[name]:<9.4g}  {self[name]:.4f}"
            for name in self.before
        ]
        return "\n".join([*lines, self.frequencies()])


def bayes(prior: Any, likelihoods: Any, names: tuple[Any, Any] = ("positive", "negative")) -> Belief:
    """What to believe after some evidence.

    prior: the probability of the first of two hypotheses, or a mapping from hypothesis to probability.
    likelihoods: the probability of the evidence under each: a pair (under the first, under the second), or a mapping.
    names: of the two hypotheses, where the prior is a number.

    >>> ill = bayes(0.05, (0.9, 0.08), names=("ill", "well"))     # sensitivity 90 %, false alarms 8 %
    >>> print(ill)
          prior      likelihood  joint      posterior
    ill   0.05       0.9         0.045      0.3719
    well  0.95       0.08        0.076      0.6281
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
    found = {name: _probability(f"the likelihood under {name!r}", likelihoods[name]) for name in before}
    belief = Belief(before, found)
    if not belief.evidence > 0.0:
        raise UsageError("no hypothesis with a prior can produce this evidence; the posterior is not defined")
    return belief


def _probability(what: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{what} is {value!r}; give a probability") from None
    if not 0.0 <= number <= 1.0:
        raise UsageError(f"{what} is {number:g}; a probability is between 0 and 1")
    return number


def _is_near_whole(amount: float) -> bool:
    """Whether a number of people may be rounded: to itself, or by less than a twentieth."""
    return amount == 0.0 or abs(amount - round(amount)) <= 1e-9 or (amount >= 10.0 and amount % 1.0 != 0.5)
