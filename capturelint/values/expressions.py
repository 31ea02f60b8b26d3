"""Evaluating expressions, inside regions and outside; inside, each value is recorded at its span."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from capturelint.model import Confidence
from capturelint.project.packed import by_class
from capturelint.values import attributes, dunder, host_comparisons, narrowing
from capturelint.values.change import either
from capturelint.values.domain import (
    MISSING,
    NONE,
    UNKNOWN,
    Function,
    Host,
    Mapping,
    Read,
    Sequence,
    Tensor,
    Unknown,
    Value,
    changing_reason,
    device_confidence,
    element_of,
    is_none,
    join,
    options,
)
from capturelint.values.effects import deep_confidence
from capturelint.values.elsewhere import NOT_HANDED_OVER, falls_back
from capturelint.values.facts import Effect
from capturelint.values.frame import Frame
from capturelint.values.scope import Scope
from capturelint.values.tensor_math import arithmetic, comparison


def evaluate(node: ast.expr, frame: Frame) -> Value:
    """The abstract value of an expression."""
    handler = _HANDLERS.get(node.__class__)
    value = handler(node, frame) if handler is not None else UNKNOWN
    if frame.context is not None and not isinstance(node, ast.Constant):
        frame.context.record(node, value)
    return value


def truth(node: ast.expr, frame: Frame) -> bool | None:
    """Evaluates a test; its truth where that is known at capture. A device tensor here is somebody's hazard."""
    value = evaluate(node, frame)
    known = truth_of(value, node, frame)
    known = known if known is not None else flag(node, value, frame)
    if known is None and frame.context is not None:
        frame.context.note_undecided(node, value)
    return known


def flag(node: ast.expr, value: Value, frame: Frame) -> bool | None:
    """A host flag whose name says what it is inside a region (``self.use_cuda_graph``)."""
    if not frame.in_region or not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    if any(isinstance(option, (Tensor, Read)) or is_none(option) for option in options(value)):
        return None
    if isinstance(value, Host) and value.truth is not None:
        return None
    return frame.engine.vocabulary.flag(node.attr if isinstance(node, ast.Attribute) else node.id)


def truth_of(value: Value, node: ast.expr, frame: Frame) -> bool | None:
    if device_confidence(value) is not None:
        frame.candidate(node)
        return None
    if frame.in_region:
        asked = dunder.truth(value, node, frame)
        if isinstance(asked, Host):
            return asked.truth
    found: set[bool | None] = set()
    for option in options(value):
        if isinstance(option, Host):
            found.add(option.truth)
        elif isinstance(option, Function):
            found.add(True)
        elif isinstance(option, Mapping) and option.complete and not option.items and option.element is None:
            found.add(False)
        elif isinstance(option, Sequence) and option.items is not None and option.changing is None:
            found.add(bool(option.items))
        else:
            found.add(None)
    return found.pop() if len(found) == 1 else None


def _constant(node: ast.Constant, frame: Frame) -> Value:
    value = node.value
    if value is None:
        return NONE
    return Host(const=value if not isinstance(value, complex) else MISSING, kind=type(value).__name__)


def _name(node: ast.Name, frame: Frame) -> Value:
    if isinstance(frame.scope, Scope) and frame.scope.names is not None and node.id in frame.scope.names:
        return frame.scope.names[node.id]
    if frame.context is not None:
        holder = frame.scope.holder_of(node.id)
        owner: object = holder if holder is not None else frame.module
        frame.context.names_read.add((owner, node.id))
    return frame.engine.name(node.id, frame)


def _attribute(node: ast.Attribute, frame: Frame) -> Value:
    base = frame.engine.evaluate_part(node.value, frame)
    if frame.context is not None:
        _note_read(base, node.attr, frame)
    if isinstance(frame.scope, Scope) and frame.scope.names is not None:
        key = narrowing.key_of(node)
        stored = frame.scope.names.get(key) if key is not None else None
        if stored is not None:
            return stored
    return attributes.get(base, node.attr, frame, node)


def _note_read(base: Value, name: str, frame: Frame) -> None:
    from capturelint.values.domain import Instance

    assert frame.context is not None
    for option in options(base):
        if isinstance(option, Instance):
            frame.context.attributes_read.add((option.site, name))


