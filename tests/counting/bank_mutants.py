"""Planted bugs of banks and blocks (optimal-counting 9, B1-B14), each with the probe that section 9 names.

A probe returns what it found, in words; nothing, where nothing is wrong.

>>> clamped = next(mutant for mutant in BANK_MUTANTS if mutant.name.startswith("B6"))
>>> clamped.probe()
''
>>> with clamped.patch():
...     clamped.probe()
'a tail is not where its bits say'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from block_costs import costs, in_levels
from flint import arb
from planted_words import PlantedWords, near_half, on_a_half, tie_after_a_restart

import evertally as et
from evertally.audit.gaussian import ImpulseSource, closed_form, delta_of_mu, impulse_response, read_at
from evertally.audit.whitebox import closed_form_report
from evertally.balls import at_precision
from evertally.counting import bank, bank_kernels, bank_path, block_level, pure_blocks
from evertally.counting.bank import BankProcess
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_moments import moments_of
from evertally.counting.bank_schedule import Bank, build_bank
from evertally.errors import BudgetExceeded, HorizonExceeded
from evertally.noise import compiled, simulation, source
from evertally.noise.reals import RealLaw, Reals
from evertally.privacy import ZCDP, ApproxDP, Change, Guarantee, Ledger, PureDP
from evertally.privacy._promise import Cost

ONE = Change(1, 1, 1)
Bug = AbstractContextManager[None]


@dataclass(frozen=True)
class Mutant:
    name: str
    patch: Callable[[], Bug]
    probe: Callable[[], str]


BANK_MUTANTS: list[Mutant] = []


def plant(probe: Callable[[], str]) -> Callable[[Callable[[], Bug]], Callable[[], Bug]]:
    """Registers the patch of a bug; its docstring is the name."""

    def register(patch: Callable[[], Bug]) -> Callable[[], Bug]:
        BANK_MUTANTS.append(Mutant(patch.__doc__ or "", patch, probe))
        return patch

    return register


@contextmanager
def replaced(target: Any, **attributes: Any) -> Iterator[None]:
    with mock.patch.multiple(target, **attributes):
        yield


def process(T: int = 12, rho: float = 0.005, bank: Bank | None = None) -> BankProcess:
    return BankProcess(
        ZCDP(rho), ONE, horizon=T, columns=2, source=simulation(1).source("probe"), bank=bank or build_bank(T, 3)
    )


# -- probes ------------------------------------------------------------------------------------------------------------


def separation() -> str:
    """The most powerful test <C^-1 A e_j, output> against one event, C from the noise matrix of the program, at the
    worst tick: its separation by formula, and over paths of the program."""
    counter = et.Counter(guarantee=et.ZCDP(0.005), horizon=40, mechanism="bank", key=et.simulation(0))
    form = closed_form(counter, 40)
    direction = form.directions[:, form.worst_tick - 1]
    wide = BankProcess(ZCDP(0.005), ONE, horizon=40, columns=20_000, source=simulation(5).source("probe"))
    shown = float(direction[form.worst_tick - 1 :].sum() / (direction @ wide.advance(40)).std())
    if form.mu.max() > 0.1 * (1 + 1e-9) and shown > 0.1 * (1 + 3 / np.sqrt(2 * 20_000)):
        return "an event shows more than is claimed"
    assert shown > 0.95 * 0.1, "the probe sees little"
    return "" if closed_form_report(counter, 40).passed else "an event shows more than is claimed, by formula"


def separation_of_two_columns() -> str:
    """One unit goes from one column to another."""
    counter = et.VectorCounter(
        2,
        guarantee=et.ZCDP(0.005),
        horizon=12,
        mechanism="bank",
        max_per_event=1,
        neighbours="replace",
        key=et.simulation(0),
    )
    return "" if closed_form_report(counter, 12).passed else "a replacement shows more than is claimed"


def columns_of(made: Bank) -> np.ndarray[Any, Any]:
    """||R e_j||^2 for every tick, by the recursion of optimal-counting 2.1: no certificate is asked."""
    a, K, r = (np.repeat(part, made.lengths, axis=0) for part in (made.a, made.K, made.r))
    T = len(r)
    xi, norms = np.zeros((made.states, T)), np.zeros(T)
    for t in range(T):
        nu = (np.arange(T) <= t) - a[t] @ xi
        norms += (nu / r[t]) ** 2
        xi = a[t][:, None] * xi + K[t][:, None] * nu
    return norms


def scale() -> str:
    """The sensitivity again, of the coefficients whose digest the lane's law names, against the scale that it names."""
    kept = process(300, bank=build_bank(300))
    impulses: Any = ImpulseSource()
    drawn = BankProcess(ZCDP(0.005), ONE, horizon=300, columns=700, source=impulses, bank=kept.bank)
    drawn.advance(1)
    _, sigma, digest = impulses.laws["bank"].feeds.split()
    memory = kept.memory()
    start = memory.index(b"evertally-bank-1") + 24
    coefficients = Bank.from_bytes(memory[start : start + int.from_bytes(memory[start - 8 : start], "little")])
    if digest != coefficients.digest:
        return "the law names other coefficients than the stream keeps"
    needed = columns_of(coefficients).max() / 0.01
    return "" if float.fromhex(sigma) ** 2 >= needed * (1 - 1e-12) else "the scale is not that of these coefficients"


