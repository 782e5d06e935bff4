"""The terms of a sum of evidence, as a table for people."""

from collections.abc import Sequence

from deciban.explain.blocks import cut_label
from deciban.explain.terms import PARTS, Term
from deciban.util.text_tables import DECIBANS, aligned, counted, width_of

# Terms that are shown in a summary; all others are added up.
MOST_TERMS = 40


def sum_table(terms: Sequence[Term], width: int, short: bool) -> str:
    """Terms and their sum as a table, with the parts of each where columns say more than their own."""
    is_shown = [not short or term.is_start or (term.nats != 0.0 and k < MOST_TERMS) for k, term in enumerate(terms)]
    if is_shown.count(False) == 1:
        is_shown = [True] * len(terms)  # the line that would count it can as well show it
    shown = [term for term, here in zip(terms, is_shown, strict=True) if here]
    others = [term.decibans for term, here in zip(terms, is_shown, strict=True) if not here]
    parts = [part for part in PARTS if any(term.parts.get(part) for term in shown)]
    if not set(parts) - {"alone"}:
        parts = []  # the sum says the same
    numbers = [[f"{term.decibans:+.2f}", *_parts(term, parts)] for term in shown]
    blank = [""] * len(parts)
    if others:
        numbers.append([f"{sum(others):+.2f}", *blank])
    numbers.append([f"{sum(term.decibans for term in terms):+.2f}", *blank])
    head = ["in all", *(part.replace("_", " ") for part in parts)] if parts else []
    rest = [max(map(width_of, column)) for column in zip(*numbers, *([head] if head else []), strict=True)]
    room = max(width - sum(2 + each for each in rest), 12)
    labels = [cut_label(term.label, room) for term in shown]
    labels += [counted(len(others), "other")] if others else []
    lines = [(label, *line) for label, line in zip([*labels, "sum"], numbers, strict=True)]
    return aligned([("", *head), *lines] if head else lines, right=range(1, len(rest) + 1))


def _parts(term: Term, parts: Sequence[str]) -> list[str]:
    return [f"{DECIBANS * term.parts[part]:+.2f}" if part in term.parts else "" for part in parts]
