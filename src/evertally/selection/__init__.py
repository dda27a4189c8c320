"""Selection: one private look at a histogram, and engines for top items of a stream, over known and unknown items."""

from evertally.selection.one_shot import ExponentialMechanism, PermuteAndFlip

__all__ = ["ExponentialMechanism", "PermuteAndFlip"]
