"""Whether blocks of statistics that begin anew share noise: where each of them draws, block by block."""

from __future__ import annotations

from typing import Any

from evertally.audit.attacks import Finding
from evertally.audit.state_steps import inputs_of
from evertally.noise import ZeroNoise
from evertally.noise.key import Recording

_MOST = 1100  # a number of blocks that is cut to 8 bits, or to 10, shows
_TICKS = 2  # of a block


def blocks_attack(model: Any) -> Finding:
    """Notes which draws each block asks for: what two of them ask for, they share, and their difference is exact.

    >>> import evertally as et
    >>> hourly = et.RunningSum(upper=5, every=24, guarantee=et.ZCDP(0.5), horizon=8760, key=et.simulation(0))
    >>> blocks_attack(hourly).evidence
    '365 blocks, none of which asks for the draws of another'
    """
    count = _MOST if model.horizon is None else min(_MOST, -(-model.horizon // model.every))
    ticks = min(_TICKS, model.every)
    options = model._options | {"guarantee": model.guarantee, "every": ticks, "horizon": ticks * count}
    key = Recording(ZeroNoise())
    made: Any = type(model)(**options, key=key)
    nothing = inputs_of(made)[1]
    asked: dict[tuple[str, int, int], int] = {}
    for block in range(1, count + 1):
        for _ in range(ticks):
            made.step(nothing)
        for draw in key.draws:
            for place in ((draw.lane, node, draw.first + i) for node in draw.nodes for i in range(draw.coordinates)):
                if asked.setdefault(place, block) != block:
                    return Finding("blocks far apart", True, f"block {block} has draws of block {asked[place]}")
        key.draws.clear()
    return Finding(
        "blocks far apart", False, f"{count} blocks, none of which asks for the draws of another", bool(asked)
    )
