"""The precision of ball arithmetic is one number for the whole process: threads of the library, and others that change
it without asking, change neither a draw nor what is kept for later draws."""

from __future__ import annotations

import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

import evertally
from evertally.balls import at_precision, certain, sharp, with_terms
from evertally.bounds.selection import gaussian_margin
from evertally.checks.interruptions import interrupted, lines_of, returns_of
from evertally.counting.fourier import twiddles
from evertally.counting.sqrt_factor import exact_rounding
from evertally.noise import DiscreteGaussian, DiscreteLaplace, simulation
from evertally.noise.quantile import _certified_cell, minus_log, normal_quantile, thresholds
from evertally.noise.sampler import PolynomialSampler, settle
from evertally.privacy.conversions import _rho_of_epsilon_delta, epsilon_of_rho, rho_of_epsilon_delta
from evertally.selection.noisy_max import noisy_argmax

LAPLACE, WIDE, NARROW = DiscreteLaplace(Fraction(10)), DiscreteGaussian(10**6), DiscreteGaussian(Fraction(7, 3))
DELTA = Fraction(1, 10**9)
WORDS = [(random.Random(i).getrandbits(64), random.Random(-i).getrandbits(64)) for i in range(1, 9)]


def constants(law: Any) -> tuple[float, ...]:
    return PolynomialSampler(law)._numbers


def slow_draws() -> list[int]:
    return [settle(law, word, lambda r: (1, 2)) for law in (LAPLACE, WIDE, NARROW) for word in WORDS]


def chosen() -> list[int]:
    variates = simulation(5).source("precision").variates("pick", "gumbel", node=1, coordinates=40)
    variates.lower[:], variates.upper[:] = -np.inf, np.inf  # so that balls decide
    return noisy_argmax(np.zeros(40, dtype=np.int64), Fraction(3), variates, count=5)


def roots() -> list[Any]:
    return [part[1:].tolist() for part in twiddles.__wrapped__(6)]  # nothing lies at index 0


def converted() -> list[Fraction]:
    _rho_of_epsilon_delta.cache_clear()  # computed anew, every time
    return [epsilon_of_rho(Fraction(1, 10), DELTA), rho_of_epsilon_delta(Fraction(1), DELTA)]


# What is kept, or decided, by balls; each is a fixed value, whatever else goes on.
WORK: dict[str, Callable[[], Any]] = {
    "Laplace sampler": lambda: constants(LAPLACE),
    "Gaussian sampler": lambda: constants(WIDE),
    "cell of -ln": lambda: certain(lambda: _certified_cell(minus_log, 3, 5, 63), 160),
    "cell of the normal quantile": lambda: certain(lambda: _certified_cell(normal_quantile, 3, 5, 63), 160),
    "thresholds": lambda: thresholds(NARROW).tolist(),
    "slow draws": slow_draws,
    "noisy maximum": chosen,
    "roots of unity": roots,
    "rounding": lambda: [exact_rounding(np.arange(-4, 20)), exact_rounding(np.array([1, -1, 5] * 5))],
    "conversions": converted,
    "margin": lambda: gaussian_margin(Fraction(100), Fraction(1, 10**7)),
}


def right(name: str, found: Any, expected: Any) -> bool:
    """Kept values are equal. The radius of a cell is not kept as a value but as a bound: it holds at any precision, a
    little wider if somebody lowered that meanwhile, and it decides only which draws are settled by more bits."""
    if not name.startswith("cell"):
        return bool(found == expected)
    (polynomial, radius), (exact, least) = found, expected
    return bool(polynomial == exact and radius >= least * (1 - 1e-12))


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return {name: work() for name, work in WORK.items()}


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Threads take turns after every few instructions."""
    before = sys.getswitchinterval(), ctx.prec
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before[0])
    assert ctx.prec == before[1], "the precision was left as it was found"


def in_threads(jobs: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads_of_the_library_do_not_disturb_each_other(expected: dict[str, Any]) -> None:
    def job(seed: int) -> None:
        names = list(WORK)
        random.Random(seed).shuffle(names)
        for name in names:
            assert WORK[name]() == expected[name], name

    in_threads([lambda seed=seed: job(seed) for seed in range(4)])  # type: ignore[misc]


@contextmanager
def somebody_else(levels: tuple[int, ...]) -> Iterator[None]:
    """A thread that changes the precision and the length of series all the time, without asking."""
    over = threading.Event()
    before = ctx.prec, ctx.cap

    def disturb() -> None:
        draw = random.Random(0)
        while not over.is_set():
            ctx.prec, ctx.cap = draw.choice(levels), draw.choice((2, 10, 100))
            time.sleep(2e-4)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        ctx.prec, ctx.cap = before


@pytest.mark.parametrize("levels", [(10,), (53,), (20, 128, 160, 1000)])
@pytest.mark.parametrize("name", WORK)
def test_somebody_else_changes_the_precision(name: str, levels: tuple[int, ...], expected: dict[str, Any]) -> None:
    with somebody_else(levels):
        for _ in range(2):
            with suppress(ArithmeticError):  # refused is as good as right
                assert right(name, WORK[name](), expected[name])


def test_what_is_not_sharp_is_computed_again_and_refused_in_the_end() -> None:
    tries: list[int] = []

    def formula() -> float | None:
        tries.append(ctx.prec)
        if len(tries) < 3:
            ctx.prec = 12  # what a careless neighbour does
        return sharp(arb(2).sqrt(), 60)

    assert certain(formula, 100) == 2**0.5
    assert tries == [100] * 3
    with pytest.raises(ArithmeticError, match=r"flint\.ctx\.prec"):
        certain(lambda: sharp(arb(2).sqrt(), 200), 100)


def test_the_precision_is_restored_after_an_error() -> None:
    before = ctx.prec, ctx.cap

    def interrupted() -> None:
        def work() -> None:
            assert (ctx.prec, ctx.cap) == (300, 7)
            raise KeyboardInterrupt

        with_terms(7, lambda: at_precision(300, work))

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (ctx.prec, ctx.cap) == before
    in_threads([lambda: certain(lambda: 1, 100)] * 2)  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["rounding", "noisy maximum", "slow draws", "conversions"])
def test_an_interruption_leaves_the_lock_to_others(name: str) -> None:
    """At every line, and where signals come: after the return of a built-in function."""
    before = ctx.prec, ctx.cap
    _, lines = lines_of(WORK[name])
    _, places = returns_of(WORK[name], ("balls.py",))
    for line in lines:
        interrupted(WORK[name], line)
        ctx.prec, ctx.cap = before  # an exception in the very line that sets it back
    for place in places:
        interrupted(WORK[name], place, ("balls.py",))
    assert (ctx.prec, ctx.cap) == before
    in_threads([lambda: certain(lambda: 1, 100)])  # type: ignore[list-item]


def test_one_place_sets_the_precision() -> None:
    sets = re.compile(r"workprec|extraprec|workdps|ctx\.(prec|cap|dps)\s*[-+*]?=[^=]")
    room = Path(evertally.__file__).parent
    found = [str(path.relative_to(room)) for path in room.rglob("*.py") if sets.search(path.read_text())]
    assert found == ["balls.py"]
