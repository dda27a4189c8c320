"""What is promised: guarantees, neighbours, conversions, composition and the ledger. Never touches data."""

from evertally.privacy._promise import Adversary, Cost
from evertally.privacy.composition import compose
from evertally.privacy.conversions import delta_of_rho, epsilon_of_rho, rho_of_epsilon_delta
from evertally.privacy.guarantees import ZCDP, ApproxDP, ApproxZCDP, Guarantee, PureDP
from evertally.privacy.ledger import Entry, Ledger
from evertally.privacy.neighbours import Change, Contribution, Neighbours, change, moves_one_way, replaced_user
from evertally.privacy.participation import Participation, participation, taking_part

__all__ = [
    "ZCDP",
    "Adversary",
    "ApproxDP",
    "ApproxZCDP",
    "Change",
    "Contribution",
    "Cost",
    "Entry",
    "Guarantee",
    "Ledger",
    "Neighbours",
    "Participation",
    "PureDP",
    "change",
    "compose",
    "delta_of_rho",
    "epsilon_of_rho",
    "moves_one_way",
    "participation",
    "replaced_user",
    "rho_of_epsilon_delta",
    "taking_part",
]
