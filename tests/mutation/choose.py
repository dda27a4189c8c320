"""Which places of the product are mutated: what privacy rests on, and a fixed sample of it over rooms and mistakes.

What nobody's privacy depends on is left out: error messages, docstrings, representations, types, what is printed.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mutation.operators import Edit, Surroundings, edits, surroundings

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("privacy", "noise", "counting", "partition", "selection", "encode", "stream", "runtime/state")
SAMPLE = 320
_SEED = "evertally mutants 1"
_SHOWN = {"__repr__", "__str__", "__format__", "_repr_html_", "describe", "explain", "said", "_rows", "shown", "show"}


@dataclass(frozen=True)
class Mutant:
    """One wrong change of one file, and a name that stays when other functions change."""

    id: str
    room: str
    file: str  # below src, with slashes
    line: int
    function: str
    operator: str
    before: str
    after: str
    place: tuple[int, int]

    @cached_property
    def source(self) -> str:
        """The whole file, with the mistake in it."""
        text = (ROOT / "src" / self.file).read_text(encoding="utf-8")
        first, last = self.place
        return text[:first] + self.after + text[last:]

    def __str__(self) -> str:
        return f"{self.id} {self.file}:{self.line} {self.operator}: {brief(self.before)} -> {brief(self.after)}"


def brief(text: str, most: int = 60) -> str:
    """One line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def all_mutants(root: Path = ROOT) -> list[Mutant]:
    """Every mistake that the operators can make in what privacy rests on."""
    found: list[Mutant] = []
    for room in ROOMS:
        place = root / "src" / "evertally" / room
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
            found += mutants_of(path.read_text(encoding="utf-8"), path.relative_to(root / "src").as_posix(), room)
    return found


def mutants_of(source: str, file: str, room: str) -> list[Mutant]:
    """Every mistake in one file."""
    around = surroundings(source, ordered=room == "runtime/state")
    numbers: dict[tuple[str, str], int] = {}
    found = []
    for function, edit in _edits_of(ast.parse(source), around):
        before = source[slice(*edit.place)]
        if before == edit.after:
            continue
        number = numbers[function, edit.operator] = numbers.get((function, edit.operator), 0) + 1
        name = hashlib.sha256(f"{file} {function} {edit.operator} {number}".encode()).hexdigest()[:10]
        line = source.count("\n", 0, edit.place[0]) + 1
        found.append(Mutant(name, room, file, line, function, edit.operator, before, edit.after, edit.place))
    return found


def _edits_of(tree: ast.Module, around: Surroundings) -> Iterator[tuple[str, Edit]]:
    def visit(node: ast.AST, function: str) -> Iterator[tuple[str, Edit]]:
        if _not_private(node):
            return
        inside = function
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            inside = f"{function}.{node.name}".lstrip(".")
        for edit in edits(node, around):
            yield inside, edit
        for child in _children(node):
            yield from visit(child, inside)

    yield from visit(tree, "")


def _not_private(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name in _SHOWN or _is_abstract(node)
    if isinstance(node, ast.ClassDef):
        return any("Protocol" in ast.dump(base) for base in node.bases)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return True
    if isinstance(node, ast.Assign) and any(getattr(t, "id", "") in ("__all__", "__slots__") for t in node.targets):
        return True
    return isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert)


def _is_abstract(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    last = function.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """What runs: no annotation, no decorator, no message of a warning."""
    skipped: list[ast.AST | None] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        everything = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        skipped = [node.returns, *node.decorator_list, *everything, node.args.vararg, node.args.kwarg]
    elif isinstance(node, ast.ClassDef):
        skipped = [*node.decorator_list, *node.bases]
    elif isinstance(node, ast.AnnAssign):
        skipped = [node.annotation]
    elif isinstance(node, ast.Call) and "warn" in ast.dump(node.func):
        return
    for child in ast.iter_child_nodes(node):
        if child not in skipped and not isinstance(child, ast.arg):
            yield child


def sample(mutants: list[Mutant], size: int = SAMPLE) -> list[Mutant]:
    """A fixed sample: rooms take turns, and in a room mistakes do; which is first of a kind follows from its name."""
    rooms = {room: _turns([m for m in mutants if m.room == room]) for room in ROOMS}
    # Large rooms have more turns, though not as many more as they have lines.
    places = sorted(
        ((place + 1) / len(queue) ** 0.5, ROOMS.index(room), mutant.id)
        for room, queue in rooms.items()
        for place, mutant in enumerate(queue)
    )
    known = {mutant.id: mutant for mutant in mutants}
    return [known[name] for *_, name in places[:size]]


def _turns(mutants: list[Mutant]) -> list[Mutant]:
    queues: dict[str, list[Mutant]] = {}
    for mutant in sorted(mutants, key=lambda m: hashlib.sha256(f"{_SEED} {m.id}".encode()).digest()):
        queues.setdefault(mutant.operator, []).append(mutant)
    depth = max(map(len, queues.values()), default=0)
    return [queues[name][i] for i in range(depth) for name in sorted(queues) if i < len(queues[name])]
