"""Private selection: which of several integer scores is (nearly) the largest."""

from evertally.selection.noisy_max import noisy_argmax
from evertally.selection.one_shot import ExponentialMechanism, PermuteAndFlip

__all__ = ["ExponentialMechanism", "PermuteAndFlip", "noisy_argmax"]
