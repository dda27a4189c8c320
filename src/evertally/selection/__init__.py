"""Selection: one private look at a histogram, and top items of a stream, over known and unknown items."""

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
from evertally.selection.streaming import StreamingTopK
from evertally.selection.unknown import UnknownHistogram, UnknownTopK
from evertally.selection.unknown_meta import BlockHistogram, BlockTopK

__all__ = [
    "BlockHistogram",
    "BlockTopK",
    "ExponentialMechanism",
    "FixedThresholdGauss",
    "Items",
    "KnownGauss",
    "KnownGumbel",
    "LimitedDomainLaplace",
    "OneShot",
    "PermuteAndFlip",
    "Reach",
    "StreamingTopK",
    "UnknownGauss",
    "UnknownGumbel",
    "UnknownHistogram",
    "UnknownTopK",
    "noisy_argmax",
]
