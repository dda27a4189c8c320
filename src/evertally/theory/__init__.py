"""Theory: what researchers call. Error floors, the price of continual release, hard streams, predicted errors."""

from evertally.theory import reductions, streams
from evertally.theory.floors import floor, price
from evertally.theory.plan import plan

__all__ = ["floor", "plan", "price", "reductions", "streams"]
