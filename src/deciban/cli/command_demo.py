"""The commands demo, completion and bayes, which need no data."""

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import click

from deciban.cli.complete import complete_files
from deciban.cli.options import command, common_options, parse_number, parse_pair
from deciban.cli.output import echo, echo_heading, echo_json
from deciban.util import shutdown

# The day to predict.
DAY = "outlook,temperature,humidity,wind\nsunny,cool,high,strong\n"

# Rows of the cancer table that are held out. Some of them are hard to classify.
PATIENTS = (0, 40, 100, 135, 146, 300, 363, 500)

# Cost of each decision (row) for each true class (column).
COSTS = ",benign,malignant\nbenign,0,100\nmalignant,1,0\n"

# The steps of the tour: a text, and the command to run.
WEATHER = (
    (
        "Fourteen days of weather, and whether tennis was played.\nFitting plain Bayes is counting.",
        "fit weather.csv --target play --output weather.dcb --tune none --alpha 0",
    ),
    (
        "Will tennis be played on a sunny, cool, humid, windy day?\nPrior times likelihoods, step by step.",
        "explain weather.dcb tomorrow.csv --steps",
    ),
    (
        "Counts add up: the merged models of two halves of the table are the model of\nthe whole table.",
        "fit spring.csv --target play --output spring.dcb --tune none --alpha 0",
    ),
    (None, "fit autumn.csv --target play --output autumn.dcb --tune none --alpha 0"),
    (None, "merge spring.dcb autumn.dcb --output year.dcb"),
)
CANCER = (
    (
        "Real data: 561 breast tumors with thirty measurements each (Wisconsin, 1995).\n"
        "Eight more are held out. First, 5-fold cross-validation.",
        "evaluate cancer.csv --target diagnosis --folds 5 --costs costs.csv",
    ),
    (
        "Fit a model. The family of each column is chosen automatically; to choose it\nyourself, use --family.",
        "fit cancer.csv --target diagnosis --output cancer.dcb",
    ),
    (
        "Predict the held-out patients.",
        "predict cancer.dcb patients.csv --probabilities --keep patient",
    ),
    (
        "Explain a prediction: the evidence of each measurement, in decibans.\n10 decibans are odds of ten to one.",
        "explain cancer.dcb patients.csv --row 1",
    ),
    (
        "Missing a cancer costs 100 times as much as an unnecessary examination\n"
        "(costs.csv), and a second opinion (reject) costs half an examination. The\n"
        "decisions with the lowest expected cost:",
        "decide cancer.dcb patients.csv --costs costs.csv --reject 0.5 --keep patient",
    ),
)


@command(short_help="Take a tour that needs no data", epilog="""\b
Examples:
  deciban demo
  deciban demo --files
""")  # fmt: skip
@click.option(
    "--files",
    shell_complete=complete_files,
    is_flag=False,
    flag_value="deciban-demo",
    metavar="[FOLDER]",
    help="Only write the tables of the tour into this folder (deciban-demo if no name is given). Existing files are "
    "not overwritten.",
)
@common_options
def demo(files: str | None, as_json: bool) -> None:
    """Run a tour of deciban: a small example step by step, then real data from a file to decisions."""
    if files is not None:
        names = write_tables(Path(files))
        return echo_json({"folder": files, "files": names}) if as_json else echo("\n".join(names))
    tour: list[dict[str, Any]] = []
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="deciban-") as folder:
        shutdown.remove_at_exit(folder)
        write_tables(Path(folder))
        os.chdir(folder)
        try:
            for text, command in (*WEATHER, *CANCER):
                if as_json:
                    tour.append({"text": text, "command": f"deciban {command}"})
                    continue
                if text is not None:
                    echo()
                    echo(text)
                echo()
                echo_heading(f"$ deciban {command}")
                _run(shlex.split(command))
        finally:
            os.chdir(before)
    if as_json:
        return echo_json(tour)
    echo()
    echo("To write the tables of this tour to files, run deciban demo --files.")
    echo("To list all commands, run deciban --help.")
    return None


