"""What can go wrong in one place of a program, as replacements of pieces of its source text.

Nothing is printed anew from a syntax tree: a mutant differs from the product in the characters of one place, and its
line is the line that a reader finds.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Place = tuple[int, int]  # offsets in the source, from and to


@dataclass(frozen=True)
class Edit:
    """One wrong change: the name of the mistake, where, and what stands there instead."""

    operator: str
    place: Place
    after: str


@dataclass(frozen=True)
class Surroundings:
    """What an operator may ask about the file that it looks at."""

    source: str
    starts: tuple[int, ...]  # offset of each line
    lanes: tuple[str, ...]  # names that noise is drawn under, in this file
    ordered: bool  # whether neighbouring statements may be swapped: where the order of commits matters

    def place(self, node: ast.AST) -> Place:
        """Offsets of a node; `ast` counts columns in bytes."""
        first, last = self.starts[node.lineno - 1], self.starts[node.end_lineno - 1]  # type: ignore[attr-defined]
        return first + self._column(node.lineno, node.col_offset), last + self._column(  # type: ignore[attr-defined]
            node.end_lineno,  # type: ignore[attr-defined]
            node.end_col_offset,  # type: ignore[attr-defined]
        )

    def text(self, node: ast.AST) -> str:
        first, last = self.place(node)
        return self.source[first:last]

    def _column(self, line: int, in_bytes: int) -> int:
        start = self.starts[line - 1]
        end = self.source.find("\n", start)
        return len(self.source[start : end if end >= 0 else None].encode()[:in_bytes].decode())


Found = Iterator[Edit]
Operator = Callable[[ast.AST, Surroundings], Found]
OPERATORS: list[Operator] = []


def operator(function: Operator) -> Operator:
    OPERATORS.append(function)
    return function


_FLIPPED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", ">="),
    ast.NotEq: ("!=", "<"),
}
_SWAPPED = {
    "REPLACE": "ADD_REMOVE",
    "ADD_REMOVE": "REPLACE",
    "l1": "l2_squared",
    "l2_squared": "l1",
    "l1_change": "l2_change",
    "l2_change": "l1_change",
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "ceil": "floor",
    "floor": "ceil",
    "lower": "upper",
    "upper": "lower",
    "all": "any",
    "any": "all",
}
_CAPS = re.compile(r"cap|clip|cut|bound|clamp|limit|trunc|keep|kept|admit|merge")
_UP = {"ceil": "floor", "floor": "ceil", "up": "down", "down": "up", "above": "below", "below": "above"}


@operator
def constant(node: ast.AST, around: Surroundings) -> Found:
    """Numbers: twice, one more, half."""
    if not isinstance(node, ast.Constant) or type(node.value) not in (int, float):
        return
    value, place = node.value, around.place(node)
    if value not in (0, 1):
        yield Edit("constant doubled", place, f"({around.text(node)} * 2)")
    yield Edit("constant plus one", place, f"({around.text(node)} + 1)")
    if type(value) is float and value:
        yield Edit("constant halved", place, f"({around.text(node)} / 2)")
    elif type(value) is int and value > 1:
        yield Edit("constant halved", place, str(value // 2))
    elif value == 1:
        yield Edit("constant minus one", place, "0")


@operator
def dropped_factor(node: ast.AST, around: Surroundings) -> Found:
    """Of a product, a quotient, a power only one side is left; of a sum with a number only the rest."""
    if not isinstance(node, ast.BinOp):
        return
    left, right, place = around.text(node.left), around.text(node.right), around.place(node)
    if isinstance(node.op, ast.Mult):
        yield Edit("factor dropped", place, f"({left})")
        yield Edit("factor dropped", place, f"({right})")
    elif isinstance(node.op, ast.Div | ast.FloorDiv):
        yield Edit("divisor dropped", place, f"({left})")
    elif isinstance(node.op, ast.Pow):
        yield Edit("power dropped", place, f"({left})")
    elif isinstance(node.op, ast.Add | ast.Sub):
        one = isinstance(node.right, ast.Constant) and node.right.value == 1
        sign = "-" if isinstance(node.op, ast.Add) else "+"
        if not _is_text(node.left) and not _is_text(node.right):
            yield Edit("off by one" if one else "term dropped", place, f"({left})")
            yield Edit("sign turned", place, f"({left} {sign} ({right}))")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


@operator
def comparison(node: ast.AST, around: Surroundings) -> Found:
    """The border of a comparison belongs to the other side."""
    if not isinstance(node, ast.Compare):
        return
    parts = [node.left, *node.comparators]
    for relation, before, behind in zip(node.ops, parts, parts[1:], strict=False):
        if type(relation) not in _FLIPPED or _is_text(behind) or _is_text(before):
            continue
        word, other = _FLIPPED[type(relation)]
        first, last = around.place(before)[1], around.place(behind)[0]
        between = around.source[first:last]
        yield Edit("comparison", (first, last), between.replace(word, other, 1))


@operator
def off_by_one(node: ast.AST, around: Surroundings) -> Found:
    """A range that ends one later, or begins one later; a slice that ends one earlier."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range" and node.args:
        end = node.args[0] if len(node.args) == 1 else node.args[1]
        yield Edit("off by one", around.place(end), f"{around.text(end)} + 1")
        yield Edit("off by one", around.place(end), f"{around.text(end)} - 1")
        if len(node.args) > 1:
            yield Edit("off by one", around.place(node.args[0]), f"{around.text(node.args[0])} + 1")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "bit_length":
        yield Edit("off by one", around.place(node), f"({around.text(node)} - 1)")
    if isinstance(node, ast.Slice) and node.upper is not None and not isinstance(node.upper, ast.Constant):
        yield Edit("off by one", around.place(node.upper), f"({around.text(node.upper)}) - 1")


@operator
def swapped_name(node: ast.AST, around: Surroundings) -> Found:
    """The other relation, norm, bound or direction of rounding."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return
    _first, last = around.place(node) if name else (0, 0)
    if name in _SWAPPED:
        kind = "relation" if name.isupper() else "norm" if name[0] == "l" and name[1:2].isdigit() else "name"
        yield Edit(f"swapped {kind}", (last - len(name), last), _SWAPPED[name])
    words = name.split("_")
    turned = [_UP.get(word, word) for word in words]
    if name not in _SWAPPED and len(words) > 1 and turned != words and "_".join(turned) in around.source:
        yield Edit("rounding turned", (last - len(name), last), "_".join(turned))


@operator
def skipped_cap(node: ast.AST, around: Surroundings) -> Found:
    """What bounds its argument gives it back as it is."""
    if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Starred | ast.GeneratorExp):
        return
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in ("min", "max", "minimum", "maximum") and len(node.args) > 1:
        yield Edit("cap skipped", around.place(node), f"({around.text(node.args[0])})")
        yield Edit("cap skipped", around.place(node), f"({around.text(node.args[1])})")
    elif _CAPS.search(name.lower()):
        yield Edit("cap skipped", around.place(node), f"({around.text(node.args[0])})")
    if name in ("sqrt", "isqrt", "square", "abs", "absolute"):
        yield Edit("root or square dropped", around.place(node), f"({around.text(node.args[0])})")


@operator
def reused_lane(node: ast.AST, around: Surroundings) -> Found:
    """Noise drawn under a name that has been used."""
    if isinstance(node, ast.Constant) and node.value in around.lanes and isinstance(node.value, str):
        at = around.lanes.index(node.value)
        other = around.lanes[(at + 1) % len(around.lanes)]
        if other != node.value and around.text(node)[:1] in "\"'":
            yield Edit("lane reused", around.place(node), repr(other))


@operator
def condition(node: ast.AST, around: Surroundings) -> Found:
    """Conditions the other way round; `and` for `or`."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        if isinstance(node, ast.If) and _only_raises(node.body):
            yield Edit("check skipped", around.place(node.test), "False")
        elif not isinstance(node, ast.While):
            yield Edit("condition negated", around.place(node.test), f"(not ({around.text(node.test)}))")
    if isinstance(node, ast.BoolOp):
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for before, behind in zip(node.values, node.values[1:], strict=False):
            first, last = around.place(before)[1], around.place(behind)[0]
            between = around.source[first:last]
            if re.search(rf"\b{word}\b", between) and "#" not in between:
                yield Edit("and or", (first, last), re.sub(rf"\b{word}\b", other, between, count=1))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield Edit("condition negated", around.place(node), f"bool({around.text(node.operand)})")
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield Edit("condition negated", around.place(node), str(not node.value))


def _only_raises(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Raise)


@operator
def statements(node: ast.AST, around: Surroundings) -> Found:
    """A change of state is left out; where order matters, two neighbours change places."""
    for body in (getattr(node, part, None) for part in ("body", "orelse", "finalbody")):
        if not isinstance(body, list):
            continue
        for one in body:
            if _changes_state(one):
                yield Edit("statement skipped", around.place(one), "pass")
        if around.ordered and not isinstance(node, ast.Module | ast.ClassDef):
            for one, two in itertools.pairwise(body):
                if _changes_state(one) and _changes_state(two):
                    first, last = around.place(one), around.place(two)
                    between = around.source[first[1] : last[0]]
                    after = around.text(two) + between + around.text(one)
                    yield Edit("order of statements", (first[0], last[1]), after)


def _changes_state(one: ast.stmt) -> bool:
    """An assignment to part of an object, or a call whose answer nobody wants."""
    if isinstance(one, ast.Expr):
        return isinstance(one.value, ast.Call)
    if isinstance(one, ast.AugAssign):
        return True
    targets = one.targets if isinstance(one, ast.Assign) else []
    return any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)


def lanes_of(tree: ast.AST) -> tuple[str, ...]:
    """The names under which a file draws noise: the first argument of `draws` and of what is called like it."""
    found = []
    for node in ast.walk(tree):
        name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
        if name in ("draws", "lane", "source", "child") and isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.append(first.value)
    return tuple(dict.fromkeys(found))


def surroundings(source: str, *, ordered: bool = False) -> Surroundings:
    """A file, ready to be looked at."""
    starts, offset = [], 0
    for line in source.splitlines(keepends=True):
        starts.append(offset)
        offset += len(line)
    return Surroundings(source, tuple(starts), lanes_of(ast.parse(source)), ordered)


def edits(node: ast.AST, around: Surroundings) -> Iterator[Edit]:
    """All mistakes that can be made at this very node."""
    for one in OPERATORS:
        yield from one(node, around)
