"""The auditor: plays the adaptive game against mechanisms and says how much privacy they lose at least."""

from evertally.audit.adversaries import (
    DeleteAndReinsert,
    Differencing,
    EdgeStream,
    Feedback,
    FirstTick,
    LateTrigger,
    RandomSearch,
    worst_pair,
)
from evertally.audit.estimators import epsilon_bound, lower_limit, mu_bound, threshold_bound, upper_limit
from evertally.audit.exact import ExactLoss, exact_loss
from evertally.audit.game import Adversary, Game, Move, Views
from evertally.audit.gaussian import closed_form
from evertally.audit.report import Report, measure_mu, play, strongest

__all__ = [
    "Adversary",
    "DeleteAndReinsert",
    "Differencing",
    "EdgeStream",
    "ExactLoss",
    "Feedback",
    "FirstTick",
    "Game",
    "LateTrigger",
    "Move",
    "RandomSearch",
    "Report",
    "Views",
    "closed_form",
    "epsilon_bound",
    "exact_loss",
    "lower_limit",
    "measure_mu",
    "mu_bound",
    "play",
    "strongest",
    "threshold_bound",
    "upper_limit",
    "worst_pair",
]
