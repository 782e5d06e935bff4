"""demo and completion: a guided tour that needs no data, and completion for the shell."""

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import click

from deciban.cli.common import common, heading, say, say_json

DAY = "outlook,temperature,humidity,wind\nsunny,cool,high,strong\n"
PATIENTS = (0, 40, 100, 135, 146, 300, 363, 500)  # kept back from learning; some are hard to tell
COSTS = ",benign,malignant\nbenign,0,100\nmalignant,1,0\n"

WEATHER = (
    (
        "Fourteen days, and whether tennis was played. Counting them is all the learning there is.",
        "fit weather.csv --target play --output weather.dcb --plain --alpha 0",
    ),
    (
        "Will it be played on a sunny, cool, humid, windy day? Prior times likelihoods, step by step.",
        "explain weather.dcb tomorrow.csv --steps",
    ),
    (
        "Counts add: two halves of the table, learned apart, are the model of the whole.",
        "fit spring.csv --target play --output spring.dcb --plain --alpha 0",
    ),
    (None, "fit autumn.csv --target play --output autumn.dcb --plain --alpha 0"),
    (None, "merge spring.dcb autumn.dcb --output year.dcb"),
)
CANCER = (
    (
        "A real table: 561 tumours of the breast, thirty measurements each (Wisconsin, 1995; 8 are kept back).\n"
        "First, how good can it be? Each fifth of the rows is judged by the other four.",
        "evaluate cancer.csv --target diagnosis --folds 5 --costs costs.csv",
    ),
    (
        "Learn most of it. What each column is, is found by itself, and can be overruled with --family.",
        "fit cancer.csv --target diagnosis --output cancer.dcb",
    ),
    (
        "Classify patients that it has not seen.",
        "predict cancer.dcb patients.csv --probabilities --keep patient",
    ),
    (
        "Why? The evidence of each measurement, in decibans: 10 are ten to one.",
        "explain cancer.dcb patients.csv --row 1",
    ),
    (
        "To overlook a cancer costs a hundred times what a needless examination costs (costs.csv), and a second look\n"
        "costs half an examination. The decision of least expected cost:",
        "decide cancer.dcb patients.csv --costs costs.csv --reject 0.5 --keep patient",
    ),
)


@click.command(epilog="""\b
Examples:
  deciban demo
  deciban demo --files tour     write the tables of the tour into a folder, to play with
""")  # fmt: skip
@click.option("--files", metavar="FOLDER", help="Only write the tables of the tour into this folder.")
@common
def demo(files: str | None, as_json: bool) -> None:
    """A guided tour that needs no data: the weather step by step, then a real table from file to decision."""
    if files is not None:
        names = write_tables(Path(files))
        return say_json({"folder": files, "files": names}) if as_json else say("\n".join(names))
    tour: list[dict[str, Any]] = []
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="deciban-") as folder:
        write_tables(Path(folder))
        os.chdir(folder)
        try:
            for text, command in (*WEATHER, *CANCER):
                if as_json:
                    tour.append({"text": text, "command": f"deciban {command}"})
                    continue
                if text is not None:
                    say()
                    say(text)
                say()
                heading(f"$ deciban {command}")
                _run(shlex.split(command))
        finally:
            os.chdir(before)
    if as_json:
        return say_json(tour)
    say()
    say("The tables of this tour: deciban demo --files tour. What else there is: deciban --help.")
    return None


def _run(arguments: list[str]) -> None:
    from deciban.cli import app

    app.main(arguments, prog_name="deciban", standalone_mode=False)


def write_tables(folder: Path) -> list[str]:
    """Write the tables of the tour; their paths."""
    from pyarrow import csv
    from sklearn.datasets import load_breast_cancer

    from deciban.data.write import replacing
    from deciban.datasets import weather

    folder.mkdir(parents=True, exist_ok=True)
    days = weather()
    real = load_breast_cancer()
    columns = [name.replace(" ", "_") for name in real.feature_names]
    learned, kept = [",".join([*columns, "diagnosis"])], [",".join(["patient", *columns])]
    for i, (row, label) in enumerate(zip(real.data, real.target, strict=True)):
        cells = ",".join(f"{cell:.6g}" for cell in row)
        if i in PATIENTS:
            kept.append(f"p{i + 1:03d},{cells}")
        else:
            learned.append(f"{cells},{real.target_names[label]}")
    texts = {
        "tomorrow.csv": DAY,
        "costs.csv": COSTS,
        "cancer.csv": "\n".join(learned) + "\n",
        "patients.csv": "\n".join(kept) + "\n",
    }
    for name, table in {"weather.csv": days, "spring.csv": days.slice(0, 7), "autumn.csv": days.slice(7)}.items():
        with replacing(folder / name) as file:
            csv.write_csv(table, file, csv.WriteOptions(quoting_style="none"))
    for name, text in texts.items():
        with replacing(folder / name) as file:
            file.write(text.encode())
    return [str(folder / name) for name in ("weather.csv", "spring.csv", "autumn.csv", *texts)]


@click.command(epilog="""\b
Example:
  eval "$(deciban completion bash)"
""")  # fmt: skip
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
def completion(shell: str, as_json: bool) -> None:
    """Print what SHELL needs to complete commands and options."""
    from click.shell_completion import get_completion_class

    from deciban.cli import app

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    source = kind(app, {}, "deciban", "_DECIBAN_COMPLETE").source()
    if as_json:
        say_json({"shell": shell, "script": source})
    else:
        click.echo(source)
