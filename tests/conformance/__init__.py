"""The mechanisms of the library that must pass every check of the conformance suite (`evertally.checks`)."""

from conformance.mechanisms import MECHANISMS

__all__ = ["MECHANISMS"]
