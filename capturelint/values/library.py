"""Builtins and library functions whose result depends on their arguments in ways that a table can't say."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

from capturelint.model import Confidence
from capturelint.values import dunder, identity, narrowing
from capturelint.values.change import Source, because, either
from capturelint.values.domain import (
    HOST,
    MISSING,
    SIZE,
    UNKNOWN,
    ClassValue,
    Device,
    DeviceValue,
    External,
    ExternalInstance,
    Function,
    Host,
    Instance,
    Mapping,
    Partial,
    Read,
    Sequence,
    Tensor,
    Unknown,
    Value,
    changed,
    changing_reason,
    device_confidence,
    element_of,
    is_none,
    join,
    options,
    tensors,
)
from capturelint.values.facts import Effect
from capturelint.values.frame import Arguments, Frame
from capturelint.values.scope import Scope
from capturelint.values.special_forms import element_of_mapping

if TYPE_CHECKING:
    pass

Handler = Callable[["Value | None", Arguments, ast.AST, Frame], "Value | None"]

#: calling one of these with a function gives (something that acts as) that function
_TRANSPARENT = frozenset(
    [
        "torch.compile",
        "torch.no_grad",
        "torch.inference_mode",
        "torch.jit.script",
        "torch.jit.trace",
        "torch.compiler.disable",
        "torch._dynamo.disable",
        "torch.compiler.allow_in_graph",
        "functools.lru_cache",
        "functools.cache",
        "functools.wraps",
        "copy.copy",
        "copy.deepcopy",
        "typing.cast",
        "contextlib.contextmanager",
        "staticmethod",
        "torch.cuda.make_graphed_callables",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.DataParallel",
        "weakref.ref",
        "weakref.proxy",
    ]
)


# -- results by path -------------------------------------------------------------------------------------------------


def result(path: str, receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value | None:
    """The result where it is not the table's to say; None leaves it to the table."""
    handler = _RESULTS.get(path)
    if handler is not None:
        return handler(receiver, given, node, frame)
    if path in _TRANSPARENT:
        return _transparent(given)
    return None


def _transparent(given: Arguments) -> Value | None:
    for value in given.all:
        for option in options(value):
            if isinstance(option, (Function, Instance, ClassValue, Partial, Sequence, ExternalInstance, Tensor)):
                return value
    return None


