"""Engines and noise processes of somebody else: by name, labelled "not ours"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evertally.contract.parts import Engine
from evertally.counting.processes import PROCESSES, Setting, check_name
from evertally.errors import ConfigurationError
from evertally.histogram.ways import NAMES
from evertally.noise import ItemSource
from evertally.privacy import Guarantee

Build = Callable[[Guarantee, Setting, ItemSource], Engine]


@dataclass(frozen=True)
class OwnEngine:
    """How it is built, and where it is proved."""

    build: Build
    proof: str


ENGINES: dict[str, OwnEngine] = {}


def register_engine(name: str, build: Build, *, proof: str) -> None:
    """An engine of your own, for `Counter`, `VectorCounter`, `Histogram` and `RunningMean`: `mechanism=name` takes it,
    in Python, in a `Stream` and in a stream spec.

    `build(guarantee, setting, source)` makes an `Engine` (contract/parts.py): integer rows of totals in, released rows
    of running sums out, all noise drawn from `source`; one that changes in place is put into `InPlace`. It pays the
    whole guarantee. `proof` says where it is proved that it keeps `guarantee` if one protected unit moves the rows by
    `setting.change`; certificates show it with the words "not ours", and "auto" never takes it. Its name is in the
    address of the noise: an engine that is changed needs a new name.

    >>> import evertally as et
    >>> from evertally.counting.accumulate import AccumulatingProcess
    >>> from evertally.counting.linear import LinearEngine
    >>> def piled(guarantee, setting, source):
    ...     return LinearEngine(lambda: AccumulatingProcess(
    ...         guarantee, setting.change, horizon=setting.horizon, columns=setting.columns, source=source))
    >>> et.register_engine("engine of a doctest", piled, proof="parameterized-histograms 3.1")
    >>> counts = et.Histogram(categories=["a", "b"], guarantee=et.PureDP(1.0), horizon=9,
    ...                       mechanism="engine of a doctest", key=et.simulation(1))
    >>> counts.mechanism, sorted(counts.step({"a": 3}).value)
    ('engine of a doctest', ['a', 'b'])
    """
    check_name(name, proof)
    if name in ENGINES or name in PROCESSES or name in NAMES:
        raise ConfigurationError(f"there is a mechanism {name!r}; an engine that was changed needs a new name")
    ENGINES[name] = OwnEngine(build, proof)


def proof_elsewhere(mechanism: str) -> str | None:
    """Where a mechanism of somebody else is proved, by its own words; None for ours."""
    if mechanism in ENGINES:
        return ENGINES[mechanism].proof
    return PROCESSES[mechanism].proof or None if mechanism in PROCESSES else None
