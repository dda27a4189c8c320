"""What options of statistics about users have in common."""

from __future__ import annotations

from typing import Any

from evertally.errors import ConfigurationError
from evertally.privacy import Neighbours


def check_users(statistic: Any) -> None:
    """Refuses what goes with another unit: these statistics protect all events of a user, however many."""
    name = type(statistic).__name__
    if statistic.unit != "user":
        raise ConfigurationError(
            f"{name} protects users, all events of each: leave unit out, or say unit='user'. One event more or less "
            "may change which period was the first one, and everything after it"
        )
    if statistic.max_events_per_user is not None:
        raise ConfigurationError(
            f"{name} bounds what a user does by itself, with any number of events: leave max_events_per_user out"
        )
    if Neighbours.parse(statistic.neighbours) is Neighbours.INDEPENDENT:
        raise ConfigurationError('users are there or not ("add_remove"), or in each other\'s place ("replace")')
