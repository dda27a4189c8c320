"""Rounded noise paths against their definition: claimed bounds, paths that nobody meets, paths that go on elsewhere.

What is released of a linear mechanism is the exact sum plus floor(e + 1/2), and privacy rests on that integer being the
right one, however close e is to a border (factorization-counting 11). Floats decide, with a bound that they claim for
their own error; what they leave open slower ways decide. A bound that is too small, or a slow way that is wrong, shows
in one release of millions, so no game sees it. Here it is looked for: the processes that a mechanism builds are built
again, from random bits that are known and chosen, and held against `audit.exact_paths`.

* margins: every centre and radius that a process claims contains the exact value, also of draws that are huge, grow, or
  cancel; and what is rounded is the exact value.
* undecided: the slow ways are forced, by sums that come within 2^-160 of a border, by ties, and by leaving all open.
* restored noise: one tick at a time, all at once, in pieces, after `seek`, and from what is remembered anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from flint import arb, arb_series
from numpy.typing import NDArray

from evertally.audit.attacks import Finding
from evertally.audit.exact_paths import BankWalk, Path, block_matrix, path_of
from evertally.audit.game import Factory
from evertally.audit.known_code import once
from evertally.audit.planted_bits import BITS, PlantedSource
from evertally.audit.processes_built import Built, processes_of
from evertally.audit.transforms import wrong_transform
from evertally.balls import at_precision, with_terms
from evertally.counting import bank_path, honaker, pure_blocks, recursion, sqrt
from evertally.counting.accumulate import AccumulatingProcess
from evertally.counting.bank import FilteredNoise
from evertally.counting.block_epochs import BlockEpochs
from evertally.counting.column_memory import Divisible
from evertally.counting.process import Remembering
from evertally.counting.pure_blocks import PureBlocksProcess
from evertally.counting.recursion import RecursiveProcess
from evertally.counting.sqrt import FactorProcess
from evertally.counting.tree import TreeProcess
from evertally.errors import StateError

_ROOMS = ("evertally.noise", "evertally.counting")
_ROUNDING: tuple[Any, ...] = (honaker, pure_blocks, recursion, sqrt)  # modules that ask `round_half_up`
_TICKS, _FEW = 160, 24  # whose noise is computed; whose slow ways are taken
_MOST_PROCESSES = 6  # of one mechanism
_LARGEST_BLOCK = 128  # ticks of a table whose least squares are solved
_HUGE = 2**50 + 2**31 + 5  # a draw that floats hold, and few of its multiples
_CLOSE = (45, 70, 108, 160)  # bits of the distance from a border
_LONG, _AFTER = 200, 12  # ticks that are walked one by one; ticks that are compared after going somewhere

Claims = list[tuple[NDArray[np.float64], NDArray[np.float64]]]
Plan = Callable[[Any, PlantedSource, int], None]


def margins_attack(make: Factory, inputs: Sequence[Any]) -> Finding:
    """Bounds that processes claim for their floats, and what is rounded with them.

    >>> import evertally as et
    >>> def make(key):
    ...     return et.Counter(guarantee=et.ZCDP(0.5), horizon=8, mechanism="honaker", key=key)
    >>> margins_attack(make, [3, 1]).leaked
    False
    """
    wrong = once(_ROOMS, "transform", wrong_transform)
    if wrong:
        return Finding("margins", True, wrong)
    right = "what is rounded lies within every bound that is claimed"
    return _looked("margins", make, inputs, wrong_margins, right, (BlockEpochs,))


def undecided_attack(make: Factory, inputs: Sequence[Any]) -> Finding:
    """Ticks that floats leave open, forced."""
    right = "what floats leave open is what the definition says"
    return _looked("undecided", make, inputs, wrong_settled, right, (BlockEpochs, TreeProcess, AccumulatingProcess))


def restored_noise_attack(make: Factory, inputs: Sequence[Any]) -> Finding:
    """Noise that does not depend on how one got to its tick."""
    return _looked("restored noise", make, inputs, wrong_restored, "the noise of a tick is the same from everywhere")


def _looked(
    name: str,
    make: Factory,
    inputs: Sequence[Any],
    wrong: Callable[[Built], str | None],
    right: str,
    without: tuple[type, ...] = (),
) -> Finding:
    found = [built for built in processes_of(make, inputs) if not issubclass(built.kind, without)]
    looked = list[str]()
    for built in found[:_MOST_PROCESSES]:
        told = once(_ROOMS, (name, built.named()), partial(_said, wrong, built))
        if told:
            return Finding(name, True, f"{built.kind.__name__}: {told}")
        looked.append(built.kind.__name__)
    if not looked:
        return Finding(name, False, "no noise path is built here that it could look at", looked=False)
    return Finding(name, False, f"{', '.join(sorted(set(looked)))}: {right}")


def _said(wrong: Callable[[Built], str | None], built: Built) -> str:
    return wrong(built) or ""


# -- margins -----------------------------------------------------------------------------------------------------------


def wrong_margins(built: Built) -> str | None:
    """What is wrong with the bounds, or with what is rounded; None if nothing is."""
    built = _affordable(built)
    for plan in _plans(built):
        told = _wrong_claims(built, plan)
        if told:
            return told
    model = built.again(PlantedSource(), 1)
    if isinstance(model, FilteredNoise):
        return _wrong_states(built)
    return _wrong_factor(model._factor) if isinstance(model, FactorProcess) else None


def _wrong_claims(built: Built, plan: Plan) -> str | None:
    for columns in (1, 3):
        source = PlantedSource(columns)
        process = built.again(source, columns)
        ticks = _ticks(process, _TICKS)
        plan(process, source, ticks)
        claims: Claims = []
        with _rounding(lambda answer, centre, radius: _noted(claims, answer, centre, radius)):  # noqa: B023
            noise = process.advance(ticks)
        for column in range(columns):
            path = path_of(process, source, column, ticks)
            if path is None:
                return None
            told = _wrong_noise(path, noise[:, column], plan.__name__)
            if told:
                return told
            if columns == 1 and claims:  # tick by tick; of several columns the order is the process's own
                told = _wrong_bounds(path, claims)
            if told:
                return told
    return None


def _noted(claims: Claims, answer: Any, centre: Any, radius: Any) -> Any:
    claims.append((np.ravel(centre).copy(), np.ravel(np.broadcast_to(radius, np.shape(centre))).copy()))
    return answer


def _wrong_noise(path: Path, noise: NDArray[np.int64], told: str) -> str | None:
    for tick in range(1, path.ticks + 1):
        if (expected := path.noise(tick)) != noise[tick - 1]:
            told = told.strip("_").replace("_", " ")
            return f"the noise of tick {tick} ({told}) is {noise[tick - 1]} where its draws say {expected}"
    return None


def _wrong_bounds(path: Path, claims: Claims) -> str | None:
    centres, radii = (np.concatenate([claim[i] for claim in claims]) for i in (0, 1))
    for tick in range(1, min(path.ticks, centres.size) + 1):
        if not path.inside(tick, float(centres[tick - 1]), float(radii[tick - 1])):
            return f"tick {tick} is farther than {radii[tick - 1]:.2g} from {centres[tick - 1]:.17g}, which is claimed"
    return None


def _wrong_states(built: Built) -> str | None:
    """The states of a bank, with the bounds that it keeps beside them: in floats, and in double words."""
    for double in (False, True):
        for columns in (1, 2):
            source = PlantedSource(7)
            with _in_double_words(double):
                process = built.again(source, columns)
            path = process._path
            walks = [BankWalk(process) for _ in range(columns)]
            for count in (1, 2, 18, 17):
                if path._made + count > process.bank.horizon:
                    break
                path._make_exactly(count)
                told = at_precision(BITS, partial(_outside, process, source, walks, count, double))
                if told:
                    return told
    return None


def _outside(process: Any, source: PlantedSource, walks: list[BankWalk], count: int, double: bool) -> str | None:
    path, Q = process._path, process.bank.states
    (block,) = path._blocks
    for column, walk in enumerate(walks):
        for tick in range(path._made - count + 1, path._made + 1):
            walk.step(source.variate(process._lane, path._law, tick, column))
        for k in range(Q):
            low = float(block.e[Q + k, column]) if double and len(block.e) == 2 * Q else 0.0
            if abs(arb(float(block.e[k, column])) + arb(low) - walk.e[k]) > arb(float(block.err[k])):
                return f"a state after tick {path._made} is farther than {block.err[k]:.2g} from the exact one"
            if len(walks) > 1 and abs(float(block.e[k, column])) > float(block.big[k]):
                return f"a state after tick {path._made} is larger than the bound that is kept of it"
    return None


def _wrong_factor(factor: Any) -> str | None:
    """The inverse of a factor in floats, with the norm of its error, and what is left out behind it."""
    size = int(factor.inverse.size)
    terms = min(size, 1024) + (min(size, 1024) if factor.tail else 0)

    def compare() -> str | None:
        r = [int(x) for x in factor.r[:terms]]
        weights = [int(x) for x in getattr(factor, "weights", ())[:terms]] or [1] * terms
        unit = arb(factor.unit) / arb(2) ** factor.bits
        exact = arb_series(weights, prec=terms) / arb_series(r, prec=terms)
        true = [exact[k] / unit for k in range(terms)]
        off = sum(((arb(float(x)) - y) ** 2 for x, y in zip(factor.inverse, true, strict=False)), arb(0)).sqrt()
        if off > arb(factor.inverse_error):
            return f"the inverse of its factor is farther than {factor.inverse_error:.2g} from the exact one"
        left = sum((abs(y) for y in true[size:]), arb(0))
        return f"what is left out adds up to more than {factor.tail:.2g}" if left > arb(factor.tail) else None

    return with_terms(terms, lambda: at_precision(BITS, compare))


# -- what is planted ---------------------------------------------------------------------------------------------------


def _plans(built: Built) -> list[Plan]:
    model = built.again(PlantedSource(), 1)
    if isinstance(model, RecursiveProcess):
        return [_as_drawn, _one_huge_draw, _huge_draws, _growing]
    if isinstance(model, FactorProcess | honaker.HonakerProcess):
        return [_as_drawn, _one_huge_draw, _huge_draws]
    return [_as_drawn]


def _as_drawn(process: Any, source: PlantedSource, ticks: int) -> None:
    """Draws as they come."""


def _one_huge_draw(process: Any, source: PlantedSource, ticks: int) -> None:
    for tick in range(1, ticks + 1):
        _plant(process, source, tick, _HUGE if tick == 1 else 0)


def _huge_draws(process: Any, source: PlantedSource, ticks: int) -> None:
    for tick in range(1, ticks + 1):
        _plant(process, source, tick, (-1) ** tick * (_HUGE + tick))


def _growing(process: Any, source: PlantedSource, ticks: int) -> None:
    """Every draw as large as what the past adds to it, so that sizes cancel where they are not taken as such."""
    r, e = process.coefficients, list[float]()
    for tick in range(1, ticks + 1):
        past = -sum(r[k] * e[-k] for k in range(1, min(len(r), len(e) + 1)))
        z = min(r[0] if tick == 1 else round(past), _HUGE)
        e.append((z + past) / r[0])
        _plant(process, source, tick, z)


def _plant(process: Any, source: PlantedSource, tick: int, z: int) -> None:
    lanes = [process._lane] if not isinstance(process, honaker.HonakerProcess) else []
    for h in range(getattr(process, "levels", 0) if not lanes else 0):
        lanes.append(f"{process._lane}-{h}")
    for lane in lanes:
        for column in range(process.columns):
            source.plant((lane, tick, column), None, z)


# -- undecided ---------------------------------------------------------------------------------------------------------


def wrong_settled(built: Built) -> str | None:
    """What is wrong with what slow ways decide; None if nothing is."""
    built = _affordable(built)
    model = built.again(PlantedSource(), 1)
    if isinstance(model, FilteredNoise):
        return _wrong_ties_of_banks(built)
    if isinstance(model, PureBlocksProcess):
        told = _wrong_ties_of_blocks(built)
        if told:
            return told
    for plan in (_as_drawn, _ties):
        told = _wrong_forced(built, plan, 0)
        if told:
            return told
    reach = int(model._factor.inverse.size) if isinstance(model, FactorProcess) and model._factor.tail else 0
    return _wrong_forced(built, _as_drawn, reach + 1) if 0 < reach <= 1024 and model.horizon is None else None


def _wrong_forced(built: Built, plan: Plan, begin: int) -> str | None:
    """Everything is left open, at the ticks after `begin`."""
    source = PlantedSource(3)
    process = built.again(source, 2)
    ticks = _ticks(process, begin + (3 if begin else _FEW))
    plan(process, source, ticks)
    process.seek(begin)
    with _rounding(lambda answer, centre, radius: (answer[0], np.ones_like(answer[1]))):
        noise = process.advance(ticks - begin)
    for column in (0, 1):
        path = path_of(process, source, column, ticks)
        if path is None:
            return None
        for tick in range(begin + 1, ticks + 1):
            if (expected := path.noise(tick)) != noise[tick - 1 - begin, column]:
                got = noise[tick - 1 - begin, column]
                return f"tick {tick}, left open by floats, is {got} where its draws say {expected}"
    return None


def _ties(process: Any, source: PlantedSource, ticks: int) -> None:
    """Sums as near to a half as integers bring them. The first one is a tie: at tick 1, and in other columns late, when
    its denominator has grown."""
    if not isinstance(process, FactorProcess | RecursiveProcess):
        return
    # One tick after the other: with the draw of a tick at 0 its sum is known, and moves by first/r_0 for each unit.
    factor = getattr(process, "_factor", None)
    r0 = int(process.coefficients[0] if isinstance(process, RecursiveProcess) else process._factor.r[0])
    first = 1 if factor is None else int(factor.weights[0]) if getattr(factor, "weights", ()) else 1
    unit = 1 if factor is None else factor.unit
    for column in range(process.columns):
        for tick in range(1, ticks + 1):
            source.plant((process._lane, tick, column), None, 0)
        for tick in range(1 + column * (ticks // 2), ticks + 1):
            path = path_of(process, source, column, tick)
            assert path is not None
            half = 2 * (path.values[-1] - path.beyond)
            away = (tick % 5 * 2 + 1 - half) * r0 * unit / (2 * first)
            source.plant((process._lane, tick, column), None, round(away))


def _wrong_ties_of_banks(built: Built) -> str | None:
    for double in (False, True):
        for columns in (1, 2):
            for bits in _CLOSE:
                source = PlantedSource(columns)
                with _in_double_words(double):
                    process = built.again(source, columns)
                ticks = _ticks(process, _FEW)
                at_precision(BITS + 128, partial(_tie_bank, process, source, ticks, bits))
                if told := _wrong_near_borders(process, source, ticks, columns, bits):
                    return told
    return None


def _wrong_near_borders(process: Any, source: PlantedSource, ticks: int, columns: int, bits: int) -> str | None:
    noise = process.advance(ticks)
    for column in range(columns):
        path = path_of(process, source, column, ticks)
        assert path is not None
        if told := _wrong_noise(path, noise[:, column], f"2^-{bits} from a border"):
            return told
    return None


def _tie_bank(process: Any, source: PlantedSource, ticks: int, bits: int) -> None:
    for column in range(process.columns):
        walk = BankWalk(process)
        for tick in range(1, ticks + 1):
            side = 1 if (tick * tick + column) % 3 else -1
            target = arb((tick * 7 + column) % 11 - 5) + arb(1) / 2 + side * arb(2) ** -bits
            z = walk.solved(target / arb(process.sigma))
            source.plant((process._lane, tick, column), "normal", z)
            walk.step(source.variate(process._lane, process._path._law, tick, column))


def _wrong_ties_of_blocks(built: Built) -> str | None:
    for bits in _CLOSE:
        source = PlantedSource(9)
        process = built.again(source, 2)
        ticks = _ticks(process, process._levels[0].table.n)
        at_precision(BITS + 128, partial(_tie_block, process, source, bits))
        if told := _wrong_near_borders(process, source, ticks, 2, bits):
            return told
    return None


def _tie_block(process: Any, source: PlantedSource, bits: int) -> None:
    """L R = A: draws R x make the path of the first block the prefix sums of x."""
    level = process._levels[0]
    R = block_matrix(level.table)
    for column in range(process.columns):
        path = [arb(0)]
        for tick in range(1, R.ncols() + 1):
            side = 1 if (tick * tick + column) % 3 else -1
            path.append((arb((tick * 7 + column) % 11 - 5) + arb(1) / 2 + side * arb(2) ** -bits) / arb(level.scale))
        for i in range(R.nrows()):
            z = sum((R[i, t] * (path[t + 1] - path[t]) for t in range(R.ncols())), arb(0))
            source.plant((level._lane, 1 + i, column), "laplace", z)


# -- restored noise ----------------------------------------------------------------------------------------------------


def wrong_restored(built: Built) -> str | None:
    """Where the noise of a tick depends on how one got there; None if nowhere."""
    for columns in (1, 3):
        make = partial(built.again, PlantedSource(columns), columns)
        ticks = _ticks(make(), _LONG)
        process = make()
        straight = np.concatenate([process.advance(1) for _ in range(ticks)])
        process.seek(ticks // 3)
        if not _goes_on(process, straight, ticks // 3):
            return "the noise of a tick is another one for somebody who goes back to it"
        if not np.array_equal(make().advance(ticks), straight):
            return "the noise of a tick is another one where many are made at once"
        told = _wrong_pieces(make, straight) or _wrong_memories(make, straight)
        if told:
            return told
    return None


def _wrong_pieces(make: Callable[[], Any], straight: NDArray[np.int64]) -> str | None:
    for step in (2, 7, 64):
        process = make()
        found = []
        while process.tick < len(straight):
            found.append(process.advance(min(step, len(straight) - process.tick)))
        if not np.array_equal(np.concatenate(found), straight):
            return f"the noise of a tick is another one where {step} are made at once"
    return None


def _wrong_memories(make: Callable[[], Any], straight: NDArray[np.int64]) -> str | None:
    walking = make()
    for tick in _cuts(len(straight)):
        if tick > walking.tick:
            walking.advance(tick - walking.tick)
        sought = make()
        sought.seek(tick)
        if not _goes_on(sought, straight, tick):
            return f"the noise after tick {tick} is another one for somebody who goes there at once"
        if isinstance(walking, Remembering):
            memory, other = walking.memory(), make()
            other.recall(tick, memory)
            if other.memory() != memory:
                return f"what is remembered after tick {tick} is not what was recalled"
            if not _goes_on(other, straight, tick):
                return f"the noise after tick {tick} is another one for somebody who remembers it"
            if memory.startswith(b"evertally-") and not _refuses(make(), tick, b"?" + memory[1:]):
                return "the memory of something else is taken for its own"
        if isinstance(walking, Divisible):
            other = make()
            other.take(tick, walking.kept())
            if not _goes_on(other, straight, tick):
                return f"the noise after tick {tick} is another one for somebody who has its columns handed over"
    return None


def _refuses(process: Any, tick: int, memory: bytes) -> bool:
    try:
        process.recall(tick, memory)
    except StateError:
        return True
    return False


def _goes_on(process: Any, straight: NDArray[np.int64], tick: int) -> bool:
    following = straight[tick : tick + _AFTER]
    return not len(following) or np.array_equal(process.advance(len(following)), following)


def _cuts(ticks: int) -> list[int]:
    return [t for t in (0, 1, 2, 3, 7, 15, 16, 31, 32, 63, 64, 65, 100, 127, 128, ticks - 1) if 0 <= t < ticks]


# -- what all of them use ----------------------------------------------------------------------------------------------


def _ticks(process: Any, most: int) -> int:
    return most if process.horizon is None else min(process.horizon, most)


def _affordable(built: Built) -> Built:
    """Blocks of tables that are too large to solve are looked at on a copy with a smaller one."""
    if not issubclass(built.kind, PureBlocksProcess):
        return built
    sizes = built.again(PlantedSource(), 1)._sizes
    if max(sizes) <= _LARGEST_BLOCK:
        return built
    return Built(built.kind, built.arguments, built.options | {"horizon": 64 if len(sizes) == 1 else 2048})


@contextmanager
def _rounding(answer: Callable[[Any, Any, Any], Any]) -> Iterator[None]:
    """`round_half_up` tells what it is asked, and says what `answer` makes of its answer."""
    real = {module: module.round_half_up for module in _ROUNDING}

    def telling(module: Any, centre: Any, radius: Any) -> Any:
        return answer(real[module](centre, radius), centre, radius)

    for module in _ROUNDING:
        module.round_half_up = partial(telling, module)
    try:
        yield
    finally:
        for module, function in real.items():
            module.round_half_up = function


@contextmanager
def _in_double_words(wanted: bool) -> Iterator[None]:
    """Banks that are built now begin with double words, or with floats."""
    real = bank_path.large
    bank_path.large = lambda sigma, horizon: wanted
    try:
        yield
    finally:
        bank_path.large = real
