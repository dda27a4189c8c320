"""The precision of ball arithmetic: one number for the whole process, so one lock around everything that needs it.

A ball (Arb, from python-flint) contains the true value at any precision, so what is *decided* by balls is right even if
somebody changes the precision meanwhile. What is *kept* of a ball is not always the ball: its middle as a float, or the
number that a search ended at, is only as good as the precision was. So threads of this library wait for each other
here, and what is kept is made by `certain`, which notices when code outside this library has changed the precision.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from flint import ctx

Kept = TypeVar("Kept")

_lock = threading.RLock()
_TRIES = 20


def _renew_lock() -> None:
    """A forked process has none of the threads that could release the lock."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def at_precision(bits: int, work: Callable[[], Kept]) -> Kept:
    """What `work` gives when balls have this many bits; one thread at a time.

    The lock stands in a `with` of its own, and its methods are built in: Ctrl-C comes before it is taken or after it is
    given back. A context manager written in Python could be interrupted on its way out, and leave the lock behind.

    >>> at_precision(200, lambda: (at_precision(80, lambda: ctx.prec), ctx.prec))
    (80, 200)
    """
    with _lock:
        return _under("prec", bits, work)


def with_terms(count: int, work: Callable[[], Kept]) -> Kept:
    """What `work` gives when power series have this many terms; as global as the precision."""
    with _lock:
        return _under("cap", count, work)


def _under(name: str, value: int, work: Callable[[], Kept]) -> Kept:
    before = getattr(ctx, name)
    try:
        setattr(ctx, name, value)
        return work()
    finally:
        setattr(ctx, name, before)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """The same as a `with` block, for audits and tests; mechanisms use `at_precision`, which cannot be interrupted.

    >>> with precision(200):
    ...     with precision(80):
    ...         inner = ctx.prec
    ...     inner, ctx.prec
    (80, 200)
    """
    with _lock:
        before = ctx.prec
        try:
            ctx.prec = bits
            yield
        finally:
            ctx.prec = before


def certain(formula: Callable[[], Kept | None], bits: int) -> Kept:
    """What the formula gives with this many bits. It says None where its balls are wider than they should be; then, and
    when the precision is another one in the end, it is computed again.

    >>> from flint import arb
    >>> certain(lambda: sharp(arb(2).sqrt(), 100), 128)
    1.4142135623730951
    """
    for _ in range(_TRIES):
        value, disturbed = attempt(formula, bits)
        if value is not None and not disturbed:
            return value
    raise too_much_disturbed()


def decided(formula: Callable[[], Kept | None], bits: int) -> Kept | None:
    """What the formula decides by its balls with this many bits, None if that many leave it open.

    A decision is right at any precision. But whether bits are too few is asked at the precision that was meant.
    """
    for _ in range(_TRIES):
        value, disturbed = attempt(formula, bits)
        if value is not None or not disturbed:
            return value
    raise too_much_disturbed()


def attempt(formula: Callable[[], Kept], bits: int) -> tuple[Kept, bool]:
    """The value of a formula, and whether somebody has changed the precision, or the length of series, meanwhile."""

    def measured() -> tuple[Kept, bool]:
        length = ctx.cap
        value = formula()
        return value, (ctx.prec, ctx.cap) != (bits, length)

    return at_precision(bits, measured)


def too_much_disturbed() -> ArithmeticError:
    """For what could not be computed in several tries."""
    return ArithmeticError(
        "a number could not be computed precisely enough: other code in this process changes flint.ctx.prec from "
        "another thread; let it hold still while mechanisms are made and used"
    )


def sharp(ball: Any, bits: int) -> float | None:
    """The middle of a ball as a float, if so many of its leading bits are certain; otherwise None."""
    return float(ball.mid()) if ball.rel_accuracy_bits() >= bits else None
