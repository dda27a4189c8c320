"""Bugs of one line in a copy of the package, and a stream that each of them harms: what `evertally audit` says of it.

    PYTHONPATH=tests python -m audit.one_line_bugs [--effort long] [name ...]

runs the command in processes of their own, on the product and on each copy. It must exit with 1 on every copy, and with
something else on the product. They are bugs that nobody had planted when the auditor was written: each was found to
pass an auditor that asked the program for its own sensitivity, on a copy of a few ticks, with one event of one user.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from spec_text import ALL, WARD, spec_text

SOURCE = Path(__file__).resolve().parents[2] / "src"
BROKEN = 1  # what the command exits with

_USERS = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient", "max_events_per_user": 3}
_REPLACE = {"name": "visits", "horizon": 48, "neighbours": "replace"}
_LONG = {"name": "visits", "horizon": 65536}
_LONGER = {"name": "visits", "horizon": 2**24}  # under a pure budget trees are wide: 2^16 ticks are 4 levels
_TREE = {**ALL, "mechanism": "tree"}
_BEDS = {"name": "beds", "kind": "dynamic_histogram", "action": "what", "id": "bed", "protects": "event"}
_BEDS |= {"column": "ward", "categories": ["north", "south"]}
_FOUND = {"name": "found", "kind": "unknown_histogram", "column": "ward"}
_DELTA = {"epsilon": 2.0, "delta": 1e-6}
_MANY = {"max_events_per_tick": 100}
_LABEL_BLOCKS = spec_text({**_FOUND, "mechanism": "meta"}, stream=_USERS | _MANY, guarantee=_DELTA)
_LEADERS = {"name": "first", "kind": "streaming_top_k", "column": "ward", "categories": ["north", "south", "west"]}
_LEADERS |= {"k": 1, "mechanism": "meta"}
_THIRDS = ({**ALL, "share": 0.3}, {**WARD, "share": 0.4})


@dataclass(frozen=True)
class Bug:
    """`before` becomes `after` in a file, where it stands once; and so on, if one line is not enough."""

    name: str
    file: str
    before: str
    after: str
    spec: str
    further: tuple[tuple[str, str], ...] = ()

    def plant(self, package: Path) -> None:
        path = package / self.file
        text = path.read_text()
        for before, after in ((self.before, self.after), *self.further):
            assert text.count(before) == 1, f"{self.name}: {self.file} has changed"
            text = text.replace(before, after)
        path.write_text(text)


_PER_TICK = (
    "encode/users.py",
    "np.empty(len(codes), np.bool_), before.copy()",
    "np.empty(len(codes), np.bool_), 0 * before",
)
_FORGOTTEN = (
    "encode/caps.py",
    "        cap._entered = cap.last, entered\n        return cap",
    "        return cls._of_options(options)",
)
_STEPS = ("dynamic/charges.py", "return one * both * (self.max_events_per_user or 1)", "return one * both")
_REACH = (
    "statistics/unknown.py",
    "Reach(contribution.max_weight, relation, events)",
    "Reach(contribution.max_weight, relation, 1)",
)
_BLOCKS = (
    "statistics/unknown.py",
    'blocks = 1 if self.unit == "event" else reach.sides * events',
    "blocks = 1",
)
_KNOWN_REACH = (
    "statistics/streaming.py",
    "Reach(self.max_weight, relation, self.max_events_per_user or 1)",
    "Reach(self.max_weight, relation, 1)",
)
_NOT_DOUBLED = (
    "privacy/neighbours.py",
    "base = _event(relation, contribution, d) if",
    "base = _event(Neighbours.ADD_REMOVE, contribution, d) if",
)
_USER_ONCE = (
    "privacy/neighbours.py",
    "return Change(2 * removed.l1, (4 if signs else 2) * removed.l2_squared, linf)",
    "return Change(removed.l1, removed.l2_squared, linf)",
)
_SHARES = ("stream.py", "else self.guarantee.share(share)", "else self.guarantee.share(read_share(share) * 13 / 10)")
_STATIC = (
    "dynamic/static/additive.py",
    "round_up(self.norms.l2_squared / (2 * budget.exact_rho))",
    "round_up(self.norms.l2_squared * 81 / (200 * budget.exact_rho))",
)
_ONE_SHOT = (
    "selection/histograms.py",
    "return DiscreteGaussian(self.variance)",
    "return DiscreteGaussian(self.variance * 81 / 100)",
)
_LEVELS = (
    "counting/tree.py",
    "return node_law(charge, change, levels)",
    "return node_law(charge, change, min(levels, 4))",
)
_THRESHOLD = (
    "selection/item_engine.py",
    "above = noisy > self.threshold.at(tick)",
    "above = noisy > self.threshold.at(tick) - len(self.table) // 50",
)

# Found by somebody who had read the product and not the auditor, and passed by the auditor of that day.
_SHORT = {"name": "visits", "horizon": 16}
_BY_WARD = {"name": "ward", "kind": "histogram", "column": "ward", "categories": ["a", "b", "c", "d", "e"]}
_BY_WARD |= {"max_per_event": 2, "max_weight": 2, "mechanism": "tree"}
_CUT = spec_text(_BY_WARD, stream=_SHORT)
_ITEMS = spec_text(
    {**_FOUND, "max_per_event": 2, "max_weight": 3}, stream=_SHORT, guarantee={"epsilon": 4, "delta": 1e-5}
)
_CAPPED = spec_text(_TREE, stream=_USERS | {"horizon": 16, "max_events_per_user": 2})
_TWO = ({"name": "a", "column": "x", "share": 0.5}, {"name": "b", "column": "y", "share": 0.5})
_OUTSIDE = (
    Bug(
        "interval around the exact sum",
        "contract/mechanism.py",
        "lambda beta: form.interval(row, accuracy, beta)",
        "lambda beta: form.interval(self._kept.played.state, accuracy, beta)",
        _CUT,
    ),
    Bug(
        "the row of a window is exact",
        "contract/mechanism.py",
        'own["row"], own["maker"] = row, self._maker',
        'own["row"], own["maker"] = self._kept.played.state, self._maker',
        _CUT,
    ),
    Bug(
        "labels in the order of arrival",
        "selection/item_engine.py",
        "best = sorted(pairs) if self.most is None",
        "best = pairs if self.most is None",
        _ITEMS,
    ),
    Bug(
        "lists of labels not cut",
        "encode/items.py",
        "_positive(labels, self._counts(bag, items, labels, tick)) for bag",
        "_positive(labels, np.bincount(items[items >= 0], minlength=len(labels))) for bag",
        _ITEMS,
    ),
    Bug(
        "one label more where many are cut",
        "encode/cutting.py",
        "self._by_label, most, kept[here])",
        "self._by_label, most + 1, kept[here])",
        _CUT,
    ),
    Bug(
        "two queries draw the same noise",
        "contract/mechanism.py",
        "self._path = self.stream, self.name, plan.word",
        'self._path = self.stream, "", plan.word',
        spec_text(*({**ALL, "max_weight": 5, **one} for one in _TWO), stream=_SHORT),
        (('                "name": self.name,\n            }\n        )', "            }\n        )"),),
    ),
    Bug(
        "all labels draw the same noise",
        "noise/source.py",
        'label.encode("utf-8", "surrogatepass"))',
        'b"")',
        _ITEMS,
    ),
    Bug(
        "weights not clipped beside what is strange",
        "encode/door.py",
        "return {item: max(low, min(high, weight)) for item",
        "return {item: weight for item",
        _CUT,
    ),
    Bug(
        "cap forgotten when its table grows",
        "encode/user_table.py",
        "now.columns = [grown(column, size) for column in now.columns]",
        "now.columns = [c if size <= len(c) else np.zeros(2 * size, np.int64) for c in now.columns]",
        _CAPPED,
    ),
    Bug(
        "a newcomer of a full tick is several",
        "encode/user_table.py",
        "numbers[new] = size + distinct(taken(names.data, names.offsets[new], names.lengths[new]))[0]",
        "numbers[new] = size + np.arange(len(new))",
        _CAPPED,
    ),
    Bug(
        "node 257 is node 1",
        "noise/source.py",
        "if isinstance(nodes, range) else nodes\n        words = stream.words(index,",
        "if isinstance(nodes, range) else nodes\n        words = stream.words(index % 256,",
        spec_text(_TREE, stream={"name": "visits", "horizon": 600}),
    ),
    Bug(
        "blocks draw the same noise",
        "values/periods.py",
        'f"period-{number}/"',
        '"period/"',
        spec_text({"name": "sum", "kind": "running_sum", "column": "minutes", "upper": 3, "every": 4}, stream=_SHORT),
    ),
)

# Memories that end, and lives that do not: found by a third one, and passed by the auditor of that day.
_YEAR = {"name": "visits", "horizon": 365}
_HOURS = {"name": "visits", "horizon": 8760}
_PEOPLE = {"unit": "user", "user_column": "patient"}
_BED = {"action": "what", "id": "bed"}
_MEMORIES = (
    Bug(
        "cap emptied beyond 1,000 names",
        "encode/caps.py",
        "        table.begin()\n        self._entered = last, numbers",
        "        self._table = table if len(table) <= 1000 else table.emptied()\n        self._table.begin()\n"
        "        self._entered = last, numbers if len(table) <= 1000 else numbers[:0]",
        spec_text(_TREE, stream=_YEAR | _PEOPLE | {"max_events_per_user": 3}),
    ),
    Bug(
        "separated ticks forgotten beyond 1,000 names",
        "encode/separated.py",
        "times, last = before[:, 0], before[:, 1]",
        "times, last = before[:, 0] * (len(self._table) < 1000), before[:, 1]",
        spec_text({**ALL, "min_separation": 7, "max_ticks_per_user": 4}, stream=_YEAR | _PEOPLE),
    ),
    Bug(
        "users emptied beyond 1,000 names",
        "users/user_rule.py",
        "        self.users.begin()",
        "        self.users = self.users if len(self.users) <= 1000 else self.users.emptied()\n"
        "        self.users.begin()",
        spec_text({"name": "users", "kind": "distinct_users"}, stream=_YEAR | _PEOPLE),
    ),
    Bug(
        "a period's users emptied beyond 1,000 names",
        "users/period_rule.py",
        "        if place == 0:\n            counted = 0\n            if self._most is None:",
        "        if place == 0 or len(self._users) > 1000:\n            counted = 0 if place == 0 else counted\n"
        "            if self._most is None:",
        spec_text({"name": "weeks", "kind": "period_users", "period": 7}, stream=_YEAR | _PEOPLE),
    ),
    Bug(
        "cohort forgotten too early",
        "users/retention_rule.py",
        "newcomers = numbers[numbers >= known]",
        "newcomers = numbers[(numbers >= known) | (users.read(_ACTIVE, numbers) < period - cells.ages)]",
        spec_text({"name": "again", "kind": "retention", "period": 24, "ages": 12}, stream=_HOURS | _PEOPLE),
    ),
    Bug(
        "active users forgotten too early",
        "users/active_rule.py",
        "silent = self.users.column(self._last) <= tick - self._longest",
        "silent = self.users.column(self._last) <= tick - self._longest // 2",
        spec_text({"name": "active", "kind": "active_users", "windows": [1, 7, 28]}, stream=_YEAR | _PEOPLE),
    ),
    Bug(
        "allowance forgotten after a month",
        "values/sum_doors.py",
        "self._most, self._users.read(0, numbers)), 0",
        "self._most, self._users.read(0, numbers) * (arrivals.tick % 30 != 1)), 0",
        spec_text(
            {"name": "sum", "kind": "running_sum", "column": "minutes", "upper": 50, "max_total_per_user": 200},
            stream=_YEAR | _PEOPLE,
        ),
    ),
    Bug(
        "labels of users emptied beyond 1,000 names",
        "users/distinct_unknown.py",
        "        self.pairs.users.begin()\n        self.labels.begin()",
        "        self.pairs.users = u if len(u := self.pairs.users) <= 1000 else u.emptied()\n"
        "        self.pairs.users.begin()\n        self.labels.begin()",
        spec_text(
            {"name": "pages", "kind": "unknown_distinct_users", "column": "page"},
            stream=_YEAR | _PEOPLE,
            guarantee=_DELTA,
        ),
    ),
    Bug(
        "changes of items forgotten after 1,000 ticks",
        "users/present_rule.py",
        "        self._items.begin()",
        "        self._items = self._items if tick % 1000 != 999 else self._items.emptied()\n"
        "        self._items.begin()",
        spec_text({"name": "seats", "kind": "present_items", "max_flips": 4, **_BED}, stream=_HOURS),
    ),
    Bug(
        "lives forgotten beyond 1,000 names",
        "dynamic/lifetimes.py",
        "self._set(name, (-1, 0, 0, life[3]))",
        "self._set(name, (-1, 0, 0, life[3]) if len(self._lives) <= 1000 else None)",
        spec_text({"name": "beds", "kind": "dynamic_count", "max_lifetime": 24, **_BED}, stream=_YEAR),
    ),
    Bug(
        "items expire only with arrivals",
        "dynamic/lifetimes.py",
        "for old in self._inserted.get(tick - self._longest, ()):",
        "for old in self._inserted.get(tick - self._longest, ()) if len(arrivals) else ():",
        spec_text({"name": "beds", "kind": "dynamic_count", "max_lifetime": 24, **_BED}, stream=_YEAR),
    ),
)

# Of the kinds that a third one found, who had not read the auditor; one of them was in the product.
_WORDS = spec_text(_FOUND, stream=_SHORT, guarantee=_DELTA)
_SHOP = {"name": "shop", "kind": "dashboard", "column": "what", "types": ["click", "order", "refund", "visit"]}
_SHOP |= {"metrics": {"all": "all", "money": ["order", "refund"], "clicks": ["click"], "visits": ["visit", "click"]}}
_THIRD = (
    Bug(
        "no blanks in CSV beside a quoted cell",
        "runtime/input/csv_lines.py",
        """block.replace(b'"', b"")""",
        """block.replace(b'"', b"").replace(b" ", b"")""",
        _WORDS,
    ),
    Bug(
        "no accents in CSV beside a byte that is no UTF-8",
        "runtime/input/csv_lines.py",
        'text = block.decode("latin-1")',
        'text = block.decode("ascii", "ignore")',
        _WORDS,
    ),
    Bug(
        "other accents in JSON beside a byte that is no UTF-8",
        "runtime/input/json_cells.py",
        '(_text(line) for line in lines.split(b"\\n"))',
        'lines.decode("latin-1").split("\\n")',
        _WORDS,
    ),
    Bug(
        "records behind a bad one left out, JSON lines",
        "runtime/input/json_lines.py",
        "kept[left] = False",
        "kept[left[0] :] = False",
        _CAPPED,
    ),
    Bug(
        "records behind a bad one left out, a JSON array",
        "runtime/input/batches.py",
        "[element for element in elements if isinstance(element, dict)]",
        "elements[: next((i for i, one in enumerate(elements) if not isinstance(one, dict)), None)]",
        _CUT,
    ),
    Bug(
        "a text that is no UTF-8 refuses its batch, Arrow",
        "runtime/input/arrow_columns.py",
        "    pa.string(): pa.binary(),\n",
        "",
        _CUT,
    ),
    Bug(
        "a mark of the order of bytes that is a cell's or not, CSV",
        "runtime/input/csv_lines.py",
        "if block.startswith(_BYTE_ORDER_MARK):",
        "if False:",
        _WORDS,
    ),
    Bug(
        "labels that differ in case draw the same noise",
        "noise/source.py",
        'label.encode("utf-8", "surrogatepass"))',
        'label.casefold().encode("utf-8", "surrogatepass"))',
        _WORDS,
    ),
    Bug(
        "labels that differ in blanks draw the same noise",
        "selection/item_table.py",
        "            addresses = item_addresses(self._source, labels.list())",
        "            addresses = item_addresses(self._source, [label.strip() for label in labels.list()])",
        _WORDS,
    ),
    Bug(
        "an error bar of 0 while nothing was counted",
        "contract/mechanism.py",
        "lambda beta: form.interval(row, accuracy, beta)",
        "lambda b: form.interval(row, accuracy, b) if np.any(self._kept.played.state) else (form.show(row),) * 2",
        spec_text(_SHOP, stream=_SHORT),
    ),
    Bug(
        "a standard deviation of 0 while nothing was counted",
        "contract/mechanism.py",
        "form.deviation(accuracy)",
        "form.deviation(accuracy) if np.any(self._kept.played.state) else 0.0",
        _CUT,
    ),
    Bug(
        "a damaged sidecar is as good as none",
        "runtime/state/sidecar.py",
        "        if not genuine:\n",
        "        if not genuine:\n            return None\n",
        _CUT,
    ),
)

_SUMS = {"name": "paid", "kind": "running_sum", "column": "amount", "upper": 5}

_TODAY = {"name": "today", "kind": "period_users", "period": 4, "so_far": True}

# Found by a fourth one: ways that few draws, blanks, batches of one call and several ticks at once go, and no other;
# amounts between two steps, blocks far on, horizons that leave a rest.
_FOURTH = (
    Bug(
        "pages do not turn among few draws",
        "noise/keystream.py",
        "if index.size > 1 else []",
        "if index.size > 64 else []",
        spec_text(_TREE, stream={"name": "visits", "horizon": 600}),
    ),
    Bug(
        "no blanks in front of cells in lines of CSV with a quote",
        "runtime/input/csv_lines.py",
        "csv.reader([line], strict=True)",
        "csv.reader([line], strict=True, skipinitialspace=True)",
        spec_text({**_BY_WARD, "max_per_event": 1}, stream=_SHORT | _PEOPLE | {"max_events_per_user": 1}),
    ),
    Bug(
        "separated ticks of all but the last of several forgotten",
        "encode/caps.py",
        "        for i in range(self.fields):\n            self._table.write(i, numbers[:earlier], rows[:earlier, i])",
        "        self._table.write(0, numbers[:earlier], rows[:earlier, 0])",
        spec_text({**_TREE, "min_separation": 3, "max_ticks_per_user": 2}, stream=_SHORT | _PEOPLE),
    ),
    Bug(
        "a batch twice in one call counts twice",
        "runtime/live.py",
        "(earlier.digest, earlier.tick) if earlier is not None else self._store.batch(batch_id)",
        "self._store.batch(batch_id)",
        _CUT,
    ),
    Bug(
        "coins of an amount by its place in the tick",
        "contract/rounding.py",
        "_numbers_among_equals(bits, np.zeros(len(bits), dtype=np.int64) if codes is None else codes)",
        "np.arange(len(bits)) if codes is None else _numbers_among_equals(bits, codes)",
        spec_text(_SUMS),
    ),
    Bug(
        "sums that begin anew have the noise of 256 blocks before",
        "values/periods.py",
        'f"period-{number}/"',
        'f"period-{number & 0xFF}/"',
        spec_text(_SUMS | {"every": 1}, stream={"name": "visits", "horizon": 600}),
    ),
    Bug(
        "a last period that is shorter is not paid for",
        "users/periods.py",
        "return -(-self.horizon // length)",
        "return max(1, self.horizon // length)",
        spec_text(_TODAY, stream=_PEOPLE | {"name": "visits", "horizon": 10}),
    ),
    Bug(
        "a last period that is shorter is not paid for, long",
        "users/periods.py",
        "return -(-self.horizon // length)",
        "return max(1, self.horizon // length)",
        spec_text(_TODAY, stream=_PEOPLE | {"name": "visits", "horizon": 46}),
    ),
)

BUGS = (
    Bug("lifetime cap per tick, counter", *_PER_TICK, spec_text(ALL, stream=_USERS)),
    Bug("lifetime cap per tick, histogram", *_PER_TICK, spec_text(WARD, stream=_USERS, guarantee={"epsilon": 1.0})),
    Bug("lifetime cap per tick, items", *_PER_TICK, spec_text(_FOUND, stream=_USERS, guarantee=_DELTA)),
    Bug("cap forgotten at restore, counter", *_FORGOTTEN, spec_text(ALL, stream=_USERS)),
    Bug("cap forgotten at restore, histogram", *_FORGOTTEN, spec_text(WARD, stream=_USERS, guarantee={"epsilon": 1.0})),
    Bug("user's events not charged", *_STEPS, spec_text({**_BEDS, "mechanism": "tree"}, stream=_USERS)),
    Bug("user's events not charged, blocks of labels", *_REACH, _LABEL_BLOCKS),
    Bug("user's blocks not charged", *_BLOCKS, _LABEL_BLOCKS),
    Bug("user's events not charged, blocks", *_KNOWN_REACH, spec_text(_LEADERS, stream=_USERS | _MANY)),
    Bug("replace not doubled", *_NOT_DOUBLED, spec_text(WARD, stream=_REPLACE)),
    Bug("replaced user not doubled", *_USER_ONCE, spec_text(WARD, stream=_USERS | {"neighbours": "replace"})),
    Bug("shares x 1.3", *_SHARES, spec_text(*_THIRDS)),
    Bug("shares x 1.3, pure", *_SHARES, spec_text(*_THIRDS, guarantee={"epsilon": 1.0})),
    Bug("shares x 1.3, delta", *_SHARES, spec_text(*_THIRDS, guarantee={"epsilon": 1.0, "delta": 1e-6})),
    Bug("sigma x 0.9, static", *_STATIC, spec_text({**_BEDS, "mechanism": "tree"})),
    Bug(
        "sigma x 0.9, one-shot",
        *_ONE_SHOT,
        spec_text({**_FOUND, "mechanism": "meta"}, stream={"name": "visits", "horizon": 48} | _MANY, guarantee=_DELTA),
    ),
    Bug("tree of 4 levels, Gaussian", *_LEVELS, spec_text(_TREE, stream=_LONG)),
    Bug(
        "tree of 4 levels, Laplace",
        *_LEVELS,
        spec_text(_TREE, stream=_LONGER, guarantee={"epsilon": 1.0}),
    ),
    Bug("threshold falls with the table", *_THRESHOLD, spec_text(_FOUND, guarantee=_DELTA)),
    *_OUTSIDE,
    *_MEMORIES,
    *_THIRD,
    *_FOURTH,
)


def audited(spec: str, bug: Bug | None, effort: str = "short") -> subprocess.CompletedProcess[str]:
    """What the command does in a copy of the package with this bug."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if bug is not None:
            shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
            bug.plant(folder / "src/evertally")
        (folder / "visits.toml").write_text(spec)
        source = SOURCE if bug is None else folder / "src"
        return subprocess.run(
            [sys.executable, "-m", "evertally.cli", "audit", "visits.toml", "--effort", effort],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(source)},
            capture_output=True,
            text=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m audit.one_line_bugs", description=__doc__)
    parser.add_argument("names", nargs="*", help="of bugs, or how they begin; all of them if none is given")
    parser.add_argument("--effort", choices=("short", "long"), default="short")
    parser.add_argument("--show", action="store_true", help="what the command printed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="commands at once")
    asked = parser.parse_args()
    chosen = [bug for bug in BUGS if not asked.names or bug.name.startswith(tuple(asked.names))]
    work: list[tuple[str, Bug | None]] = []
    for spec in dict.fromkeys(bug.spec for bug in chosen):
        work += [(spec, None), *((spec, bug) for bug in chosen if bug.spec == spec)]
    wrong = 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        for is_wrong, told in pool.map(lambda one: _judged(*one, asked.effort, asked.show), work):
            wrong += is_wrong
            print(told, flush=True)
    print(f"{wrong} of {len(chosen)} bugs and their streams were judged wrongly")
    return 1 if wrong else 0


def _judged(spec: str, bug: Bug | None, effort: str, show: bool) -> tuple[bool, str]:
    """Whether the command says something wrong of the product, or of a bug in it; and what to print."""
    began = time.monotonic()
    done = audited(spec, bug, effort)
    seconds = f"{time.monotonic() - began:.0f} s"
    if bug is None:
        is_wrong = done.returncode not in (0, 4)
        told = f"{'the product':40} exit {done.returncode} in {seconds}: {_last(done)}"
    else:
        is_wrong = done.returncode != BROKEN
        told = f"{bug.name:40} {'MISSED' if is_wrong else 'caught'} in {seconds}: {_last(done)}"
    return is_wrong, told + (f"\n{done.stdout}" if show else "")


def _last(done: subprocess.CompletedProcess[str]) -> str:
    lines: Sequence[str] = (done.stdout if done.returncode in (0, BROKEN, 4) else done.stderr).strip().splitlines()
    return lines[-1] if lines else ""


if __name__ == "__main__":
    sys.exit(main())
