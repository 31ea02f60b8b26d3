"""CG201: a constant that no fill can make is made once, in front of the block that a graph records."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import libcst as cst

from capturelint.fixes.code import code
from capturelint.fixes.place import Place, number
from capturelint.model import Applicability, Edit, Fix, Span

_HOIST = "make it once, before the capture"
_BLOCKS = (cst.FunctionDef, cst.Module)


def hoisted(place: Place, node: cst.Call) -> Fix | None:
    """``c = torch.tensor([...], device="cuda")`` moves from a ``with torch.cuda.graph(g):`` to the line above it.

    Sound where the block only reads ``c``, and where nobody replays the graph after ``c`` is gone: the block stands at
    module level, or its graph is a local name of the function that is handed to nobody.
    """
    assignment = place.parent(node)
    line = place.parent(assignment) if isinstance(assignment, cst.Assign) else None
    block = place.parent(line) if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    recording = place.parent(block) if isinstance(block, cst.IndentedBlock) else None
    if not isinstance(assignment, cst.Assign) or not isinstance(recording, cst.With) or line is None:
        return None
    name = assignment.targets[0].target if len(assignment.targets) == 1 else None
    if not isinstance(name, cst.Name) or not _is_literal(node.args[0].value) or len(recording.body.body) < 2:
        return None
    if not _lasts(place, recording) or not _only_read(place, recording, name.value, assignment):
        return None
    used = {each.value for argument in node.args[1:] for each in _all(argument.value, cst.Name)}
    here, above = place.facts.span(assignment), place.facts.span(recording)
    if used & _bound(place, recording) or here.line != here.end_line or not _is_same_anywhere(node.args[1:]):
        return None
    text = place.module.line_text(here.line).strip()
    indent = place.module.line_text(above.line)[: above.column - 1]
    edits = (
        Edit(Span(above.line, 1, above.line, 1), f"{indent}{text}\n"),
        Edit(Span(here.line, 1, here.line + 1, 1), ""),
    )
    return Fix(Applicability.SAFE, _HOIST, edits)


def _bound(place: Place, recording: cst.With) -> set[str]:
    """The names to which the block, or its header, gives another value or attribute."""
    span, found = place.facts.span(recording), set()
    for node in ast.walk(place.module.tree):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            target: ast.expr = node
            while isinstance(target, (ast.Attribute, ast.Subscript)):
                target = target.value
            if isinstance(target, ast.Name) and span.line <= node.lineno <= span.end_line:
                found.add(target.id)
    return found


def _is_same_anywhere(rest: Sequence[cst.Arg]) -> bool:
    """Whether a device is named, so that no context says which, and nothing is called to tell it."""
    named = any(each.keyword is not None and each.keyword.value == "device" for each in rest)
    calls = [call for each in rest for call in _all(each.value, cst.Call)]
    return named and all(code(call.func).rpartition(".")[2] == "device" for call in calls)


def _is_literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, (cst.List, cst.Tuple)):
        return all(isinstance(each, cst.Element) and _is_literal(each.value) for each in node.elements)
    return number(node) is not None


def _lasts(place: Place, recording: cst.With) -> bool:
    """Whether the block is what a graph records, and no replay comes after its function has ended."""
    line = place.facts.span(recording).line
    regions = place.hazard.support.contexts
    call = next((each.item for each in recording.items if isinstance(each.item, cst.Call)), None)
    if call is None or not call.args or any(each.is_call or each.node.lineno != line for each in regions):  # type: ignore[attr-defined]
        return False
    graph = call.args[0].value
    holder = place.around(recording, *_BLOCKS)
    if not isinstance(graph, cst.Name) or not isinstance(holder, cst.FunctionDef):
        return isinstance(holder, cst.Module) and isinstance(graph, cst.Name) and place.parent(recording) is holder
    if any(True for _ in _all(holder.body, cst.FunctionDef)) or any(True for _ in _all(holder.body, cst.Lambda)):
        return False  # a closure may replay it
    bound = any(code(each.target) == graph.value for each in _all(holder, cst.AssignTarget))
    return bound and all(_stays(place, each, call) for each in _all(holder, cst.Name) if each.value == graph.value)


def _stays(place: Place, name: cst.Name, capture: cst.Call) -> bool:
    """Whether a use of a local graph hands it to nobody: it is bound, recorded into, or has a method called."""
    parent = place.parent(name)
    if isinstance(parent, cst.Arg):
        return place.parent(parent) is capture
    return isinstance(parent, (cst.AssignTarget, cst.Attribute))


def _only_read(place: Place, recording: cst.With, name: str, assignment: cst.Assign) -> bool:
    """Whether nothing is done with ``name`` but computing with it."""
    holder = place.around(recording, *_BLOCKS) or recording
    if isinstance(holder, cst.Module) and len(_words(place.module.source, name)) > len(_words(place.unit_text, name)):
        return False  # other statements of the module deal with it
    for each in _all(holder, cst.Name):
        if each.value != name or place.parent(each) is assignment.targets[0]:
            continue
        parent = place.parent(each)
        if isinstance(parent, cst.Attribute) and parent.attr is each:
            continue
        if isinstance(parent, cst.Attribute):
            call = place.parent(parent)
            if not isinstance(call, cst.Call) or not _gives_another(place, call):
                return False
        elif isinstance(parent, cst.Arg):
            call = place.parent(parent)
            if not isinstance(call, cst.Call) or not _gives_another(place, call) or parent.keyword is not None:
                return False
        elif not isinstance(parent, (cst.BinaryOperation, cst.Comparison)):
            return False
    return True


def _gives_another(place: Place, call: cst.Call) -> bool:
    """Whether a call gives a tensor of its own: what is done to a view is done to the constant."""
    spec = place.computes(call)
    return spec is not None and not spec.view


def _words(text: str, name: str) -> list[str]:
    return re.findall(rf"\b{name}\b", text)


_N = TypeVar("_N", bound=cst.CSTNode)


def _all(node: cst.CSTNode, *kinds: type[_N]) -> Iterator[_N]:
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, kinds):
            yield current
        stack.extend(current.children)
