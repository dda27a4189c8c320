"""A plan under several guarantees: how errors of a spec fall as its epsilon (or rho) grows. No data, no budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evertally.errors import ConfigurationError
from evertally.planner.search import with_amount
from evertally.privacy import Guarantee
from evertally.runtime.mechanisms import build
from evertally.runtime.plan import Plan, plan_of
from evertally.runtime.spec import StreamSpec
from evertally.runtime.spec.loading import shared_guarantee


def swept(spec: StreamSpec, amounts: Sequence[float]) -> list[tuple[Guarantee, Plan]]:
    """The plan of a spec with each of these amounts in place of its epsilon (or rho); shares stay as they are."""
    if not amounts or not all(amount > 0 for amount in amounts):
        raise ConfigurationError("a sweep takes numbers above 0: the epsilon (or rho) of each plan")
    found = []
    for amount in amounts:
        guarantee = with_amount(spec.guarantee, amount)
        other = replace(spec, guarantee=guarantee, shared=shared_guarantee(spec.file, guarantee, spec.queries))
        found.append((guarantee, plan_of(other, build(other, key=None))))
    return found
