"""Probes by attacks on the system around the noise, and by the conformance suite."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from audit import copies, more_attacks
from audit.probes.probing import (
    Verdict,
    counter,
    first_leak,
    histogram,
    probe,
)
from conformance import MECHANISMS
from evertally import checks
from evertally.audit import attacks
from evertally.errors import ConfigurationError
from evertally.noise import NoiseKey, ZeroNoise
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, PureDP
from evertally.statistics import MaxSum, VectorCounter


@probe("attack", "replay, restore, horizon")
def _() -> Verdict:
    found: list[attacks.Finding] = []
    for make in (counter(PureDP(1), 6, radix=2), counter(ZCDP(0.5), 6, "sqrt"), counter(PureDP(1), None, "epoch-tree")):
        for attack in (attacks.replay_attack, attacks.restore_attack, attacks.horizon_attack):
            found.append(attack(make))
            if found[-1].leaked:
                return first_leak(found[-1])
    return first_leak(*found)


@probe("attack", "horizon of a tree that keeps no noise")
def _() -> Verdict:
    return first_leak(attacks.horizon_attack(counter(PureDP(1), 5, radix=2, memory_limit=8)))


@probe("attack", "a second stream under the same key")
def _() -> Verdict:
    one = counter(PureDP(1), 4, stream="visits")
    return first_leak(
        more_attacks.second_stream_attack(one, counter(PureDP(1), 4, stream="orders")),
        more_attacks.second_stream_attack(
            lambda key: one(_derived(key, "visits")), lambda key: one(_derived(key, "orders"))
        ),
    )


@probe("attack", "a second mechanism on the same stream")
def _() -> Verdict:
    return first_leak(
        more_attacks.second_stream_attack(counter(PureDP(1), 4, name="one"), counter(PureDP(1), 4, name="two")),
        more_attacks.second_stream_attack(
            counter(PureDP(1), 4, name="one"),
            lambda key: VectorCounter(1, guarantee=PureDP(1), horizon=4, mechanism="tree", name="one", key=key),
        ),
    )


@probe("attack", "the same names with other parameters")
def _() -> Verdict:
    one = counter(PureDP(1), 4)
    others = [
        counter(PureDP(0.25), 4),
        counter(PureDP(1), 400),
        counter(PureDP(1), 4, max_weight=9),
        counter(ZCDP(0.5), 4),
        counter(ApproxDP(1, 1e-6), 4, "tree"),
    ]
    return first_leak(*(more_attacks.second_stream_attack(one, other) for other in others))


@probe("attack", "columns")
def _() -> Verdict:
    def make(key: NoiseKey) -> VectorCounter:
        return VectorCounter(4, guarantee=PureDP(1), horizon=4, mechanism="tree", key=key)

    return first_leak(attacks.column_attack(make))


@probe("attack", "draws at all addresses")
def _() -> Verdict:
    return first_leak(more_attacks.repeat_attack(counter(PureDP(0.01), 512, radix=2)))


@probe("attack", "form of releases")
def _() -> Verdict:
    make = histogram(PureDP(1), 9, other="rest")
    plain = histogram(PureDP(1), 9)
    batches: Sequence[Any] = ([], ["c"], ["a"], ["b", "b"], [])
    return first_leak(
        attacks.metadata_attack(make, batches, [["b"], *batches[1:]]),
        attacks.metadata_attack(make, batches, [[] for _ in batches]),
        attacks.metadata_attack(counter(ZCDP(0.5), 9), [[1], [1, 1]], [[], [1]]),
        attacks.unknown_item_attack(plain),
        attacks.unknown_item_attack(make),
    )


@probe("attack", "records that nobody can count")
def _() -> Verdict:
    return first_leak(
        attacks.bad_record_attack(counter(PureDP(1), 9, max_weight=4)),
        attacks.bad_record_attack(histogram(PureDP(1), 9, max_per_event=2)),
    )


@probe("attack", "the same names with other data")
def _() -> Verdict:
    return first_leak(*copies.copies_attack(counter(PureDP(1), 4, name="one")), copies.one_shot_attack())


@probe("attack", "one more option after an upgrade")
def _() -> Verdict:
    return first_leak(copies.upgrade_attack(counter(PureDP(1), 4)))


@probe("attack", "two laws in one lane")
def _() -> Verdict:
    return first_leak(copies.two_laws_attack())


@probe("attack", "users after an interrupted call")
def _() -> Verdict:
    return first_leak(copies.interrupted_users_attack(counter(PureDP(1), 40, unit="user", max_events_per_user=1)))


@probe("attack", "a user who was erased and comes back")
def _() -> Verdict:
    mechanism = counter(PureDP(1), 4, unit="user", max_events_per_user=1)(ZeroNoise())
    mechanism.step_events([1], users=["ann"])
    mechanism.erase(["ann"])
    counted = mechanism.step_events([1], users=["ann"]).value
    return counted > 1, f"of a user with a cap of 1, erased in between, {counted} events were counted"


@probe("attack", "time-outs at the door")
def _() -> Verdict:
    """Column by column, and one event by itself as well: of an unusual type."""
    doors, events = histogram(PureDP(1), 9, max_per_event=2), [["a", "b"], {"a": 1}, "b"]
    return first_leak(*(copies.time_out_attack(doors, given) for given in (events, [*events, OrderedDict(a=1)])))


@probe("attack", "totals that belong to nobody")
def _() -> Verdict:
    """Where users are protected, what comes without users must not come in: one person could be all of it."""
    user: dict[str, Any] = {"unit": "user", "max_events_per_user": 1}
    makers = (
        counter(PureDP(1), 4, **user),
        counter(ZCDP(0.5), 4, "sqrt", **user),
        lambda key: MaxSum(
            columns=2, guarantee=PureDP(1), horizon=4, largest=100, mechanism="bounded", key=key, **user
        ),
    )
    for make in makers:
        for many in (False, True):
            mechanism: Any = make(ZeroNoise())
            x = [50, 0] if isinstance(mechanism, MaxSum) else 50
            try:
                mechanism.run([x]) if many else mechanism.step(x)
            except TypeError:
                continue
            return True, f"{type(mechanism).__name__} with a cap of 1 took 50 events of nobody knows whom"
    return False, "totals are refused where users are protected"


@probe("attack", "a promise that one in ten is published")
def _() -> Verdict:
    for kind in (ApproxDP, ApproxZCDP):
        try:
            promise = kind(1, 0.1)
        except ConfigurationError:
            promise = kind(1, 0.1, force=True)
        else:
            return True, f"{promise!r} was taken without a word"
        if "WARNING" not in repr(promise):
            return True, f"{promise!r} does not warn"
    return False, "a delta of 0.1 is refused unless forced, and then it warns"


@probe("attack", "bits of releases")
def _() -> Verdict:
    return first_leak(more_attacks.float_support_attack(counter(PureDP(1), 1), trials=2000))


def _derived(key: NoiseKey, name: str) -> NoiseKey:
    return key.derive(name)  # type: ignore[attr-defined, no-any-return]


# -- conformance -----------------------------------------------------------------------------------------------------


def _conforms(name: str, these: Sequence[checks.Check] = checks.CHECKS) -> Verdict:
    subject = next(subject for subject in MECHANISMS if subject.name.startswith(name))
    for check in these:
        try:
            check(subject)
        except Exception as error:  # a check fails by assertion, or by whatever the mechanism raised in it
            return True, f"{check.__name__}: {error or type(error).__name__}"
    return False, f"{len(these)} checks passed"


@probe("conformance", "pure counter")
def _() -> Verdict:
    return _conforms("Counter(tree, PureDP(epsilon=1.0), T=20")


@probe("conformance", "interrupted and concurrent calls")
def _() -> Verdict:
    these = (checks.check_interrupted_calls, checks.check_one_call_at_a_time)
    caught, evidence = _conforms("Counter(tree, PureDP(epsilon=1.0), T=20", these)
    return (caught, evidence) if caught else _conforms("MaxSum: rebased, PureDP", these)


@probe("conformance", "square-root counter")
def _() -> Verdict:
    return _conforms("Counter(sqrt, ZCDP(rho=0.5), T=20")


@probe("conformance", "histogram")
def _() -> Verdict:
    return _conforms("Histogram(zCDP, other)")