class Impulses:
    """An impulse at tick j in column j."""

    def reals(self, lane: str, law: Any, nodes: range, coordinates: int = 1, first: int = 0) -> Any:
        from evertally.noise.reals import KnownReals

        values = np.zeros((len(nodes), coordinates))
        for i, node in enumerate(nodes):
            if first <= node - 1 < first + coordinates:
                values[i, node - 1 - first] = 2.0**20
        return KnownReals(values)


def filter_of_the_noise() -> str:
    """L by impulses; R = L^-1 A must have the certified norm, and L must be that of the coefficients."""
    T = 12
    impulses: Any = Impulses()
    made = BankProcess(ZCDP(0.005), ONE, horizon=T, columns=T, source=impulses, bank=build_bank(T, 3))
    L = made.advance(T) / 2.0**20 / made.sigma
    norms = (np.linalg.solve(L, np.tri(T)) ** 2).sum(axis=0)
    if norms.max() > certified(made.bank) * (1 + 1e-5):
        return "the noise has another filter than the certified one, and an event shows more"
    claimed = [made.spread(t).variance / made.sigma**2 for t in range(1, T + 1)]
    return "" if np.allclose((L**2).sum(axis=1), claimed, rtol=1e-5) else "the noise has another filter"


def near_ties() -> str:
    """V of one tick moved until the noise is within 1e-14 of a half, and nearer."""
    for depth in (47, 60):
        for side in (1, -1):
            got, true = near_half(depth, side)
            if got != true:
                return "a tick that floats leave open was rounded wrongly"
    return ""


def tails() -> str:
    """Planted tail words: the noise in floats and by the ball path, and the variates themselves."""
    for octave in (38, 45, 52):
        word = 1 << (63 - octave), 12345
        source: Any = PlantedWords(1, {5: word})
        made = BankProcess(ZCDP(1e-6), ONE, horizon=12, columns=1, source=source, bank=build_bank(12, 3))
        if made.advance(12)[4:, 0].tolist() != made._path.settled(0, list(range(5, 13))):
            return "a tail is not where its bits say"
        drawn = Reals("normal", np.array([[word]], dtype=np.uint64), lambda i, j, r: (0, 0))
        ball, value, radius = drawn.refine(0, 0, 127), float(drawn.value[0, 0]), float(drawn.radius[0])
        if not at_precision(200, lambda b=ball, v=value, r=radius: abs(b - arb(v)) <= arb(r)):  # type: ignore[misc]
            return "a tail is not where its bits say"
    return ""


def replays() -> str:
    """A tick that 127 bits leave open, again."""
    same = all(len(set(on_a_half(seed))) == 1 for seed in range(8))
    return "" if same else "a replay of an undecided tick gives another integer"


