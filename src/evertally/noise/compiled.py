"""The kernels for whole vectors, compiled by numba. The import costs seconds; single draws never do it."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from evertally.noise import kernels
from evertally.noise.jit import jit


def _compile(function: Callable[..., int], **compiled: Any) -> Any:
    # numba's cache on disk notices a change in the file of the function itself, not in that of a function it calls:
    # machine code of an old kernel would live on. So all of them stand in kernels.py, and a caller gets its compiled
    # kernel here, in its global names.
    assert isinstance(function, FunctionType)
    linked = FunctionType(function.__code__, {**vars(kernels), **compiled}, function.__name__)
    return jit(linked, error_model="numpy")


fill_by_polynomials = _compile(kernels.fill_by_polynomials, magnitude=_compile(kernels.magnitude))
fill_reals = _compile(kernels.fill_reals)
fill_by_thresholds = _compile(kernels.fill_by_thresholds, count_above=_compile(kernels.count_above))
