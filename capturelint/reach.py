"""From regions to contexts: what each region reaches, by which calls, and how sure that is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from capturelint.model import Confidence, Frame, ReachedFunction, Region, RegionRef, UnresolvedCall
from capturelint.project.definitions import FunctionInfo
from capturelint.project.module import Module
from capturelint.regions.enter import Entered
from capturelint.values.engine import Engine
from capturelint.values.facts import Context, NodeSpan
from capturelint.values.hierarchy import find_method
from capturelint.values.sure import CERTAIN, Sure

_MAX_GIVING = 40
#: surest ways first; a way by a virtual call with many targets comes after all others that are as sure
_LEVELS = (
    (Confidence.CERTAIN, False),
    (Confidence.LIKELY, False),
    (Confidence.LIKELY, True),
    (Confidence.POSSIBLE, True),
)
_UNBREAKABLE = ("torch.cuda.graph", "capture_begin")
#: a virtual call with more targets than these does not say which of them runs
_FEW_TARGETS = 3


@dataclass(eq=False, repr=False, slots=True)
class Step:
    """How a context is reached: from which context, by which call. ``confidence`` is that of the whole way.

    ``guessed``: some call on the way has many targets, and which of them runs is not known.
    """

    caller: Context | None
    frame: Frame | None
    confidence: Confidence
    guessed: bool = False
    #: how sure the last call of the way is
    call: Sure = CERTAIN


#: a call from a context: what it enters, where it stands, how sure it is, and whether it is one of many targets
Call = tuple[Context, Frame, Sure, bool]


@dataclass(eq=False, repr=False, slots=True)
class Reach:
    """Everything that one region's code enters."""

    entered: Entered
    steps: dict[Context, Step] = field(default_factory=dict)
    given_by: tuple[Frame, ...] = ()

    @property
    def kind(self) -> str:
        return self.entered.declaration.kind

    def trace(self, context: Context) -> tuple[Frame, ...]:
        """The calls from the region's body to ``context``, outermost first."""
        frames: list[Frame] = []
        step = self.steps[context]
        while step.caller is not None and step.frame is not None:
            frames.append(step.frame)
            step = self.steps[step.caller]
        return tuple(reversed(frames))

    def reference(self, context: Context) -> RegionRef:
        declaration = self.entered.declaration
        trace = self.trace(context)
        if declaration.body is None:
            trace = trace[1:]  # a region that is a function: the declaration is not a call
        return RegionRef(self.kind, declaration.module.display, declaration.line, declaration.name, trace)

    def region(self) -> Region:
        declaration = self.entered.declaration
        reached: dict[object, ReachedFunction] = {}
        unresolved: dict[tuple[str, NodeSpan], UnresolvedCall] = {}
        for context, step in self.steps.items():
            info = context.function
            if info is not None and step.frame is not None and info not in reached:
                reached[info] = ReachedFunction(context.module.display, info.line, info.qualname, step.frame)
            for span, reason in context.unresolved.items():
                text = span_text(context.module, span)
                unresolved[context.module.display, span] = UnresolvedCall(
                    context.module.display, span[0], span[1] + 1, text, reason
                )
        return Region(
            self.kind,
            declaration.module.display,
            declaration.line,
            declaration.name,
            tuple(sorted(reached.values(), key=lambda r: (r.path, r.line, r.name))),
            tuple(unresolved[key] for key in sorted(unresolved)),
            self.given_by,
        )


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Evidence:
    """What a result rests on: the index with its facts, and what each region reaches."""

    engine: Engine
    reaches: list[Reach]


def span_text(module: Module, span: NodeSpan, limit: int = 80) -> str:
    """The source text of a span, on one line."""
    lines = [module.line_text(line).encode() for line in range(span[0], min(span[2], span[0] + 12) + 1)]
    if not lines:
        return ""
    if span[2] == span[0]:
        lines[0] = lines[0][span[1] : span[3]]
    else:
        lines[0] = lines[0][span[1] :]
        if span[2] - span[0] < len(lines):
            lines[-1] = lines[-1][: span[3]]
    text = " ".join(b" ".join(lines).decode(errors="replace").split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def reach_all(engine: Engine, entered: Iterable[Entered]) -> list[Reach]:
    """Follows every region's calls, surest ways first, then shortest."""
    targets: dict[tuple[Context, Frame, str], set[FunctionInfo]] = {}
    for context in engine.contexts.values():
        if context.function is not None:
            for caller, frame, _ in context.callers:
                targets.setdefault((caller, frame, context.function.name), set()).add(context.function)
    calls: dict[Context, list[Call]] = {}
    for context in engine.contexts.values():
        name = context.function.name if context.function is not None else ""
        for caller, frame, sure in context.callers:
            many = len(targets.get((caller, frame, name), ())) > _FEW_TARGETS
            calls.setdefault(caller, []).append((context, frame, sure, many))
    reaches = [_reach(each, calls) for each in entered]
    for reach in reaches:
        reach.given_by = _given_by(engine, reach.entered)
    return reaches


def _given_by(engine: Engine, entered: Entered) -> tuple[Frame, ...]:
    """The calls that hand over what a block captures: those of its holder, and of the constructor of its object."""
    if entered.declaration.body is None:
        return ()
    infos: list[FunctionInfo] = []
    info = entered.declaration.holder
    while info is not None:
        infos.append(info)
        if info.owner is not None:
            init = find_method(engine, info.owner, "__init__")
            infos.extend([init] if init is not None else [])
        info = info.parent
    found: dict[Frame, None] = {}
    seen: set[FunctionInfo] = set()
    while infos and len(seen) < _MAX_GIVING:
        info = infos.pop()
        if info in seen:
            continue
        seen.add(info)
        for frame, holder in engine.given_by.get(info, {}).items():
            found[frame] = None
            while holder is not None:  # what it passes on may have come to it in the same way
                infos.append(holder)
                if holder.owner is not None:
                    init = find_method(engine, holder.owner, "__init__")
                    infos.extend([init] if init is not None else [])
                holder = holder.parent
    found.update(dict.fromkeys(entered.declaration.begins_at))
    return tuple(sorted(found, key=lambda frame: (frame.path, frame.line)))


def _reach(entered: Entered, calls: dict[Context, list[Call]]) -> Reach:
    reach = Reach(entered)
    # a context manager of the project's own may let functions out of the capture; torch's records all that it meets
    breakable = entered.declaration.body is not None and entered.declaration.kind not in _UNBREAKABLE
    reach.steps[entered.context] = Step(None, None, Confidence.CERTAIN)
    for level, guesses in _LEVELS:
        queue = deque(reach.steps)
        while queue:
            context = queue.popleft()
            for callee, frame, sure, many in calls.get(context, ()):
                if callee.breaks and breakable:
                    sure = sure.at_most(Confidence.POSSIBLE, "it leaves the capture, which is a breakable one")
                if callee not in reach.steps and sure.confidence >= level and (guesses or not many):
                    reach.steps[callee] = Step(context, frame, level, guesses, sure)
                    queue.append(callee)
    return reach
