"""The noise processes, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import partial
from typing import Any

from evertally.bounds.selection import L
from evertally.counting.banded import BandedProcess
from evertally.counting.bank import BankProcess
from evertally.counting.bank_open import OPEN_STATES, OpenBankProcess
from evertally.counting.bank_schedule import states_for
from evertally.counting.block_epochs import BlockEpochs
from evertally.counting.block_table import block_table, sizes_for
from evertally.counting.epochs import EpochProcess
from evertally.counting.honaker import HonakerProcess
from evertally.counting.process import Charge, NoiseProcess
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.tree import Radix, TreeProcess, choose_radix
from evertally.errors import ConfigurationError
from evertally.noise import Source
from evertally.privacy import ZCDP, ApproxDP, Change, Participation, PureDP

# Beyond this the square-root factor takes long to prepare (a few seconds at 2^20, proportional to T).
LONGEST_SQRT = 2**22
# Without a horizon processes are compared by their error at this tick.
COMPARED_AT = 2**16


class Gram(IntEnum):
    """What is proved of the Gram matrix G of a process: which cancellations between ticks a change may count on
    (factorization-counting 1.1)."""

    UNKNOWN = 0  # nothing: all entries of a change may add up (S2)
    NONNEGATIVE = (
        1  # no entry is negative: those of one sign may add up (S3), two of opposite signs cost no more than 2
    )
    ORDERED = 2  # and G[s,u] <= min(G[s,t], G[t,u]) for s < t < u (S4)


@dataclass(frozen=True)
class Setting:
    """The public parameters of a process.

    `change` is what one protected unit moves, for a Gram matrix that is ORDERED; `split` (S3) and `loose` (S2) are the
    same for those of which less is proved, where that makes a difference. `rule`: a user's ticks are apart; then these
    are for a group of them, and a process that can tell pays less (users-and-domains 1.3: what it reaches is its own).
    `band`: the coefficients of a banded factor; None where nobody has chosen yet. `slice_width`: how many of the
    columns a process is to make the noise of, where it is not all of them; it decides about nothing else.
    """

    change: Change
    horizon: int | None
    columns: int
    memory_limit: int
    radix: Radix = "formula"
    split: Change | None = None
    loose: Change | None = None
    rule: Participation | None = None
    band: int | None = None
    slice_width: int | None = None

    @property
    def width(self) -> int:
        """The columns of the process itself."""
        return self.columns if self.slice_width is None else self.slice_width

    def for_process(self, name: str) -> Setting:
        """The setting that a process gets: what it has to hide by what is proved of it."""
        return self.proved(PROCESSES[name].gram)

    def proved(self, gram: Gram) -> Setting:
        """What is to be hidden by noise of which so much is proved."""
        change = self.change
        if gram <= Gram.NONNEGATIVE and self.split is not None:
            change = self.split
        if gram <= Gram.UNKNOWN and self.loose is not None:
            change = self.loose
        return replace(self, change=change, split=None, loose=None)


Build = Callable[[Any, Setting, Source], NoiseProcess]


@dataclass(frozen=True)
class ProcessRecord:
    """One way to make noise: what it needs, and how to build it. `proof`: where somebody else's is proved."""

    bounded: bool  # needs a horizon
    pure: bool  # can pay with a pure budget
    memory: Callable[[Setting], int]
    build: Build
    proof: str = ""
    gram: Gram = Gram.UNKNOWN
    gaussian: bool = False  # real Gaussian noise: exact (epsilon, delta) curves are about it
    ahead: bool = False  # going to a tick takes long, and nothing short is remembered: slices keep noise made ahead


def _horizon(setting: Setting) -> int:
    assert setting.horizon is not None
    return setting.horizon


def _tree(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, PureDP | ZCDP)
    T = _horizon(setting)
    depth = L(T, choose_radix(T, setting.radix, isinstance(charge, PureDP)))
    # Whether noise is kept or drawn again decides about no number, so a slice looks at its own columns.
    keep = 8 * setting.width * (depth + 1) <= setting.memory_limit
    return TreeProcess(
        charge,
        setting.change,
        horizon=T,
        columns=setting.width,
        source=source,
        radix=setting.radix,
        keep=keep,
        rule=setting.rule,
    )


def _honaker(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, PureDP | ZCDP)
    return HonakerProcess(
        charge,
        setting.change,
        horizon=_horizon(setting),
        columns=setting.width,
        source=source,
        rule=setting.rule,
    )


def _sqrt(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP)
    T, d = _horizon(setting), setting.width
    return SqrtProcess(charge, setting.change, horizon=T, columns=d, source=source, rule=setting.rule)


