"""Arithmetic that does not depend on the thread's decimal context, which the code of any author may change."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow, localcontext
from functools import reduce

EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])  # a product has at most 38 digits
_USUAL = Context(28, ROUND_HALF_EVEN, -999_999, 999_999, 1, 0, [], [InvalidOperation, DivisionByZero, Overflow])


def exact_sum(values: Iterable[Decimal]) -> Decimal:
    return reduce(EXACT.add, values, Decimal())


def use_default_decimal_context() -> AbstractContextManager[Context]:
    """Compute with 28 digits in the block, as Python does by default."""
    return localcontext(_USUAL)
