"""What can be had for a promise, and what must be promised for an accuracy: questions to ask before a stream starts."""

from evertally.planner.accuracy import Accuracy, Sweep, accuracy, sweep
from evertally.planner.possible import Price
from evertally.planner.question import Plan, plan, ranking_of
from evertally.planner.search import longest_horizon, smallest_guarantee

__all__ = [
    "Accuracy",
    "Plan",
    "Price",
    "Sweep",
    "accuracy",
    "longest_horizon",
    "plan",
    "ranking_of",
    "smallest_guarantee",
    "sweep",
]
