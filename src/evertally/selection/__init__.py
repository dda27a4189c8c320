"""Selection: one private look at a histogram, and engines for top items of a stream, over known and unknown items."""

from evertally.selection.histograms import (
    FixedThresholdGauss,
    KnownGauss,
    KnownGumbel,
    LimitedDomainLaplace,
    OneShot,
    UnknownGauss,
    UnknownGumbel,
)
from evertally.selection.items import Items
from evertally.selection.noisy_max import noisy_argmax
from evertally.selection.one_shot import ExponentialMechanism, PermuteAndFlip
from evertally.selection.reach import Reach

__all__ = [
    "ExponentialMechanism",
    "FixedThresholdGauss",
    "Items",
    "KnownGauss",
    "KnownGumbel",
    "LimitedDomainLaplace",
    "OneShot",
    "PermuteAndFlip",
    "Reach",
    "UnknownGauss",
    "UnknownGumbel",
    "noisy_argmax",
]
