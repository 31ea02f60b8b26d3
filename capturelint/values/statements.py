"""Executing a region's statements in order: bindings, branches, loops, guards."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from capturelint.model import Confidence
from capturelint.project.module import imported_names
from capturelint.values import dunder, host_writes, memo, narrowing
from capturelint.values.change import either
from capturelint.values.domain import (
    MISSING,
    ClassValue,
    Function,
    Host,
    Instance,
    Mapping,
    Sequence,
    Tensor,
    Unknown,
    Value,
    changing_reason,
    device_confidence,
    element_of,
    join,
    options,
)
from capturelint.values.elsewhere import branch_is_elsewhere, rest_is_elsewhere
from capturelint.values.expressions import evaluate, evaluate_defaults, flag, items_of, truth
from capturelint.values.facts import StoreFact, span_of
from capturelint.values.frame import Frame
from capturelint.values.scope import Scope, join_names

_MAX_LOOP_ROUNDS = 2


def execute(body: list[ast.stmt], frame: Frame) -> None:
    """Runs statements until one of them leaves."""
    scope, sure = _scope(frame), frame.sure
    for index, statement in enumerate(body):
        if scope.names is None:
            break
        before = _copy(scope.names) if isinstance(statement, ast.If) and _leaves(statement) else None
        handler = _HANDLERS.get(type(statement))
        frame.following = body[index + 1 :] if before is not None else []
        if handler is not None:
            handler(statement, frame)
        if isinstance(statement, ast.If) and before is not None:
            rest = body[index + 1 :]
            why = memo.RAN_BEFORE if memo.rest_runs_once(statement, rest, frame) else None
            why = why or rest_is_elsewhere(statement, rest, before, frame)
            if why is not None:
                _doubt(rest, frame, why)
    frame.sure = sure


def _leaves(node: ast.If) -> bool:
    """``if ...: return``: what follows is the other side."""
    return not node.orelse and isinstance(node.body[-1], (ast.Return, ast.Continue))


def _doubt(body: list[ast.stmt], frame: Frame, why: str) -> None:
    """From here it is only possible that code runs at capture."""
    frame.sure = frame.sure.at_most(Confidence.POSSIBLE, why)
    if frame.context is not None and body:
        frame.context.doubtful.setdefault((body[0].lineno, body[-1].end_lineno or body[-1].lineno), why)


def _scope(frame: Frame) -> Scope:
    assert isinstance(frame.scope, Scope)
    return frame.scope


def _copy(names: dict[str, Value] | None) -> dict[str, Value] | None:
    return dict(names) if names is not None else None


def _expression(node: ast.Expr, frame: Frame) -> None:
    evaluate(node.value, frame)


def _assign(node: ast.Assign, frame: Frame) -> None:
    sure = frame.sure
    if memo.ternary(node):
        _doubt([node], frame, memo.RAN_BEFORE)
    value = evaluate(node.value, frame)
    frame.sure = sure
    for target in node.targets:
        store(target, value, node, frame)
        host_writes.note_assigned(target, value, node, frame)


def _annotated(node: ast.AnnAssign, frame: Frame) -> None:
    if node.value is not None:
        store(node.target, evaluate(node.value, frame), node, frame)


def store(target: ast.expr, value: Value, statement: ast.stmt, frame: Frame) -> None:
    """Binds a target to a value: a name, an attribute, an item, or the parts of a tuple."""
    if isinstance(target, ast.Name):
        _store_outer(target, value, frame)
        narrowing.bind_target(target, value, frame)
    elif isinstance(target, ast.Attribute):
        _store_attribute(target, value, frame, augmented=False)
    elif isinstance(target, ast.Subscript):
        from capturelint.values.indexing import write_item

        write_item(target, value, frame, augmented=False)
        _store_item(target, value, frame)
    elif isinstance(target, (ast.Tuple, ast.List)):
        from capturelint.values.engine import item_at

        if isinstance(value, Tensor) and value.on_device:
            frame.candidate(target)
        starred = any(isinstance(part, ast.Starred) for part in target.elts)
        for index, part in enumerate(target.elts):
            if isinstance(part, ast.Starred):
                store(part.value, element_of(value), statement, frame)
            else:
                store(part, element_of(value) if starred else item_at(value, index), statement, frame)


def _store_outer(target: ast.Name, value: Value, frame: Frame) -> None:
    """A name declared ``global`` or ``nonlocal`` outlives the call, as an attribute does."""
    scope = _scope(frame)
    if frame.context is not None and target.id in scope.global_names | scope.outer_names:
        frame.context.stores[span_of(target)] = StoreFact(Unknown(), target.id, value, outer=True)
        frame.candidate(target)


def _store_item(target: ast.Subscript, value: Value, frame: Frame) -> None:
    """An item of a container that an object holds: ``self.state["h"] = ...``."""
    if frame.context is None or not isinstance(target.value, ast.Attribute):
        return
    container = frame.context.values.get(span_of(target.value))
    if any(isinstance(option, (Mapping, Sequence)) for option in options(container)):
        owner = frame.context.values.get(span_of(target.value.value), Unknown())
        frame.context.stores[span_of(target)] = StoreFact(owner, target.value.attr, value, item=True)
        frame.candidate(target)


def _store_attribute(target: ast.Attribute, value: Value, frame: Frame, *, augmented: bool) -> None:
    owner = evaluate(target.value, frame)
    if frame.context is not None:
        read = any(
            isinstance(each, Instance) and (each.site, target.attr) in frame.context.attributes_read
            for each in options(owner)
        )
        span = span_of(target)
        frame.context.stores[span] = StoreFact(owner, target.attr, value, augmented, read)
        frame.context.candidates.add(span)
    key = narrowing.key_of(target)
    names = _scope(frame).names
    if key is not None and names is not None:
        for known in [known for known in names if known.startswith(key + ".")]:
            del names[known]
        names[key] = value


def _augmented(node: ast.AugAssign, frame: Frame) -> None:
    from capturelint.values.tensor_math import arithmetic

    value = evaluate(node.value, frame)
    if changing_reason(value) is not None:
        frame.candidate(node)
    if isinstance(node.target, ast.Subscript):
        from capturelint.values.indexing import write_item

        write_item(node.target, value, frame, augmented=True)
        host_writes.note_augmented(node, _held(node.target, frame), value, frame)
        return
    load: ast.expr = ast.copy_location(_as_load(node.target), node.target)
    before = evaluate(load, frame)
    host_writes.note_augmented(node, before, value, frame)
    rebinds = isinstance(node.op, ast.MatMult)  # tensors have no in-place `@=`
    own = dunder.in_place(node.op, before, value, node.target, frame)
    if own is None:
        own = dunder.binary(node.op, before, value, node.target, frame)
    result = before if _in_place(before) and not rebinds else own or arithmetic(node.op, before, value)
    if isinstance(result, Host):
        result = replace(
            result, changing=either(result.changing, either(changing_reason(before), changing_reason(value)))
        )
    if isinstance(node.target, ast.Name):
        narrowing.bind_target(node.target, result, frame)
    elif isinstance(node.target, ast.Attribute):
        _store_attribute(node.target, result, frame, augmented=True)


def _held(target: ast.Subscript, frame: Frame) -> Value:
    """What the item held that is advanced."""
    held = frame.context.values.get(span_of(target.value)) if frame.context is not None else None
    found: list[Value] = []
    for option in options(held):
        if isinstance(option, Mapping):
            found.extend((*(item for _, item in option.items), *([option.element] if option.element else ())))
        elif isinstance(option, (Sequence, Tensor)):
            found.append(element_of(option))
    return join(*found)


def _in_place(value: Value) -> bool:
    return any(isinstance(option, Tensor) for option in options(value))


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(id=target.id, ctx=ast.Load())
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(value=target.value, attr=target.attr, ctx=ast.Load())


def _if(node: ast.If, frame: Frame) -> None:
    scope = _scope(frame)
    following, frame.following = frame.following, []
    known = truth(node.test, frame)
    before = scope.names
    ends: list[dict[str, Value] | None] = []
    for side, body in ((True, node.body), (False, node.orelse)):
        if known is not None and known is not side:
            continue
        scope.names = _copy(before)
        other = (node.orelse or following) if side else node.body
        why = branch_is_elsewhere(node.test, side, frame, body, other) if known is None else None
        narrowing.assume(node.test, side, frame)
        sure = frame.sure
        # a name that was just set is known for that reason: it says nothing of other runs
        just_set = known is not None and not memo.unset(node.test, side).isdisjoint(before or ())
        if not just_set and memo.runs_once(node, side, body, frame):
            why = memo.RAN_BEFORE
        if why is not None:
            _doubt(body, frame, why)
        execute(body, frame)
        frame.sure = sure
        ends.append(scope.names)
    scope.names = ends[0] if len(ends) == 1 else join_names(ends[0], ends[1])


def _for(node: ast.For | ast.AsyncFor, frame: Frame) -> None:
    source = evaluate(node.iter, frame)
    if device_confidence(source) is not None:
        frame.candidate(node.iter)
    if frame.context is not None:
        frame.context.note_undecided(node.iter, source)
    item = items_of(source, node.iter, frame)
    _loop(node.body, frame, lambda: store(node.target, item, node, frame))
    execute(node.orelse, frame)


def _while(node: ast.While, frame: Frame) -> None:
    forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
    known = truth(node.test, frame)
    if known is False:
        execute(node.orelse, frame)
        return
    _loop(node.body, frame, lambda: evaluate(node.test, frame), endless=forever)
    execute(node.orelse, frame)


def _loop(body: list[ast.stmt], frame: Frame, begin: Callable[[], object], *, endless: bool = False) -> None:
    """Runs a loop's body until its bindings settle; what holds after it is any number of rounds."""
    scope = _scope(frame)
    outer_breaks, outer_continues = frame.breaks, frame.continues
    frame.breaks, frame.continues = [], []
    after = _copy(scope.names)
    for _ in range(_MAX_LOOP_ROUNDS):
        scope.names = _copy(after)
        if scope.names is None:
            break
        begin()
        execute(body, frame)
        end: dict[str, Value] | None = scope.names
        for left in frame.continues:
            end = join_names(end, left)
        frame.continues = []
        joined = join_names(_copy(after), end)
        if joined == after:
            break
        after = joined
    if endless:
        after = None
    for left in frame.breaks:
        after = join_names(after, left)
    frame.breaks, frame.continues = outer_breaks, outer_continues
    scope.names = after


