"""Engines and noise processes of somebody else: by name, labelled "not ours"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evertally.contract.parts import Engine
from evertally.counting.processes import PROCESSES, ProcessRecord, Setting
from evertally.counting.processes import Build as BuildProcess
from evertally.dynamic.constructions import CONSTRUCTIONS
from evertally.errors import ConfigurationError
from evertally.histogram.ways import NAMES
from evertally.noise import ItemSource
from evertally.privacy import Guarantee
from evertally.statistics import streaming, unknown

Build = Callable[[Guarantee, Setting, ItemSource], Engine]


@dataclass(frozen=True)
class OwnEngine:
    """How it is built, and where it is proved."""

    build: Build
    proof: str


ENGINES: dict[str, OwnEngine] = {}
_TAKEN = (
    "auto",
    "sparse",
    "linear",
    "path",
    "fresh",
    "centred",
    "independent",
    *CONSTRUCTIONS,
    *NAMES,
    *streaming.MECHANISMS,
    *unknown.MECHANISMS,
)


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
    _check(name, proof)
    ENGINES[name] = OwnEngine(build, proof)


def register_process(
    name: str,
    build: BuildProcess,
    *,
    proof: str,
    bounded: bool = True,
    pure: bool = False,
    memory: Callable[[Setting], int] = lambda setting: 8 * setting.columns,
) -> None:
    """A noise process of your own: `mechanism=name` takes it, in Python, in a `Stream` and in a stream spec.

    `build(charge, setting, source)` makes a `NoiseProcess`: integers that never see data, drawn from `source` alone,
    for the budget `charge` and the change `setting.change` that one protected unit makes. `proof` says where it is
    proved that this noise hides that change; certificates show it with the words "not ours", and "auto" never takes
    it. `evertally.checks` and the auditor take a mechanism with it like any other. Its name is in the address of the
    noise: a process that is changed needs a new name.

    >>> import evertally as et
    >>> from evertally.counting.accumulate import AccumulatingProcess
    >>> def pile(charge, setting, source):
    ...     return AccumulatingProcess(
    ...         charge, setting.change, horizon=setting.horizon, columns=setting.columns, source=source)
    >>> et.register_process("pile of a doctest", pile, proof="parameterized-histograms 3.1", pure=True)
    >>> counter = et.Counter(guarantee=et.PureDP(1.0), horizon=9, mechanism="pile of a doctest", key=et.simulation(1))
    >>> counter.mechanism, counter.run([1, 2]).shape
    ('pile of a doctest', (2,))
    """
    _check(name, proof)
    PROCESSES[name] = ProcessRecord(bounded, pure, memory, build, proof)


def _check(name: object, proof: object) -> None:
    """Refuses a name that has a meaning for any statistic, and a proof that says nothing: nobody else's noise may pass
    for ours."""
    if type(name) is not str or not name:
        raise ConfigurationError("a mechanism is named by a text")
    if name in (*_TAKEN, *PROCESSES, *ENGINES):
        raise ConfigurationError(f"there is a mechanism {name!r}; what is new, or was changed, needs a new name")
    if not isinstance(proof, str) or not proof.strip():
        raise ConfigurationError("proof says where it is proved that the noise hides one unit; certificates show it")


def proof_elsewhere(mechanism: str) -> str | None:
    """Where a mechanism of somebody else is proved, by its own words; None for ours."""
    if mechanism in ENGINES:
        return ENGINES[mechanism].proof
    return PROCESSES[mechanism].proof or None if mechanism in PROCESSES else None
