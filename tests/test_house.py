"""The house is in order: lint, format, types, import order, lazy imports, documents that tell the truth."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import NEEDED, SERVED, SLOW
from sklearn.datasets import load_wine

from deciban import __version__

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.house


def run(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("codespell",),
        ("mypy",),
        ("lint-imports",),
    ],
    ids=" ".join,
)
def test_tools_have_no_complaint(command: tuple[str, ...]) -> None:
    if command[0] == "mypy" and sys.version_info >= (3, 12):
        pytest.skip("types are checked on Python 3.11: its NumPy has other type hints than that of later versions")
    run(str(Path(sys.executable).parent / command[0]), *command[1:])


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", ".github/workflows/*.yml"),
        ("dependabot", ".github/dependabot.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("citation-file-format", "CITATION.cff"),
    ],
)
def test_settings_of_other_tools_follow_their_schemas(schema: str, files: str) -> None:
    found = [str(path) for path in sorted(ROOT.glob(files))]
    assert found
    checker = Path(sys.executable).parent / "check-jsonschema"
    run(str(checker), "--builtin-schema", f"vendor.{schema}", *found)


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{__version__}] - 20" in (ROOT / "CHANGELOG.md").read_text()


def test_the_first_command_of_the_readme_prints_what_it_shows() -> None:
    shown = (ROOT / "README.md").read_text().split("```text\n")[1].split("```")[0]
    assert run(sys.executable, "examples/weather.py") == shown


def test_the_own_table_example_of_the_readme_runs(tmp_path: Path) -> None:
    """The example for a table of the reader's own, on one that has its file name and target."""
    code = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    load_wine(as_frame=True).frame.to_csv(tmp_path / "my.csv", index=False)
    printed = run(sys.executable, "-c", code, cwd=tmp_path)
    assert "accuracy" in printed
    assert "evidence for" in printed
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_test_command_of_the_readme_is_what_ci_runs() -> None:
    commands = [part.split("```")[0].strip() for part in (ROOT / "README.md").read_text().split("```sh\n")[1:]]
    assert "examples/weather.py" in commands[0]
    assert commands[1] in (ROOT / ".ci" / "run").read_text()
    assert commands[1] in (ROOT / "CONTRIBUTING.md").read_text()


def test_no_text_says_to_install_deciban_from_an_index() -> None:
    """It is on none, so anyone could register the name and be run by every reader: write `pip install '.[serve]'`."""
    from_index = re.compile(r"deciban\[\w+\]|\b(pip|pipx|tool) install( -\S+)* ['\"]?deciban\b")
    for wrong in ("pip install 'deciban[serve]'", "RUN pip install -q deciban && deciban warmup"):
        assert from_index.search(wrong)
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".ci" / "run"]
    for folder, pattern in (
        ("docs", "*.md"),
        ("deploy", "*"),
        ("src", "*.py"),
        ("examples", "*.py"),
        ("bench", "*.py"),
    ):
        texts += [path for path in (ROOT / folder).rglob(pattern) if path.is_file()]
    assert [path for path in texts if from_index.search(path.read_text(errors="replace"))] == []


def test_importing_is_light() -> None:
    """The package alone imports nothing heavy, and learning imports nothing that is optional."""
    optional = ["polars", "duckdb", "matplotlib", "pyspark", "onnx", "adbc_driver_manager", "ibis", "IPython"]
    heavy = ["numba", "sklearn", "pyarrow", "scipy", "numpy", "pandas", *optional]
    code = f"import sys, deciban; print([name for name in {heavy} if name in sys.modules])"
    assert run(sys.executable, "-c", code).strip() == "[]"
    code = (
        "import sys; from deciban import BayesClassifier\n"
        "assert 'numba' not in sys.modules\n"
        "BayesClassifier().fit([[1.0], [2.0]], [0, 1]).predict([[1.5]])\n"
        f"print([name for name in {optional} if name in sys.modules])"
    )
    assert run(sys.executable, "-c", code).strip() == "[]"


def test_places_of_slow_tests_exist() -> None:
    """A test module that moves must not become a unit test unnoticed."""
    for place in (*SLOW, *SERVED, *NEEDED):
        file, _, name = place.partition("::")
        assert (ROOT / file).exists(), place
        assert f"def {name}" in (ROOT / file).read_text() if name else True, place