def _break(node: ast.Break, frame: Frame) -> None:
    frame.breaks.append(_scope(frame).names)
    _scope(frame).names = None


def _continue(node: ast.Continue, frame: Frame) -> None:
    frame.continues.append(_scope(frame).names)
    _scope(frame).names = None


def _return(node: ast.Return, frame: Frame) -> None:
    from capturelint.values.domain import NONE

    value = evaluate(node.value, frame) if node.value is not None else NONE
    asked = flag(node.value, value, frame) if node.value is not None else None
    frame.returns.append(value if asked is None else Host(const=asked, kind="bool"))
    _scope(frame).names = None


def _raise(node: ast.Raise, frame: Frame) -> None:
    # what is raised is built on the way out of the region: formatting a tensor there matters only once it is broken
    _scope(frame).names = None


def _assert(node: ast.Assert, frame: Frame) -> None:
    known = truth(node.test, frame)
    if known is False:
        _scope(frame).names = None
        return
    narrowing.assume(node.test, True, frame)


def _try(node: ast.Try, frame: Frame) -> None:
    scope = _scope(frame)
    before, returned = _copy(scope.names), len(frame.returns)
    execute(node.body, frame)
    after_body = scope.names
    answers = frame.returns[returned:]
    if after_body is None and answers and all(isinstance(each, Host) and each.truth is not None for each in answers):
        scope.names = None  # a predicate that is known; its handlers are for machines that cannot tell
        return
    at_handler = join_names(before, _copy(after_body))
    execute(node.orelse, frame)
    end = scope.names
    for handler in node.handlers:
        scope.names = _copy(at_handler)
        if handler.name and scope.names is not None:
            scope.bind(handler.name, Unknown())
        sure = frame.sure
        if memo.after_missing(handler, frame):
            _doubt(handler.body, frame, memo.RAN_BEFORE)
        execute(handler.body, frame)
        frame.sure = sure
        end = join_names(end, scope.names)
    scope.names = end if end is not None or not node.finalbody else _copy(before)
    execute(node.finalbody, frame)
    if end is None:
        scope.names = None


