"""``torch.ops.ns.name(...)``: the Python functions of the project that are registered as that operator."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import last_name
from capturelint.values.domain import Function, options

if TYPE_CHECKING:
    from capturelint.values.engine import Engine

PREFIX = "torch.ops."
#: what registers a function for an operator: ``torch.library.custom_op``, ``Library.impl``, vLLM's and SGLang's helpers
_REGISTERING = (
    "custom_op",
    "triton_op",
    "impl",
    "register_kernel",
    "direct_register_custom_op",
    "register_custom_op",
)
_WORDS = tuple(f"{word}(".encode() for word in _REGISTERING)
_OTHER_DEVICES = frozenset({"cpu", "meta", "mps", "xpu", "hpu", "fake"})
_MAX_FILES = 12


def registered(engine: Engine, path: str) -> list[Function]:
    """The functions behind an operator, none for those that are compiled or not of the project."""
    parts = path.removeprefix(PREFIX).split(".")
    if len(parts) < 2:
        return []
    namespace, name = parts[0], parts[1]
    known = engine.custom_ops.get((namespace, name))
    if known is None:
        engine.custom_ops[namespace, name] = []  # while it is being looked for
        search = engine.project.search
        registering = {id(file) for file in search.holding(_WORDS)}
        quoted = {id(file) for quote in "\"'" for file in search.containing(name, name + quote)}
        files = [file for file in search.mentioning(name) if id(file) in registering & quoted]
        modules = engine.project.modules(files, _MAX_FILES)
        found = [each for module in modules for each in _in_module(engine, module, namespace, name)]
        known = engine.custom_ops[namespace, name] = list(dict.fromkeys(found))
    return [Function(each) for each in known]


def _in_module(engine: Engine, module: Module, namespace: str, name: str) -> Iterator[FunctionInfo]:
    for info in module.all_functions(*_REGISTERING):
        for decorator in info.decorators:
            if isinstance(decorator, ast.Call) and last_name(decorator.func) in _REGISTERING:
                if _registers(module, decorator, namespace, name):
                    yield info
    for word in _REGISTERING:
        for holder, call in module.calls_named(word):
            if not _registers(module, call, namespace, name):
                continue
            scope = engine.function_scope(holder) if holder is not None else engine.module_scope(module)
            for given in _callables(call):
                for option in options(engine.evaluate_in(scope, given)):
                    if isinstance(option, Function):
                        yield option.info


def _registers(module: Module, call: ast.Call, namespace: str, name: str) -> bool:
    if not any(_names(each, namespace, name) for each in _texts(call)) or _for_other_devices(call):
        return False
    own = _namespace(module, call)
    return own is None or own == namespace


def _for_other_devices(call: ast.Call) -> bool:
    """A kernel for tensors on the CPU, or one that only works out shapes."""
    given = (*call.args[1:], *(k.value for k in call.keywords if k.arg in ("dispatch_key", "device_types", "types")))
    return any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.lower() in _OTHER_DEVICES
        for each in given
    )


def _namespace(module: Module, call: ast.Call) -> str | None:
    """The namespace of the ``Library`` that a registration goes to, where the module makes it by name."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    names = {each.id for each in (owner, *call.args[:1]) if isinstance(each, ast.Name)}
    for statement in module.top.body:
        value = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.Call) and last_name(value.func) == "Library" and value.args:
            made = {each.id for each in statement.targets if isinstance(each, ast.Name)}  # type: ignore[attr-defined]
            text = value.args[0]
            if made & names and isinstance(text, ast.Constant) and isinstance(text.value, str):
                return text.value
    return None


def _texts(call: ast.Call) -> Iterator[str]:
    """The names that a registration gives: ``"ns::name"``, ``"name"``, ``op_name="name"``."""
    for each in (*call.args[:2], *(k.value for k in call.keywords if k.arg in ("op_name", "name", "qualname", "op"))):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def _names(text: str, namespace: str, name: str) -> bool:
    given, _, own = text.rpartition("::")
    return own.partition(".")[0] == name and given in ("", namespace)


def _callables(call: ast.Call) -> Iterator[ast.expr]:
    yield from (k.value for k in call.keywords if k.arg in ("op_func", "func", "fn", "kernel"))
    if last_name(call.func) in ("impl", "direct_register_custom_op", "register_kernel"):
        yield from (each for each in call.args[1:3] if isinstance(each, (ast.Name, ast.Attribute, ast.Lambda)))
