"""The inverse of a plan: which guarantee a spec needs for an accuracy, and how long it could run under its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from evertally.errors import ConfigurationError
from evertally.planner import longest_horizon, smallest_guarantee
from evertally.privacy import Guarantee
from evertally.runtime.mechanisms import build
from evertally.runtime.plan import plan_of
from evertally.runtime.spec import StreamSpec
from evertally.runtime.spec.loading import shared_guarantee


@dataclass(frozen=True)
class Wanted:
    """No release of a query (None: of any) further off than `error`, but for a probability of beta (None: that of the
    spec) for each query. Means have no error known beforehand, and do not count."""

    spec: StreamSpec
    error: float
    beta: float | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if not self.error > 0:
            raise ConfigurationError("the wanted error is a number above 0")
        if self.beta is not None and not 0 < self.beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
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
        planned = {one.name: one.error_bound for one in plan_of(asked, build(asked, key=None)).queries}
        if self.query is not None and self.query not in planned:
            raise ConfigurationError(f"there is no query {self.query!r}, but {', '.join(planned)}")
        known = [bound for name, bound in planned.items() if bound is not None and self.query in (None, name)]
        if not known:
            raise ConfigurationError("the error of a mean depends on how many values there will be: name another query")
        return max(known)
