"""What people write behind options: lists of names, families, priors."""

import ast
import csv
import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import click

from deciban.cli.common import pair

# What stands before the first sign of equality that is not within quotes, and what behind.
NAMES_AND_VALUE = re.compile(r"""((?:"[^"]*"|[^"=])*)=(.*)""", re.DOTALL)

PRIORS = ("empirical", "smoothed", "uniform")


def names_in(text: str, known: Sequence[str] = ()) -> list[str]:
    """The names of a list such as `id,name`; a name with a comma stands in quotes, or alone if it is a `known` one.

    >>> names_in('id, name'), names_in('"last, first",id'), names_in("last, first", ["id", "last, first"])
    (['id', 'name'], ['last, first', 'id'], ['last, first'])
    """
    if text in known:
        return [text]
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return [name.strip() for name in cells if name.strip()]


def prior_of(text: str) -> Any:
    """The name of a prior, or the probability of each class."""
    if text in PRIORS:
        return text
    if "=" not in text:
        known = ", ".join(PRIORS)
        raise click.UsageError(f"--prior {text}: choose {known}, or give probabilities: 'ill=0.01,well=0.99'")
    shares = dict(pair(part, "--prior", "CLASS=PROBABILITY,…") for part in names_in(text))
    try:
        return {name: float(share) for name, share in shares.items()}
    except ValueError:
        raise click.UsageError(f"--prior {text}: give a number for each class") from None


def families_of(texts: Sequence[str], columns: Sequence[str] | None = None) -> dict[Any, Any] | None:
    """{"a": Gaussian(), ("b", "c"): JointGaussian()} of "a=Gaussian" and "b,c=JointGaussian".

    columns: those that can be learned; as long as they are not known, any may be named.
    """
    found: dict[Any, Any] = {}
    for text in texts:
        parts = NAMES_AND_VALUE.fullmatch(text)
        named = names_in(parts[1], columns or ()) if parts is not None else []
        if parts is None or not named:
            raise click.UsageError(f"--family {text}: write it as COLUMN=FAMILY")
        for name in named:
            if columns is not None and name not in columns:
                raise click.UsageError(f"--family {text}: there is no column {name!r}{_near(name, columns)}")
        found[tuple(named) if len(named) > 1 else named[0]] = _family(parts[2], text)
    return found or None


def _family(text: str, option: str) -> Any:
    """A family from its name, or from a call with plain values: data, never code. Capitals do not matter."""
    from deciban.errors import UsageError
    from deciban.families import SPREADS, known_families

    known = {kind.__name__.lower(): kind for kind in (*known_families(), *SPREADS)}
    names = sorted(kind.__name__ for kind in known_families())

    def kind_of(name: str) -> Any:
        return known.get(name.lower().replace("_", ""))

    def made(node: ast.AST) -> Any:
        if isinstance(node, ast.Name):
            return kind_of(node.id)() if kind_of(node.id) is not None else node.id  # a word without quotes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if (kind := kind_of(node.func.id)) is None:
                raise _unknown(node.func.id, option, names)
            return kind(*map(made, node.args), **{item.arg or "": made(item.value) for item in node.keywords})
        return ast.literal_eval(node)

    try:
        found = made(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError) as problem:
        if isinstance(problem, UsageError):
            raise click.UsageError(f"--family {option}: {problem}") from None
        raise _unknown(text.strip(), option, names) from None
    except TypeError as problem:
        said = str(problem).replace("__init__()", "").replace("got an unexpected keyword argument", "has no parameter")
        raise click.UsageError(f"--family {option}: {said.replace('.', '')}") from None
    if not isinstance(found, known_families()):
        raise _unknown(text.strip(), option, names)
    return found


def _unknown(name: str, option: str, names: Sequence[str]) -> click.UsageError:
    hint = _near(name, names) or f"; choose one of {', '.join(names)}, such as 'Binned(bins=32)'"
    return click.UsageError(f"--family {option}: there is no family {name!r}{hint}")


def _near(name: str, known: Sequence[str]) -> str:
    lower = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), lower, 1)
    return f"; did you mean {lower[found[0]]!r}?" if found else ""
