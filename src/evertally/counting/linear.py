"""The linear engine: exact running sums plus a noise process that never saw them.

Everything that counts is this engine behind an encoder: `Counter`, `VectorCounter`, `Histogram`, `RunningMean`. The
engine keeps the contract that all mechanisms share (step, run, snapshot, horizon, replay); a subclass says how a
tick's input becomes an integer row, how far one event can move it, and how a row of numbers is shown.

Privacy: factorization-counting 1.4 and 11, price-of-continual-release 3.2, adaptive streams included. Inputs are
bounded by 1-Lipschitz functions of each tick's total (clip), which cannot raise a sensitivity.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from evertally.bounds.tails import Spread
from evertally.counting.choose import Setting, build, choose
from evertally.counting.epochs import LAST_TICK
from evertally.counting.inputs import as_integers, keep_events
from evertally.counting.process import Budget, IntArray
from evertally.counting.release import Release
from evertally.counting.snapshot import guarantee_from_json, guarantee_to_json, pack, restorable
from evertally.counting.tree import Radix
from evertally.encode import UserCap, require_column
from evertally.errors import ConfigurationError, HorizonExceeded, ReplayRefused
from evertally.noise import Key, NoiseKey
from evertally.privacy import (
    ZCDP,
    ApproxDP,
    ApproxZCDP,
    Change,
    Contribution,
    Guarantee,
    Neighbours,
    PureDP,
)

LONGEST_HORIZON = 2**40
_PIECE = 1 << 22  # numbers handled at once by run

Options = dict[str, Any]


class LinearMechanism(ABC):
    """The engine. Not used directly; see its subclasses."""

    exactness: ClassVar[str] = "exact"

    def __init__(
        self,
        *,
        columns: int,
        change: Change,
        contribution: Contribution,
        options: Options,
        guarantee: Guarantee,
        horizon: int | None,
        mechanism: str = "auto",
        key: NoiseKey | None = None,
        neighbours: str | Neighbours = "add_remove",
        stream: str = "stream",
        name: str | None = None,
        radix: Radix = "formula",
        memory_limit: int = 2**30,
        max_window: int = 0,
    ) -> None:
        if not isinstance(guarantee, PureDP | ZCDP | ApproxDP | ApproxZCDP):
            raise ConfigurationError("guarantee is a PureDP, ZCDP, ApproxDP or ApproxZCDP object, e.g. et.PureDP(1.0)")
        self.guarantee = guarantee
        self.horizon = _whole("horizon", horizon, 1, LONGEST_HORIZON) if horizon is not None else None
        self.neighbours = Neighbours.parse(neighbours)
        if self.neighbours is Neighbours.INDEPENDENT and guarantee.adversary != "oblivious":
            # parameterized-histograms 6: the claim is proved for streams fixed beforehand only (design decision 9)
            raise ConfigurationError(
                "independent neighbours are proved for oblivious streams only; say so in the guarantee, "
                'e.g. ZCDP(0.5, adversary="oblivious")'
            )
        self.name = name or type(self).__name__.lower()
        if not isinstance(stream, str) or not isinstance(self.name, str):
            raise ConfigurationError("stream and name are texts: they are part of the address of the noise")
        self.stream = stream
        self.max_window = _whole("max_window", max_window, 0, LONGEST_HORIZON)
        memory_limit = _whole("memory_limit", memory_limit, 1, 2**62)
        self.sensitivity = change
        self._setting = Setting(change, self.horizon, columns, memory_limit, radix)
        self._choice = choose(guarantee, self._setting, mechanism)
        self._options = options | {
            "guarantee": guarantee_to_json(guarantee),
            "horizon": self.horizon,
            "mechanism": self._choice.mechanism,
            "neighbours": self.neighbours.value,
            "stream": stream,
            "name": self.name,
            "radix": radix,
            "memory_limit": memory_limit,
            "max_window": self.max_window,
        }
        self._key = key if key is not None else Key.generate()
        # The address of all noise (design decision 1): version, stream, mechanism, digest of every public parameter.
        digest = hashlib.sha256(json.dumps(self._options, sort_keys=True).encode()).digest()
        self._source = self._key.source(
            stream,
            self.name,
            type(self).__name__,
            _charge_text(self._choice.charge),
            digest,
        )
        self._noise = build(self._choice, self._setting, self._source)
        self._sums = np.zeros(columns, dtype=np.int64)
        self._tick_limit = 2**61 // (self.horizon or LAST_TICK)
        if contribution.max_weight > self._tick_limit:
            raise ConfigurationError(
                f"totals of a tick are kept below 2^61/horizon = {self._tick_limit} to fit 64 bits, and one event may "
                f"weigh {contribution.max_weight}; choose a shorter horizon or a coarser unit"
            )
        self._signed = contribution.signed
        self._users = (
            UserCap(contribution.max_events_per_user) if contribution.max_events_per_user is not None else None
        )
        self._last_input = b""
        self._history: deque[IntArray] = deque([np.zeros(columns, dtype=np.int64)], maxlen=self.max_window + 1)

    # -- what the subclasses say -----------------------------------------------------------------------------------

    @abstractmethod
    def _row(self, x: Any) -> IntArray:
        """One tick's totals as an integer row; raises TypeError for what is not one."""

    @abstractmethod
    def _event_row(self, events: Any, tick: int) -> IntArray:
        """The bounded sum of one tick's events: the door."""

    def _rows(self, x: Any) -> IntArray:
        """Many ticks' totals, shape (ticks, columns)."""
        rows = as_integers(x)
        if rows.ndim != 2 or rows.shape[1] != self._sums.size:
            raise TypeError(f"run takes integers of shape (ticks, {self._sums.size}), not of shape {rows.shape}")
        return rows

    def _show(self, values: IntArray) -> Any:
        """A row of released integers as the public value."""
        return values.copy()

    def _show_run(self, values: IntArray) -> NDArray[Any]:
        return values

    def _interval(self, values: IntArray, spread: Spread, beta: float) -> tuple[Any, Any]:
        radius = math.floor(spread.radius(beta))  # noise is an integer
        return self._show(values - radius), self._show(values + radius)

    def _deviation(self, spread: Spread) -> float | None:
        """The standard deviation to show for noise of this spread."""
        return spread.stddev

    def _labels(self) -> list[str] | None:
        """Names of the columns, if `run(full=True)` should show one line for each."""
        return [str(j) for j in range(self._sums.size)]

    # -- the contract ----------------------------------------------------------------------------------------------

    @property
    def tick(self) -> int:
        """Ticks released so far."""
        return self._noise.tick

    @property
    def key(self) -> NoiseKey:
        """The key in use. One that was drawn here must be saved if the stream is to be restored."""
        return self._key

    @property
    def mechanism(self) -> str:
        """The noise process that was chosen."""
        return self._choice.mechanism

    @property
    def charge(self) -> Budget:
        """What is really paid, a PureDP or ZCDP guarantee that implies `guarantee`."""
        return self._choice.charge

    def step(self, x: Any, *, tick: int | None = None) -> Release:
        """One tick: its total goes in, the release of the running sum comes out.

        The total counts events that the caller has bounded; `step_events` does the bounding itself. Mistakes in the
        call raise before the tick is used; totals out of range (below 0 where nothing is signed, beyond 2^61/horizon)
        are clipped silently. With `tick`, the same call for the last tick gives the same release again, and any other
        total for it is refused.
        """
        tick = _tick(tick)
        return self._step(self._clip(self._row(x)[None, :])[0], tick)

    def step_events(self, events: Any, *, users: Any = None, tick: int | None = None) -> Release:
        """One tick from raw events. Whatever is not legal in a record is bounded silently and never raises."""
        tick = _tick(tick)
        number = self.tick + 1 if tick is None else tick
        if (users is None) != (self._users is None):
            raise TypeError(
                "users go with unit='user' and with nothing else: "
                + ("give one user for each event" if users is None else "this mechanism protects single events")
            )
        self._check_tick(number)
        require_column(events, "events")
        if self._users is not None:
            # Every mistake in the call must have raised by now: `keep` counts this tick against its users.
            require_column(users, "users")
            if len(users) != len(events):
                raise TypeError("users and events differ in length; give exactly one user for each event")
            events = keep_events(events, self._users.keep(users, number))
        return self._step(self._clip(self._event_row(events, number)[None, :])[0], tick)

    def run(self, x: Any, *, full: bool = False) -> Any:
        """Many ticks at once: an int64 array of releases, bit-identical to repeated `step`.

        With `full=True` an Arrow table with tick, (column,) value and the 95 % interval of each value.
        """
        rows = self._rows(x)
        if self.tick + len(rows) > (self.horizon or LAST_TICK):
            raise self._over(len(rows))
        first = self.tick + 1
        values = np.empty((len(rows), self._sums.size), dtype=np.int64)
        piece = max(1, _PIECE // self._sums.size)
        for start in range(0, len(rows), piece):
            part = self._clip(rows[start : start + piece])
            sums = np.cumsum(part, axis=0)
            sums += self._sums
            self._sums = sums[-1].copy()
            np.add(sums, self._noise.advance(len(part)), out=values[start : start + piece])
        if len(rows):
            self._last_input = _digest(self._clip(rows[-1:])[0])
            self._history.extend(values[-(self.max_window + 1) :].copy())
        return self._table(first, values) if full else self._show_run(values)

    def last(self, window: int) -> Release:
        """The sum over the last `window` ticks: the difference of two releases, so it costs no privacy."""
        if not self.max_window or not self.tick:
            raise ConfigurationError("windows need releases to look back on: declare max_window, and take a step first")
        window = _whole("window", window, 1, min(self.max_window, self.tick))
        return self._release(
            self._history[-1] - self._history[-1 - window], self._noise.window_spread(self.tick, window)
        )

    def stddev(self, t: int) -> float | None:
        """Standard deviation of the noise in each number released at tick t; public, known before any data."""
        return self._deviation(self._noise.spread(_whole("t", t, 1, self.horizon or LAST_TICK)))

    def error_bound(self, beta: float = 0.05, t: int | None = None) -> float:
        """With probability at least 1 - beta no number of any tick is further off than this (union bound).

        With `t`, the bound for that tick, all ticks together still failing with probability at most beta. Without a
        horizon `t` is needed: tick t then gets the share 6/(pi^2 t^2) of beta.
        """
        if not 0 < beta < 1:
            raise ConfigurationError("beta is a probability between 0 and 1")
        columns = self._sums.size
        if self.horizon is not None:
            share = beta / (columns * self.horizon)
            if t is None:
                return self._noise.worst().radius(share)
            return self._noise.spread(_whole("t", t, 1, self.horizon)).radius(share)
        if t is None:
            raise ConfigurationError("without a horizon the error grows for ever: ask for error_bound(beta, t=...)")
        t = _whole("t", t, 1, LAST_TICK)
        return self._noise.spread(t).radius(6 * beta / (math.pi**2 * t**2 * columns))

    def snapshot(self) -> bytes:
        """The state as bytes for `evertally.restore`. They contain exact sums: keep them as secret as the key."""
        header = {
            "kind": type(self).__name__,
            "options": self._options,
            "tick": self.tick,
            "last_input": self._last_input.hex(),
        }
        history = np.stack(list(self._history))
        users = self._users.to_bytes() if self._users is not None else b""
        return pack(header, [_to_bytes(self._sums), _to_bytes(history), users], self._key)

    # -- machinery -------------------------------------------------------------------------------------------------

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        restorable(cls.__name__, cls._restore)

    @classmethod
    def _restore(cls, header: dict[str, Any], parts: list[bytes], key: NoiseKey) -> Self:
        options = dict(header["options"])
        options["guarantee"] = guarantee_from_json(options["guarantee"])
        self = cls(**options, key=key)
        columns = self._sums.size
        self._sums = np.frombuffer(parts[0], dtype="<i8").astype(np.int64)
        history = np.frombuffer(parts[1], dtype="<i8").astype(np.int64).reshape(-1, columns)
        self._history.clear()
        self._history.extend(history)
        if self._users is not None:
            self._users = UserCap.from_bytes(parts[2])
        self._last_input = bytes.fromhex(header["last_input"])
        self._noise.seek(header["tick"])
        return self

    def _step(self, row: IntArray, tick: int | None) -> Release:
        self._check_tick(self.tick + 1 if tick is None else tick)
        if tick is not None and tick == self.tick:
            if _digest(row) != self._last_input:
                raise ReplayRefused(
                    f"tick {tick} was already released for another input; releasing it again would reveal the "
                    "difference. Late events go into the current tick."
                )
            return self._release(self._history[-1], self._noise.spread(self.tick))
        noise = self._noise.advance(1)[0]
        self._sums += row
        self._last_input = _digest(row)
        self._history.append(self._sums + noise)
        return self._release(self._history[-1], self._noise.spread(self.tick))

    def _check_tick(self, tick: int) -> None:
        if tick not in (self.tick, self.tick + 1) or tick < 1:
            raise ReplayRefused(
                f"tick {tick} cannot be released now: the last one was {self.tick}, the next is {self.tick + 1}"
            )
        if tick > (self.horizon or LAST_TICK):
            raise self._over(1)

    def _over(self, count: int) -> HorizonExceeded:
        return HorizonExceeded(
            f"{count} more ticks after tick {self.tick} exceed the horizon {self.horizon or LAST_TICK} that the noise "
            "was made for; start a new stream with its own budget"
        )

    def _clip(self, rows: IntArray) -> IntArray:
        # 1-Lipschitz in every total, hence free; keeps the sums far from the end of int64.
        return np.clip(rows, -self._tick_limit if self._signed else 0, self._tick_limit)

    def _release(self, values: IntArray, spread: Spread) -> Release:
        return Release(
            self.tick,
            self._show(values),
            self._deviation(spread),
            self._key.private,
            lambda beta: self._interval(values, spread, beta),
        )

    def _table(self, first: int, values: IntArray) -> Any:
        import pyarrow as pa

        labels = self._labels()
        ticks = np.arange(first, first + len(values), dtype=np.int64)
        spreads = [self._noise.spread(int(t)) for t in ticks]
        shown, lower, upper = [], [], []
        for row, spread in zip(values, spreads, strict=True):
            low, high = self._interval(row, spread, 0.05)
            shown.append(flat(self._show(row)))
            lower.append(flat(low))
            upper.append(flat(high))
        table: dict[str, Any] = {"tick": np.repeat(ticks, len(labels)) if labels else ticks}
        if labels:
            table["column"] = pa.array(labels * len(values), type=pa.string())
        for name, numbers in (("value", shown), ("lower", lower), ("upper", upper)):
            table[name] = np.concatenate(numbers) if numbers else np.empty(0, dtype=np.int64)
        return pa.table(table)


def flat(value: Any) -> NDArray[Any]:
    """A public value as a flat array, in column order."""
    return np.atleast_1d(np.array(list(value.values()) if isinstance(value, dict) else value))


def _digest(row: IntArray) -> bytes:
    return hashlib.sha256(_to_bytes(row)).digest()


def _to_bytes(array: IntArray) -> bytes:
    return np.ascontiguousarray(array, dtype="<i8").tobytes()


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise ConfigurationError(f"{name} must be an integer from {low} to {high}; got {value!r}")
    return int(value)


def _tick(tick: Any) -> int | None:
    if tick is not None and (isinstance(tick, bool) or not isinstance(tick, int | np.integer)):
        raise TypeError(f"tick is a whole number, not {type(tick).__name__}")
    return None if tick is None else int(tick)


def _charge_text(charge: Budget) -> str:
    return f"PureDP:{charge.exact_epsilon}" if isinstance(charge, PureDP) else f"ZCDP:{charge.exact_rho}"
