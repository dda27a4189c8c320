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
from evertally.audit.audited import AUDITED
from evertally.audit.estimators import (
    epsilon_bound,
    lower_limit,
    mu_bound,
    rho_bound,
    separation_bound,
    threshold_bound,
    upper_limit,
)
from evertally.audit.everything import audit_all
from evertally.audit.exact import ExactLoss, JointLoss, exact_columns, exact_loss
from evertally.audit.game import Adversary, Game, Move, Views
from evertally.audit.gaussian import closed_form
from evertally.audit.hunt import hunt
from evertally.audit.report import Report, measure_mu, measure_rho, play
from evertally.audit.suite import audit_mechanism, best
from evertally.audit.verdicts import overall

__all__ = [
    "AUDITED",
    "Adversary",
    "DeleteAndReinsert",
    "Differencing",
    "EdgeStream",
    "ExactLoss",
    "Feedback",
    "FirstTick",
    "Game",
    "JointLoss",
    "LateTrigger",
    "Move",
    "RandomSearch",
    "Report",
    "Views",
    "audit_all",
    "audit_mechanism",
    "best",
    "closed_form",
    "epsilon_bound",
    "exact_columns",
    "exact_loss",
    "hunt",
    "lower_limit",
    "measure_mu",
    "measure_rho",
    "mu_bound",
    "overall",
    "play",
    "rho_bound",
    "separation_bound",
    "threshold_bound",
    "upper_limit",
    "worst_pair",
]