def _run(arguments: list[str]) -> None:
    from deciban.cli import app

    app.main(arguments, prog_name="deciban", standalone_mode=False)


def write_tables(folder: Path) -> list[str]:
    """Write the tables of the tour and return their paths. Existing files with other content raise an error."""
    from deciban.sources.write import replace_file

    tables = {folder / name: text.encode() for name, text in make_tables().items()}
    for path, content in tables.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise FileExistsError(f"{path}: a different file with this name exists; choose a different folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in tables.items():
        if not path.exists():
            with replace_file(path) as file:
                file.write(content)
    return list(map(str, tables))


def make_tables() -> dict[str, str]:
    """Return the files of the tour: their names and contents."""
    from sklearn.datasets import load_breast_cancer

    from deciban.datasets import weather

    days = weather()
    header, *rows = [",".join(line) for line in [days.column_names, *zip(*days.to_pydict().values(), strict=True)]]
    real = load_breast_cancer()
    columns = [name.replace(" ", "_") for name in real.feature_names]
    learned, kept = [",".join([*columns, "diagnosis"])], [",".join(["patient", *columns])]
    for i, (row, label) in enumerate(zip(real.data, real.target, strict=True)):
        cells = ",".join(f"{cell:.6g}" for cell in row)
        if i in PATIENTS:
            kept.append(f"p{i + 1:03d},{cells}")
        else:
            learned.append(f"{cells},{real.target_names[label]}")
    return {
        "weather.csv": _join_lines(header, *rows),
        "spring.csv": _join_lines(header, *rows[:7]),
        "autumn.csv": _join_lines(header, *rows[7:]),
        "tomorrow.csv": DAY,
        "costs.csv": COSTS,
        "cancer.csv": _join_lines(*learned),
        "patients.csv": _join_lines(*kept),
    }


def _join_lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"


@command(short_help="Print a shell completion script", epilog="""\b
Example:
  eval "$(deciban completion bash)"
""")  # fmt: skip
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common_options
def completion(shell: str, as_json: bool) -> None:
    """Print a script for SHELL that completes commands, options, files, columns and classes."""
    from click.shell_completion import get_completion_class

    from deciban.cli import app

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    source = kind(app, {}, "deciban", "_DECIBAN_COMPLETE").source()
    if as_json:
        echo_json({"shell": shell, "script": source})
    else:
        click.echo(source)


@command(short_help="Apply Bayes' theorem to test results", epilog="""\b
Examples:
  deciban bayes --prior 1/20 --sensitivity 90% --false-positive 8%
  deciban bayes --prior 0.05 --sensitivity 0.9 --specificity 0.92 \\
      --results positive,positive,negative
  deciban bayes --prior ill=0.05,well=0.95 --likelihood ill=0.9,well=0.08
""")  # fmt: skip
@click.option(
    "--prior",
    required=True,
    metavar="PRIOR",
    help="Prior probability of the first hypothesis, or of all: 'a=0.2,b=0.8'.",
)
@click.option(
    "--sensitivity",
    multiple=True,
    metavar="P",
    help="P(positive | ill) of a test. Repeat it for tests with different values.",
)
@click.option("--false-positive", multiple=True, metavar="P", help="P(positive | well) of a test.")
@click.option("--specificity", multiple=True, metavar="P", help="P(negative | well), instead of --false-positive.")
@click.option(
    "--results",
    metavar="LIST",
    show_default="positive",
    help="Results of several tests in a row: positive,negative,…",
)
@click.option(
    "--likelihood",
    multiple=True,
    metavar="LIST",
    help="Likelihood of any other evidence under each hypothesis: 'a=0.9,b=0.1' or '0.9,0.1'. Repeatable.",
)
@click.option("--density", is_flag=True, help="--likelihood gives densities: show no natural frequencies.")
@click.option(
    "--names", metavar="A,B", show_default="ill,well for tests, A,B otherwise", help="Names of the hypotheses."
)
@click.option(
    "--population",
    type=click.IntRange(1),
    metavar="N",
    show_default="chosen automatically",
    help="Population size for natural frequencies.",
)
@common_options
def bayes(prior: str, as_json: bool, names: str | None, population: int | None, **options: Any) -> None:
    """Compute posterior probabilities after one or more tests, or any other evidence.

    The result is also shown in natural frequencies.
    """
    from deciban.decisions.theorem import bayes as theorem

    tests = _parse_tests(options)
    evidence = [*tests, *(_parse_numbers(text, "--likelihood") for text in options["likelihood"])]
    if not evidence:
        raise click.UsageError("no evidence; give --sensitivity and --false-positive, or --likelihood")
    if options["density"] and not options["likelihood"]:
        raise click.UsageError("--density applies to --likelihood; the rates of a test are probabilities")
    names = names or ("ill,well" if tests else "A,B")
    hypotheses = tuple(name.strip() for name in names.split(","))
    if len(hypotheses) != 2:
        raise click.UsageError(f"--names {names}: expected two names separated by a comma")
    believed: Any = _parse_numbers(prior, "--prior") if "=" in prior else _parse_probability(prior, "--prior")
    shown = [theorem(believed, evidence[0], hypotheses, density=options["density"] and not tests)]
    for place, likelihoods in enumerate(evidence[1:], start=1):
        shown.append(shown[-1].update(likelihoods, density=options["density"] and place >= len(tests)))
    if as_json:
        return echo_json([belief.to_dict() for belief in shown])
    for place, belief in enumerate(shown):
        if len(shown) > 1:
            echo_heading(f"evidence {place + 1}")
        echo(belief.calculation())
        if population is not None or belief.has_frequencies:
            echo(belief.frequencies(population))
    return None


def _parse_tests(options: dict[str, Any]) -> list[tuple[float, float]]:
    """Return the likelihoods of each test result under both hypotheses."""
    sensitivity, alarms, specificity = (
        [_parse_share(text, f"--{name.replace('_', '-')}") for text in options[name]]
        for name in ("sensitivity", "false_positive", "specificity")
    )
    alarms += [1.0 - share for share in specificity]
    if not sensitivity and not alarms:
        return []
    if not sensitivity or not alarms:
        raise click.UsageError("a test needs both --sensitivity and --false-positive (or --specificity)")
    results = [text.strip() for text in (options["results"] or "").split(",") if text.strip()]
    tests = max(len(sensitivity), len(alarms), len(results), 1)
    results = results or ["positive"] * tests
    sensitivity, alarms = (each * tests if len(each) == 1 else each for each in (sensitivity, alarms))
    if not len(sensitivity) == len(alarms) == len(results) == tests:
        raise click.UsageError(
            "--sensitivity, --false-positive and --results need one value for each test, or one for all"
        )
    if invalid := [result for result in results if result not in ("positive", "negative", "+", "-")]:
        raise click.UsageError(f"--results {invalid[0]}: expected positive or negative")
    return [
        (hit, alarm) if result in ("positive", "+") else (1.0 - hit, 1.0 - alarm)
        for hit, alarm, result in zip(sensitivity, alarms, results, strict=True)
    ]


def _parse_probability(text: str, option: str) -> float:
    try:
        return parse_number(text)
    except ValueError:
        raise click.UsageError(f"{option} {text}: expected a probability, such as 0.9, 90% or 9/10") from None


def _parse_share(text: str, option: str) -> float:
    if not 0.0 <= (share := _parse_probability(text, option)) <= 1.0:
        raise click.UsageError(f"{option} {text}: expected a probability between 0 and 1, or 0% and 100%")
    return share


def _parse_numbers(text: str, option: str) -> Any:
    parts = text.split(",")
    if "=" not in text:
        return tuple(_parse_probability(part, option) for part in parts)
    pairs = (parse_pair(part, option, "a=0.2,b=0.8") for part in parts)
    return {name.strip(): _parse_probability(value, option) for name, value in pairs}
