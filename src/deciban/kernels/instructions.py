"""Processor instructions that numba does not offer.

Some handle 8 or 64 bytes at once; `place` is a byte index. Others add and multiply four doubles at once: numba turns a
loop over a few classes into memory traffic, but sums of type `Lanes` stay in registers; `place` is an element index.
Arrays must be C-contiguous.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import models, register_model

from deciban.kernels.compiled import emit_intrinsic
from deciban.util.arrays import LANES

_NUMBER = ir.IntType(64)

_BLOCK = ir.VectorType(ir.IntType(8), 64)

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)

_FIRST = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

# One step from lanes to the next: numba checks signed places for being negative, unsigned ones not.
STEP = np.uint64(LANES)


@emit_intrinsic
def eight_bytes(typing: Any, array: Any, place: Any) -> Any:
    """Return eight bytes from a position on, as one number."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), _NUMBER.as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(array, types.uint64), build


@emit_intrinsic
def put_eight(typing: Any, array: Any, place: Any, number: Any) -> Any:
    """Write eight bytes at a position."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), _NUMBER.as_pointer())
        builder.store(arguments[2], pointer, align=1)
        return context.get_dummy_value()

    return types.void(array, types.uint64, types.uint64), build


@emit_intrinsic
def swap_bytes(typing: Any, number: Any) -> Any:
    """Return a number with its eight bytes in reverse order."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), build


@emit_intrinsic
def mix_halves(typing: Any, a: Any, b: Any) -> Any:
    """Return the exclusive or of both halves of a product of 128 bits."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _NUMBER)
        return builder.xor(builder.trunc(product, _NUMBER), high)

    return types.uint64(types.uint64, types.uint64), build


def _each_byte(value: int) -> Any:
    return ir.Constant(_BLOCK, [value] * 64)


def _block(context: Any, builder: Any, signature: Any, arguments: Any, which: int) -> Any:
    """Return a pointer to 64 bytes of one of an intrinsic's arrays, each of which is followed by a position."""
    data = context.make_array(signature.args[which])(context, builder, arguments[which]).data
    return builder.bitcast(builder.gep(data, [arguments[which + 1]]), _BLOCK.as_pointer())


@emit_intrinsic
def copy_block(typing: Any, source: Any, place: Any, target: Any, there: Any, lower: Any) -> Any:
    """Copy 64 bytes, with ASCII letters in lower case if `lower`; return a bit for each non-ASCII byte."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(_block(context, builder, signature, arguments, 0), align=1)
        capital = builder.icmp_unsigned("<", builder.sub(block, _each_byte(ord("A"))), _each_byte(26))
        small = builder.or_(block, builder.and_(builder.sext(capital, _BLOCK), _each_byte(32)))
        chosen = builder.select(arguments[4], small, block)
        builder.store(chosen, _block(context, builder, signature, arguments, 2), align=1)
        return builder.bitcast(builder.icmp_signed("<", block, _each_byte(0)), _NUMBER)

    return types.uint64(source, types.uint64, target, types.uint64, types.boolean), build


@emit_intrinsic
def letters(typing: Any, array: Any, place: Any) -> Any:
    """Return a bit for each of 64 bytes that is an ASCII letter, a digit or an underscore."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(_block(context, builder, signature, arguments, 0), align=1)
        small = builder.or_(block, _each_byte(32))
        letter = builder.icmp_unsigned("<", builder.sub(small, _each_byte(ord("a"))), _each_byte(26))
        digit = builder.icmp_unsigned("<", builder.sub(block, _each_byte(ord("0"))), _each_byte(10))
        line = builder.icmp_unsigned("==", block, _each_byte(ord("_")))
        return builder.bitcast(builder.or_(letter, builder.or_(digit, line)), _NUMBER)

    return types.uint64(array, types.uint64), build


@emit_intrinsic
def fetch(typing: Any, array: Any, place: Any) -> Any:
    """Prefetch memory that will be needed soon; `place` counts the elements of the array."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        small = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, small, small, small])
        asked = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        builder.call(asked, [pointer, small(0), small(3), small(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), build


@emit_intrinsic
def lowest(typing: Any, bits: Any) -> Any:
    """Return the position of the lowest bit that is set."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), build


class Lanes(types.Type):
    """Numba type of a value of LANES doubles."""

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


@emit_intrinsic
def no_lanes(typing: Any) -> Any:
    """Return zeros."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(_VECTOR, [0.0] * LANES)

    return _LANES(), build


@emit_intrinsic
def plus_scaled(typing: Any, total: Any, factor: Any, table: Any, place: Any) -> Any:
    """Return total + factor * table[place : place + LANES]."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, factor, table, place = arguments
        row = builder.load(_pointer(context, builder, signature.args[2], table, place), align=8)
        undefined = ir.Constant(_VECTOR, ir.Undefined)
        one = builder.insert_element(undefined, factor, ir.Constant(ir.IntType(32), 0))
        return builder.fadd(total, builder.fmul(builder.shuffle_vector(one, undefined, _FIRST), row))

    return _LANES(_LANES, types.float64, table, types.uint64), build


@emit_intrinsic
def put_lanes(typing: Any, total: Any, array: Any, place: Any) -> Any:
    """Write array[place : place + LANES] = total."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, array, place = arguments
        builder.store(total, _pointer(context, builder, signature.args[1], array, place), align=8)
        return context.get_dummy_value()

    return types.void(_LANES, array, types.uint64), build


@emit_intrinsic
def minus_product(typing: Any, total: Any, table: Any, place: Any, other: Any) -> Any:
    """Return total - table[place : place + LANES] * table[other : other + LANES], rounded once if possible."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, table, *places = arguments
        pointers = [_pointer(context, builder, signature.args[1], table, place) for place in places]
        product = builder.fmul(*(builder.load(pointer, align=8) for pointer in pointers), flags=["contract"])
        return builder.fsub(total, product, flags=["contract"])

    return _LANES(_LANES, table, types.uint64, types.uint64), build


@emit_intrinsic
def times_lanes(typing: Any, total: Any, table: Any, place: Any) -> Any:
    """Return total * table[place : place + LANES]."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, table, place = arguments
        return builder.fmul(total, builder.load(_pointer(context, builder, signature.args[1], table, place), align=8))

    return _LANES(_LANES, table, types.uint64), build
