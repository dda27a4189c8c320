"""What a planted bug is, and the ways to plant one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest import mock

from audit.probes import PROBES, Probe
from evertally.bounds import joint, staleness
from evertally.counting import runs, sqrt_factor
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law

Bug = AbstractContextManager[None]
Patch = Callable[[], Bug]


@dataclass(frozen=True)
class Mutant:
    """A planted bug: where the trap lists warn of it, how to plant it, and the probe that must find it."""

    name: str
    trap: str
    patch: Patch
    detect: Probe


MUTANTS: list[Mutant] = []


def plant(probe: str, trap: str = "") -> Callable[[Patch], Patch]:
    """Registers a function that makes the patch of a bug; `probe` names what must find it. The docstring is the name of
    the bug, and in brackets what the trap lists say, unless `trap` says it."""

    def register(patch: Patch) -> Patch:
        name, _, warning = " ".join((patch.__doc__ or "").split()).partition(" (")
        MUTANTS.append(Mutant(name, trap or warning.removesuffix(")"), patch, PROBES[probe]))
        return patch

    return register


@contextmanager
def replaced(target: Any, **attributes: Any) -> Iterator[None]:
    """Attributes of a module or class, replaced for the time of a `with` block. Factors are kept by horizon alone, and
    laws of maxima by public numbers, so they are forgotten before and after."""
    _forget()
    with ExitStack() as stack:
        for name, value in attributes.items():
            stack.enter_context(mock.patch.object(target, name, value))
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    sqrt_factor.sqrt_factor.cache_clear()
    runs.best_path.cache_clear()
    for kept in (joint.tree_maximum, joint.refined_maximum, staleness.behind_radius, staleness.ahead_radius):
        kept.cache_clear()
    staleness.close_law.cache_clear()
    staleness.noise_law.cache_clear()


@contextmanager
def all_of(*patches: AbstractContextManager[None]) -> Iterator[None]:
    """Several patches as one bug."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def once_made(kind: type, change: Callable[[Any], None]) -> Bug:
    """Objects of a class, changed once they are made."""
    original = kind.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        change(self)

    return replaced(kind, __init__=init)


def recalibrated(process: type, law: Callable[[Any], Law]) -> Bug:
    """The process with the law that `law(process)` says, once it is made."""
    return once_made(process, lambda made: setattr(made, "law", law(made)))


def scaled(law: Law, factor: Fraction | float | int) -> Law:
    """The law with its Laplace scale, or its Gaussian variance, multiplied."""
    if isinstance(law, DiscreteLaplace):
        return DiscreteLaplace(law.scale * Fraction(factor))
    assert isinstance(law, DiscreteGaussian)
    return DiscreteGaussian(law.sigma_squared * Fraction(factor))
