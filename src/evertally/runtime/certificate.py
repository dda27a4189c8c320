"""The guarantee certificate: what a stream promises, to whom, for how long and by which theorems, for the files.

It is made from the spec and from the mechanisms that the stream runs on (before its first tick: that the spec asks
for), and depends on no data; all of it is public.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import evertally
from evertally.counting.processes import PROCESSES
from evertally.errors import ConfigurationError
from evertally.noise import Key
from evertally.privacy import ZCDP, Adversary, ApproxDP, ApproxZCDP, Guarantee, Ledger, PureDP
from evertally.privacy._exact import SMALLEST_FLOAT, float_up
from evertally.privacy.conversions import epsilon_of_mu, gaussian_mu
from evertally.privacy.ledger import Entry
from evertally.runtime.clock import FIRST_SERVE, duration
from evertally.runtime.mechanisms import Mechanisms
from evertally.runtime.plan import PlannedQuery, about_intervals, only_above, order_words, plan_of, warnings_of
from evertally.runtime.protected import declared_facts, hidden, neighbours_meaning, not_hidden, unit_of
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.standing import standing

FORMAT = 1
_DELTAS = tuple(Fraction(1, 10**power) for power in (3, 4, 5, 6, 7, 8, 9, 10, 12))
_LARGE_DELTAS = tuple(Fraction(percent, 100) for percent in (1, 2, 5, 10, 15, 20, 30, 40, 50))  # to bound guesses only

_CONCURRENT = (
    "mechanisms run at the same time on input that may depend on all their releases: Henzinger, Safavi, Vadhan, "
    "Concurrent Composition for Differentially Private Continual Mechanisms; for linear mechanisms directly, "
    "factorization-counting 1.4 and 3.2"
)
_BY_THE_CURVE = (
    "nothing is added up: one mechanism has the whole promise. Its noise is real Gaussian, all its releases together "
    "are mu-GDP, and (epsilon, delta) follows by the exact Gaussian curve, adaptive input included: "
    "optimal-counting 2.2"
)


_LOG = (
    "signatures under this Ed25519 key vouch for a hash chain over all that the stream has released; `evertally "
    "verify` checks a release log against them, and needs no secret"
)


def certificate(spec: StreamSpec) -> dict[str, Any]:
    """What a privacy engineer files. Of a stream that has run it needs the key, to read what that runs on."""
    mechanisms = standing(spec)
    return certificate_of(spec, mechanisms, Key.load(spec.key_file).public_key if spec.key_file.exists() else None)


def certificate_of(spec: StreamSpec, mechanisms: Mechanisms, public_key: bytes | None = None) -> dict[str, Any]:
    """The certificate of mechanisms that exist: every number comes from them, exact ones as text too.

    `public_key`: that of the stream; there is none before its key is made.
    """
    planned = plan_of(spec, mechanisms)
    ledger = ledger_of(spec, mechanisms)
    return {
        "format": FORMAT,
        "evertally": evertally.__version__,
        "stream": spec.name,
        "spec_digest": spec.digest,
        "in_plain_words": plain_words(spec),
        "guarantee": _guarantee(spec.guarantee),
        "warnings": list(planned.warnings),
        "adversary": _adversary(spec),
        "neighbours": {"relation": spec.neighbours, "meaning": neighbours_meaning(spec)},
        "unit": {
            "protects": spec.protects,
            "max_events_per_user": spec.max_events_per_user,
            "user_column": spec.user_column,
            **({} if spec.period is None else {"period": spec.period}),
        },
        "horizon": {"ticks": spec.horizon, "meaning": _life(spec)},
        "clock": _clock(spec),
        "queries": [
            _query(spec, query, row, mechanisms[query.name])
            for query, row in zip(spec.queries, planned.queries, strict=True)
        ],
        "error_bounds": {"beta": spec.beta, "at_tick": planned.ticks, "about": planned.about},
        "composition": _composition(spec, ledger, _mu_alone(spec, mechanisms, ledger)),
        "epsilon_delta": [
            {name: value for name, value in _guarantee(best).items() if name != "kind"}
            for best in _conversions(spec, ledger, _mu_alone(spec, mechanisms, ledger))
        ],
        "release_log": {"public_key": None if public_key is None else public_key.hex(), "meaning": _LOG},
        "assumptions": _assumptions(spec),
    }


def plain_words(spec: StreamSpec) -> str:
    """The promise for a person who has never heard of differential privacy. True, and short."""
    every = "tick" if spec.clock.integer else duration(spec.clock.length)
    correct = guesses(spec)
    doubt = (
        f"Somebody who is in two minds about it, and then sees everything that this stream ever publishes, guesses "
        f"right in at most {correct} of 100 cases."
        if correct < 99
        else "But the parameters of this stream are so large that the promise says little."
    )
    capped = f" Mind that {about_intervals(spec)}." if spec.user_column is not None else ""
    oblivious = spec.guarantee.adversary == "oblivious"
    condition = " This holds if events do not depend on what was published before." if oblivious else ""
    condition += "".join(f" It rests on a declared fact: {fact}." for fact in declared_facts(spec))
    return (
        f"Statistics of the stream {spec.name!r} are published once for every {every}, with random noise in them, "
        f"so that they hide {hidden(spec)}. {doubt}{condition} {not_hidden(spec)} "
        "The noise makes the numbers inexact; each is published with an interval, or a bound, for its error."
        f"{capped}{''.join(f' WARNING: {warning}.' for warning in warnings_of(spec))}"
    )


def _guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """Numbers rounded up, so that none claims less loss than is real, and the exact ones as fractions."""
    names = [name for name in ("epsilon", "rho", "delta") if hasattr(guarantee, f"exact_{name}")]
    return {
        "kind": type(guarantee).__name__,
        **{name: getattr(guarantee, name) for name in names},
        "exact": {name: str(getattr(guarantee, f"exact_{name}")) for name in names},
    }


def _adversary(spec: StreamSpec) -> dict[str, str]:
    meaning = {
        "adaptive": "knows everything but one protected unit, sees every release of every query as it comes out, and "
        "may choose later events by what it has seen",
        "oblivious": "knows everything but one protected unit and sees every release of every query; the events do "
        "not depend on what was released before",
    }
    return {"kind": spec.guarantee.adversary, "meaning": meaning[spec.guarantee.adversary]}


def _life(spec: StreamSpec) -> str:
    end = f"until {spec.clock.end_of(spec.horizon)}" if spec.horizon and not spec.clock.floating else "for all ticks"
    return f"the guarantee covers all releases of all queries together, {end}"


def _clock(spec: StreamSpec) -> dict[str, Any]:
    clock = spec.clock
    return {
        "start": FIRST_SERVE if clock.floating else clock.end_of(0),
        "tick": clock.length if clock.integer else clock.length / 1_000_000,
        "unit": "time stamps are plain integers" if clock.integer else "seconds",
        "column": clock.column,
        "close": clock.close,
    }


def _query(spec: StreamSpec, query: QuerySpec, row: PlannedQuery, mechanism: Any) -> dict[str, Any]:
    record = query.record
    built_on = "" if record.built_on is None else record.built_on(mechanism)
    return {
        "name": query.name,
        "kind": query.kind,
        "made_by": "evertally" if query.ours else f"not ours: {record.statistic.__module__}",
        "in_plain_words": record.card.shown(query.column, query.parameters),
        "column": query.column,
        "protects": unit_of(spec, query),
        "share": {"exact": str(query.share), "value": float(query.share)},
        "mechanism": row.mechanism,
        "class": type(mechanism).__name__,
        "exactness": row.exactness,
        "charge": _guarantee(row.charge) if _pays(row.mechanism) else None,
        "proved_in": {
            "mechanism": record.mechanism_proof(row.mechanism, spec.neighbours),
            "change_of_one_unit": record.proof_of_change(spec.neighbours, spec.protects),
            **({"built_on": built_on} if built_on else {}),
        },
        "error_bound": finite(row.error_bound),
        "error_bound_is_for": "counts that are too high" if only_above(query, row) else "both sides",
        "no_error_bound_because": row.unbounded_because,
        "error_bound_if_answers_stay_below_largest": finite(row.guessed_bound),
        "stddev": finite(row.stddev),
        "worst_stddev": finite(row.worst_stddev),
    }


def _pays(mechanism: str) -> bool:
    """A constant reads no data; what it is charged stands for zero, which no guarantee can say."""
    return mechanism != "trivial"


def finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


def ledger_of(spec: StreamSpec, mechanisms: Mechanisms) -> Ledger:
    """What the mechanisms satisfy, under what they have to fit; it refuses a sum that does not."""
    ledger = Ledger(spec.shared)
    for name, mechanism in mechanisms.items():
        if _pays(mechanism.mechanism):
            ledger.promise(name, mechanism.charge)
    return ledger


def _mu_alone(spec: StreamSpec, mechanisms: Mechanisms, ledger: Ledger) -> Fraction | None:
    """What the noise was made for where one process of real Gaussian noise pays an (epsilon, delta) promise as it
    stands, by the exact curve (optimal-counting 2.2). None: what is paid adds up. Who else pays in epsilon and delta
    (partitions, "sparse-gumbel") has no mu, and for what others have made nothing but its charge is known."""
    if len(ledger.entries) != 1:
        return None
    name, charge = ledger.entries[0].name, ledger.entries[0].charge
    mechanism, ours = mechanisms[name], next(query.ours for query in spec.queries if query.name == name)
    process = PROCESSES.get(getattr(mechanism, "process", mechanism.mechanism))
    if not ours or process is None or not process.gaussian or not isinstance(charge, ApproxDP):
        return None
    return gaussian_mu(charge.exact_epsilon, charge.exact_delta)


def _composition(spec: StreamSpec, ledger: Ledger, mu: Fraction | None) -> dict[str, Any]:
    total = ledger.total()
    return {
        "theorem": _sum_of(ledger.entries) if mu is None else _BY_THE_CURVE,
        "concurrent": _CONCURRENT if mu is None else "no other mechanism of this stream reads the events",
        "mu": None if mu is None else {"exact": str(mu), "value": float_up(mu)},
        "sum": {
            "epsilon": None if ledger.cost.epsilon is None else str(ledger.cost.epsilon),
            "rho": str(ledger.cost.rho) if mu is None else None,
            "delta": str(ledger.cost.delta),
        },
        "total": None if total is None else _guarantee(total),
        "within_guarantee": total is None or spec.guarantee.covers(total),
    }


def _sum_of(entries: Sequence[Entry]) -> str:
    if all(isinstance(entry.charge, PureDP) for entry in entries):
        return "epsilons add up (basic composition), price-of-continual-release 2"
    if any(entry.delta for entry in entries):
        return "rho and the probabilities of bad events add up, and are converted once: streaming-selection 2.1 and 2.3"
    return "rho adds up (zCDP), a pure epsilon as epsilon^2/2, and is converted once: price-of-continual-release 2.1"


def _conversions(spec: StreamSpec, ledger: Ledger, mu: Fraction | None) -> list[ApproxDP]:
    """For each delta the smallest epsilon that follows from the guarantee or from what is paid."""
    promise, adversary = spec.guarantee, spec.guarantee.adversary
    found: list[ApproxDP] = []
    for delta in _deltas(promise):
        if isinstance(promise, ApproxDP) and delta == promise.exact_delta and ledger.spent == 1:
            found.append(promise)  # as it was given: there and back through mu or rho is not the same to the last bit
            continue
        pairs = [pair for one in (promise, *_paid(ledger, adversary)) for pair in _implied(one, [delta])]
        if mu is not None:
            epsilon = max(epsilon_of_mu(mu, delta), SMALLEST_FLOAT)
            pairs.append(ApproxDP(epsilon, delta, adversary=adversary, force=True))
        found += [min(pairs, key=lambda pair: pair.exact_epsilon)] if pairs else []
    return found


def _deltas(promise: Guarantee) -> list[Fraction]:
    """The promised one is always among them, in place of the one that prints like it: 1e-9 is not quite 1/10^9."""
    if not isinstance(promise, ApproxDP):
        return list(_DELTAS)
    others = (delta for delta in _DELTAS if float(delta) != float(promise.exact_delta))
    return sorted((promise.exact_delta, *others), reverse=True)


def _paid(ledger: Ledger, adversary: Adversary) -> Iterator[Guarantee]:
    """What is paid, added up in rho and, where there is one, in epsilon."""
    cost = ledger.cost
    for amount, alone, with_delta in ((cost.rho, ZCDP, ApproxZCDP), (cost.epsilon, PureDP, ApproxDP)):
        if amount and cost.delta:
            yield with_delta(amount, cost.delta, adversary=adversary, force=True)
        elif amount:
            yield alone(amount, adversary=adversary)


def _implied(guarantee: Guarantee, deltas: Sequence[Fraction]) -> Iterator[ApproxDP]:
    for delta in deltas:
        with contextlib.suppress(ConfigurationError):  # it says nothing about so small a delta
            yield guarantee.to_approx(delta)


def guesses(spec: StreamSpec) -> int:
    """Of 100 guesses between two neighbours with even odds, how many are right at most; rounded up.

    (eps, delta)-DP bounds the best test by (e^eps + delta)/(e^eps + 1); every pair that is implied may be used.
    """
    pairs = list(_implied(spec.guarantee, (*_DELTAS, *_LARGE_DELTAS)))
    if isinstance(spec.guarantee, ApproxDP):
        pairs.append(spec.guarantee)
    chances = [(1 + pair.delta * less) / (1 + less) for pair in pairs for less in [math.exp(-pair.epsilon)]]
    return min(100, math.ceil(100 * min([*chances, 1.0]) + 1e-9))


def _assumptions(spec: StreamSpec) -> list[str]:
    times = {
        "wall": "Live ticks close on the wall clock and are published a fixed time after their end. How long the "
        "computation takes is outside the promise, and so is everything else that can be measured on the machine.",
        "request": "Live ticks close when an administrator says so. When that is must not depend on the events; "
        "timing is outside the promise.",
    }
    assumed = [
        "The random bits, made from the key by AES-256 and BLAKE2b, cannot be told from ideal ones: the guarantee is "
        "computational (docs/theory/samplers.md, section 5).",
        "The key and the state file are secret, are used for this stream only, and are never restored from a copy "
        "together: two runs on different data with one key reveal the difference.",
        "The clock, the queries, their labels and all other parameters were declared without looking at the data. "
        "Idle ticks are released too.",
        "Every event is cut to its bounds by a fixed function of that event alone before it is counted; what cannot "
        "be read is left out silently (streaming-selection 10.1).",
        times[spec.clock.close],
        "Public: that the stream exists, its spec, the number and times of its ticks, and the error bounds.",
    ]
    if spec.unit != "event":
        assumed.append(
            f"A person is one name in the column {spec.user_column!r}. Whoever has several names is protected for "
            "each of them."
        )
    if spec.order == "content":
        words = order_words(spec)
        assumed.append(
            f'{words[0].upper()}{words[1:]} ([stream] order = "content"); the order of arrival plays no part.'
        )
    if spec.items is not None:
        assumed.append(
            f"{spec.items.assumed} Whoever is behind several {spec.items.one}s is protected for each of them."
        )
    assumed += [f"Declared, and not enforced: {fact}. Privacy rests on it." for fact in declared_facts(spec)]
    if spec.guarantee.adversary == "oblivious":
        assumed.append("Events do not depend on what this stream released before.")
    if spec.max_events_per_tick is not None:
        assumed.append(
            f"No tick has more than {spec.max_events_per_tick} events (max_events_per_tick): error bounds rest on it, "
            "and nobody enforces it; privacy does not depend on it."
        )
    return assumed
