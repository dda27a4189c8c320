"""Theory: what researchers call. Error floors, the price of continual release, the least error of a counter.

`selection` has the thresholds of unknown items, how soon an item is found, and rules for switches, eta and kbar;
`frontier` certified bounds on what any Gaussian counter must err, and tables of what is published; `count_floors` the
same as standard deviations for a budget:

>>> import evertally as et
>>> et.theory.selection.switches_rule(3), round(et.theory.selection.eta_rule(1000, 100, 1, tau=1.0))
(5, 46)
>>> [round(bound, 4) for bound in et.theory.frontier.optimal_factor(4096)]
[3.3942, 3.3942]
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from evertally.theory import count_floors, frontier, selection
from evertally.theory.floors import floor, price

__all__ = ["count_floors", "floor", "frontier", "plan", "price", "selection"]


def plan(make: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The same as `evertally.plan`: ranked mechanisms with their predicted errors.

    >>> import evertally as et
    >>> et.theory.plan(et.Counter, guarantee=et.ZCDP(0.5), horizon=4096).best.name
    'bank'
    """
    # The planner asks this room for floors, so it stands above it.
    return import_module("evertally.planner").plan(make, *arguments, **options)
