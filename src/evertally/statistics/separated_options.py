"""Users who count in few ticks, or in ticks that are apart: the options, and what they do to the charge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint, Door, Form, Options
from evertally.noise import ItemSource
from evertally.privacy import Contribution, change, participation
from evertally.privacy.neighbours import separation_rule
from evertally.statistics.linear_options import Linear

RULE: Options = {
    "max_ticks_per_user": None,
    "min_separation": None,
    "calendar": False,
    "first_block": None,
    "max_events_per_user_tick": 1,
}


@statistic
class Separated(Linear):
    """Linear statistics with a rule for users in place of `max_events_per_user`. Not used directly.

    Theorem (users-and-domains 1.3 [R]): a user is in at most k ticks, b ticks apart, and moves what noise is added to
    by the exact amount that the noise process answers for. Square root, banded factors and trees gain by the
    separation; every other process pays for a group of k.
    """

    period: int | None = option(
        'The ticks of a block that `unit="user-period"` protects a user in; block 1 is ticks 1 to `period`.',
        default=None,
    )
    max_ticks_per_user: int | None = option(
        'In how many ticks a user is counted at most; goes with unit="user", in place of `max_events_per_user`. Later '
        "ones are not counted, so that totals fall behind as users grow old.",
        default=None,
    )
    min_separation: int | None = option(
        "How many ticks there are at least from one counted tick of a user to the next.", default=None
    )
    calendar: bool = option(
        "Whether a user is counted in the first tick of every public block of `min_separation` ticks that has one of "
        "theirs, however near to that of the block before.",
        default=False,
    )
    first_block: int | None = option(
        "With `calendar`: how many ticks the first block has, where a stream begins inside one.", default=None
    )
    max_events_per_user_tick: int = option("How many events of a user count in such a tick: the first.", default=1)
    band: int | None = option(
        'How many coefficients the factor of mechanism="banded" has; None takes the best of a public list.',
        default=None,
    )

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        given = RULE | {name: options[name] for name in RULE if name in options}
        if given["max_ticks_per_user"] is None and given["min_separation"] is None:
            return ""
        return separation_rule(SimpleNamespace(**given))

    def _contributing(self, **bounds: Any) -> Contribution:
        return super()._contributing(period=self.period, **self._given(*RULE), **bounds)

    def _user_address(self) -> Options:
        rule = self._given(*RULE)
        if rule == RULE:
            return super()._user_address()
        return rule | self._given("unit", "period")

    def _counted(
        self,
        word: str,
        columns: int,
        contribution: Contribution,
        address: Options,
        door: Callable[[ItemSource, int], Door],
        form: Form,
        settled: Options | None = None,
    ) -> Blueprint:
        """The blueprint of counts by column, for single events and for users."""
        rule, relation = participation(self.neighbours, contribution, columns), self.neighbours
        if rule is None:
            moved, loose = (change(relation, contribution, columns, cancels) for cancels in (True, False))
        else:
            moved, loose = rule.group(self.horizon), rule.loose(self.horizon)
        return self._linear(
            word, columns, moved, contribution, address, door, form, settled=settled, loose=loose, rule=rule
        )
