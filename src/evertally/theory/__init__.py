"""Theory: what researchers call. Error floors, the price of continual release, hard streams."""

from evertally.theory import reductions, streams
from evertally.theory.floors import floor, price

__all__ = ["floor", "price", "reductions", "streams"]
