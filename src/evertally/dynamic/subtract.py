"""B: insertions in one prefix structure, deletions in another, the answer their difference. dynamic-data 6.1.

Each update reaches exactly one of the two, so in the event unit each may use the whole budget; so may its partition. An
item reaches both: twice. Needs no identity of items, and tolerates deletions of what is not there: the estimate is what
was inserted minus what was deleted. Its error grows with all that was ever inserted, not with what is present.
"""

from __future__ import annotations

from evertally.dynamic.insertions import plan_sides
from evertally.dynamic.parts import Construction, Plan, Setting
from evertally.dynamic.tolls import two_toll
from evertally.errors import ConfigurationError
from evertally.privacy import Contribution


def plan_subtract(setting: Setting, contribution: Contribution) -> Plan:
    """Trees over the ticks of a horizon, else doubling blocks; with a partition doubling blocks."""
    if not setting.deletions and setting.max_lifetime is None:
        raise ConfigurationError('nothing is deleted: "tree" and "doubling" need one structure where "subtract" has two')
    finite = setting.horizon is not None and setting.partition == "identity"
    # How much was ever inserted nobody declares, so mechanisms whose error grows with it have no bound.
    return plan_sides(
        setting, "tree" if finite else "doubling", two_toll(setting), ("insertions", "deletions"), size=None
    )


SUBTRACT = Construction("subtract", "dynamic-data 6.1", plan_subtract)
