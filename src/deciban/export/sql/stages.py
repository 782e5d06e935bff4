"""Named expressions of a row, and the chain of subqueries that works them out: each in terms of those before it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from deciban.export.sql.engines import Engine

# The names that expressions are given: columns of the table are read in the first subquery alone, by other names.
NAME = re.compile(r"\b_[a-z]+[0-9]+\b")

# Expressions that are added up in one: engines that compile expressions fail at long ones.
TERMS_OF_A_SUM = 16


@dataclass
class Stage:
    """One subquery: expressions by their names, the names that each of these mentions, and the tables that it joins, by
    the names of their keys."""

    named: dict[str, str] = field(default_factory=dict)
    mentions: dict[str, set[str]] = field(default_factory=dict)
    joins: list[tuple[str, str]] = field(default_factory=list)


class Stages:
    """Expressions that are worked out once each, and are then known by a name.

    An expression stands in the first subquery in which all names that it mentions are known.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._stages: list[Stage] = []
        self._known: dict[str, str] = {}
        self._stage_of: dict[str, int] = {}

    def read(self, prefix: str, expression: str) -> str:
        """The name of an expression of cells of the table, whatever these are called."""
        return self._known.get(expression) or self._put(prefix, expression, set())

    def name(self, prefix: str, expression: str) -> str:
        """The name of an expression, the same for the same one. (A text in it that looks like a name does no harm.)"""
        return self._known.get(expression) or self._put(prefix, expression, self._mentioned(expression))

    def names(self, prefix: str, expressions: Sequence[str]) -> list[str]:
        """The names of several expressions that are needed together, or where they stand in one array."""
        if not self.engine.packs or len(expressions) < 3:
            return [self.name(prefix, expression) for expression in expressions]
        array = self.name(prefix, f"ARRAY[{', '.join(expressions)}]")
        return [f"{array}[{k + self.engine.dialect.first}]" for k in range(len(expressions))]

    def sum(self, prefix: str, terms: Sequence[str]) -> str:
        """The sum of some expressions; of many, the sum of sums that have names."""
        while len(terms) > TERMS_OF_A_SUM:
            pieces = [terms[k : k + TERMS_OF_A_SUM] for k in range(0, len(terms), TERMS_OF_A_SUM)]
            terms = [self.name(prefix, total(some)) if len(some) > 1 else some[0] for some in pieces]
        return total(terms)

    def joined(self, prefix: str, key: str, array: str, first: int, size: int) -> str:
        """The name of the place of a key in an array of so many elements, from the first one on; NULL where it is none
        of them."""
        table = f"_t{len(self._known)}"
        found = self._put(prefix, f"{table}.place", {key})
        join = f"LEFT JOIN {self.engine.keys(array, first, size, table)} ON {key} = {table}.level"
        self._stages[self._stage_of[found]].joins.append((key, join))
        return found

    def _put(self, prefix: str, expression: str, mentioned: set[str]) -> str:
        name, stage = f"_{prefix}{len(self._known)}", max((1 + self._stage_of[one] for one in mentioned), default=0)
        while len(self._stages) <= stage:
            self._stages.append(Stage())
        self._stages[stage].named[name], self._stages[stage].mentions[name] = expression, mentioned
        self._known[expression], self._stage_of[name] = name, stage
        return name

    def _mentioned(self, expression: str) -> set[str]:
        return {name for name in NAME.findall(expression) if name in self._stage_of}

    def statement(self, table: str, answers: Sequence[str]) -> str:
        """One SELECT of the answers; a table is given as FROM takes it."""
        needed = set().union(*map(self._mentioned, answers))
        parts: list[str] = []
        last = len(self._stages) - 1
        for k in range(last, -1, -1):
            stage = self._stages[k]
            used = [name for name in stage.named if name in needed]
            carried = sorted(needed - set(used))
            shown = [f"{stage.named[name]} AS {name}" for name in used]
            source = " ".join([f"_stage{k - 1}" if k else table, *(join for _, join in stage.joins)])
            parts.append(f"_stage{k} AS (\n{self.engine.fence}SELECT {_lines([*carried, *shown])}\nFROM {source}\n)")
            needed = {*carried, *(key for key, _ in stage.joins)}.union(*(stage.mentions[name] for name in used))
        chain = ",\n".join(reversed(parts))
        return f"WITH {chain}\nSELECT {_lines(answers)}\nFROM _stage{last}\n"


def _lines(expressions: Iterable[str]) -> str:
    return ",\n  ".join(expressions)


def total(terms: Sequence[str]) -> str:
    """The sum of some expressions, as a tree without deep branches.

    >>> total(["a", "b", "c"])
    '(a + (b + c))'
    """
    if len(terms) <= 1:
        return terms[0] if terms else "0"
    half = len(terms) // 2
    return f"({total(terms[:half])} + {total(terms[half:])})"
