"""What hiding one event costs in blocks, read off the program."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from evertally.audit.gaussian import BLOCK_HEIGHT, ImpulseSource
from evertally.counting import pure_blocks
from evertally.counting.block_table import GRID
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.privacy import Change, PureDP

ONE = Change(1, 1, 1)


def in_levels(*sizes: int) -> Any:
    """Blocks of these sizes, whatever the horizon: short streams with several levels."""
    return mock.patch.object(pure_blocks, "sizes_for", return_value=sizes)


def costs(T: int) -> tuple[list[Fraction], float]:
    """Read off the program, by impulses: for every tick the shift of the draws by column j of R in each level, what it
    costs, and how far it is from hiding the event at all ticks."""
    source: Any = ImpulseSource()
    noise = PureBlocksProcess(PureDP(1), ONE, horizon=T, columns=3 * T + 64, source=source)
    n = noise._levels[0].table.n
    W = np.concatenate([noise._levels[0].rows(t + 1, min(n, T - t))[0] for t in range(0, T, n)]) / BLOCK_HEIGHT
    charged, wrong = [], 0.0
    for j in range(1, T + 1):
        shift, cost, position = np.zeros(W.shape[1]), Fraction(0), j - 1
        for i, level in enumerate(noise._levels):
            last = i == len(noise._levels) - 1
            block, inside = (0, position) if last else divmod(position, level.table.n)
            column = np.concatenate([np.diag(level.table.d)[:, inside], level.table.dense[:, inside]])
            for row in np.flatnonzero(column).tolist():
                size = Fraction(int(column[row]), GRID) / Fraction(level.scale)
                cost += abs(size)
                at = source.columns.get((f"blocks-{i}", 1 + block * level.table.rows + row))
                if at is not None:
                    shift[at] = float(size)
            position = block
        charged.append(cost)
        wrong = max(wrong, float(np.abs(W @ shift - (np.arange(1, T + 1) >= j)).max()))
    return charged, wrong
