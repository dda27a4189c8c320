"""What it costs to protect users, and what a rule for them buys: group privacy beside it (users-and-domains 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from evertally.counting.banded import BandedProcess
from evertally.counting.choose import rank
from evertally.counting.participation import toeplitz_reach, tree_reach
from evertally.counting.processes import Setting
from evertally.counting.sqrt_factor import coefficients
from evertally.privacy import ZCDP, PureDP
from evertally.ranking import finely
from evertally.statistics.linear_options import Linear, is_linear

_CAPPED = (
    "a cap for life biases later ticks, because old users fall silent: where it will do, take DistinctUsers or "
    "ActiveUsers, which need no cap, then min_separation alone, then a cap"
)
_APART = "of busy users some ticks are left out, at the end of the stream no more than at its beginning"


@dataclass(frozen=True)
class UserCost:
    """A rule per user, how far it lets a user reach, and what that is worth.

    `reach`: the squared distance that a user moves what noise is added to, in units of one tick of theirs; a group of
    all their ticks would have `group`. `factor`: the worst standard deviation times sqrt(2 rho), of a user who moves a
    count by one in a tick (None for other than zCDP); `stddev` itself; and the same for group privacy, of the best
    process for that. `bias`: which ticks the rule leaves out.
    """

    rule: str
    mechanism: str
    reach: float
    group: int
    stddev: float
    group_mechanism: str
    group_stddev: float
    factor: float | None
    group_factor: float | None
    bias: str

    def __str__(self) -> str:
        def shown(factor: float | None, stddev: float) -> str:
            return (f"factor {finely(factor)}, " if factor is not None else "") + f"worst sd {finely(stddev)}"

        with_rule = f"{self.mechanism} reaches {self.reach:,.2f} times one tick, {shown(self.factor, self.stddev)}"
        as_group = f"{self.group_mechanism} {self.group:,}, {shown(self.group_factor, self.group_stddev)}"
        return f"of each user {self.rule}: {with_rule} (by group privacy: {as_group})"


def user_cost(made: Any) -> UserCost | None:
    """The cost of users who are in few ticks, or in ticks that are apart; None for all others.

    >>> import evertally as et
    >>> weekly = et.Counter(unit="user", max_ticks_per_user=52, min_separation=7, guarantee=et.ZCDP(0.5), horizon=365,
    ...                     key=et.simulation(1))
    >>> cost = user_cost(weekly)
    >>> round(cost.factor, 2), round(cost.reach), cost.group, round(cost.group_factor)
    (57.75, 133, 2704, 138)
    """
    if not is_linear(made) or made._setting.rule is None:
        return None
    setting, rule = made._setting, made._setting.rule
    best = rank(made.guarantee, replace(setting, rule=None, band=None)).best
    assert best.score is not None
    unit = math.sqrt(rule.per_tick.l2_squared)
    by = math.sqrt(2 * float(made.charge.exact_rho)) / unit if isinstance(made.charge, ZCDP) else None
    stddev = _worst(made)
    return UserCost(
        rule=made.contribution.user_rule,
        mechanism=made.mechanism,
        reach=float(_reach(made, setting)),
        group=setting.change.l2_squared // rule.per_tick.l2_squared,
        stddev=stddev,
        group_mechanism=best.name,
        group_stddev=best.score,
        factor=None if by is None else by * stddev,
        group_factor=by * best.score if by is not None and isinstance(best.charge, ZCDP) else None,
        bias=_APART if made.contribution.max_ticks_per_user is None else _CAPPED,
    )


def about_users(made: Any) -> list[str]:
    """What a plan says of a rule for users, or of a cap."""
    cost = user_cost(made)
    if cost is not None:
        return [str(cost), cost.bias]
    capped = isinstance(made, Linear) and made.contribution.max_events_per_user is not None
    return [_CAPPED] if capped else []


def _worst(made: Linear) -> float:
    return made.noise.worst().stddev if made.horizon is not None else made.noise.spread(2**16).stddev


def _reach(made: Linear, setting: Setting) -> Fraction:
    """In units of the most that one tick of a user reaches with the same factor."""
    rule, T, process = setting.rule, setting.horizon, made.noise
    assert rule is not None
    one = rule.per_tick.l2_squared
    if isinstance(made.charge, PureDP) or T is None:
        return Fraction(setting.change.l2_squared, one)
    if made.mechanism in ("sqrt", "banded"):
        r = coefficients(T)
        if isinstance(process, BandedProcess):
            r[process.band :] = 0
        return Fraction(toeplitz_reach(r, T, rule), one * sum(int(x) ** 2 for x in r))
    if made.mechanism in ("tree", "honaker"):
        radix, levels = getattr(process, "radix", 2), process.levels  # type: ignore[attr-defined]
        return Fraction(tree_reach(radix, levels, T, rule), one * levels)
    return Fraction(setting.change.l2_squared, one)
