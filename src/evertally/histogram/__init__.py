"""Questions about column sums: certified expressions, and every way to answer them."""

from evertally.histogram import expressions

__all__ = ["expressions"]
