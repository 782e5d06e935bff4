"""The calculation behind a prediction, step by step, as text."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.arrays import decoded_cells
from deciban.data.tables import Table, is_text
from deciban.explain.words import DECIBANS, SpokenText, spoken_texts
from deciban.model import Evidence, Model
from deciban.text_tables import aligned

# More classes than this do not fit beside each other: the most probable ones are shown.
MOST_CLASSES = 4

# Characters of a cell that are shown.
MOST_CELL = 40


@dataclass(frozen=True)
class Steps:
    """The prior, the likelihood of every block, their product and the posterior of some rows; printing shows them."""

    evidence: Evidence
    model: Model
    table: Table

    @classmethod
    def of(cls, model: Model, table: Table, first_row: int = 0) -> "Steps":
        return cls(model.evidence(table, first_row), model, table)

    def __str__(self) -> str:
        return "\n\n".join(self.calculation(row) for row in range(self.table.rows))

    def calculation(self, row: int) -> str:
        """The calculation as in a lecture, and the evidence in decibans."""
        evidence = self.evidence
        log_joint, log_posterior = evidence.log_joint[row], evidence.log_posterior[row]
        order = np.argsort(-log_posterior, kind="stable")
        shown = np.sort(order[:MOST_CLASSES])
        names = [str(label) for label in evidence.classes]
        lines = [("", *(names[c] for c in shown)), ("prior", *(_number(evidence.log_prior[c]) for c in shown))]
        one, blocks, cells = self._cells(row)
        read = [part.family.read(one, part.columns) for part in self.model.schema.parts]
        for b, (part, place) in enumerate(blocks):
            found = []
            for c in shown:
                steps = self.model.likelihoods[part].working(read[part], 0, place, int(c))
                value = _number(evidence.values[row, b, c])
                found.append("1 (missing or never seen: no evidence)" if steps is None else f"{steps} = {value}")
            weight = evidence.weights[b]
            lines.append((cells[b] + ("" if weight == 1.0 else f"  (weight {weight:.3g})"), *found))
        if evidence.bias.any():
            lines.append(("bias", *(f"× {_number(evidence.bias[c])}" for c in shown)))
        lines.append(("joint", *(_number(log_joint[c]) for c in shown)))
        lines.append(("posterior", *(f"{np.exp(log_posterior[c]):.4f}" for c in shown)))
        text = aligned(lines)
        if evidence.impossible[row]:
            text += "\nevery class gives this row probability 0: the posterior is the prior"
        hidden = len(names) - len(shown)
        if hidden:
            text += f"\n({hidden} less probable classes are not shown)"
        text += f"\ndecision: {names[order[0]]}"
        if len(order) > 1 and not evidence.impossible[row]:
            text += "\n" + self._decibans(row)
        return text

    def summary(self, row: int) -> str:
        """What is predicted, and the evidence for it in decibans."""
        found = self.reasons(row)
        chances = sorted(found["posterior"].items(), key=lambda item: -item[1])[:MOST_CLASSES]
        text = f"predicted: {found['predicted']} (" + ", ".join(f"P({name}) = {p:.4f}" for name, p in chances) + ")"
        return text if found["against"] is None else f"{text}\n{self._decibans(row, short=True)}"

    def reasons(self, row: int) -> dict[str, Any]:
        """What is predicted, the posterior of each class, and the evidence against the next best: terms of a sum."""
        evidence = self.evidence
        posterior = evidence.log_posterior[row]
        order = np.argsort(-posterior, kind="stable")
        labels = evidence.classes.tolist()
        chances = {str(label): float(np.exp(posterior[c])) for c, label in enumerate(labels)}
        found = {"predicted": labels[order[0]], "posterior": chances, "against": None, "decibans": []}
        if len(order) == 1 or evidence.impossible[row]:
            return found
        best, other = order[:2]
        with np.errstate(invalid="ignore"):
            terms = [("prior", evidence.log_prior[best] - evidence.log_prior[other])]
            if evidence.bias.any():
                terms.append(("bias", evidence.bias[best] - evidence.bias[other]))
            each = evidence.weighted[row, :, best] - evidence.weighted[row, :, other]
        terms += list(zip(self._cells(row)[2], each, strict=True))
        shown = sorted(terms, key=lambda term: -abs(np.nan_to_num(term[1])))
        found["decibans"] = [(name, float(DECIBANS * value)) for name, value in shown]
        if texts := self.words(row):
            found["words"] = {text.column: [(word.word, word.decibans) for word in text.words] for text in texts}
        return {**found, "against": labels[other], "sum": float(DECIBANS * sum(value for _, value in terms))}

    def words(self, row: int = 0) -> list[SpokenText]:
        """What the texts of a row say for the best class against the next, word by word; empty where there are none."""
        order = np.argsort(-self.evidence.log_posterior[row], kind="stable")
        if order.size == 1 or self.evidence.impossible[row]:
            return []
        return list(spoken_texts(self.model, self.table.slice(row, row + 1), int(order[0]), int(order[1])))

    def _cells(self, row: int) -> tuple[Table, list[tuple[int, int]], list[str]]:
        """The row alone, where its blocks are in the model, and each block as people write it."""
        one = self.table.slice(row, row + 1)
        blocks = [self.model.schema.locate(b) for b in range(len(self.evidence.blocks))]
        return one, blocks, [_cell(one, self.model, *block) for block in blocks]

    def _decibans(self, row: int, short: bool = False) -> str:
        """The evidence for the best class against the next, as terms of a sum; `short`: without those that are 0."""
        found = self.reasons(row)
        terms = [term for term in found["decibans"] if not short or term[1] != 0.0]
        lines = [(name, f"{value:+.2f}") for name, value in terms]
        if silent := len(found["decibans"]) - len(terms):
            lines.append((f"{silent} others", "+0.00"))
        lines.append(("sum", f"{found['sum']:+.2f}"))
        text = f"evidence for {found['predicted']} against {found['against']}, in decibans:\n" + aligned(lines)
        return "\n".join([text, *map(str, self.words(row))])


def _cell(row: Table, model: Model, part: int, block: int) -> str:
    """A block of a row as people write it: outlook = sunny."""
    columns = model.schema.parts[part].columns
    if not model.schema.parts[part].family.joint:
        columns = columns[block : block + 1]
    if len(columns) > 4:
        return f"{len(columns)} columns as {model.schema.parts[part].family}"
    return ", ".join(f"{model.schema.column_name(column)} = {_value(row, column)}" for column in columns)


def _value(row: Table, column: int) -> str:
    cells = row.values([column])
    if isinstance(cells, list):
        value = decoded_cells(cells[0])[0] if is_text(cells[0].type) else cells[0][0].as_py()
    else:
        value = cells[0, 0].item()
    if value is None or value != value:
        return "missing"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value).replace("\n", "\\n")
    return text if len(text) <= MOST_CELL else text[: MOST_CELL - 1] + "…"


def _number(log_value: float) -> str:
    """exp(log_value) in four digits, also where that is too small for a double."""
    if log_value == -np.inf or -690.0 < log_value < 690.0:
        return f"{np.exp(log_value):.4g}"
    power, rest = divmod(log_value / np.log(10.0), 1.0)
    return f"{10.0**rest:.4g}e{int(power):+d}"
