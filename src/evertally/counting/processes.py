"""The noise processes, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from evertally.bounds.selection import L
from evertally.counting.bank import BankProcess
from evertally.counting.bank_open import OPEN_STATES, OpenBankProcess
from evertally.counting.bank_schedule import states_for
from evertally.counting.block_epochs import BlockEpochs
from evertally.counting.block_table import block_table, sizes_for
from evertally.counting.epochs import EPOCHS, EpochProcess
from evertally.counting.honaker import HonakerProcess
from evertally.counting.process import Budget, NoiseProcess
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.sqrt_factor import sqrt_factor
from evertally.counting.tree import Radix, TreeProcess, choose_radix
from evertally.noise import Source
from evertally.privacy import ZCDP, Change, PureDP

# Beyond this the square-root factor takes long to prepare (a few seconds at 2^20, proportional to T).
LONGEST_SQRT = 2**22
# The epoch hybrid divides its budget for the best error at this many ticks, and goes over to trees after 2^20.
HYBRID_TARGET = 2**16
HYBRID_LONGEST_SQRT = 20


@dataclass(frozen=True)
class Setting:
    """The public parameters of a process."""

    change: Change
    horizon: int | None
    columns: int
    memory_limit: int
    radix: Radix = "formula"


Build = Callable[[Budget, Setting, Source], NoiseProcess]


@dataclass(frozen=True)
class ProcessRecord:
    """One way to make noise: what it needs, and how to build it. `proof`: where somebody else's is proved."""

    bounded: bool  # needs a horizon
    pure: bool  # can pay with a pure budget
    memory: Callable[[Setting], int]
    build: Build
    proof: str = ""


def _horizon(setting: Setting) -> int:
    assert setting.horizon is not None
    return setting.horizon


def _tree(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    T = _horizon(setting)
    depth = L(T, choose_radix(T, setting.radix, isinstance(charge, PureDP)))
    keep = 8 * setting.columns * (depth + 1) <= setting.memory_limit
    return TreeProcess(
        charge, setting.change, horizon=T, columns=setting.columns, source=source, radix=setting.radix, keep=keep
    )


def _honaker(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    return HonakerProcess(charge, setting.change, horizon=_horizon(setting), columns=setting.columns, source=source)


def _sqrt(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP)
    return SqrtProcess(charge, setting.change, horizon=_horizon(setting), columns=setting.columns, source=source)


def _bank(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP)
    return BankProcess(charge, setting.change, horizon=_horizon(setting), columns=setting.columns, source=source)


def _bank_open(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP)
    return OpenBankProcess(charge, setting.change, columns=setting.columns, source=source)


def _pure_blocks(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, PureDP)
    return PureBlocksProcess(charge, setting.change, horizon=_horizon(setting), columns=setting.columns, source=source)


def _block_bytes(setting: Setting) -> int:
    return sum(32 * (block_table(n).k + 2) for n in sizes_for(_horizon(setting))) * setting.columns


def _epoch_blocks(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, PureDP)
    return BlockEpochs(charge, setting.change, columns=setting.columns, source=source)


def _epoch_block_bytes(setting: Setting) -> int:
    """Of the epoch that ends at 2^30 ticks: shorter ones take less."""
    return _block_bytes(replace(setting, horizon=2**30))


def _epoch_tree(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    tree = partial(TreeProcess, charge, setting.change, source=source, radix=2)

    def inner(k: int, columns: int) -> NoiseProcess:
        keep = 8 * setting.columns * (k + 2) <= setting.memory_limit
        return tree(horizon=2**k, columns=columns, keep=keep, lane=f"epoch-{k}")

    return EpochProcess(inner, None, columns=setting.columns)


def _epoch_hybrid(charge: Budget, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP)
    rho_inner, rho_outer = hybrid_shares(charge.exact_rho)
    sqrt = partial(SqrtProcess, ZCDP(rho_inner), setting.change, source=source)
    tree = partial(TreeProcess, ZCDP(rho_inner), setting.change, source=source, radix="exact")

    def inner(k: int, columns: int) -> NoiseProcess:
        short = k <= HYBRID_LONGEST_SQRT and 8 * setting.columns * 2**k <= setting.memory_limit // 2
        return (sqrt if short else tree)(horizon=2**k, columns=columns, lane=f"epoch-{k}")

    outer = SqrtProcess(
        ZCDP(rho_outer), setting.change, horizon=EPOCHS, columns=setting.columns, source=source, lane="outer"
    )
    return EpochProcess(inner, outer, columns=setting.columns)


def hybrid_shares(rho: Fraction) -> tuple[Fraction, Fraction]:
    """rho_inner : rho_outer = S_target : S_K (factorization-counting 10.1), in fractions that add up to rho.

    >>> inner, outer = hybrid_shares(Fraction(1, 2))
    >>> inner + outer, round(float(inner / outer), 2)
    (Fraction(1, 2), 2.12)
    """
    inner, outer = (sqrt_factor(T).column_norm_squared for T in (HYBRID_TARGET, EPOCHS))
    share = Fraction(inner, inner + outer).limit_denominator(1000)
    return rho * share, rho * (1 - share)


PROCESSES: dict[str, ProcessRecord] = {
    # the noise made ahead; the factor and its transforms take about 250 T bytes of work space besides
    "sqrt": ProcessRecord(True, False, lambda s: 8 * s.columns * _horizon(s), _sqrt),
    "tree": ProcessRecord(True, True, lambda s: 8 * s.columns, _tree),
    "honaker": ProcessRecord(True, True, lambda s: 64 * s.columns * _horizon(s).bit_length(), _honaker),
    "epoch-hybrid": ProcessRecord(
        False, False, lambda s: 8 * s.columns * (EPOCHS + HYBRID_LONGEST_SQRT), _epoch_hybrid
    ),
    "epoch-blocks": ProcessRecord(False, True, _epoch_block_bytes, _epoch_blocks),
    "epoch-tree": ProcessRecord(False, True, lambda s: 8 * s.columns, _epoch_tree),
}
OURS = tuple(PROCESSES)  # what "auto" takes from: nobody gets a process that this library does not answer for
# By name only, until the ways that choose for a stream keep what they chose: see docs/architecture.md.
BY_NAME = {
    "bank": ProcessRecord(True, False, lambda s: 8 * states_for(_horizon(s)) * s.columns, _bank),
    "bank-open": ProcessRecord(False, False, lambda s: 8 * OPEN_STATES * s.columns, _bank_open),
    "pure-blocks": ProcessRecord(True, True, _block_bytes, _pure_blocks),
}
PROCESSES.update(BY_NAME)
