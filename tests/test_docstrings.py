"""Everything that is exported has a docstring that a user of scikit-learn can work with (numpydoc's sections)."""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from types import FunctionType
from typing import Any

import pytest

import deciban
from deciban import datasets, dropin, plot
from deciban.families import Family

pytestmark = pytest.mark.house

EXPORTED = {
    **{name: getattr(deciban, name) for name in deciban.__all__},
    **{f"dropin.{name}": getattr(dropin, name) for name in dropin.__all__},
    **{f"datasets.{name}": getattr(datasets, name) for name in datasets.__all__},
    **{f"plot.{name}": getattr(plot, name) for name in plot.__all__},
}

NOTHING = (None, "None", inspect.Signature.empty)


def sections(thing: Any) -> dict[str, list[str]]:
    """The lines of each section of a docstring; those before the first section are its "Summary"."""
    found: dict[str, list[str]] = {"Summary": []}
    here = found["Summary"]
    lines = (inspect.getdoc(thing) or "").splitlines()
    for k, line in enumerate(lines):
        if k + 1 < len(lines) and line and lines[k + 1] == "-" * len(line):
            here = found.setdefault(line, [])
        elif not re.fullmatch(r"-{3,}", line):
            here.append(line)
    return found


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    try:
        found = inspect.signature(thing).parameters
    except ValueError:  # an exception that has no signature of its own
        return {}
    return {name: one for name, one in found.items() if name not in ("self", "cls")}


def documented_parameters(lines: list[str]) -> dict[str, str]:
    """The type of each name; several names may share one line."""
    entries = [line.split(" : ", 1) for line in lines if line and not line.startswith(" ")]
    return {name.strip().lstrip("*"): kind for names, kind in entries for name in names.split(",")}


def public_methods(thing: type) -> Iterator[tuple[str, Any]]:
    """The methods and properties that this project gives a class, its own and inherited ones."""
    for home in thing.__mro__:
        if home.__module__.startswith("deciban"):
            for name, member in vars(home).items():
                if not name.startswith("_") and isinstance(
                    member, FunctionType | classmethod | staticmethod | property | cached_property
                ):
                    yield f"{home.__name__}.{name}", member


def check_parameters(thing: Any) -> None:
    expected, found = parameters(thing), documented_parameters(sections(thing).get("Parameters", []))
    assert list(found) == list(expected)
    for name, one in expected.items():
        assert found[name], f"{name} has no type"
        if one.default is not inspect.Parameter.empty:
            assert "default=" in found[name], f"{name} does not name its default"
            check_default(found[name].partition("default=")[2], one.default)
        elif one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            assert "default=" not in found[name], f"{name} has no default"


def check_default(documented: str, default: Any) -> None:
    """A default that is a value of Python is documented as it is; others, such as Gaussian(), by their `repr`."""
    if documented not in (repr(default), getattr(default, "__name__", None)) and repr(default) != "<factory>":
        assert ast.literal_eval(documented) == default


@pytest.mark.parametrize("name", EXPORTED)
def test_what_is_exported_is_documented(name: str) -> None:
    thing = EXPORTED[name]
    found = sections(thing)
    assert found["Summary"]
    assert found["Summary"][0].endswith("."), "the first line is a whole sentence"
    assert len(found["Summary"]) == 1 or not found["Summary"][1], "the first line stands alone"
    assert any(line.startswith(">>> ") for line in found.get("Examples", [])), "there is no example"
    if not (isinstance(thing, type) and issubclass(thing, Exception)):
        check_parameters(thing)
    if not isinstance(thing, type) and inspect.signature(thing).return_annotation not in NOTHING:
        assert "Returns" in found


@pytest.mark.parametrize("name", [name for name, thing in EXPORTED.items() if isinstance(thing, type)])
def test_methods_of_what_is_exported_are_documented(name: str) -> None:
    contract = vars(Family) if hasattr(EXPORTED[name], "score_left_out") else {}  # each method is explained once, there
    for place, member in public_methods(EXPORTED[name]):
        if place.split(".")[1] in contract:
            continue
        assert inspect.getdoc(member), f"{place} has no docstring"
        if isinstance(member, property | cached_property):
            continue
        function = member if isinstance(member, FunctionType) else member.__func__
        check_parameters(function)
        if inspect.signature(function).return_annotation not in NOTHING:
            assert {"Returns", "Yields"} & sections(function).keys(), f"{place} does not say what it returns"