def _binary(node: ast.BinOp, frame: Frame) -> Value:
    left, right = evaluate(node.left, frame), evaluate(node.right, frame)
    if isinstance(node.op, ast.Mod) and _is_text(left):
        _formats(node, right, frame)
        return Host(kind="str")
    if frame.context is not None and (changing_reason(left) or changing_reason(right)):
        frame.candidate(node)
    if isinstance(node.op, ast.Mult):
        host_comparisons.repeats(node, left, right, frame)
    own = dunder.binary(node.op, left, right, node, frame)
    return own if own is not None else arithmetic(node.op, left, right)


def _is_text(value: Value) -> bool:
    return isinstance(value, Host) and (isinstance(value.const, str) or value.kind == "str")


def _formats(node: ast.AST, value: Value, frame: Frame) -> None:
    """A device tensor among the arguments of a ``%`` format."""
    if frame.context is None:
        return
    parts = value.items if isinstance(value, Sequence) and value.items is not None else (value,)
    sure = [c for c in (device_confidence(part) for part in parts) if c is not None]
    if sure:
        frame.context.record_effects(
            node, (Effect("format", max(sure, key=lambda c: c.rank), "`%` formatting"),), frame.confidence
        )


def _unary(node: ast.UnaryOp, frame: Frame) -> Value:
    if isinstance(node.op, ast.Not):
        known = truth(node.operand, frame)
        value = frame.context.values.get(_span(node.operand)) if frame.context is not None else None
        changing = changing_reason(value)
        return Host(const=MISSING if known is None else not known, changing=changing, kind="bool")
    value = evaluate(node.operand, frame)
    own = dunder.unary(node.op, value, node, frame)
    if own is not None:
        return own
    if isinstance(value, Host) and isinstance(node.op, ast.USub) and isinstance(value.const, (int, float)):
        return Host(const=-value.const, kind=value.kind)
    return value


def _span(node: ast.expr) -> Any:
    from capturelint.values.facts import span_of

    return span_of(node)


def _boolean(node: ast.BoolOp, frame: Frame) -> Value:
    is_and = isinstance(node.op, ast.And)
    found: list[Value] = []
    undo: list[Callable[[], None]] = []
    stopped = False
    for index, operand in enumerate(node.values):
        value = evaluate(operand, frame)
        last = index == len(node.values) - 1
        known = None
        if not last:
            known = truth_of(value, operand, frame)
            known = known if known is not None else flag(operand, value, frame)
        if not last and known is is_and:
            undo.append(narrowing.assume(operand, is_and, frame))
            continue
        found.append(value)
        if not last and known is (not is_and):
            stopped = True
            break
        if not last:
            undo.append(narrowing.assume(operand, is_and, frame))
    for restore in reversed(undo):
        restore()
    if stopped and len(found) == 1:
        return found[0]
    decides = found[-1] if found else UNKNOWN
    if isinstance(decides, Host) and decides.truth is not is_and and decides.truth is not None:
        if all(isinstance(each, Host) or type(each) is Unknown for each in found):
            return Host(const=not is_and, kind="bool")  # `verbose and False` fails, whatever `verbose` is
    return join(*found)


def _compare(node: ast.Compare, frame: Frame) -> Value:
    left = evaluate(node.left, frame)
    result: list[Value] = []
    for operator, right_node in zip(node.ops, node.comparators, strict=False):
        right = evaluate(right_node, frame)
        result.append(_compared(node, operator, left, right, frame))
        if len(node.ops) > 1 and (device_confidence(left) or device_confidence(right)) is not None:
            frame.candidate(node)
        left = right
    return result[0] if len(result) == 1 else join(*result)


