"""Compilation by numba, with its cache on disk where there is a place for one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """A compiled function. The import of numba costs seconds: it is left to the first call."""
    from numba import njit

    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # a read-only installation, and no home: compiled anew by every process
        return njit(**options)(function)


jit_once: Callable[[Callable[..., Any]], Any] = lru_cache(maxsize=64)(jit)  # for what is compiled when it is needed
