"""demo and completion: a guided tour that needs no data, and completion for the shell."""

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import click

from deciban.cli.common import common, files, heading, say, say_json
from deciban.util import shutdown

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
  deciban demo --files          write the tables of the tour into the folder deciban-demo, to play with
""")  # fmt: skip
@click.option(
    "--files",
    shell_complete=files,
    is_flag=False,
    flag_value="deciban-demo",
    metavar="[FOLDER]",
    help="Only write the tables of the tour into this folder, deciban-demo unless given; no file is overwritten.",
)
@common
def demo(files: str | None, as_json: bool) -> None:
    """A guided tour that needs no data: the weather step by step, then a real table from file to decision."""
    if files is not None:
        names = write_tables(Path(files))
        return say_json({"folder": files, "files": names}) if as_json else say("\n".join(names))
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
    say("The tables of this tour: deciban demo --files. What else there is: deciban --help.")
    return None


def _run(arguments: list[str]) -> None:
    from deciban.cli import app

    app.main(arguments, prog_name="deciban", standalone_mode=False)


def write_tables(folder: Path) -> list[str]:
    """Write the tables of the tour; their paths. Files that are there already and are others are refused."""
    from deciban.sources.write import replacing

    tables = {folder / name: text.encode() for name, text in tables_of_the_tour().items()}
    for path, content in tables.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != content):
            raise FileExistsError(f"{path}: there is such a file already, and it is another one; give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in tables.items():
        if not path.exists():
            with replacing(path) as file:
                file.write(content)
    return list(map(str, tables))


def tables_of_the_tour() -> dict[str, str]:
    """The names of the files of the tour and what they hold."""
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
        "weather.csv": _lines(header, *rows),
        "spring.csv": _lines(header, *rows[:7]),
        "autumn.csv": _lines(header, *rows[7:]),
        "tomorrow.csv": DAY,
        "costs.csv": COSTS,
        "cancer.csv": _lines(*learned),
        "patients.csv": _lines(*kept),
    }


def _lines(*lines: str) -> str:
    return "\n".join(lines) + "\n"


@click.command(epilog="""\b
Example:
  eval "$(deciban completion bash)"
""")  # fmt: skip
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@common
def completion(shell: str, as_json: bool) -> None:
    """Print what SHELL needs to complete commands, options and files."""
    from click.shell_completion import get_completion_class

    from deciban.cli import app

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    source = kind(app, {}, "deciban", "_DECIBAN_COMPLETE").source()
    source = source.replace(
        "complete -o nosort", "complete -o nosort -o bashdefault -o default"
    )  # else no file is found
    if as_json:
        say_json({"shell": shell, "script": source})
    else:
        click.echo(source)