def restored_ties() -> str:
    """A near-tie just after a restart, on the other side of a half than its float states say."""
    with replaced(bank_path, _AHEAD=1):  # nothing is made ahead: what is kept is the state of that very tick
        got, true = tie_after_a_restart()
    return "" if got == true else "a restored path has forgotten its error"


def past_the_horizon() -> str:
    """Ticks past the horizon are refused; were they not, what does the extended R show?"""
    made = process(12)
    try:
        made.advance(13)
    except HorizonExceeded:
        return ""
    return f"a tick past the horizon is released, and {norms_of(12, 13) or 'an event shows no more'}"


def norms_of(T: int, ticks: int) -> str:
    """Column norms of R = L^-1 A, L by impulses, against the scale."""
    impulses: Any = Impulses()
    made = BankProcess(ZCDP(0.005), ONE, horizon=T, columns=ticks, source=impulses)
    L = made.advance(ticks) / 2.0**20
    shown = float((np.linalg.solve(L, np.tri(ticks)) ** 2).sum(axis=0).max())
    return f"an event shows {shown / 0.01:.3f} of what is claimed" if shown > 0.01 * (1 + 1e-5) else ""


def extended_norms() -> str:
    return norms_of(20, 20)


def two_scales() -> str:
    """One lane at two scales is refused; were it not, the difference of the two streams is one path."""
    shared = simulation(1).source("probe")
    rows: list[Any] = []
    try:
        for rho in (0.005, 0.02):
            made = BankProcess(ZCDP(rho), ONE, horizon=12, columns=1, source=shared, bank=build_bank(12, 3))
            rows.append(made.advance(12)[:, 0] / made.sigma)
    except AssertionError:
        return ""
    one_path = np.abs(rows[0] - rows[1]).max() < 0.2  # rounding alone
    told = "the streams differ by a multiple of one path" if one_path else "nobody can tell"
    return f"the same bits were drawn at two scales, and {told}"


def block_columns() -> str:
    """Integer column sums of the tables that the noise is made of."""
    with in_levels(16, 16):
        charged, wrong = costs(40)
    if max(charged) > 1:
        return "a column of a table has a norm above 1"
    return "" if wrong < 1e-9 else "no shift of the draws hides an event"


def block_ends() -> str:
    """Variances at the ends of blocks, and the cost of hiding an event."""
    with in_levels(16, 16):
        counter = et.Counter(guarantee=et.PureDP(1), horizon=64, mechanism="pure-blocks", key=et.simulation(0))
        ends = [16, 32, 48, 64]
        W, _ = read_at(counter, ends)
        stated = [counter.noise.spread(t).variance for t in ends]
        if not np.allclose(2 * (W**2).sum(axis=1), stated, rtol=1e-5):
            return "the noise at the ends of blocks has another variance"
        found = closed_form_report(counter, 64)
        return "" if found.passed and block_columns() == "" else "an event costs more than epsilon"


PROMISE = ApproxDP(1, 1e-6)
READ = 1 + 1e-6  # noise is read off by impulses, which are rounded


def joint_delta(mu: float, laplace: float, epsilon: float) -> float:
    """The exact delta, at an epsilon, of normal noise with separation mu and Laplace noise that loses `laplace`, on the
    same event: the curve of the one averaged over the loss of the other."""
    if not laplace:
        return delta_of_mu(mu, epsilon)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    between = (nodes + 1) / 2
    inside = [
        w / 2 * laplace / 2 * np.exp(-laplace * (1 - x)) * delta_of_mu(mu, epsilon - laplace * (2 * x - 1))
        for x, w in zip(between.tolist(), weights.tolist(), strict=True)
    ]
    ends = (delta_of_mu(mu, epsilon - laplace) + np.exp(-laplace) * delta_of_mu(mu, epsilon + laplace)) / 2
    return float(np.sum(inside) + ends)


def separation_of(charge: Guarantee) -> float:
    """Of a bank with this charge, from its own noise before it is rounded."""
    counter = et.Counter(guarantee=charge, horizon=8, mechanism="bank", max_weight=1000, key=et.simulation(0))
    W, _ = impulse_response(counter, 8)
    return 1000 * float(np.sqrt((np.linalg.solve(W, np.tri(8)) ** 2).sum(axis=0).max()))


