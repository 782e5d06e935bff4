"""The evidence of joint normal distributions, as nodes of an ONNX graph; what rows miss is integrated out."""

import numpy as np

from deciban.export.onnx.cells import Cells
from deciban.export.onnx.densities import capped
from deciban.export.onnx.tensors import Tensor
from deciban.families.base.lowering import JointNormalTerm, WhitenedForm
from deciban.families.joint_gaussian import HALF_LOG_2_PI
from deciban.util.arrays import Floats

# Numbers of all matrices that are factored at a time, of rows with missing cells.
FACTORED_AT_A_TIME = 1 << 20


def joint_normal(cells: Cells, term: JointNormalTerm, cap: float) -> Tensor:
    """The evidence of a joint normal term, no more than the cap, row by class."""
    numbers = cells.numbers(term.columns)
    missing = numbers.is_nan()
    whole = _whitened(term.form, numbers.graph.where(missing, np.array(0.0), numbers - term.centre))
    rows = numbers.graph.node("NonZero", missing.any(1)).reshape(-1)
    holed = _with_holes(term, numbers.take(rows, 0))
    found = numbers.graph.node("ScatterND", whole, rows.with_axis(1), holed)
    if cap == np.inf:
        return found
    classes = term.form.offset.size
    return numbers.graph.side_by_side(capped([found.take(np.array([c]), 1) for c in range(classes)], cap))


def _whitened(form: WhitenedForm, centred: Tensor) -> Tensor:
    """offset - |whiten x - mean|**2 of rows without missing cells, row by class."""
    white = [centred @ matrix.T for matrix in form.whiten]
    away = [white[group] - mean for group, mean in zip(form.group.tolist(), form.mean, strict=True)]
    distance = centred.graph.side_by_side([(one * one).sum(1, keep=True) for one in away])
    return form.offset - _as_far_as_any(distance)


def _as_far_as_any(distance: Tensor) -> Tensor:
    """The distance; infinite where coordinates have overflowed in both directions."""
    return distance.graph.where(distance.is_nan(), np.array(np.inf), distance)


def _with_holes(term: JointNormalTerm, numbers: Tensor) -> Tensor:
    """The evidence of the cells that are there, some rows at a time, row by class."""
    size, classes = len(term.columns), term.form.group.size
    step = np.array([max(1, FACTORED_AT_A_TIME // (len(term.covariance) * size**2))])

    def more(number: Tensor, numbers: Tensor, found: Tensor) -> list[Tensor]:
        start = number * step
        some = _marginal(term, numbers.cut(start, start + step, [0])) * term.weight
        return [numbers, numbers.graph.node("Concat", found, some, axis=0)]

    times = (numbers.size(0) + (step - 1)) / step  # of whole numbers, rounded down
    return numbers.graph.repeat(times.reshape(), [numbers, np.zeros((0, classes))], more)[1]


def _marginal(term: JointNormalTerm, numbers: Tensor) -> Tensor:
    """The log density, with |S| and the distance from the mean in its metric by eliminating columns one after another.

    S is the matrix of the columns that are there. A missing one becomes a column that is where it should be, with a
    variance of 1 and no covariances: it adds nothing.
    """
    graph, size = numbers.graph, len(term.columns)
    matrices = term.covariance if len(term.covariance) == 1 else term.covariance[term.form.group]
    present = ~numbers.is_nan()
    there = present.with_axis(1)
    both = there.with_axis(3) & there.with_axis(2)
    left = graph.where(both, matrices, np.eye(size))
    units = ((numbers - term.centre) / term.unit).with_axis(1)
    away = graph.where(there, units - term.mean, np.array(0.0))
    terms = []
    for last in range(size, 0, -1):
        row, first = left.take(np.array(0), 2), away.take(np.array([0]), 2)
        pivot = row.take(np.array([0]), 2)
        ratio = first / pivot
        terms.append(pivot.log() + first * ratio)
        rest = row.cut(np.array([1]), np.array([last]), [2])
        left = left.cut(np.array([1, 1]), np.array([last, last]), [2, 3])
        left = left - (rest / pivot).with_axis(3) * rest.with_axis(2)
        away = away.cut(np.array([1]), np.array([last]), [2]) - ratio * rest
    total = graph.node("Sum", *terms) if len(terms) > 1 else terms[0]
    log_unit: Floats = HALF_LOG_2_PI + np.log(term.unit)
    density = _as_far_as_any(total.reshape(-1, term.form.group.size)) * -0.5
    return density - present.cast(np.float64) @ log_unit[:, None]
