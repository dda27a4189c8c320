"""The examples in what the benchmarks share run as printed."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["constant_matters.published", "formulas", "reductions", "sampler_timing", "streams"])
def test_the_examples_run(name: str) -> None:
    failed, tried = doctest.testmod(import_module(f"benchmarks.{name}"))
    assert tried
    assert not failed
