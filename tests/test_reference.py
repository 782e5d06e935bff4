"""The reference of the API: every public name is in it, and docstrings agree with signatures."""

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import deciban
from deciban import BayesClassifier, results
from deciban.families import BaseLikelihood, BlockFamily, ColumnFamily, Family, Likelihood
from deciban.statistics import Statistic
from tests.test_docstrings import check_parameters
from tests.test_public_names import PUBLIC

API = Path(__file__).parents[1] / "docs/reference/api"
MODULES = ["deciban", *PUBLIC]

# Their subclasses implement methods that are documented here.
CONTRACTS = (Family, ColumnFamily, BlockFamily, Likelihood, BaseLikelihood, Statistic)

# Most methods of these serve the package, and have docstrings of one line.
PARTLY_DOCUMENTED = ("Estimates", "FreeParameters", "ParameterCount", "Schema", "Support", "Tuning", "Vocabulary")

# Modules whose docstrings `test_docstrings.py` checks.
ELSEWHERE = tuple(f"deciban.{one}" for one in [*deciban.__all__, "dropin.", "plot.", "datasets."])

# A class of deciban in an annotation of a result.
CLASS = re.compile(r"(?<![\w.])[A-Z]\w+")
NOT_RESULTS = {"Any", "Iterator", "NDArray", "None", "Self", "Table"}


def list_documented() -> list[str]:
    """The full names in the tables of the reference."""
    found, module = [], ""
    for page in sorted(API.glob("*.md")):
        for line in page.read_text().splitlines():
            if match := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = match[1]
            elif match := re.match(r"(?:   |\.\. autodata:: )([A-Za-z_.]+)$", line):
                found.append(f"{module}.{match[1]}")
    return found


DOCUMENTED = list_documented()


def find(name: str) -> Any:
    """The object with a full name."""
    module = max((one for one in MODULES if name.startswith(f"{one}.")), key=len)
    found: Any = import_module(module)
    for part in name.removeprefix(f"{module}.").split("."):
        found = getattr(found, part)
    return found


def is_foreign(member: Any) -> bool:
    return not getattr(inspect.unwrap(member), "__module__", "").startswith("deciban")


def list_members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that deciban defines for a class."""
    for name in dir(kind):
        if name.startswith("_"):
            continue
        member = inspect.getattr_static(kind, name)
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if isinstance(member, cached_property):
            member = member.func
        if isinstance(member, property):
            member = member.fget
        if inspect.isfunction(member) and not is_foreign(member):
            yield name, member


def list_public() -> dict[str, Any]:
    """Public objects by full name, each once."""
    found = {id(find(f"{module}.{name}")): f"{module}.{name}" for module in MODULES[::-1] for name in find_all(module)}
    return {name: find(name) for name in sorted(found.values())}


def find_all(module: str) -> list[str]:
    return list(import_module(module).__all__)


OBJECTS = list_public()
CLASSES = {name: one for name, one in OBJECTS.items() if inspect.isclass(one)}


def is_contract(kind: type) -> bool:
    return kind not in CONTRACTS and any(hasattr(kind, name) for name in ("add_covariance", "reindex_classes"))


def list_callables() -> dict[str, Any]:
    """Public functions, classes with parameters, and methods, by full name."""
    found = {name: one for name, one in OBJECTS.items() if inspect.isroutine(one)}
    for name, kind in CLASSES.items():
        found[name] = kind
        if is_contract(kind) or kind in CONTRACTS:
            continue
        for method, member in list_members(kind):
            static = inspect.getattr_static(kind, method)
            if not isinstance(static, property | cached_property):
                found[f"{name}.{method}"] = member
    return found


CALLABLES = list_callables()


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    documented = {id(find(name)) for name in DOCUMENTED}
    assert [name for name in find_all(module) if id(find(f"{module}.{name}")) not in documented] == []


def test_the_reference_lists_every_name_once() -> None:
    assert sorted(DOCUMENTED) == sorted(set(DOCUMENTED))


def test_every_method_of_the_classifier_is_in_the_reference() -> None:
    methods = {f"deciban.BayesClassifier.{name}" for name, _ in list_members(BayesClassifier)}
    attributes = {name for name in methods if name.endswith("_")}  # in the table of attributes of the class
    assert methods - attributes - set(DOCUMENTED) == set()
    documented = set(re.findall(r"^    (\w+_) : ", BayesClassifier.__doc__ or "", re.MULTILINE))
    assert {name.rpartition(".")[2] for name in attributes} | {"fitted_"} == documented


def test_results_of_the_classifier_are_public() -> None:
    unknown = {
        f"{name} -> {one}"
        for name, method in list_members(BayesClassifier)
        for one in CLASS.findall(str(inspect.signature(method).return_annotation))
        if one not in {*deciban.__all__, *results.__all__, *NOT_RESULTS}
    }
    assert unknown == set()


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_has_a_docstring(name: str) -> None:
    if not is_contract(CLASSES[name]) and CLASSES[name] not in (BaseLikelihood, BlockFamily, ColumnFamily):
        assert [
            member for member, one in list_members(CLASSES[name]) if not inspect.getdoc(getattr(CLASSES[name], member))
        ] == []


@pytest.mark.parametrize("name", [name for name in CALLABLES if not name.startswith(ELSEWHERE)])
def test_documented_parameters_are_those_of_the_signature(name: str) -> None:
    docstring = inspect.getdoc(CALLABLES[name]) or ""
    is_value = inspect.isclass(CALLABLES[name])  # created by functions
    if "Parameters\n---" in docstring or not (is_value or name.split(".")[-2] in PARTLY_DOCUMENTED):
        check_parameters(CALLABLES[name])


@pytest.mark.parametrize("name", CALLABLES)
def test_help_shows_names_of_types(name: str) -> None:
    assert not re.search(r"ndarray\[|typing\.|deciban\.", str(inspect.signature(CALLABLES[name])))
