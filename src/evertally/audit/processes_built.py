"""The noise processes that a mechanism really builds, with all that they were built from: to build them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from evertally.audit.game import Factory, take
from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.banded import BandedProcess
from evertally.counting.bank import BankProcess
from evertally.counting.bank_decay import DecayBankProcess
from evertally.counting.bank_open import OpenBankProcess
from evertally.counting.block_epochs import BlockEpochs
from evertally.counting.centred import CentredPath
from evertally.counting.honaker import HonakerProcess
from evertally.counting.path import PathProcess
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.sqrt import SqrtProcess
from evertally.counting.toeplitz import ToeplitzProcess
from evertally.counting.tree import TreeProcess
from evertally.noise import simulation
from evertally.noise.source import KeyedSource, Source

_KINDS: tuple[type, ...] = (
    AccumulatingProcess,
    BandedProcess,
    BankProcess,
    BlockEpochs,
    CentredPath,
    DecayBankProcess,
    HonakerProcess,
    OpenBankProcess,
    PathProcess,
    PureBlocksProcess,
    SqrtProcess,
    ToeplitzProcess,
    TreeProcess,
)


@dataclass(frozen=True)
class Built:
    """A process as somebody built it: its class, and what the class was called with."""

    kind: type
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    def again(self, source: Source, columns: int, **changed: Any) -> Any:
        """The same process, from another source, with so many columns."""
        return self.kind(*self.arguments, **(self.options | {"source": source, "columns": columns} | changed))

    def named(self) -> tuple[str, ...]:
        """What tells it from others; columns do not."""
        told = {name: value for name, value in self.options.items() if name not in ("source", "columns")}
        return self.kind.__name__, repr(self.arguments), repr(sorted(told.items(), key=lambda one: one[0]))


def processes_of(make: Factory, inputs: Sequence[Any]) -> list[Built]:
    """The processes that a mechanism builds to make noise, on its first ticks; each once.

    >>> import evertally as et
    >>> def make(key):
    ...     return et.Counter(guarantee=et.PureDP(1.0), horizon=8, mechanism="tree", key=key)
    >>> [(built.kind.__name__, built.options["horizon"]) for built in processes_of(make, [1])]
    [('TreeProcess', 8)]
    """
    found: dict[tuple[str, ...], Built] = {}

    def note(built: Built) -> None:
        # Those that are asked for spreads alone have a source without noise.
        if isinstance(built.options.get("source"), KeyedSource):
            found.setdefault(built.named(), built)

    with ExitStack() as stack:
        for kind in _KINDS:
            stack.enter_context(_told(kind, note))
        mechanism = make(simulation(0))
        for tick, x in enumerate(inputs[: mechanism.horizon], start=1):
            take(mechanism, x, tick=tick)
    return list(found.values())


@contextmanager
def _told(kind: Any, note: Any) -> Iterator[None]:
    real = kind.__init__

    def telling(self: Any, *arguments: Any, **options: Any) -> None:
        if type(self) is kind:
            note(Built(kind, arguments, options))
        real(self, *arguments, **options)

    kind.__init__ = telling
    try:
        yield
    finally:
        kind.__init__ = real
