"""The programs of docs/lectures: naive Bayes from scratch, trees beside naive Bayes, and pictures."""

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from .test_examples import MAX_AMOUNT, PICTURES, ROOT, Runs

PAGES = sorted((ROOT / "docs" / "lectures").glob("*.md"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("lectures"))


def shown_in(page: str, program: str) -> list[str]:
    """Return the lines that a page shows as printed by a program."""
    text = (ROOT / "docs" / "lectures" / page).read_text().split(f"python examples/{program}.py")[1]
    return text.split("```text\n")[1].split("```")[0].splitlines()


def test_naive_bayes_from_scratch_and_deciban_agree_to_the_digit(run: Runs) -> None:
    names, printed = run("textbook")
    found = names["found"]
    for lines in found.values():
        mine, theirs = np.array([line[1:] for line in lines]).T
        np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    posterior = {what: value for what, value, _ in found["categories"]}
    assert posterior["posterior of yes"] == pytest.approx(1 / 189 / (1 / 189 + 18 / 875), rel=1e-14)
    assert printed.endswith("\n".join(shown_in("estimation.md", "textbook")) + "\n")


def test_trees_and_naive_bayes_fail_where_the_lecture_says(run: Runs) -> None:
    names, printed = run("trees")
    found = names["found"]
    right = {case: {name: one[0] for name, one in methods.items()} for case, methods in found.items()}
    loss = {case: {name: one[1] for name, one in methods.items()} for case, methods in found.items()}
    for case in ("exclusive or", "parity of three"):
        assert right[case]["with remedy"] == right[case]["tree"] == 1.0
        assert loss[case]["naive Bayes"] > np.log(2)
    assert loss["correlated columns"]["with remedy"] < 0.2 * loss["correlated columns"]["naive Bayes"]
    assert right["wine, 2 rows per class"]["with remedy"] > 0.1 + right["wine, 2 rows per class"]["naive Bayes"]
    assert right["two modes per class"]["with remedy"] > 0.3 + right["two modes per class"]["naive Bayes"]
    for case in ("wine", "wine, 30% of cells missing", "texts"):
        assert right[case]["naive Bayes"] > max(right[case]["tree"], right[case]["pruned tree"])
        assert loss[case]["naive Bayes"] < min(loss[case]["tree"], loss[case]["pruned tree"])
    assert shown_in("failures.md", "trees") == printed.splitlines()


def test_every_picture_of_the_lectures_is_drawn_and_small(run: Runs) -> None:
    names = [*run("lectures")[0]["found"], "trees"]
    run("trees")
    linked = {name for page in PAGES for name in re.findall(r"\]\(\.\./images/([\w-]+)\.png\)", page.read_text())}
    assert linked >= set(names)
    for name in names:
        pixels = imread(run.folder / f"{name}.png")[:, :, :3]
        assert 0.02 < np.mean(np.any(pixels < 0.95, axis=2)) < 0.9
        assert (PICTURES / f"{name}.png").stat().st_size < MAX_AMOUNT


def test_pages_show_scenes_that_exist() -> None:
    links = Path(ROOT / "docs" / "howto" / "page.md").read_text()
    scenes = {scene for page in PAGES for scene in re.findall(r"playground\.html#scene=(\w+)&embed", page.read_text())}
    assert len(scenes) >= 9
    assert [scene for scene in scenes if f"`#scene={scene}`" not in links] == []


WORDS = (
    "posterior|maximum a posteriori|MAP|Bayes optimal|plug-in|prior|likelihood|a priori|a posteriori|chain rule"
    "|conditional independence|naive assumption|curse of dimensionality|gigantic die|joint counting|MLE|Laplace"
    "|Lidstone|logit|hyperplane|generative|discriminative|Bayes risk|reject|XOR|log space|decision tree|underflow"
    "|zero-probability|total probability"
)


@pytest.mark.parametrize("word", WORDS.split("|"))
def test_the_words_of_the_lectures_are_in_headings_or_bold(word: str) -> None:
    """A search weighs them more there."""
    lines = "\n".join(page.read_text() for page in PAGES).splitlines()
    heads = [line for line in lines if line.startswith(("#", "|")) or "**" in line]
    assert any(re.search(rf"\b{word}", line, re.IGNORECASE) for line in heads)