def shared_promises() -> str:
    """What is lost together, exactly, by all that ledgers admit under one (epsilon, delta) promise."""
    stream = et.Stream("alone", guarantee=PROMISE, horizon=8, key=et.simulation(0))
    alone = stream.add(et.Counter, share=1, mechanism="bank")
    if joint_delta(separation_of(alone.charge), 0, 1) > 1e-6 * READ:
        return "alone it breaks its promise"
    for laplace in (0.05, 0.1, 0.2):  # siblings that pay epsilon
        ledger = Ledger(PROMISE)
        ledger.promise("laplace", PureDP(laplace))
        rest = ledger.guarantee.share(ledger.left)
        ledger.promise("bank", rest)
        if joint_delta(separation_of(rest), laplace, 1) > 1e-6 * READ:
            return "beside Laplace noise the promise is broken"
    stream = et.Stream("two", guarantee=PROMISE, horizon=8, key=et.simulation(0))
    two = [stream.add(et.Counter, share=0.5, name=name, mechanism="bank").charge for name in ("one", "other")]
    if joint_delta(float(np.hypot(*map(separation_of, two))), 0, 1) > 1e-6 * READ:
        return "two of them break the promise"
    for promised in (ApproxDP(1.05, 1e-7), ApproxDP(1.05, 1e-6), ApproxDP(1.2, 1e-6)):
        ledger = Ledger(promised)
        try:
            ledger.promise("bank", PROMISE)
            ledger.promise("laplace", PureDP(promised.exact_epsilon - 1))
        except BudgetExceeded:
            continue
        lost = joint_delta(separation_of(PROMISE), promised.epsilon - 1, promised.epsilon)
        if lost > promised.delta * READ:
            return "a ledger admits what breaks its promise"
    return ""


# -- bugs --------------------------------------------------------------------------------------------------------------


@plant(separation)
def smaller_scale() -> Bug:
    """B1 sigma from S/1.05"""
    return replaced(bank, _sensitivity=lambda coefficients: certified(coefficients) / 1.05)


@plant(scale)
def unheld_sensitivity() -> Bug:
    """B2 S of the schedule before it is held, noise of the held one"""

    def unheld(held: Bank) -> float:
        from evertally.counting import bank_schedule

        with replaced(bank_schedule, segments=lambda horizon: np.ones(horizon, dtype=np.int64)):
            fine = bank_schedule.build_bank.__wrapped__(held.horizon)
        # the factor of the one with the variances of the other
        T = held.horizon
        return certified(fine) * moments_of(fine).widest(T) / moments_of(held).widest(T)

    return replaced(bank, _sensitivity=unheld)


def edited(old: str, new: str) -> Bug:
    """The kernels with another line."""

    def changed(name: str) -> Any:
        text = inspect.getsource(getattr(bank_kernels, name))
        assert old in text
        scope = dict(vars(bank_kernels))
        exec(text.replace(old, new), scope)
        return scope[name]

    original = bank_kernels.compiled
    return replaced(
        bank_kernels, compiled=lambda name: changed(name) if name.startswith("filtered") else original(name)
    )


@plant(filter_of_the_noise)
def missing_state() -> Bug:
    """B3 one state missing in x only"""
    return edited("acc[i] += p", "acc[i] += p if k else 0.0")


@plant(filter_of_the_noise)
def scaled_gains() -> Bug:
    """B4 K scaled by 1.01 after certification"""

    class Scaled(bank_path.BankPath):
        def __init__(self, coefficients: Bank, *rest: Any) -> None:
            super().__init__(replace(coefficients, K=coefficients.K * 1.01), *rest)

    return replaced(bank, BankPath=Scaled)


@plant(near_ties)
def lower_integer() -> Bug:
    """B5 undecided ticks take the lower integer"""
    return edited("if abs(y) < MOST and low == np.floor(y + 0.5 + d):", "if True:")


