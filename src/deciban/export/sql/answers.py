"""From the log joint of each class to what is answered: the class, its probability, and why."""

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from deciban.export.ir import TermModel
from deciban.export.sql.cells import Cells
from deciban.export.sql.stages import total
from deciban.sources.dialects import Dialect
from deciban.tables.labels import LabelArray
from deciban.util.text_tables import DECIBANS, class_name, evidence_name


class Names:
    """Names of answers: no longer than the engine can have them, and none that is taken."""

    def __init__(self, dialect: Dialect, taken: Iterable[str]) -> None:
        self.dialect = dialect
        self._taken = {name.casefold() for name in taken}

    def new(self, wanted: str) -> str:
        """A name like the one that is wanted, as SQL writes it."""
        name = self.dialect.possible_name(wanted)
        shown, more = self._cut(name, 0), 0
        while shown.casefold() in self._taken:
            more += 1
            shown = self._cut(name, more) + "_" * more
        self._taken.add(shown.casefold())
        return self.dialect.identifier(shown)

    def _cut(self, name: str, less: int) -> str:
        return name.encode()[: self.dialect.longest_name - less].decode(errors="ignore")


def label_literals(dialect: Dialect, classes: LabelArray) -> list[str]:
    """The labels of the classes, in their type."""
    kind, labels = classes.dtype.kind, classes.tolist()
    if kind == "b":
        return [str(label).upper() for label in labels]
    if kind in "iu":
        return [f"CAST('{label}' AS {dialect.integer})" for label in labels]
    if kind == "M":
        days = classes.dtype == np.dtype("M8[D]")
        shown = np.datetime_as_string(classes, unit="D" if days else "us")
        return [f"CAST('{label.replace('T', ' ')}' AS {'DATE' if days else dialect.timestamp})" for label in shown]
    return [dialect.literal(label if isinstance(label, str) else class_name(label)) for label in labels]


class Answers:
    """What is answered of a row, given the log joint of each class; of a row that is `refused` all is NULL."""

    def __init__(self, cells: Cells, model: TermModel, sums: Sequence[Sequence[str]], refused: str | None) -> None:
        self.cells, self.model, self.stages = cells, model, cells.stages
        self.number, self.first = cells.dialect.number, cells.first
        self.labels = label_literals(cells.dialect, model.classes)
        self.joint = self.stages.names("j", [self.stages.sum("k", parts) for parts in sums])
        top = self._greatest(self.joint)
        if refused is not None:
            top = f"CASE WHEN {self.stages.name('r', refused)} THEN NULL ELSE {top} END"
        self.top = self.stages.name("m", top)
        self.impossible = f"{self.top} = {self.number(-math.inf)}"
        best = " ".join(f"WHEN {one} = {self.top} THEN {c}" for c, one in enumerate(self.joint, self.first))
        likely = self.first + int(model.log_prior.argmax())
        self.best = self.stages.name("c", f"CASE WHEN {self.impossible} THEN {likely} {best} END")

    def _greatest(self, numbers: Sequence[str]) -> str:
        return f"GREATEST({', '.join(numbers)})" if len(numbers) > 1 else numbers[0]

    def predicted(self) -> str:
        """The label of the most probable class."""
        return self._label(self.best)

    def _label(self, place: str) -> str:
        cases = " ".join(f"WHEN {c} THEN {label}" for c, label in enumerate(self.labels, self.first))
        return f"CASE {place} {cases} END"

    def probabilities(self) -> list[str]:
        """The posterior of each class; the prior where every class has probability 0."""
        least, zero = self.number(self.cells.engine.least_exponent), self.number(0.0)
        behind = [f"{one} - {self.top}" for one in self.joint]
        shares = self.stages.names(
            "q", [f"CASE WHEN {one} < {least} THEN {zero} ELSE exp({one}) END" for one in behind]
        )
        whole = self.stages.name("q", total(shares))
        priors = [self.number(math.exp(value)) for value in self.model.log_prior]
        return [
            f"CASE WHEN {self.impossible} THEN {prior} ELSE {share} / {whole} END"
            for prior, share in zip(priors, shares, strict=True)
        ]

    def against(self) -> str:
        """The place of the next best class; NULL where there is none, or every class has probability 0."""
        if len(self.joint) == 1:
            return f"CAST(NULL AS {self.cells.dialect.integer})"
        others = [
            f"CASE WHEN {self.best} = {c} THEN {self.number(-math.inf)} ELSE {one} END"
            for c, one in enumerate(self.joint, self.first)
        ]
        second = self.stages.name("m", self._greatest(others))
        cases = " ".join(
            f"WHEN {self.best} <> {c} AND {one} = {second} THEN {c}" for c, one in enumerate(self.joint, self.first)
        )
        return self.stages.name("c", f"CASE WHEN {self.impossible} THEN NULL {cases} END")

    def explanation(self, columns: Mapping[str, Sequence[Sequence[str]]]) -> list[tuple[str, str]]:
        """(name, expression): the class that speaks against the best one, and in decibans the sum of what speaks for
        the best one, the prior and what each of the columns says."""
        other = self.against()
        start = [[self.number(value)] for value in self.model.log_prior.tolist()]
        found = [("against", self._label(other)), ("decibans", self._decibans([[one] for one in self.joint], other))]
        found.append((evidence_name("prior"), self._decibans(start, other)))
        found += [(evidence_name(name), self._decibans(sums, other)) for name, sums in columns.items()]
        return found

    def _decibans(self, sums: Sequence[Sequence[str]], other: str) -> str:
        """How far the best class is ahead of another."""
        if len(self.joint) == 1:
            return f"CAST(NULL AS {self.cells.dialect.double})"
        each = [total(parts) if parts else self.number(0.0) for parts in sums]
        if len(each) == 2:
            ahead, behind = self.number(DECIBANS), self.number(-DECIBANS)
            sign = f"CASE {other} WHEN {self.first} THEN {ahead} WHEN {self.first + 1} THEN {behind} END"
            return f"{self.stages.name('g', sign)} * ({each[1]} - {each[0]})"
        names = self.stages.names("v", each)
        return f"{self.number(DECIBANS)} * ({self._element(names, self.best)} - {self._element(names, other)})"

    def _element(self, names: Sequence[str], place: str) -> str:
        cases = " ".join(f"WHEN {c} THEN {one}" for c, one in enumerate(names, self.first))
        return f"CASE {place} {cases} END"
