"""Executing a region's statements in order: bindings, branches, loops, guards."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from capturelint.project.bindings import imported_names
from capturelint.project.packed import by_class
from capturelint.values import assignments, memo, narrowing
from capturelint.values.assignments import executed_scope
from capturelint.values.domain import (
    MISSING,
    ClassValue,
    Function,
    Host,
    Unknown,
    Value,
    device_confidence,
    element_of,
)
from capturelint.values.elsewhere import branch_is_elsewhere, rest_is_elsewhere
from capturelint.values.expressions import evaluate, evaluate_defaults, flag, items_of, truth
from capturelint.values.frame import Frame
from capturelint.values.scope import join_names

_MAX_LOOP_ROUNDS = 2
#: statements that are run for one context, each round of a loop anew: twenty loops in each other would be a million;
#: and expressions in them that are evaluated
_BUDGET = 50_000
_EXPRESSIONS = 500_000


def execute(body: list[ast.stmt], frame: Frame) -> None:
    """Runs statements until one of them leaves."""
    scope, sure = executed_scope(frame), frame.sure
    for index, statement in enumerate(body):
        if scope.names is None or not _within_budget(statement, frame):
            break
        before = _copy(scope.names) if isinstance(statement, ast.If) and _leaves(statement) else None
        handler = _HANDLERS.get(statement.__class__)
        frame.following = body[index + 1 :] if before is not None else []
        if handler is not None:
            handler(statement, frame)
        if isinstance(statement, ast.If) and before is not None:
            rest = body[index + 1 :]
            why = memo.RAN_BEFORE if memo.rest_runs_once(statement, rest, frame) else None
            why = why or rest_is_elsewhere(statement, rest, before, frame)
            if why is not None:
                frame.doubt(rest, why)
    frame.sure = sure


def _within_budget(statement: ast.stmt, frame: Frame) -> bool:
    """Counts a statement; says of the one where the budget is spent that what follows is not looked at."""
    if frame.context is None:
        return True
    frame.context.work += 1
    if frame.context.work > _BUDGET or frame.context.evaluated > _EXPRESSIONS:
        frame.engine.unresolved(frame, statement, "too many ways to get here; what follows is not looked at")
        return False
    return True


def _leaves(node: ast.If) -> bool:
    """``if ...: return``: what follows is the other side."""
    return not node.orelse and isinstance(node.body[-1], (ast.Return, ast.Continue))


def _copy(names: dict[str, Value] | None) -> dict[str, Value] | None:
    return dict(names) if names is not None else None


def _expression(node: ast.Expr, frame: Frame) -> None:
    evaluate(node.value, frame)


def _if(node: ast.If, frame: Frame) -> None:
    scope = executed_scope(frame)
    following, frame.following = frame.following, []
    known = truth(node.test, frame)
    if frame.context is not None:
        frame.context.decide(node.test, known)
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
            frame.doubt(body, why)
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
    _loop(node.body, frame, lambda: assignments.store(node.target, item, node, frame))
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
    scope = executed_scope(frame)
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
    frame.breaks.append(executed_scope(frame).names)
    executed_scope(frame).names = None


def _continue(node: ast.Continue, frame: Frame) -> None:
    frame.continues.append(executed_scope(frame).names)
    executed_scope(frame).names = None


def _return(node: ast.Return, frame: Frame) -> None:
    from capturelint.values.domain import NONE

    value = evaluate(node.value, frame) if node.value is not None else NONE
    asked = flag(node.value, value, frame) if node.value is not None else None
    frame.returns.append(value if asked is None else Host(const=asked, kind="bool"))
    executed_scope(frame).names = None


def _raise(node: ast.Raise, frame: Frame) -> None:
    # what is raised is built on the way out of the region: formatting a tensor there matters only once it is broken
    executed_scope(frame).names = None


def _assert(node: ast.Assert, frame: Frame) -> None:
    known = truth(node.test, frame)
    if known is False:
        executed_scope(frame).names = None
        return
    narrowing.assume(node.test, True, frame)


def _try(node: ast.Try, frame: Frame) -> None:
    scope = executed_scope(frame)
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
        if memo.after_missing(handler):
            frame.doubt(handler.body, memo.RAN_BEFORE)
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
    executed_scope(frame).global_names.update(node.names)


def _nonlocal(node: ast.Nonlocal, frame: Frame) -> None:
    executed_scope(frame).outer_names.update(node.names)


def _delete(node: ast.Delete, frame: Frame) -> None:
    names = executed_scope(frame).names
    for target in node.targets:
        if isinstance(target, ast.Name) and names is not None:
            names.pop(target.id, None)


def _match(node: ast.Match, frame: Frame) -> None:
    scope = executed_scope(frame)
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


_PLAIN_HANDLERS: dict[type[ast.stmt], Callable[[Any, Frame], None]] = {
    ast.Expr: _expression,
    ast.Assign: assignments.assign,
    ast.AnnAssign: assignments.annotated,
    ast.AugAssign: assignments.augmented,
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
    _PLAIN_HANDLERS[ast.TryStar] = _try
_HANDLERS = by_class(_PLAIN_HANDLERS)