def _compared(node: ast.Compare, operator: ast.cmpop, left: Value, right: Value, frame: Frame) -> Value:
    if isinstance(operator, (ast.Is, ast.IsNot)):
        same = narrowing.identical(left, right)
        return Host(const=MISSING if same is None else same is isinstance(operator, ast.Is), kind="bool")
    if isinstance(operator, (ast.In, ast.NotIn)):
        dunder.call_method(right, "__contains__", (left,), node, frame)
        host_comparisons.membership(node, left, right, frame)
        known = _contains(left, right)
        if known is None:
            inside = changing_reason(right)
            return Host(changing=either(changing_reason(left), inside and inside.by_others()), kind="bool")
        return Host(const=known is isinstance(operator, ast.In), kind="bool")
    if isinstance(operator, (ast.Eq, ast.NotEq)):
        host_comparisons.compares(node, left, right, frame)
    if changing_reason(left) or changing_reason(right):
        frame.candidate(node)
    own = dunder.comparison(operator, left, right, node, frame)
    return own if own is not None else comparison(operator, left, right)


def _contains(left: Value, right: Value) -> bool | None:
    if not isinstance(left, Host) or left.const is MISSING or left.changing:
        return None
    if isinstance(right, Mapping) and right.complete and right.element is None:
        return right.get(left.const) is not None
    if isinstance(right, Sequence) and right.items is not None and right.changing is None:
        constants = [item.const for item in right.items if isinstance(item, Host)]
        if len(constants) == len(right.items) and MISSING not in constants:
            return left.const in constants
    return None


def _conditional(node: ast.IfExp, frame: Frame) -> Value:
    known = truth(node.test, frame)
    if frame.context is not None:
        frame.context.decide(node.test, known)
    found: list[Value] = []
    for side, branch in ((True, node.body), (False, node.orelse)):
        if known is None or known is side:
            sure = frame.sure
            if known is None and falls_back(node.test, side, frame):
                frame.sure = sure.at_most(Confidence.POSSIBLE, NOT_HANDED_OVER)
            restore = narrowing.assume(node.test, side, frame)
            found.append(evaluate(branch, frame))
            restore()
            frame.sure = sure
    return join(*found)


def _subscript(node: ast.Subscript, frame: Frame) -> Value:
    from capturelint.values.indexing import read_item

    return read_item(node, frame)


def _call(node: ast.Call, frame: Frame) -> Value:
    from capturelint.values.calls import call_expression

    return call_expression(node, frame)


def _sequence(node: ast.List | ast.Tuple | ast.Set, frame: Frame) -> Value:
    kind = _KINDS[node.__class__]
    items: list[Value] = []
    exact = len(node.elts) <= 64
    rest: list[Value] = []
    for element in node.elts if exact else node.elts[:64]:
        if isinstance(element, ast.Starred):
            value = evaluate(element.value, frame)
            if isinstance(value, Sequence) and value.items is not None:
                items.extend(value.items)
                continue
            exact = False
            rest.append(element_of(value))
            continue
        items.append(evaluate(element, frame))
    if exact:
        return Sequence(kind, tuple(items))
    return Sequence(kind, None, join(*items, *rest))


def _dict(node: ast.Dict, frame: Frame) -> Value:
    items: list[tuple[Any, Value]] = []
    others: list[Value] = []
    complete = len(node.keys) <= 64
    for key, value_node in list(zip(node.keys, node.values, strict=False))[:64]:
        value = evaluate(value_node, frame)
        if key is None:
            if isinstance(value, Mapping):
                items.extend(value.items)
                others.extend([value.element] if value.element is not None else [])
                complete = complete and value.complete
            else:
                complete = False
            continue
        name = evaluate(key, frame)
        if isinstance(name, Host) and name.const is not MISSING:
            items.append((name.const, value))
        else:
            others.append(value)
            complete = False
    return Mapping(tuple(items), join(*others) if others else None, complete)


def _formatted(node: ast.JoinedStr, frame: Frame) -> Value:
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = evaluate(part.value, frame)
            if deep_confidence(value) is not None:
                frame.candidate(part.value)
            for name in ("__format__", "__str__") if part.conversion != ord("r") else ("__repr__",):
                dunder.call_method(value, name, (Host(kind="str"),) if name == "__format__" else (), part.value, frame)
            if part.format_spec is not None:
                evaluate(part.format_spec, frame)
    return Host(kind="str")


