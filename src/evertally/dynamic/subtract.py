"""B: insertions in one prefix structure, deletions in another, the answer their difference. dynamic-data 6.1.

Each update reaches exactly one of the two, so in the event unit each may use the whole budget; so may its partition. An
item reaches both: twice. Needs no identity of items, and tolerates deletions of what is not there: the estimate is what
was inserted minus what was deleted. Its error grows with all that was ever inserted, not with what is present.
"""

from __future__ import annotations

from evertally.dynamic.insertions import STRUCTURES, plan_sides
from evertally.dynamic.parts import Construction, Plan, Setting
from evertally.dynamic.tolls import two_toll
from evertally.errors import ConfigurationError
from evertally.privacy import Contribution

_NEVER_BOUNDED = (
    "the error grows with all that was ever inserted, which has no bound here; take an additive static mechanism, "
    'or "anew"'
)


def plan_subtract(setting: Setting, contribution: Contribution) -> Plan:
    """`structure` is "tree" (over the ticks of a horizon; taken where it can be) or "doubling"."""
    if not setting.deletions and setting.max_lifetime is None:
        raise ConfigurationError(
            'nothing is deleted: "tree" and "doubling" need one structure where "subtract" has two'
        )
    finite = setting.horizon is not None and setting.partition == "identity"
    form = dict(setting.options).get("structure", "tree" if finite else "doubling")
    if form not in STRUCTURES or (form == "tree" and not finite):
        raise ConfigurationError('structure is "tree" (with a horizon and without a partition) or "doubling"')
    return plan_sides(
        setting,
        form,
        two_toll(setting),
        ("insertions", "deletions"),
        size=None,
        unknown=_NEVER_BOUNDED,
        structure=form,
    )


SUBTRACT = Construction("subtract", "dynamic-data 6.1", plan_subtract)
