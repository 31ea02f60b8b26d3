"""What launches something on the current stream, and which functions have anything to do with streams."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.project.syntax import walk_all
from capturelint.rulebook.ops import OpTable
from capturelint.values import identity
from capturelint.values.domain import ExternalInstance, Unknown, Value, options, tensors
from capturelint.values.effects import deep_confidence
from capturelint.values.facts import CallFact, Context, span_of
from capturelint.values.identity import Place

#: methods of streams and events, by whose calls code deals with streams
METHODS = frozenset({"wait_stream", "wait_event", "record_event"})
_FUNCTIONS = frozenset(
    {
        "torch.cuda.stream", "torch.cuda.StreamContext", "torch.cuda.set_stream", "torch.accelerator.set_stream",
        "torch.cuda.default_stream", "torch.cuda.ExternalStream", "torch.cuda.get_stream_from_external",
    }
)  # fmt: skip
_ASKING = frozenset({"torch.cuda.current_stream", "torch.accelerator.current_stream"})
#: of a tensor, and nothing that runs on the device
_QUIET = frozenset({"record_stream", "data_ptr", "requires_grad_", "detach", "detach_", "register_hook", "zero_grad"})
_COLLECTIVES = "torch.distributed."
_HOST_RESULTS = frozenset({"host", "shape", "dtype", "device", "special", "instance", "module"})


def event_of(value: Value | None) -> bool:
    return any(isinstance(option, ExternalInstance) and option.cls in identity.EVENTS for option in options(value))


def deals_with_streams(fact: CallFact) -> bool:
    """Whether a call changes the current stream, or makes one stream wait for another."""
    for callee in fact.callees:
        last = callee.rpartition(".")[2]
        if callee in _FUNCTIONS or last in METHODS or (last in ("record", "wait") and event_of(fact.receiver)):
            return True
    given = (*fact.arguments, *(value for _, value in fact.keywords))
    return any(isinstance(option, ExternalInstance) and option.cls == identity.HANDLE for value in given
               for option in options(value)) or _raw_default(fact)  # fmt: skip


def _raw_default(fact: CallFact) -> bool:
    from capturelint.values.domain import Host

    return any("stream" in name and isinstance(value, Host) and value.const == 0 and value.kind == "int"
               for name, value in fact.keywords)  # fmt: skip


#: the managers of ``with`` statements, by the module and the function that they stand in
Managers = dict[tuple[Module, "FunctionInfo | None"], list[ast.expr]]


def managers_in(modules: Iterable[Module]) -> Managers:
    found: Managers = {}
    for module in modules:
        for holder, node in module.uses.withs:
            found.setdefault((module, holder), []).extend(item.context_expr for item in node.items)
    return found


def enters_stream(context: Context, managers: Managers) -> bool:
    """``with s:`` needs no call."""
    own = managers.get((context.module, context.function), ())
    return any(is_stream_context(context.values.get(span_of(each))) for each in own)


def asked(contexts: Iterable[Context]) -> frozenset[Place]:
    """Where regions ask for the current stream at each run; what an earlier run has put away is not asked for again."""
    found: set[Place] = set()
    for context in contexts:
        for span, fact in context.calls.items():
            if any(callee in _ASKING for callee in fact.callees) and not any(
                first <= span[0] <= last for first, last in context.doubtful
            ):
                found.add((context.module.display, span[0], span[1]))
    return frozenset(found)


def is_stream_context(value: Value | None) -> bool:
    return any(
        isinstance(option, ExternalInstance)
        and (option.cls == "torch.cuda.StreamContext" or option.cls in identity.STREAMS)
        for option in options(value)
    )


def relevant(contexts: Iterable[Context]) -> set[Context]:
    """The contexts that deal with streams, and those that call them."""
    found: set[Context] = set()
    contexts = list(contexts)
    managers = managers_in(dict.fromkeys(context.module for context in contexts))
    queue = [
        context
        for context in contexts
        if any(deals_with_streams(fact) for fact in context.calls.values()) or enters_stream(context, managers)
    ]
    while queue:
        context = queue.pop()
        if context not in found:
            found.add(context)
            queue.extend(caller for caller, _, _ in context.callers)
    return found


class Work:
    """Whether code launches anything."""

    def __init__(self, ops: OpTable) -> None:
        self._ops = ops
        self._known: dict[Context, bool] = {}

    def in_call(self, context: Context, node: ast.Call, fact: CallFact) -> bool:
        """Whether the call itself, by an operator or something unknown, launches something."""
        if fact.launch:
            return True
        span = span_of(node)
        for callee in fact.callees:
            path = callee
            if path.rpartition(".")[2] in _QUIET:
                continue
            if path.startswith("torch.") and self._operator(path, fact, context.values.get(span)):
                return True
        return span in context.unresolved and any(
            isinstance(o, Unknown) or deep_confidence(o) for v in fact.arguments for o in options(v)
        )

    def _operator(self, path: str, fact: CallFact, result: Value | None) -> bool:
        spec = self._ops.lookup(path)
        if spec is not None and (spec.view or spec.returns.kind in _HOST_RESULTS):
            # a collective gives a handle for the host, and works on the tensors that it is given
            if spec.view or not path.startswith(_COLLECTIVES):
                return False
        operands = (fact.receiver, *fact.arguments, *(value for _, value in fact.keywords))
        if any(deep_confidence(value) for value in operands):
            return True
        if any(tensor.on_device for tensor in tensors(result)):
            return True
        return any(isinstance(o, Unknown) and (o.tensor_like or spec is not None) for v in operands for o in options(v))

    def in_operator(self, context: Context, node: ast.expr) -> bool:
        """``a * b``, ``-a``, ``a < b`` on device tensors."""
        return any(tensor.on_device for tensor in tensors(context.values.get(span_of(node))))

    def in_context(self, context: Context) -> bool:
        """Whether a function launches something, in what it calls too."""
        known = self._known.get(context)
        if known is None:
            self._known[context] = False  # while a recursion is looked at
            known = self._known[context] = any(self._own(context)) or any(
                self.in_context(each) for entered in context.enters.values() for each in entered
            )
        return known

    def _own(self, context: Context) -> Iterable[bool]:
        for node in walk_all(context.node):
            if isinstance(node, ast.Call):
                fact = context.calls.get(span_of(node))
                yield fact is not None and self.in_call(context, node, fact)
            elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
                yield self.in_operator(context, node)
