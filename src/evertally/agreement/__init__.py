"""Released numbers that agree with each other: optional post-processing, beside the raw ones."""

from evertally.agreement.fit import Consistent, consistent

__all__ = ["Consistent", "consistent"]
