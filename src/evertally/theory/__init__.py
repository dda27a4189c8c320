"""Theory: what researchers call. Error floors, the price of continual release, hard streams, predicted errors.

`selection` has the thresholds of unknown items, how soon an item is found, and rules for switches, eta and kbar:

>>> import evertally as et
>>> et.theory.selection.switches_rule(3), round(et.theory.selection.eta_rule(1000, 100, 1, tau=1.0))
(5, 46)
"""

from evertally.bounds import selection
from evertally.theory import reductions, streams
from evertally.theory.floors import floor, price

__all__ = ["floor", "price", "reductions", "selection", "streams"]
