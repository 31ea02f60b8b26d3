"""CG203, in the region: a captured copy from or into pinned memory that nothing holds once the capture is over.

The graph keeps the address. What is found is a temporary (``x.pin_memory()`` as an argument, the result of
``x.to("cpu", non_blocking=True)`` that nobody takes), or a local name of a captured function that ends with it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from capturelint.findings import Around
from capturelint.lifecycle import around
from capturelint.model import Confidence
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Support
from capturelint.project.syntax import last_name, store_targets
from capturelint.reach import Reach
from capturelint.values.devices import PINNED_COPY
from capturelint.values.facts import Context, NodeSpan, span_of

#: methods that give a view of the same memory
_VIEWS = frozenset(("view", "reshape", "narrow", "flatten", "squeeze", "unsqueeze", "t", "transpose", "detach"))
#: and those that change that memory too
_PASSED_ON = _VIEWS | {"copy_", "fill_", "zero_"}


def find(reaches: list[Reach]) -> Iterator[Around]:
    found: dict[tuple[str, NodeSpan], Around] = {}
    for reach in reaches:
        for context in reach.steps:
            if context.compiled:
                continue
            for span, fact in context.calls.items():
                for effect in fact.effects:
                    if effect.kind == PINNED_COPY and (context.module.display, span) not in found:
                        about = _copy(reach, context, span, effect.detail, effect.confidence)
                        if about is not None:
                            found[context.module.display, span] = about
    yield from found.values()


def _copy(reach: Reach, context: Context, span: NodeSpan, which: str, sure: Confidence) -> Around | None:
    code = _Code(reach, context)
    call = code.call_at(span)
    memory = pinned_operand(call, which) if call is not None else None
    if call is None or memory is None or not code.dies(memory):
        return None
    text = context.module.segment(memory, 48)
    if which == "result":
        message = (
            f"`{context.module.segment(call, 48)}` is captured into pinned memory that nothing holds afterwards: "
            "every replay writes there"
        )
        help = "copy into a pinned buffer that is made before capture and kept: `self.host.copy_(x, non_blocking=True)`"
    else:
        verb = "reads" if which == "source" else "writes"
        message = f"`{text}` is pinned memory that nothing holds after the capture; every replay {verb} there"
        help = "make the pinned buffer before capture and keep it as long as the graph"
    sure = min(sure, Confidence.LIKELY, reach.steps[context].confidence, context.cap_at(span[0]))
    hazard = Hazard(
        "CG203",
        around.characters_of(context.module, span),
        message,
        "the graph keeps the address",
        Support(sure, ()),
        help=help,
    )
    return Around(context.module, context.name, hazard, (reach,), (context,))


def copies_in(context: Context) -> Iterator[tuple[ast.Call, str]]:
    """The captured copies of pinned memory in a context, each with which operand that memory is."""
    found = {
        span: effect.detail
        for span, fact in context.calls.items()
        for effect in fact.effects
        if effect.kind == PINNED_COPY
    }
    for node in ast.walk(context.node) if found else ():
        if isinstance(node, ast.Call) and span_of(node) in found:
            yield node, found[span_of(node)]


def pinned_operand(call: ast.Call, which: str) -> ast.expr | None:
    if which == "result":
        return call
    if not isinstance(call.func, ast.Attribute):
        return None
    if which == "source" and call.func.attr == "copy_":
        given = [keyword.value for keyword in call.keywords if keyword.arg == "src"]
        return call.args[0] if call.args else (given[0] if given else None)
    return call.func.value


class _Code:
    """The captured code of one context, and what becomes of the objects that it makes."""

    def __init__(self, reach: Reach, context: Context) -> None:
        declaration = reach.entered.declaration
        self._module = context.module
        self._block = context is reach.entered.context and declaration.body is not None
        holder = declaration.holder
        self._body: list[ast.AST] = (
            list(declaration.body or ())
            if self._block
            else [context.function.node if context.function else context.node]
        )
        #: where names of a block live on: the function that holds it
        self._around: ast.AST | None = holder.node if self._block and holder is not None else None
        self._lives_on = self._block and (holder is None or around.replays(holder))
        self._parents: dict[int, ast.AST] = {}
        for root in self._body:
            for node in ast.walk(root):
                for child in ast.iter_child_nodes(node):
                    self._parents[id(child)] = node

    def call_at(self, span: NodeSpan) -> ast.Call | None:
        for root in self._body:
            for node in ast.walk(root):
                if isinstance(node, ast.Call) and span_of(node) == span:
                    return node
        return None

    def dies(self, node: ast.expr) -> bool:
        """Whether the memory of an expression is made here, and held by nothing that lasts."""
        made = base(node)
        if isinstance(made, ast.Name):
            return self._made_here(made.id) and not self._name_escapes(made.id)
        if not allocates(made):
            return False
        return not self._is_kept(made)

    def _made_here(self, name: str) -> bool:
        """Every binding of a local name makes new pinned memory."""
        found = [
            value
            for root in self._body
            for statement in ast.walk(root)
            for target in store_targets(statement)
            if isinstance(target, ast.Name) and target.id == name
            for value in [getattr(statement, "value", None)]
        ]
        return bool(found) and all(isinstance(value, ast.expr) and allocates(base(value)) for value in found)

    def _is_kept(self, node: ast.AST) -> bool:
        """Whether an object goes on from where it is made: bound, returned, put into a container or passed on."""
        parent = self._parents.get(id(node))
        if parent is None or isinstance(parent, ast.Expr):
            return False
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            targets = store_targets(parent) if not isinstance(parent, ast.NamedExpr) else [parent.target]
            return any(not isinstance(each, ast.Name) or self._name_escapes(each.id) for each in targets)
        if isinstance(parent, ast.Attribute):
            call = self._parents.get(id(parent))
            if isinstance(call, ast.Call) and call.func is parent:
                gives_it = parent.attr in _PASSED_ON
                return gives_it and self._is_kept(call)
            return False
        if isinstance(parent, ast.Subscript):
            return self._is_kept(parent)
        if isinstance(parent, ast.Call):
            return not _is_copy(parent)
        return not isinstance(parent, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.FormattedValue))

    def _name_escapes(self, name: str) -> bool:
        if self._lives_on:
            return True
        roots = [*self._body, *([self._around] if self._around is not None else [])]
        for root in roots:
            for node in ast.walk(root):
                if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
                    return True
                if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                    if self._goes_on(node, root):
                        return True
        return False

    def _goes_on(self, node: ast.Name, root: ast.AST) -> bool:
        parents = self._parents
        if root is self._around:
            parents = {id(child): each for each in ast.walk(root) for child in ast.iter_child_nodes(each)}
        current: ast.AST = node
        while (parent := parents.get(id(current))) is not None:
            if isinstance(parent, (ast.Return, ast.Yield, ast.Lambda, ast.FunctionDef)) and parent is not root:
                return True
            if isinstance(parent, (ast.Assign, ast.AnnAssign)):
                return True  # under another name: not followed
            if isinstance(parent, ast.Attribute):
                call = parents.get(id(parent))
                if not isinstance(call, ast.Call) or parent.attr not in _PASSED_ON:
                    return False
                current = call
                continue
            if isinstance(parent, ast.Call):
                return not _is_copy(parent) and current is not parent.func
            if isinstance(parent, ast.Expr):
                return False
            current = parent
        return False


def base(node: ast.expr) -> ast.expr:
    """What a view is a view of."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        else:
            return node


def allocates(node: ast.expr) -> bool:
    """``x.pin_memory()``, ``torch.empty(..., pin_memory=True)``, ``x.to("cpu", non_blocking=True)``."""
    if not isinstance(node, ast.Call):
        return False
    names = {keyword.arg for keyword in node.keywords}
    return last_name(node.func) == "pin_memory" or "pin_memory" in names or "non_blocking" in names


def _is_copy(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "copy_"
