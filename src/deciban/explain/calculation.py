"""The calculation behind a prediction as in a lecture: prior, likelihoods, joint, posterior."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deciban.explain.blocks import cut_label
from deciban.util.text_tables import aligned, digits, shortened, width_of

# Characters of the name of a class that are shown.
MOST_NAME = 16

# Characters of a text that are shown above its words.
MAX_LABEL_OF_FACTORS = 30


def calculation_table(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str], width: int) -> str:
    """The calculation for some classes; how each likelihood was found stands beside it, or below where that is too
    wide."""
    text = _beside(steps, labels, names)
    return text if max(map(width_of, text.splitlines())) <= width else _below(steps, labels, names, width)


def _beside(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str]) -> str:
    """The calculation as a table, how each likelihood was found beside it."""
    lines = [("", *names), ("prior", *(f"{steps['prior'][name]:.4g}" for name in names))]
    for block, label in zip(steps["blocks"], labels, strict=True):
        found = []
        for name in names:
            how, value = block["formula"][name], _number(block["log_likelihood"][name])
            how = None if block["capped"] or "factors" in block else how  # the number is not what the formula gives
            found.append(value if how is None else f"{how} = {value}")
        shown = cut_label(label, MAX_LABEL_OF_FACTORS) if "factors" in block else label
        lines.append((shown + _remark(block), *found))
        for factor in block.get("factors", ()):
            numbers = [_number(factor["log"][name]) for name in names]
            if (formula := factor["formula"]) is not None:
                numbers = [f"{formula[name]} = {number}" for name, number in zip(names, numbers, strict=True)]
            lines.append((f"  · {factor['factor']}", *numbers))
    return aligned([*lines, *_product(steps, names)])


def _below(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str], width: int) -> str:
    """The same where that is too wide: the numbers as a table, how they were found below each line."""
    short = [shortened(name, MOST_NAME) for name in names]
    lines: list[tuple[str, ...]] = [("", *short), ("prior", *(f"{steps['prior'][name]:.4g}" for name in names))]
    likelihoods = [[_number(block["log_likelihood"][name]) for name in names] for block in steps["blocks"]]
    columns = zip(short, lines[1][1:], *likelihoods, *(line[1:] for line in _product(steps, names)), strict=True)
    room = max(width - sum(2 + max(map(width_of, column)) for column in columns), 20)
    below: dict[int, list[str]] = {}
    for block, label, numbers in zip(steps["blocks"], labels, likelihoods, strict=True):
        remark = _remark(block)
        lines.append((cut_label(label, room - len(remark)) + remark, *numbers))
        told = () if "factors" in block else names
        how = [(name, block["formula"][name]) for name in told if block["formula"][name] is not None]
        below[len(lines) - 1] = [shortened(f"    {name}: {found}", width) for name, found in how]
        for factor in block.get("factors", ()):
            lines.append(
                (f"  · {cut_label(factor['factor'], room - 4)}", *(_number(factor["log"][name]) for name in names))
            )
            if (formula := factor["formula"]) is not None:
                below[len(lines) - 1] = [shortened(f"      {name}: {formula[name]}", width) for name in names]
    lines += _product(steps, names)
    table = aligned(lines).splitlines()
    return "\n".join(line for k, row in enumerate(table) for line in (row, *below.get(k, ())))


def _remark(block: dict[str, Any]) -> str:
    """What is to be said of a block: that its cell is missing or was never seen, or what its evidence weighs."""
    if all(how is None for how in block["formula"].values()):
        return "  (no evidence)"
    weight = "" if block["weight"] == 1.0 else f"  (weight {block['weight']:.3g})"
    return f"{weight}  (capped)" if block["capped"] else weight


def _product(steps: dict[str, Any], names: Sequence[str]) -> list[tuple[str, ...]]:
    """The last lines: what all is multiplied to, and the shares of it."""
    lines: list[tuple[str, ...]] = []
    if any(steps["log_bias"].values()):
        lines.append(("bias", *(f"× {_number(steps['log_bias'][name])}" for name in names)))
    if any(steps["log_correction"].values()):
        lines.append(("corrections", *(f"× {_number(steps['log_correction'][name])}" for name in names)))
    lines.append(("joint", *(_number(steps["log_joint"][name]) for name in names)))
    return [*lines, ("posterior", *(digits(steps["posterior"][name]) for name in names))]


def _number(log_value: float) -> str:
    """exp(log_value) in four digits, also where that is too small for a double."""
    if log_value == -np.inf or -690.0 < log_value < 690.0:
        return f"{np.exp(log_value):.4g}"
    power, rest = divmod(log_value / np.log(10.0), 1.0)
    return f"{10.0**rest:.4g}e{int(power):+d}"