def _banded(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP)
    if setting.rule is None:
        raise ConfigurationError(
            'mechanism "banded" is for users whose ticks are apart: give max_ticks_per_user or min_separation, or use '
            '"bank"'
        )
    T, d = _horizon(setting), setting.width
    return BandedProcess(charge, setting.rule, horizon=T, columns=d, source=source, band=setting.band)


def _bank(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP | ApproxDP)
    return BankProcess(charge, setting.change, horizon=_horizon(setting), columns=setting.width, source=source)


def _bank_open(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, ZCDP | ApproxDP)
    return OpenBankProcess(charge, setting.change, columns=setting.width, source=source)


def _pure_blocks(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, PureDP)
    return PureBlocksProcess(charge, setting.change, horizon=_horizon(setting), columns=setting.width, source=source)


def _block_bytes(setting: Setting) -> int:
    return sum(32 * (block_table(n).k + 2) for n in sizes_for(_horizon(setting))) * setting.columns


def _epoch_blocks(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, PureDP)
    return BlockEpochs(charge, setting.change, columns=setting.width, source=source)


def _epoch_block_bytes(setting: Setting) -> int:
    """Of the epoch that ends at 2^30 ticks: shorter ones take less."""
    return _block_bytes(replace(setting, horizon=2**30))


def _epoch_tree(charge: Charge, setting: Setting, source: Source) -> NoiseProcess:
    assert isinstance(charge, PureDP | ZCDP)
    tree = partial(TreeProcess, charge, setting.change, source=source, radix=2)

    def inner(k: int, columns: int) -> NoiseProcess:
        keep = 8 * setting.width * (k + 2) <= setting.memory_limit
        return tree(horizon=2**k, columns=columns, keep=keep, lane=f"epoch-{k}")

    return EpochProcess(inner, columns=setting.width)


_ORDERED, _NONNEGATIVE = Gram.ORDERED, Gram.NONNEGATIVE
PROCESSES: dict[str, ProcessRecord] = {
    "bank": ProcessRecord(
        True, False, lambda s: 8 * states_for(_horizon(s)) * s.columns, _bank, gram=_NONNEGATIVE, gaussian=True
    ),
    "bank-open": ProcessRecord(
        False, False, lambda s: 8 * OPEN_STATES * s.columns, _bank_open, gram=_NONNEGATIVE, gaussian=True
    ),
    # pure budgets alone: l1 norms add up over ticks, whatever the signs and whatever the factor
    "pure-blocks": ProcessRecord(True, True, _block_bytes, _pure_blocks, gram=_ORDERED, ahead=True),
    # the noise made ahead; the factor and its transforms take about 250 T bytes of work space besides
    "sqrt": ProcessRecord(True, False, lambda s: 8 * s.columns * _horizon(s), _sqrt, gram=_ORDERED, ahead=True),
    "banded": ProcessRecord(True, False, lambda s: 8 * s.columns * _horizon(s), _banded, gram=_ORDERED, ahead=True),
    "tree": ProcessRecord(True, True, lambda s: 8 * s.columns, _tree, gram=_ORDERED),
    "honaker": ProcessRecord(True, True, lambda s: 64 * s.columns * _horizon(s).bit_length(), _honaker, gram=_ORDERED),
    "epoch-blocks": ProcessRecord(False, True, _epoch_block_bytes, _epoch_blocks, gram=_ORDERED, ahead=True),
    "epoch-tree": ProcessRecord(False, True, lambda s: 8 * s.columns, _epoch_tree, gram=_ORDERED),
}


_GONE = {"epoch-hybrid": "bank-open"}  # what earlier versions had, and what new streams take


def unknown(name: str, known: Iterable[str], word: str = "mechanism") -> ConfigurationError:
    """Why there is no such process."""
    if name in _GONE:
        return ConfigurationError(
            f"this version has no {word} {name!r} any more: continue a stream that was begun with it with the version "
            f'that began it, or start a new stream, with "{_GONE[name]}" and its own budget'
        )
    return ConfigurationError(f'unknown {word} {name!r}; choose "auto" or one of {", ".join(known)}')


def proved_of(name: str) -> Gram:
    """What is proved of a process or of somebody's own engine."""
    return PROCESSES[name].gram if name in PROCESSES else Gram.UNKNOWN


SEPARATED = ("banded",)  # for users whose ticks are apart, and for nothing else
OURS = tuple(
    name for name in PROCESSES if name not in SEPARATED
)  # what "auto" takes from: nobody gets a process that this library does not answer for
