"""The demo: a year of real departures, replayed through the live service."""

from evertally.cli.demo.replay import demo

__all__ = ["demo"]
