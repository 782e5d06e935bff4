"""Public names can be seen: `deciban` and a few documented modules; README, docs and examples import nothing else."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import deciban

ROOT = Path(__file__).parent.parent
PUBLIC = [
    *("deciban.dropin", "deciban.plot", "deciban.datasets", "deciban.errors", "deciban.testing"),
    *("deciban.typing", "deciban.results", "deciban.families", "deciban.statistics"),
]

# What is written to be read by users.
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.py"))]


def test_the_names_for_type_checkers_are_the_names_that_are_imported() -> None:
    tree = ast.parse(Path(deciban.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    found: dict[str, str] = {}
    for node in block.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("deciban."):
            found |= {alias.name: node.module for alias in node.names}
            assert all(alias.asname == alias.name for alias in node.names), node.module
    assert found == deciban._HOME_OF
    assert sorted(found) == deciban.__all__


def test_every_public_name_is_there() -> None:
    for name in deciban.__all__:
        assert getattr(deciban, name) is getattr(import_module(deciban._HOME_OF[name]), name)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_modules_list_what_they_export(name: str) -> None:
    module = import_module(name)
    listed = set(module.__all__)
    assert all(hasattr(module, one) for one in listed)
    if name in ("deciban.plot", "deciban.dropin", "deciban.datasets"):  # others also have what only the package uses
        defined = {key for key, value in vars(module).items() if getattr(value, "__module__", "").startswith(name)}
        imported = {key for key, value in vars(module).items() if isinstance(value, type)}
        assert {one for one in defined | imported if not one.startswith("_")} <= listed


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_texts_for_users_import_public_modules_alone(path: Path) -> None:
    used = set(re.findall(r"^\s*(?:>>> )?(?:from|import) (deciban(?:\.\w+)*)", path.read_text(), re.MULTILINE))
    assert used <= {"deciban", *PUBLIC}
