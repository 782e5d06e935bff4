"""bayes: Bayes' theorem by itself."""

from decimal import Decimal, InvalidOperation
from typing import Any

import click

from deciban.cli.common import common, heading, pair, say, say_json


def as_number(text: str) -> float:
    """0.9 of "0.9", "90%" or "90 %"; a ValueError where it is none of them."""
    if not text.rstrip().endswith("%"):
        return float(text)
    try:
        return float(Decimal(text.rstrip()[:-1].strip()) / 100)  # 99.9 / 100 is not 0.999 in doubles
    except InvalidOperation:
        raise ValueError(text) from None


@click.command(epilog="""\b
Examples:
  deciban bayes --prior 5% --sensitivity 90% --false-positive 8%
  deciban bayes --prior 0.05 --sensitivity 0.9 --specificity 0.92 --results positive,positive,negative
  deciban bayes --prior ill=0.05,well=0.95 --likelihood ill=0.9,well=0.08 --likelihood ill=0.2,well=0.1
""")  # fmt: skip
@click.option(
    "--prior", required=True, help="The probability before: of the first hypothesis, or of all: 'a=0.2,b=0.8'."
)
@click.option("--sensitivity", multiple=True, help="P(positive | yes) of a test; one for each, or one for all.")
@click.option("--false-positive", multiple=True, help="P(positive | no) of a test.")
@click.option("--specificity", multiple=True, help="P(negative | no), instead of --false-positive.")
@click.option(
    "--results", metavar="LIST", help="Of several tests in a row: positive,negative,…; all positive unless given."
)
@click.option(
    "--likelihood",
    multiple=True,
    metavar="LIST",
    help="Of any evidence, under each hypothesis: 'a=0.9,b=0.1', or '0.9,0.1'; may be a density; may be repeated.",
)
@click.option("--density", is_flag=True, help="The numbers of --likelihood are densities: tell no natural frequencies.")
@click.option("--names", help="Of the two hypotheses: ill,well for tests, A,B for other evidence unless given.")
@click.option("--people", type=click.IntRange(1), help="Of how many people to speak; found by itself unless given.")
@common
def bayes(prior: str, as_json: bool, names: str | None, people: int | None, **options: Any) -> None:
    """Bayes' theorem: what to believe after a test, or several in a row, in natural frequencies too."""  # fmt: skip
    from deciban.decisions.theorem import bayes as theorem

    tests = _tests(options)
    evidence = [*tests, *(_numbers(text, "--likelihood") for text in options["likelihood"])]
    if not evidence:
        raise click.UsageError("give the evidence: --sensitivity and --false-positive, or --likelihood")
    if options["density"] and not options["likelihood"]:
        raise click.UsageError("--density is for --likelihood; the rates of a test are probabilities")
    names = names or ("ill,well" if tests else "A,B")
    hypotheses = tuple(name.strip() for name in names.split(","))
    if len(hypotheses) != 2:
        raise click.UsageError(f"--names {names}: give two names with a comma between")
    believed: Any = _numbers(prior, "--prior") if "=" in prior else _number(prior, "--prior")
    shown = [theorem(believed, evidence[0], hypotheses, density=options["density"] and not tests)]
    for place, likelihoods in enumerate(evidence[1:], start=1):
        shown.append(shown[-1].update(likelihoods, density=options["density"] and place >= len(tests)))
    if as_json:
        return say_json(
            [
                {
                    "prior": belief.before,
                    "likelihood": belief.likelihoods,
                    "evidence": belief.evidence,
                    "posterior": belief.posterior,
                }
                for belief in shown
            ]
        )
    for place, belief in enumerate(shown):
        if len(shown) > 1:
            heading(f"evidence {place + 1}")
        say(belief.calculation())
        if people is not None or belief.counts_people:
            say(belief.frequencies(people))
    return None


def _tests(options: dict[str, Any]) -> list[tuple[float, float]]:
    """The likelihoods of each test under both hypotheses, given its result."""
    sensitivity, alarms, specificity = (
        [_share(text, f"--{name.replace('_', '-')}") for text in options[name]]
        for name in ("sensitivity", "false_positive", "specificity")
    )
    alarms += [1.0 - share for share in specificity]
    if not sensitivity and not alarms:
        return []
    if not sensitivity or not alarms:
        raise click.UsageError("a test has a --sensitivity and a --false-positive rate (or a --specificity); give both")
    results = [text.strip() for text in (options["results"] or "").split(",") if text.strip()]
    tests = max(len(sensitivity), len(alarms), len(results), 1)
    results = results or ["positive"] * tests
    sensitivity, alarms = (each * tests if len(each) == 1 else each for each in (sensitivity, alarms))
    if not len(sensitivity) == len(alarms) == len(results) == tests:
        raise click.UsageError("give as many --sensitivity, --false-positive and --results as there are tests, or one")
    if strange := [result for result in results if result not in ("positive", "negative", "+", "-")]:
        raise click.UsageError(f"--results {strange[0]}: a result is positive or negative")
    return [
        (hit, alarm) if result in ("positive", "+") else (1.0 - hit, 1.0 - alarm)
        for hit, alarm, result in zip(sensitivity, alarms, results, strict=True)
    ]


def _number(text: str, option: str) -> float:
    try:
        return as_number(text)
    except ValueError:
        raise click.UsageError(f"{option} {text}: give a probability, such as 0.9 or 90%") from None


def _share(text: str, option: str) -> float:
    if not 0.0 <= (share := _number(text, option)) <= 1.0:
        raise click.UsageError(f"{option} {text}: a probability is between 0 and 1, or 0% and 100%")
    return share


def _numbers(text: str, option: str) -> Any:
    parts = text.split(",")
    if "=" not in text:
        return tuple(_number(part, option) for part in parts)
    pairs = (pair(part, option, "a=0.2,b=0.8") for part in parts)
    return {name.strip(): _number(value, option) for name, value in pairs}
