"""CG803: a region makes a generator, or draws from one of the project's own that no graph was told of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capturelint.model import Confidence
from capturelint.passes.hazard import Hazard
from capturelint.passes.run import UnitHazards
from capturelint.passes.unit import Support, Unit, characters
from capturelint.project.module import Module
from capturelint.values import devices, identity
from capturelint.values.domain import Device, ExternalInstance, Value, options
from capturelint.values.engine import Engine
from capturelint.values.facts import CallFact, Context, NodeSpan
from capturelint.values.identity import Place

_REGISTER = "register_generator_state"
_MAX_FILES = 40


def find(engine: Engine, contexts: Iterable[Context]) -> Iterator[UnitHazards]:
    """Draws in ``contexts`` from generators that are registered nowhere, and the making of generators there."""
    registered: Registered | None = None
    contexts = list(contexts)
    made = {(context.module.display, span[0], span[1]) for context in contexts for span in _made(context)}
    for context in contexts:
        if context.compiled:
            continue  # the compiler refuses generators, or leaves them out of its graphs
        for span in _made(context):
            yield _reported(
                context, span, "makes a generator: capture fails on this line", "made here", context.cap_at(span[0])
            )
        for span, fact in context.calls.items():
            generator = _drawn_from(fact)
            if generator is None or identity.place_of(generator) in made:
                continue
            registered = registered if registered is not None else Registered(engine)
            sure = registered.lacks(generator, context.module)
            if sure is None:
                continue
            sure = min(sure, context.cap_at(span[0]), key=lambda each: each.rank)
            message = "draws from a generator that no graph has registered: capture fails on this line"
            yield _reported(context, span, message, "draws from an unregistered generator", sure)


def _reported(context: Context, span: NodeSpan, message: str, label: str, sure: Confidence) -> UnitHazards:
    hazard = Hazard("CG803", characters(context.module, span), message, label, Support(sure, (context,)))
    return UnitHazards(Unit(context.module, context.node, [context]), (hazard,))


def _made(context: Context) -> Iterator[NodeSpan]:
    """Where a context makes a generator of the device."""
    for span, fact in context.calls.items():
        if "torch.Generator" in fact.callees and not context.compiled:
            given = fact.arguments[0] if fact.arguments else next((v for k, v in fact.keywords if k == "device"), None)
            device = devices.device_of(given)
            if device is not None and device.device is Device.DEVICE and device.confidence is Confidence.CERTAIN:
                yield span


def _drawn_from(fact: CallFact) -> ExternalInstance | None:
    """The generator on the device that an operator of torch's gets; None where it gets none."""
    names = [callee for callee in fact.callees if callee.startswith("torch.")]
    if not names or any(name.startswith("torch.Generator.") or name.endswith(_REGISTER) for name in names):
        return None
    for value in (*fact.arguments, *(value for _, value in fact.keywords)):
        for option in options(value):
            if isinstance(option, ExternalInstance) and option.cls in identity.GENERATORS:
                device = devices.device_of(option.argument("device"))
                declared = identity.role_of(option) == identity.DECLARED
                if declared or (device is not None and device.device is not Device.HOST):
                    return option
    return None


class Registered:
    """The generators that some graph of the project is told of."""

    def __init__(self, engine: Engine) -> None:
        self._places: set[Place] = set()
        #: packages where a generator that nothing is known of is registered: it may be any of theirs
        self._unknown: set[str] = set()
        for module in engine.project.modules(engine.project.search.calling(_REGISTER), _MAX_FILES):
            for holder, call in module.calls_named(_REGISTER):
                scope = engine.scope_of(holder, module)
                given = [*call.args, *(keyword.value for keyword in call.keywords)]
                for argument in given[:1]:
                    self._note(engine.evaluate_in(scope, argument), module)

    def _note(self, value: Value, module: Module) -> None:
        for option in options(value):
            place = identity.place_of(option) if isinstance(option, ExternalInstance) else None
            if place is None or identity.role_of(option) == identity.DECLARED:  # type: ignore[arg-type]
                self._unknown.add(_package(module))
            if place is not None:
                self._places.add(place)

    def lacks(self, generator: ExternalInstance, drawing: Module) -> Confidence | None:
        """How sure it is that a generator which ``drawing`` draws from is registered nowhere; None where it is."""
        if identity.place_of(generator) in self._places:
            return None
        if _package(drawing) in self._unknown or identity.role_of(generator) == identity.DECLARED:
            return Confidence.POSSIBLE
        device = devices.device_of(generator.argument("device"))
        sure = device is not None and device.device is Device.DEVICE and device.confidence is Confidence.CERTAIN
        return Confidence.CERTAIN if sure else Confidence.LIKELY


def _package(module: Module) -> str:
    return module.name.partition(".")[0]
