"""The inverse of a plan: which guarantee a spec needs for an accuracy, and how long it could run under its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

from evertally.errors import ConfigurationError
from evertally.planner import longest_horizon, smallest_guarantee
from evertally.privacy import Guarantee
from evertally.runtime.mechanisms import Mechanisms, build
from evertally.runtime.plan import WITHOUT_END, plan_of
from evertally.runtime.spec import StreamSpec
from evertally.runtime.spec.loading import shared_guarantee


@dataclass(frozen=True)
class Wanted:
    """No release of a query (None: of any) further off than `error`, but for a probability of beta (None: that of the
    spec) for each query. Errors that depend on the data do not count, but for those of means and variances where
    `count` says how many values there are at least."""

    spec: StreamSpec
    error: float
    beta: float | None = None
    query: str | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        if not self.error > 0:
            raise ConfigurationError("the wanted error is a number above 0")
        if self.beta is not None and not 0 < self.beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
        if self.count is not None and self.count < 1:
            raise ConfigurationError("--count is the least number of values behind a mean: 1 or more")
        self._bound()  # refuses a query that is not there, or has no error to speak of

    def guarantee(self) -> Guarantee:
        """The least guarantee of the whole stream that is enough; shares stay as they are."""

        def bound(guarantee: Guarantee) -> float:
            shared = shared_guarantee(self.spec.file, guarantee, self.spec.queries)
            return self._bound(guarantee=guarantee, shared=shared)

        return smallest_guarantee(self.spec.guarantee, self.error, bound)

    def horizon(self) -> int:
        """The largest number of ticks under the guarantee of the spec."""
        return longest_horizon(self.spec.horizon, self.error, lambda ticks: self._bound(horizon=ticks))

    def _bound(self, **other: Any) -> float:
        asked = replace(self.spec, beta=self.beta or self.spec.beta, **other)
        mechanisms = build(asked, key=None)
        planned = {one.name: one.error_bound for one in plan_of(asked, mechanisms).queries}
        if self.count is not None:
            planned |= {name: self._of_values(mechanisms[name], asked) for name in self._by_count(mechanisms)}
        if self.query is not None and self.query not in planned:
            raise ConfigurationError(f"there is no query {self.query!r}, but {', '.join(planned)}")
        known = [bound for name, bound in planned.items() if bound is not None and self.query in (None, name)]
        if not known:
            raise ConfigurationError(
                "its error depends on the data. Of means and variances say how many values there will be at least: "
                "--count 10000. Of others `evertally plan` says what is known"
            )
        return max(known)

    def uncounted(self) -> list[str]:
        """The queries whose errors depend on the data, and are not in the answer."""
        mechanisms = build(self.spec, key=None)
        later = [query.name for query in self.spec.queries if query.record.error_later]
        counted = [] if self.count is None else self._by_count(mechanisms)
        return [name for name in later if name not in counted and self.query in (None, name)]

    def _by_count(self, mechanisms: Mechanisms) -> list[str]:
        return [name for name, made in mechanisms.items() if "count" in signature(type(made).error_bound).parameters]

    def _of_values(self, made: Any, asked: StreamSpec) -> float:
        return float(made.error_bound(asked.beta, None if asked.horizon else WITHOUT_END, count=self.count))
