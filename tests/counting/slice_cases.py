"""Every process that can be cut into slices, with every kind of budget that it takes."""

from __future__ import annotations

from dataclasses import dataclass

import evertally as et
from evertally.counting.processes import OURS, SEPARATED
from evertally.privacy import Guarantee

PURE, GAUSSIAN, APPROXIMATE = et.PureDP(1.0), et.ZCDP(0.5), et.ApproxDP(1.0, 1e-6)


@dataclass(frozen=True)
class Case:
    """A process under a budget; `horizon` is None for those without one."""

    mechanism: str
    guarantee: Guarantee
    horizon: int | None = 90
    apart: bool = False  # users whose ticks are apart

    def __str__(self) -> str:
        return f"{self.mechanism}-{type(self.guarantee).__name__}"


CASES = [
    Case("tree", PURE),
    Case("tree", GAUSSIAN),
    Case("honaker", PURE),
    Case("honaker", GAUSSIAN),
    Case("sqrt", GAUSSIAN),
    Case("bank", GAUSSIAN),
    Case("bank", APPROXIMATE),
    Case("banded", GAUSSIAN, apart=True),
    Case("pure-blocks", PURE),
    Case("bank-open", GAUSSIAN, None),
    Case("epoch-tree", PURE, None),
    Case("epoch-tree", GAUSSIAN, None),
    Case("epoch-blocks", PURE, None),
]
assert {case.mechanism for case in CASES} == {*OURS, *SEPARATED}, "every process is cut in the tests"
