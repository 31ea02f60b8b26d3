"""Switches of a process that decide what operators do: autograd's anomaly mode, argument checks of distributions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.project.definitions import FunctionInfo
from capturelint.project.syntax import last_name, walk_own
from capturelint.values.domain import ExternalInstance, Host, Value, is_none, options

if TYPE_CHECKING:
    from capturelint.project.module import Module
    from capturelint.values.effects import Bound
    from capturelint.values.engine import Engine
    from capturelint.values.frame import Frame

ANOMALY = "torch.autograd.set_detect_anomaly"
_ANOMALY_CALLS = ("set_detect_anomaly", "detect_anomaly")
_VALIDATE_CALL = "set_default_validate_args"
#: first used, ``torch.compile`` switches the checks of distributions off for the whole process
_COMPILES = "torch.compile("


def confidence(mode: str, bound: Bound, frame: Frame) -> Confidence | None:
    """How sure it is that a mode is on for a call; None where it is off."""
    compiled = frame.context is not None and frame.context.compiled
    if compiled and mode in ("eager", "validation"):
        return None  # torch.compile traces both sides of a condition, and switches the checks off
    if mode == "eager":
        return Confidence.CERTAIN
    if mode == "anomaly":
        if frame.anomaly is None:
            return _anomaly_elsewhere(frame.engine, frame.module)
        return Confidence.CERTAIN if frame.anomaly else None
    return _validation(bound, frame)


# -- anomaly mode ----------------------------------------------------------------------------------------------------


def anomaly(value: Value) -> bool | None:
    """What entering (or making) a value does to anomaly mode; None where it is about something else."""
    for option in options(value):
        if isinstance(option, ExternalInstance) and option.cls == ANOMALY:
            given = (option.argument("mode"), option.argument("check_nan"))
            return not any(isinstance(each, Host) and each.const is False for each in given)
    return None


def anomaly_around(engine: Engine, module: Module, holder: FunctionInfo | None, node: ast.AST) -> bool | None:
    """Whether anomaly mode is on where a region's block begins, as far as the function around it says."""
    scope = engine.scope_of(holder, module)
    first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
    on: bool | None = None
    for each in walk_own(holder.node if holder is not None else module.top):
        if isinstance(each, (ast.With, ast.AsyncWith)) and each.lineno <= first and last <= (each.end_lineno or 0):
            for item in each.items:
                if item.context_expr.lineno <= first and last_name(item.context_expr) in _ANOMALY_CALLS:
                    on = anomaly(engine.evaluate_in(scope, item.context_expr))
    body = (holder.node if holder is not None else module.tree).body
    for call in _statements(body if isinstance(body, list) else [], _ANOMALY_CALLS[0]):
        if call.lineno < first:
            on = _literal(call) is not False
    return on


def _anomaly_elsewhere(engine: Engine, module: Module) -> Confidence | None:
    """Anomaly mode that code outside the region switches on for good."""

    def work_out() -> Confidence | None:
        found = [
            Confidence.LIKELY if own and settled else Confidence.POSSIBLE
            for own, settled, call in _switches(engine, module, _ANOMALY_CALLS[0])
            if _literal(call) is True
        ]
        return max(found, key=lambda each: each.rank) if found else None

    return engine.remembered(("anomaly", module), work_out)


# -- argument checks -------------------------------------------------------------------------------------------------


def _validation(bound: Bound, frame: Frame) -> Confidence | None:
    """Whether a distribution checks what it is given: it does unless told otherwise, or unless the default was set."""
    given = bound.get("validate_args")
    owner = bound.receiver
    while isinstance(owner, ExternalInstance) and owner.cls == "torch.distributions.Independent":
        owner = owner.argument("base_distribution")  # that one checks
    if given is None and isinstance(owner, ExternalInstance):
        given = owner.argument("validate_args")
    if given is not None and not is_none(given):
        if isinstance(given, Host) and given.const is False:
            return None
        return Confidence.CERTAIN if isinstance(given, Host) and given.const is True else Confidence.POSSIBLE
    return frame.engine.remembered(("validation", frame.module), lambda: _default_checks(frame.engine, frame.module))


def _default_checks(engine: Engine, module: Module) -> Confidence | None:
    found = [(settled, call) for _, settled, call in _switches(engine, module, _VALIDATE_CALL)]
    off = [settled for settled, call in found if _literal(call) is False]
    if any(off):
        return None
    if off or module.holds(_COMPILES):
        return Confidence.POSSIBLE
    return Confidence.LIKELY


# -- where switches are set ------------------------------------------------------------------------------------------


def _switches(engine: Engine, module: Module, name: str) -> Iterator[tuple[bool, bool, ast.Call]]:
    """Calls of ``name`` in the project: whether it is in ``module``, whether it surely runs, and the call."""
    for file in engine.project.search.calling(name):
        other = engine.project.module_at(file.path)
        if other is None:
            continue
        settled = {id(call) for call in _settled(other.tree, name)}
        for node in ast.walk(other.tree):
            if isinstance(node, ast.Call) and last_name(node.func) == name:
                yield other is module, id(node) in settled, node


def _settled(tree: ast.Module, name: str) -> Iterator[ast.Call]:
    """Calls that are statements of their own, under no condition, in the module or in a function."""
    yield from _statements(tree.body, name)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _statements(node.body, name)


def _statements(body: Iterable[ast.stmt], name: str) -> Iterator[ast.Call]:
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if last_name(statement.value.func) == name:
                yield statement.value


def _literal(call: ast.Call) -> object:
    """The first argument, where it is written out."""
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("mode", "value"))]
    return given[0].value if given and isinstance(given[0], ast.Constant) else None