@plant(tails)
def clamped_tail() -> Bug:
    """B6 V below 2^-40 clamped"""
    original = compiled.fill_reals

    def clamped(words: Any, *rest: Any) -> int:
        least = np.array(words)
        least[:, :, 0] = np.maximum(least[:, :, 0], np.uint64(1 << 24))
        return int(original(least, *rest))

    return replaced(compiled, fill_reals=clamped)


@plant(replays)
def fresh_bits() -> Bug:
    """B7 the next round drawn from a fresh address after an undecided tick"""
    original, calls = source._two_words, [0]

    def fresh(stream: Any, node: int, coordinate: int, round_: int) -> tuple[int, int]:
        calls[0] += 1
        return original(stream, node + 1000 * calls[0], coordinate, round_)

    return replaced(source, _two_words=fresh)


@plant(restored_ties)
def forgotten_error() -> Bug:
    """B8 a restart restores e but err = 0"""
    original = bank_path.BankPath.recall

    def recall(self: Any, tick: int, memory: bytes) -> None:
        original(self, tick, memory)
        for block in self._blocks:
            block.err[:] = 0

    return replaced(bank_path.BankPath, recall=recall)


def longer(held: Bank, horizon: int) -> Bank:
    lengths = held.lengths.copy()
    lengths[-1] += horizon - held.horizon
    return replace(held, lengths=lengths)


@plant(past_the_horizon)
def beyond() -> Bug:
    """B9 coefficients used past their horizon"""

    class Endless(bank_path.BankPath):
        def __init__(self, coefficients: Bank, *rest: Any) -> None:
            super().__init__(longer(coefficients, coefficients.horizon + 8), *rest)

    return replaced(bank, check_horizon=lambda *_: None, BankPath=Endless)


@plant(extended_norms)
def of_a_shorter_horizon() -> Bug:
    """B9 coefficients and sensitivity of T' = 12, held on until T = 20"""
    short = build_bank(12)
    return replaced(bank, build_bank=lambda horizon: longer(short, horizon), _sensitivity=lambda _: certified(short))


@plant(separation_of_two_columns)
def replacement_as_one() -> Bug:
    """B10 replace charged with l2_squared 1"""
    original = bank.FilteredNoise.__init__

    def init(self: Any, charge: ZCDP, change: Change, **rest: Any) -> None:
        original(self, charge, Change(change.l1, 1, change.linf), **rest)

    return replaced(bank.FilteredNoise, __init__=init)


@plant(two_scales)
def one_law_for_all() -> Bug:
    """B11 the same lane at two scales"""
    return replaced(bank, RealLaw=lambda kind, feeds: RealLaw(kind, "bank"))


@plant(block_columns)
def rescaled_table() -> Bug:
    """B12 a table rescaled after its norms were checked"""
    original = pure_blocks.block_table

    def rescaled(n: int) -> Any:
        table = replace(original(n))
        object.__setattr__(table, "d", table.d + 100)
        return table

    return replaced(pure_blocks, block_table=rescaled)


@plant(block_ends)
def last_row_too() -> Bug:
    """B13 at the end of a block level 1 adds its last row as well"""
    original = block_level.BlockLevel.rows

    def rows(self: Any, tick: int, count: int) -> Any:
        centre, radius = original(self, tick, count)
        n = self.table.n
        for i in range(count):
            if self.above is not None and tick + i and (tick + i) % n == 0:
                centre[i] += self._walked((tick + i) // n - 1, n, 1)[0][0]
        return centre, radius

    return replaced(block_level.BlockLevel, rows=rows)


@plant(shared_promises)
def curve_beside_others() -> Bug:
    """B14 the Gaussian curve of the whole promise used in a ledger with Laplace siblings"""
    original = bank.mu_squared

    def whole(charge: ZCDP | ApproxDP) -> Fraction:
        return max(original(charge), original(PROMISE))

    return replaced(bank, mu_squared=whole)


@plant(shared_promises)
def lost_delta() -> Bug:
    """B14 the Gaussian curve charged as (epsilon, mu^2/2, 0)"""

    def mixture(self: ApproxDP) -> Cost:
        return Cost(self.exact_epsilon, bank.mu_squared(self) / 2, Fraction(0))

    return replaced(ApproxDP, cost=property(mixture))
