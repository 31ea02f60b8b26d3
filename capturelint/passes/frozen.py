"""What passes share that look for host values which a recording freezes: why a value changes, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst

from capturelint.model import Confidence
from capturelint.passes.base import CapturePass
from capturelint.passes.unit import Support
from capturelint.values.change import Cause, Source
from capturelint.values.domain import Host, Sequence, Tensor, Value, changing_reason, options, says_nothing
from capturelint.values.facts import Context

#: a value that changes, and why
Frozen = tuple[Cause, Support]


class FrozenValues(CapturePass):
    """Base of the passes about values that differ between replays and are recorded once."""

    def frozen(
        self, node: cst.CSTNode, wanted: Callable[[Value], bool] = lambda value: True, *, compiled: bool = False
    ) -> Frozen | None:
        """Why a node's value changes after capture. What ``torch.compile`` captures is guarded, or becomes an input."""
        return self.surest(
            node,
            (
                (context, value)
                for context, value in self.facts.values(node)
                if (compiled or not context.compiled) and wanted(value)
            ),
        )

    def surest(self, node: cst.CSTNode, found: Iterable[tuple[Context, Value | None]]) -> Frozen | None:
        causes: list[tuple[Context, Cause]] = []
        for context, value in found:
            change = changing_reason(value)
            cause = change.outside(self.facts.captured) if change is not None else None
            if cause is not None:
                causes.append((context, cause))
        if not causes:
            return None
        line = self.facts.node_span(node)[0]
        support = self.facts.support(((context, self.confidence(cause)) for context, cause in causes), line)
        assert support is not None
        best = next(cause for context, cause in causes if context is support.contexts[0])
        return best, Support(support.confidence, support.contexts, best.reason)

    @staticmethod
    def confidence(cause: Cause) -> Confidence:
        if cause.source is Source.ENVIRONMENT:
            return Confidence.POSSIBLE
        return min(cause.confidence, Confidence.LIKELY)


def is_number(value: Value) -> bool:
    """A host number, as far as is known: what a setter without annotations stores is unknown besides."""
    found = [option for option in options(value) if not (isinstance(option, Host) and option.is_none)]
    numbers = [option for option in found if isinstance(option, Host) and not _is_text(option)]
    return bool(numbers) and all(option in numbers or says_nothing(option) for option in found)


def _is_text(value: Host) -> bool:
    return isinstance(value.const, str) or value.kind in ("str", "enum", "key", "slice")


def is_host_scalar(value: Value) -> bool:
    """A CPU tensor that may be of no dimension: an operator takes its value along as an argument."""
    found = [option for option in options(value) if isinstance(option, Tensor)]
    return any(option.device.value == "host" and option.rank in (0, None) for option in found) and not any(
        option.on_device for option in found
    )


def holds_number(value: Value) -> bool:
    """A number, or a tuple or list of some: a shape."""
    if is_number(value):
        return True
    return any(
        isinstance(option, Sequence)
        and any(is_number(item) for item in (*(option.items or ()), option.element) if item)
        for option in options(value)
    )
