"""The documents' own examples keep their error bounds, on the worst streams that their numbers allow.

Every column query and every partition that a page or a docstring makes is taken as it is written, with a simulation
key, and fed with bursts as large as it declares (or, if nothing is declared, larger than it guesses), with the busiest
stream, and with a few events over its whole horizon.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.audit.mutants.statements import undeclared_is_one
from evertally.histogram.column_query import ColumnQuery
from evertally.histogram.sparse import SparseCounter

ROOT = Path(__file__).parents[2]
KINDS = {kind.__name__ for kind in ColumnQuery.__subclasses__()}
SPARSE = {"Counter", "Histogram"}  # with mechanism="sparse"
BETA, RUNS = 1e-3, 5
MOST_FAILURES = 2  # Binomial(5, 0.001) is above 2 with probability 1e-8


@dataclass(frozen=True)
class Example:
    where: str
    call: ast.Call

    def make(self, seed: int, **settled: Any) -> ColumnQuery:
        given = [keyword for keyword in self.call.keywords if keyword.arg not in {"key", *settled}]
        call = ast.Call(self.call.func, self.call.args, given)
        call.keywords.append(ast.keyword("key", ast.Name("_key", ast.Load())))
        call.keywords += [ast.keyword(name, ast.Name(f"_{name}", ast.Load())) for name in settled]
        names = {"et": et, "np": np, "_key": et.simulation(seed)} | {f"_{name}": x for name, x in settled.items()}
        code = "et.MaxSum(200, guarantee=et.PureDP(1.0), horizon=20_000, largest=5_000, mechanism='recompute')"

    call = ast.parse(code, mode="eval").body
    assert isinstance(call, ast.Call)
    example = Example("the page as it was", call)
    assert all(keeps_its_word(example.make(seed), "bursts") for seed in range(2))
    with undeclared_is_one():
        assert not any(keeps_its_word(example.make(seed), "bursts") for seed in range(2))