def _comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Value:
    inner = _inner_frame(frame)
    changing = None
    for generator in node.generators:
        source = evaluate(generator.iter, inner)
        if device_confidence(source) is not None:
            frame.candidate(generator.iter)
        changing = either(changing, changing_reason(source))
        if frame.context is not None:
            frame.context.note_undecided(generator.iter, source)
        narrowing.bind_target(generator.target, items_of(source, generator.iter, inner), inner)
        for test in generator.ifs:
            truth(test, inner)
            narrowing.assume(test, True, inner)
    if isinstance(node, ast.DictComp):
        evaluate(node.key, inner)
        return Mapping((), evaluate(node.value, inner))
    kind = _KINDS[node.__class__]
    return Sequence(kind, None, evaluate(node.elt, inner), changing)


def items_of(source: Value, node: ast.expr, frame: Frame) -> Value:
    """What iterating over a value yields; a project object is asked for its iterator."""
    own = dunder.call_method(source, "__iter__", (), node, frame)
    if own is not None:
        return join(element_of(own), *(each for each in [dunder.call_method(own, "__next__", (), node, frame)] if each))
    return element_of(source)


def _inner_frame(frame: Frame) -> Frame:
    inner = Frame(
        frame.engine, frame.module, Scope(frame.module, frame.scope), frame.function, frame.context, frame.depth,
        frame.receiver, default_device=frame.default_device, anomaly=frame.anomaly, sure=frame.sure,
    )  # fmt: skip
    return inner


def _lambda(node: ast.Lambda, frame: Frame) -> Value:
    evaluate_defaults(node.args, frame)
    return Function(frame.module.function(node), frame.scope)


def evaluate_defaults(arguments: ast.arguments, frame: Frame) -> None:
    """Default values are worked out where the function is made."""
    if frame.in_region:
        for default in (*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)):
            evaluate(default, frame)


def _named(node: ast.NamedExpr, frame: Frame) -> Value:
    value = evaluate(node.value, frame)
    narrowing.bind_target(node.target, value, frame)
    return value


def _inner(node: ast.Await | ast.Starred, frame: Frame) -> Value:
    return evaluate(node.value, frame)


def _yield(node: ast.Yield, frame: Frame) -> Value:
    frame.yields.append(evaluate(node.value, frame) if node.value is not None else NONE)
    return UNKNOWN


def _yield_from(node: ast.YieldFrom, frame: Frame) -> Value:
    frame.yields.append(element_of(evaluate(node.value, frame)))
    return UNKNOWN


def _slice(node: ast.Slice, frame: Frame) -> Value:
    bounds = [evaluate(part, frame) for part in (node.lower, node.upper, node.step) if part is not None]
    reason = next((reason for bound in bounds if (reason := changing_reason(bound))), None)
    return Host(kind="slice", changing=reason)


#: what a display or a comprehension makes
_KINDS: dict[type[ast.AST], str] = by_class(
    {
        ast.List: "list",
        ast.Tuple: "tuple",
        ast.Set: "set",
        ast.ListComp: "list",
        ast.SetComp: "set",
        ast.GeneratorExp: "generator",
    }
)
_HANDLERS: dict[type[ast.AST], Callable[[Any, Frame], Value]] = by_class(
    {
        ast.Constant: _constant,
        ast.Name: _name,
        ast.Attribute: _attribute,
        ast.BinOp: _binary,
        ast.UnaryOp: _unary,
        ast.BoolOp: _boolean,
        ast.Compare: _compare,
        ast.IfExp: _conditional,
        ast.Subscript: _subscript,
        ast.Call: _call,
        ast.List: _sequence,
        ast.Tuple: _sequence,
        ast.Set: _sequence,
        ast.Dict: _dict,
        ast.JoinedStr: _formatted,
        ast.ListComp: _comprehension,
        ast.SetComp: _comprehension,
        ast.GeneratorExp: _comprehension,
        ast.DictComp: _comprehension,
        ast.Lambda: _lambda,
        ast.NamedExpr: _named,
        ast.Await: _inner,
        ast.Yield: _yield,
        ast.YieldFrom: _yield_from,
        ast.Starred: _inner,
        ast.Slice: _slice,
    }
)