def _isinstance(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    if len(given.positional) != 2:
        return HOST
    known = narrowing.is_instance(given.positional[0], given.positional[1], frame)
    return Host(const=MISSING if known is None else known, kind="bool")


def _is_tensor(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    if len(given.positional) != 1:
        return HOST
    known = narrowing.is_instance(given.positional[0], External("torch.Tensor"), frame)
    return Host(const=MISSING if known is None else known, kind="bool")


def _len(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    value = given.positional[0] if given.positional else UNKNOWN
    own = dunder.call_method(value, "__len__", (), node, frame)
    if own is not None:
        return own
    for option in options(value):
        if isinstance(option, Tensor):
            return SIZE
        if isinstance(option, Sequence):
            if option.items is not None and option.changing is None:
                return Host(const=len(option.items), kind="int", shape=True)
            return Host(changing=option.changing, kind="int")
    return Host(kind="int")


def _range(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    if frame.context is not None:
        for value in given.positional:
            sure = device_confidence(value)
            if sure is not None:
                frame.context.record_effects(node, (Effect("loop-bound", sure, "", "stop"),), frame.confidence)
    changing = reduce(either, (changing_reason(value) for value in given.positional), None)
    if any(isinstance(option, Read) for value in given.positional for option in options(value)):
        return Sequence("range", None, Host(kind="int"))
    fixed = all(isinstance(v, Host) and (v.shape or v.const is not MISSING) for v in given.positional)
    return Sequence("range", None, Host(shape=fixed, kind="int", changing=changing), changing)


def _islice(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    _range(receiver, Arguments(given.positional[1:]), node, frame)
    return Sequence("generator", None, element_of(given.positional[0]) if given.positional else UNKNOWN)


def _elementwise(kind: str) -> Handler:
    def handler(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value | None:
        if not given.positional:
            return Sequence(kind, ())
        value = given.positional[0]
        for option in options(value):
            if isinstance(option, Sequence):
                return Sequence(kind, option.items, option.element, option.changing)
        if any(True for _ in tensors(value)):
            return Sequence(kind, None, element_of(value))
        return Sequence(kind, None, element_of(value))

    return handler


def _next(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value | None:
    """``next(iterator)``: another element at each call where the iterator is kept from one pass to the next."""
    if not given.positional:
        return UNKNOWN
    asked = node.args[0] if isinstance(node, ast.Call) and node.args else None
    value = join(element_of(given.positional[0]), *given.positional[1:])
    if frame.in_region and asked is not None and _is_kept(asked, frame):
        reason = f"`next({frame.module.segment(asked)})` gives another value at each call"
        return join(*(changed(option, because(reason, source=Source.CALL)) for option in options(value)))
    return value


def _is_kept(node: ast.expr, frame: Frame) -> bool:
    """An attribute, or a name that is bound outside of the region's code."""
    if isinstance(node, ast.Attribute):
        return True
    return isinstance(node, ast.Name) and not isinstance(frame.scope.holder_of(node.id), Scope)


def _count(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return Sequence("generator", None, Host(kind="int"))


def _zip(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return Sequence("list", None, Sequence("tuple", tuple(element_of(value) for value in given.positional)))


def _enumerate(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    value = given.positional[0] if given.positional else UNKNOWN
    return Sequence("list", None, Sequence("tuple", (Host(shape=True, kind="int"), element_of(value))))


def _map(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    from capturelint.values.calls import call

    if len(given.positional) < 2:
        return UNKNOWN
    items = tuple(element_of(value) for value in given.positional[1:])
    return Sequence("list", None, call(given.positional[0], Arguments(items), node, frame))


def _filter(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """``filter(f, xs)`` takes the truth of what ``f`` gives, or of the elements themselves."""
    from capturelint.values.calls import call

    if len(given.positional) != 2:
        return UNKNOWN
    function, element = given.positional[0], element_of(given.positional[1])
    decides = element if is_none(function) else call(function, Arguments((element,)), _callee(node), frame)
    sure = device_confidence(decides)
    if sure is not None and frame.context is not None:
        frame.context.record_effects(node, (Effect("host-read", sure, "takes the truth of each"),), frame.confidence)
    return Sequence("generator", None, element)


def _checkpoint(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """``checkpoint(function, *args)`` runs the function."""
    from capturelint.values.calls import call

    if not given.positional:
        return UNKNOWN
    own = ("use_reentrant", "context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop")
    keywords = tuple(pair for pair in given.keywords if pair[0] not in own)
    inner = Arguments(given.positional[1:], keywords, given.rest, given.open_keywords)
    return call(given.positional[0], inner, _callee(node), frame)


def _callee(node: ast.AST) -> ast.AST:
    """Where a call that a library function makes is seen: at the function's own name."""
    return node.func if isinstance(node, ast.Call) else node


def _getattr(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    from capturelint.values import attributes, names_from_text

    if len(given.positional) < 2:
        return UNKNOWN
    names = names_from_text.of_argument(node, 1, given.positional[1], frame)
    if names is None:
        return UNKNOWN
    found = [attributes.get(given.positional[0], name, frame) for name in names]
    known = [value for value in found if not isinstance(value, Unknown)]
    if not known and len(given.positional) > 2:
        return join(given.positional[2], UNKNOWN)
    return join(*known) if known else UNKNOWN


def _partial(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    if not given.positional:
        return UNKNOWN
    return Partial(given.positional[0], given.positional[1:], given.keywords)


def _dict(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    base = given.positional[0] if given.positional else None
    if isinstance(base, Mapping):
        return Mapping((*base.items, *given.keywords), base.element, base.complete)
    element = element_of(element_of(base)) if base is not None else None
    return Mapping(given.keywords, element, complete=base is None and not given.open_keywords)


def _sum(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    from capturelint.values.tensor_math import combined

    element = element_of(given.positional[0]) if given.positional else HOST
    if any(True for _ in tensors(element)):
        return combined([element])
    return Host(changing=changing_reason(element)) if not isinstance(element, Unknown) else UNKNOWN


def _sorted(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value | None:
    _compare_keys(element_of(given.positional[0]) if given.positional else UNKNOWN, given, node, frame)
    return _elementwise("list")(receiver, given, node, frame)


def _compare_keys(element: Value, given: Arguments, node: ast.AST, frame: Frame) -> None:
    """``key=f``: ``f`` is called with each element, and what it gives is compared on the host."""
    from capturelint.values.calls import call

    key = given.keyword("key")
    if key is None or is_none(key) or frame.context is None:
        return
    sure = device_confidence(call(key, Arguments((element,)), _callee(node), frame))
    if sure is not None:
        frame.context.record_effects(node, (Effect("host-read", sure, "compares keys on the host"),), frame.confidence)


def _extreme(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    values = given.positional if len(given.positional) > 1 else (element_of(given.positional[0]),) if given.all else ()
    reason = reduce(either, (changing_reason(value) for value in values), None)
    joined = join(*values)
    _compare_keys(joined, given, node, frame)
    if reason is not None and isinstance(joined, Host):
        return Host(changing=reason, kind=joined.kind)
    return joined


def _number(kind: str) -> Handler:
    def handler(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
        value = given.positional[0] if given.positional else HOST
        found: list[Value] = []
        for option in options(value):
            if isinstance(option, Tensor) and option.device is not Device.HOST:
                found.append(Read(option.confidence if option.on_device else Confidence.POSSIBLE))
            elif isinstance(option, Tensor):
                found.append(Host(changing=option.changing, kind=kind))
            elif isinstance(option, Host):
                known = option.const if isinstance(option.const, (int, float)) and kind != "bool" else MISSING
                found.append(Host(const=known, changing=option.changing, shape=option.shape, kind=kind))
            else:
                found.append(option if isinstance(option, Read) else Host(changing=changing_reason(option), kind=kind))
        return join(*found)

    return handler


def _type(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    found = [
        ClassValue(option.site.cls) if isinstance(option, Instance) else UNKNOWN
        for option in options(given.positional[0] if given.positional else UNKNOWN)
    ]
    return join(*found)


def _modules(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    value = given.positional[0] if given.positional else None
    if value is None:
        return Sequence("list", ())
    for option in options(value):
        if isinstance(option, Sequence):
            return Sequence("list", option.items, option.element)
    return Sequence("list", None, element_of(value))


def _module_dict(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return _dict(receiver, given, node, frame)


def _sequential(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    items: Sequence = Sequence("list", given.positional)
    if given.rest is not None:
        items = Sequence("list", None, join(given.rest, *given.positional))
    elif len(given.positional) == 1 and isinstance(given.positional[0], Mapping):
        items = Sequence("list", None, element_of_mapping(given.positional[0]))
    return ExternalInstance("torch.nn.Sequential", (("modules", items),))


def _device_module(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return External("torch.cuda")


def _parameters(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return Sequence("generator", None, _parameter())


def _named_parameters(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return Sequence("generator", None, Sequence("tuple", (Host(kind="str"), _parameter())))


def _parameter() -> Tensor:
    return Tensor(device=Device.DEVICE, confidence=Confidence.LIKELY, stored=True, why="a module's parameter")


def _children(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return Sequence("generator", None, UNKNOWN)


def _same_object(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value | None:
    """``module.cuda()`` gives the module; one that was made in the region has its weights on the CPU still."""
    path = getattr(node, "func", None)
    if frame.context is not None and isinstance(path, ast.Attribute) and path.attr in ("cuda", "to"):
        if any(isinstance(o, ExternalInstance) and o.argument("<made in region>") for o in options(receiver)):
            effect = Effect(
                "host-to-device", Confidence.LIKELY, "a module made in the region has its weights on the CPU"
            )
            frame.context.record_effects(node, (effect,), frame.confidence)
    return receiver


def _default_device(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return DeviceValue(frame.default_device)


def _graph_context(path: str) -> Handler:
    names = ("cuda_graph", "pool", "stream", "capture_error_mode")

    def handler(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
        return ExternalInstance(path, (*zip(names, given.positional, strict=False), *given.keywords))

    return handler


def _slice(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    return Host(kind="slice", changing=reduce(either, (changing_reason(value) for value in given.positional), None))


_RESULTS: dict[str, Handler] = {
    **identity.HANDLERS,
    "builtins.isinstance": _isinstance,
    "platform.system": lambda receiver, given, node, frame: Host(const="Linux", kind="str"),
    "torch.is_tensor": _is_tensor,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "builtins.len": _len,
    "builtins.range": _range,
    "builtins.slice": _slice,
    "builtins.list": _elementwise("list"),
    "builtins.tuple": _elementwise("tuple"),
    "builtins.set": _elementwise("set"),
    "builtins.sorted": _sorted,
    "builtins.reversed": _elementwise("list"),
    "builtins.iter": _elementwise("generator"),
    "builtins.next": _next,
    "itertools.count": _count,
    "itertools.cycle": _elementwise("generator"),
    "builtins.zip": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.getattr": _getattr,
    "builtins.dict": _dict,
    "builtins.sum": _sum,
    "builtins.min": _extreme,
    "builtins.max": _extreme,
    "builtins.int": _number("int"),
    "builtins.float": _number("float"),
    "builtins.bool": _number("bool"),
    "builtins.type": _type,
    "functools.partial": _partial,
    "itertools.islice": _islice,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": lambda receiver, given, node, frame: Mapping(),
    "collections.deque": _elementwise("list"),
    "torch.nn.ModuleList": _modules,
    "torch.nn.ParameterList": _modules,
    "torch.nn.ModuleDict": _module_dict,
    "torch.nn.Sequential": _sequential,
    "torch.get_device_module": _device_module,
    "torch.get_default_device": _default_device,
    **{
        f"{device}.graph": _graph_context(f"{device}.graph")
        for device in ("torch.cuda", "torch.xpu", "torch.npu", "torch_npu.npu")
    },
    "torch.nn.Module.parameters": _parameters,
    "torch.nn.Module.named_parameters": _named_parameters,
    "torch.nn.Module.children": _children,
    "torch.nn.Module.modules": _children,
    **{
        f"{owner}.{name}": _same_object  # a ModuleList is known as the list of its modules
        for owner in ("torch.nn.Module", "builtins.list", "builtins.dict")
        for name in ("cuda", "to", "eval", "train", "half", "float", "bfloat16", "requires_grad_", "cpu", "double")
    },
}
