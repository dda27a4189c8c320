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
from audit.bugs.statements import undeclared_is_one
from evertally.statistics import Counter
from evertally.statistics.column_options import Guessing
from evertally.statistics.column_queries import ColumnQuery

ROOT = Path(__file__).parents[2]
KINDS = {kind.__name__ for kind in ColumnQuery.__subclasses__()}
SPARSE = {"Counter", "Histogram"}  # with mechanism="sparse"
BETA, RUNS = 1e-3, 5
LOOKS = (1, 2, 3, 5, 6, 7, 30, 60)  # ticks whose intervals are judged: of bursts, right after them, and later
MOST_FAILURES = 2  # Binomial(5, 0.001) is above 2 with probability 1e-8


@dataclass(frozen=True)
class Example:
    where: str
    call: ast.Call

    def make(self, seed: int, **settled: Any) -> Guessing:
        """The mechanism as it is written, but for its key and what is settled."""
        given = [keyword for keyword in self.call.keywords if keyword.arg not in {"key", *settled}]
        others = {"key": et.simulation(seed)} | settled
        given += [ast.keyword(name, ast.Name(f"_{name}", ast.Load())) for name in others]
        call = ast.fix_missing_locations(ast.Expression(ast.Call(self.call.func, self.call.args, given)))
        names = {"et": et, "np": np} | {f"_{name}": value for name, value in others.items()}
        made: Guessing = eval(compile(call, self.where, "eval"), names)
        return made


def code_of(path: Path) -> Iterator[str]:
    text = path.read_text()
    if path.suffix == ".md":
        yield from re.findall(r"```python\n(.*?)```", text, flags=re.S)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            examples = doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")
            yield "".join(example.source for example in examples)


def examples() -> list[Example]:
    found = []
    room = sorted((ROOT / "src" / "evertally" / "statistics").glob("*.py"))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *room]:
        for number, code in enumerate(code_of(path), start=1):
            for node in ast.walk(ast.parse(code)):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                mechanism = {keyword.arg: keyword.value for keyword in node.keywords}.get("mechanism")
                sparse = isinstance(mechanism, ast.Constant) and mechanism.value == "sparse"
                if node.func.attr in KINDS or (node.func.attr in SPARSE and sparse):
                    found.append(Example(f"{path.relative_to(ROOT)}, {number}: {node.func.attr}", node))
    return found


EXAMPLES = examples()


def test_there_are_examples_to_check() -> None:
    places = {example.where.split(",")[0] for example in EXAMPLES}
    assert {"README.md", "docs/column-queries.md"} <= places
    assert {f"src/evertally/statistics/{name}.py" for name in ("column_queries", "counts", "column_options")} <= places
    assert {type(example.make(0)).__name__ for example in EXAMPLES} >= KINDS


def errors(made: Guessing, value: Any, sums: Any) -> Any:
    """How far an answer is off, of labels by how much they are too low."""
    if isinstance(value, str):
        return np.array([sums.max() - sums[made.columns.index(value)]])
    if isinstance(value, list):
        return np.sort(sums)[::-1][: len(value)] - sums[[made.columns.index(label) for label in value]]
    return numbers(value) - made._task.queries.values(sums)


def numbers(value: Any) -> Any:
    return np.atleast_1d(list(value.values()) if isinstance(value, dict) else value)


def fits(made: Guessing, release: Any, sums: Any) -> bool:
    low, high = map(numbers, release.interval(BETA))
    named = isinstance(release.value, str | list)
    right = errors(made, release.value, sums) if named else made._task.queries.values(sums)
    return bool(np.all(low <= right) and np.all(right <= high))


def keeps_its_word(made: Guessing, stream: str) -> bool:
    """Bound and intervals, on one stream."""
    T, d, most = made.horizon or 3000, made._task.columns, made._task.most
    height = min(10**6, most if most is not None else 5 * (made._task.largest or 1000))
    if stream == "few":
        return _few(made, T, d, min(height, 3))
    rows = np.zeros((min(T, 60), d), dtype=np.int64)
    if stream == "bursts":
        rows[1::7, d - 1] = height
        rows[4::7, 0] = height
    else:
        rows[:, d // 2] = height
    sure = made.error_bound(BETA) if made.horizon else None
    for t, (row, sums) in enumerate(zip(rows, rows.cumsum(axis=0), strict=True), start=1):
        release = made.step(int(row[0]) if isinstance(made, Counter) else row)
        if sure is None and t not in LOOKS:
            continue
        bound = made.error_bound(BETA, t) if sure is None else sure
        if np.abs(errors(made, release.value, sums)).max() > bound:
            return False
        if t in LOOKS and not fits(made, release, sums):
            return False
    return True


def _few(made: Guessing, T: int, d: int, height: int) -> bool:
    """Events all over the horizon, looked at now and then."""
    ticks = np.unique(np.linspace(0, T - 1, 400).astype(np.int64))
    columns = np.arange(ticks.size) % min(d, 3)
    looks = ticks[::20] + 1
    if isinstance(made, Counter):
        one = np.zeros(T, dtype=np.int64)
        one[ticks] = height
        values, exact = made.run(one, at=looks), one[:, None].cumsum(axis=0)[looks - 1]
    else:
        events = et.SparseRows(np.repeat(ticks, height), np.repeat(columns, height), length=T, width=d)
        values = made.run(events, at=looks)
        exact = np.stack([np.bincount(columns[ticks < look], minlength=d) * height for look in looks])
    shown = [list(one) if isinstance(one, np.ndarray) and one.dtype == object else one for one in values]
    sure = made.error_bound(BETA) if made.horizon else None
    bounds = [made.error_bound(BETA, int(t)) if sure is None else sure for t in looks]
    return all(
        np.abs(errors(made, one, sums)).max() <= bound for one, sums, bound in zip(shown, exact, bounds, strict=True)
    )


@pytest.mark.parametrize("stream", ["bursts", "busiest", "few"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)
def test_an_example_keeps_its_error_bound(example: Example, stream: str) -> None:
    first = example.make(0)
    # chosen and calibrated once
    settled: dict[str, Any] = {"mechanism": first.mechanism, "calibration": first._options["calibration"]}
    if isinstance(example.call.func, ast.Attribute) and example.call.func.attr in SPARSE:
        settled.pop("mechanism")  # there it names the class
    failed = sum(not keeps_its_word(example.make(seed, **settled), stream) for seed in range(RUNS))
    assert failed <= MOST_FAILURES, f"bound or interval failed in {failed} of {RUNS} runs"


def test_a_bound_that_rests_on_nothing_does_not_pass() -> None:
    """The example as the page had it, as it was chosen then, with the bound that it had then."""
    written = "et.MaxSum(200, guarantee=et.PureDP(1.0), horizon=20_000, largest=5_000, mechanism='recompute')"
    call = ast.parse(written, mode="eval").body
    assert isinstance(call, ast.Call)
    example = Example("the page as it was", call)
    assert all(keeps_its_word(example.make(seed), "bursts") for seed in range(2))
    with undeclared_is_one():
        assert not any(keeps_its_word(example.make(seed), "bursts") for seed in range(2))
