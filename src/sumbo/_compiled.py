"""Numba in one place: compile on first use, keep the machine code on disk, say so when that cannot be done.

Numba takes a third of a second to import, so the modules with compiled loops are imported by the first call that does
arithmetic: drawing a figure or looking at a stored study needs none.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

# Sums may be reordered and multiply-adds fused, so that loops vectorise; NaN and infinity keep their meaning.
_LOOP_MATHS = {"reassoc", "contract", "nsz"}


def loops(function: Callable[..., Any]) -> Any:
    """Compile a function made of loops over arrays."""
    return _compile(function, _LOOP_MATHS)


def exact(function: Callable[..., Any]) -> Any:
    """Compile a scalar function whose operations must not be reordered."""
    return _compile(function, {"contract"})


def _compile(function: Callable[..., Any], fastmath: set[str]) -> Any:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # Numba found no folder it may write to, neither beside this file nor in the user's cache.
        warnings.warn(
            "sumbo cannot store its compiled kernels, so every new process compiles them again (some seconds); "
            "set NUMBA_CACHE_DIR to a folder that can be written to",
            stacklevel=2,
        )
        return numba.njit(**options)(function)


@intrinsic
def float_bits(typingctx, value):
    """The 64 bits of a double as an integer."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def bits_float(typingctx, value):
    """The double whose 64 bits are those of an integer."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen
