"""Who calls and binds what in one module, by name: one walk that answers all reverse questions about it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import ATTRIBUTES, CHILDLESS, children, last_name, store_targets

_STORING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith)


@dataclass(eq=False, repr=False, slots=True)
class Uses:
    """Each entry comes with the innermost function that holds it, None at module level.

    ``calls``: by the callee's last identifier. ``attribute_stores``: statements that bind ``something.name``, with the
    something. ``attribute_items``: ``something.name[key] = value``. ``item_stores``: ``NAME[key] = value`` inside
    functions. ``globals``: functions that declare ``global NAME``. ``withs``: every ``with`` statement. ``assigned``:
    names by the identity of the call whose result they get.
    """

    calls: dict[str, list[tuple[FunctionInfo | None, ast.Call]]] = field(default_factory=dict)
    attribute_stores: dict[str, list[tuple[FunctionInfo | None, ast.AST, ast.expr]]] = field(default_factory=dict)
    attribute_items: dict[str, list[tuple[FunctionInfo | None, ast.AST, ast.Subscript]]] = field(default_factory=dict)
    item_stores: dict[str, list[tuple[FunctionInfo, ast.AST]]] = field(default_factory=dict)
    globals: dict[str, list[FunctionInfo]] = field(default_factory=dict)
    assigned: dict[int, tuple[str, ...]] = field(default_factory=dict)
    withs: list[tuple[FunctionInfo | None, ast.With | ast.AsyncWith]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        tables = (self.calls, self.attribute_stores, self.attribute_items, self.item_stores, self.globals, self.withs)
        return not any(tables)


class _Missing:
    """Stands in a walk where a body is put aside."""

    def __init__(self, function: FunctionInfo) -> None:
        self.function = function


def find_uses(
    roots: Sequence[ast.AST],
    holder: FunctionInfo | None,
    functions: dict[int, FunctionInfo],
    without: Collection[FunctionInfo] = (),
) -> list[Uses | FunctionInfo]:
    """What is said below some nodes that stand in ``holder``, but not in the bodies of the functions ``without``.

    These cut it in parts: each stands where its body would be.
    """
    uses = Uses()
    parts: list[Uses | FunctionInfo] = [uses]
    stack: list[tuple[ast.AST | _Missing, FunctionInfo | None]] = [(root, holder) for root in roots]
    _add_globals(uses, roots, holder)
    while stack:
        node, holder = stack.pop()
        if isinstance(node, _Missing):
            uses = Uses()
            parts += [node.function, uses]
            continue
        below: Sequence[ast.AST | _Missing] | None = None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            holder = functions.get(id(node), holder)
            if holder is not None and holder in without:
                below = _head_of(holder)
        elif isinstance(node, ast.Call):
            uses.calls.setdefault(last_name(node.func), []).append((holder, node))
        elif isinstance(node, _STORING):
            _add_stores(uses, node, holder)
        for child in below if below is not None else children(node):
            while child.__class__ in ATTRIBUTES:
                child = child.value
            if child.__class__ not in CHILDLESS:
                stack.append((child, holder))
            elif isinstance(child, ast.Global):
                _add_globals(uses, (child,), holder)
    return [each for each in parts if not (isinstance(each, Uses) and each.is_empty)]


def _head_of(function: FunctionInfo) -> list[ast.AST | _Missing]:
    node = function.head
    below: list[ast.AST | _Missing] = [node.args, _Missing(function), *function.decorators]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
        below.append(node.returns)
    return below


def _add_globals(uses: Uses, nodes: Iterable[ast.AST], holder: FunctionInfo | None) -> None:
    for node in nodes:
        if isinstance(node, ast.Global) and holder is not None:
            for name in node.names:
                uses.globals.setdefault(name, []).append(holder)


def _add_stores(uses: Uses, node: ast.AST, holder: FunctionInfo | None) -> None:
    _store(uses, node, holder)
    for made in _chosen(getattr(node, "value", None)):
        value: ast.AST | None = made
        names = tuple(filter(None, (last_name(target) for target in store_targets(node))))
        while isinstance(value, ast.Call):  # compile(Model().cuda()) gives its name to each call in it
            uses.assigned[id(value)] = names
            inner = value.func.value if isinstance(value.func, ast.Attribute) else None
            value = inner if isinstance(inner, ast.Call) else (value.args[0] if value.args else None)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        uses.withs.append((holder, node))


def _chosen(value: ast.AST | None) -> Iterator[ast.expr]:
    """The calls that a statement's value may be the result of: each side of a conditional expression."""
    if isinstance(value, ast.IfExp):
        yield from _chosen(value.body)
        yield from _chosen(value.orelse)
    elif isinstance(value, ast.Call):
        yield value


def _store(uses: Uses, node: ast.AST, holder: FunctionInfo | None) -> None:
    for target in store_targets(node):
        if isinstance(target, ast.Attribute):
            uses.attribute_stores.setdefault(target.attr, []).append((holder, node, target.value))
        elif isinstance(target, ast.Subscript):
            if isinstance(target.value, ast.Attribute):
                uses.attribute_items.setdefault(target.value.attr, []).append((holder, node, target))
            elif isinstance(target.value, ast.Name) and holder is not None:
                uses.item_stores.setdefault(target.value.id, []).append((holder, node))