def _with(node: ast.With | ast.AsyncWith, frame: Frame) -> None:
    from capturelint.values.contexts import enter_all

    leave = enter_all(node, frame)
    if leave is None:
        return
    execute(node.body, frame)
    leave()


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
    from capturelint.values.decorators import decorated

    info = frame.module.function(node)
    evaluate_defaults(node.args, frame)
    frame.scope.bind(node.name, decorated(Function(info, frame.scope), frame))


def _class(node: ast.ClassDef, frame: Frame) -> None:
    frame.scope.bind(node.name, ClassValue(frame.module.classes[id(node)]))


def _import(node: ast.Import | ast.ImportFrom, frame: Frame) -> None:
    for name, imported in imported_names(node):
        if name != "*":
            frame.scope.bind(name, frame.engine.resolve(imported, frame.module))


def _global(node: ast.Global, frame: Frame) -> None:
    _scope(frame).global_names.update(node.names)


def _nonlocal(node: ast.Nonlocal, frame: Frame) -> None:
    _scope(frame).outer_names.update(node.names)


def _delete(node: ast.Delete, frame: Frame) -> None:
    names = _scope(frame).names
    for target in node.targets:
        if isinstance(target, ast.Name) and names is not None:
            names.pop(target.id, None)


def _match(node: ast.Match, frame: Frame) -> None:
    scope = _scope(frame)
    subject = evaluate(node.subject, frame)
    if device_confidence(subject) is not None:
        frame.candidate(node.subject)
    if frame.context is not None:
        frame.context.note_undecided(node.subject, subject)
    before, end = scope.names, None
    exhaustive = False
    for case in node.cases:
        meets = _meets(subject, case)
        if exhaustive or meets is False:
            continue
        scope.names = _copy(before)
        for pattern in ast.walk(case.pattern):
            captured = getattr(pattern, "name", None)
            if isinstance(captured, str):
                whole = isinstance(pattern, ast.MatchAs) and pattern is case.pattern
                scope.bind(captured, subject if whole else element_of(subject))
        if case.guard is not None:
            truth(case.guard, frame)
        elif meets or (isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None):
            exhaustive = True
        execute(case.body, frame)
        end = join_names(end, scope.names)
    scope.names = end if exhaustive else join_names(end, before)


def _meets(subject: Value, case: ast.match_case) -> bool | None:
    """Whether a known subject matches a case of one constant, without a guard; None where that is open."""
    pattern = case.pattern
    if not isinstance(subject, Host) or subject.const is MISSING:
        return None
    if isinstance(pattern, ast.MatchSingleton):
        same = subject.const is pattern.value
    elif isinstance(pattern, ast.MatchValue) and isinstance(pattern.value, ast.Constant):
        same = subject.const == pattern.value.value
    else:
        return None
    return None if same and case.guard is not None else same


_HANDLERS: dict[type[ast.stmt], Callable[[Any, Frame], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Try: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Delete: _delete,
    ast.Match: _match,
}
if hasattr(ast, "TryStar"):
    _HANDLERS[ast.TryStar] = _try
