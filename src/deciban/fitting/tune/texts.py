"""How texts are scored: by what their words count, and how much the long ones do."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np

from deciban.families import Text
from deciban.fitting.tune.families import ScoredGroup
from deciban.fitting.tune.rows import Rows, left_out_evidence
from deciban.fitting.tune.weights import GROUP_ROWS, centred, maximise
from deciban.model.tuning import Choice
from deciban.schema.schema import ColumnGroup, Schema
from deciban.util.arrays import Floats

# What texts are scored by instead of plain counts: the lifts of roots of them, normalized, so that long texts and words
# that come again and again do not outweigh the others; and the weights that are expected of log lifts and of lifts.
LIFT = {"kind": "lift", "alpha": 1.0, "amounts": "root", "normalize": True, "min_count": 0.0}
EXPECTED_WEIGHTS = np.array([0.6, 0.5])

# How much the evidence of long texts may be tempered, where the user chose what is counted.
TEMPERING = (0.25, 0.5)


def choose_texts(rows: Rows, base: Schema) -> tuple[list[ScoredGroup], tuple[Choice, ...]]:
    """Each column of texts with the family of least log-loss, alone and with the weight that suits it best."""
    scored, choices = [], []
    for family, column in _texts(base):
        options = [(family, left_out_evidence(rows, family, [column], {}))]
        if family.has_default_evidence:
            options.append(_lifted(rows, family, column))
        elif not family.tempering:
            for power in TEMPERING:
                other = replace(family, tempering=power)
                options.append((other, left_out_evidence(rows, other, [column], {})))
        losses = [_loss_with_weight(rows, evidence) for _, evidence in options]
        best = int(np.argmin(losses))
        others = tuple((options[o][0], losses[o]) for o in np.argsort(losses) if o != best)
        choice = Choice(base.column_name(column), options[best][0], losses[best], others)
        scored.append(ScoredGroup(ColumnGroup(options[best][0], (column,), (choice.reason,)), options[best][1]))
        choices.append(choice)
    return scored, tuple(choices)


def _texts(base: Schema) -> Iterator[tuple[Text, int]]:
    """The columns of texts, each with its family."""
    for group in base.groups:
        if group.family.holds_texts:
            for column in group.columns:
                yield cast(Text, group.family), column


def _lifted(rows: Rows, family: Text, column: int) -> tuple[Text, Floats]:
    """Lifts, the share of them that is linear chosen for these rows, and their evidence."""
    counted: dict[object, object] = {}
    log_lift, linear = (replace(family, **LIFT, linear=share) for share in (0.0, 1.0))  # type: ignore[arg-type]
    both = np.concatenate([left_out_evidence(rows, one, [column], counted) for one in (log_lift, linear)], axis=1)
    weights, _ = maximise(centred(both), rows, EXPECTED_WEIGHTS, np.zeros(rows.classes), GROUP_ROWS)
    share = round(float(weights[1] / weights.sum()), 2) if weights.sum() > 0.0 else 0.0
    return replace(log_lift, linear=share), (1.0 - share) * both[:, :1] + share * both[:, 1:]


def _loss_with_weight(rows: Rows, evidence: Floats) -> float:
    """The log-loss of one block with the weight and the bias that suit it best."""
    evidence = centred(evidence)
    weights, bias = maximise(evidence, rows, np.ones(1), np.zeros(rows.classes), GROUP_ROWS)
    return float(rows.losses(weights[0] * evidence + bias)[0])
