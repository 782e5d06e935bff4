"""Four doubles that the processor adds and multiplies at once.

numba turns a loop over a few classes into memory traffic; sums that are `Lanes` stay in registers. Arrays must be
C-contiguous; a place counts their elements from the first.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import models, register_model

from deciban.kernels.compiled import emitted
from deciban.util.arrays import LANES

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_FIRST = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

# One step from lanes to the next: numba checks signed places for being negative, unsigned ones not.
STEP = np.uint64(LANES)


class Lanes(types.Type):
    """numba's type of a value of LANES doubles."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes{LANES}")


_LANES = Lanes()


@register_model(Lanes)
class _InRegister(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


def _pointer(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), _VECTOR.as_pointer())


@emitted
def no_lanes(typing: Any) -> Any:
    """Zeros."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(_VECTOR, [0.0] * LANES)

    return _LANES(), build


@emitted
def plus_scaled(typing: Any, total: Any, factor: Any, table: Any, place: Any) -> Any:
    """total + factor * table[place : place + LANES]."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, factor, table, place = arguments
        row = builder.load(_pointer(context, builder, signature.args[2], table, place), align=8)
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(undefined, factor, ir.Constant(ir.IntType(32), 0))
        return builder.fadd(total, builder.fmul(builder.shuffle_vector(one, undefined, _FIRST), row))

    return _LANES(_LANES, types.float64, table, types.uint64), build


@emitted
def put_lanes(typing: Any, total: Any, array: Any, place: Any) -> Any:
    """array[place : place + LANES] = total."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, array, place = arguments
        builder.store(total, _pointer(context, builder, signature.args[1], array, place), align=8)
        return context.get_dummy_value()

    return types.void(_LANES, array, types.uint64), build
