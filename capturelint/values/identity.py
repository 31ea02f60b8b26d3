"""Which stream, event or generator a value is: told apart by where it was made, or declared.

An object of these classes is nothing but its identity, so a value carries it along: through attributes, containers and
arguments. Two objects made at one place (a pool of streams, one stream a layer) are one as far as this tells.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from capturelint.values.domain import ExternalInstance, Host, Value, is_none, options

if TYPE_CHECKING:
    from capturelint.project.module import Module
    from capturelint.values.frame import Arguments, Frame

STREAMS = frozenset({"torch.cuda.Stream", "torch.Stream", "torch.cuda.ExternalStream"})
EVENTS = frozenset({"torch.cuda.Event", "torch.Event"})
GENERATORS = frozenset({"torch.Generator"})
HANDLE = "torch.cuda.stream_handle"

#: how an object came about: its constructor was called, a function was asked for it, an annotation speaks of it
MADE, CURRENT, DEFAULT, RECORDED, DECLARED = "made", "current", "default", "recorded", "declared"
_ROLE, _AT = "<role>", "<at>"

#: path of the file, line and column
Place = tuple[str, int, int]
Handler = Callable[["Value | None", "Arguments", ast.AST, "Frame"], "Value | None"]


def role_of(value: ExternalInstance) -> str:
    """How the object came about; empty where that is not known."""
    role = value.argument(_ROLE)
    return str(role.const) if isinstance(role, Host) else ""


def place_of(value: ExternalInstance) -> Place | None:
    at = value.argument(_AT)
    return at.const if isinstance(at, Host) else None


def is_identified(value: Value | None) -> bool:
    return isinstance(value, ExternalInstance) and value.cls in STREAMS | EVENTS | GENERATORS


def declared(value: Value | None, module: Module, node: ast.AST) -> Value | None:
    """What an annotation at ``node`` speaks of, told from what other annotations speak of."""
    if not isinstance(value, ExternalInstance) or not is_identified(value):
        return value
    return _marked(value.cls, DECLARED, module, node, value.arguments)


def handle_of(stream: Value) -> Value:
    """``stream.cuda_stream``: a number, that stands for the stream."""
    return ExternalInstance(HANDLE, (("stream", stream),))


def _marked(
    cls: str, role: str, module: Module, node: ast.AST, arguments: tuple[tuple[str, Value], ...] = ()
) -> ExternalInstance:
    place = (module.display, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
    return ExternalInstance(cls, (*arguments, (_ROLE, Host(const=role)), (_AT, Host(const=place))))


def _maker(cls: str, role: str, *names: str) -> Handler:
    def handler(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
        named = (*zip(names, given.positional, strict=False), *given.keywords)
        return _marked(cls, role, frame.module, node, named)

    return handler


def _external_stream(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    """A stream by its handle: 0 is the legacy default stream, ``s.cuda_stream`` is ``s`` again."""
    handle = given.get(0, "stream_ptr") or given.get(0, "data_ptr")
    for option in options(handle):
        if isinstance(option, ExternalInstance) and option.cls == HANDLE:
            return option.argument("stream") or option
    is_default = isinstance(handle, Host) and handle.const == 0
    return _marked("torch.cuda.Stream", DEFAULT if is_default else DECLARED, frame.module, node)


def _record_event(receiver: Value | None, given: Arguments, node: ast.AST, frame: Frame) -> Value:
    event = given.get(0, "event")
    if event is not None and not is_none(event):
        return event
    return _marked("torch.cuda.Event", RECORDED, frame.module, node)


_STREAM, _EVENT = "torch.cuda.Stream", "torch.cuda.Event"

HANDLERS: dict[str, Handler] = {
    _STREAM: _maker(_STREAM, MADE, "device", "priority"),
    "torch.Stream": _maker(_STREAM, MADE, "device", "priority"),
    "torch.cuda.ExternalStream": _external_stream,
    "torch.cuda.get_stream_from_external": _external_stream,
    "torch.cuda.current_stream": _maker(_STREAM, CURRENT, "device"),
    "torch.accelerator.current_stream": _maker(_STREAM, CURRENT, "device"),
    "torch.cuda.default_stream": _maker(_STREAM, DEFAULT, "device"),
    _EVENT: _maker(_EVENT, MADE, "enable_timing", "blocking", "interprocess", "external"),
    "torch.Event": _maker(_EVENT, MADE, "device", "enable_timing", "blocking", "interprocess"),
    "torch.Stream.record_event": _record_event,
    "torch.Generator": _maker("torch.Generator", MADE, "device"),
}
