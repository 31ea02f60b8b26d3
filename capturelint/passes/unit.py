"""A piece of source that passes open, and the facts that evaluation left about it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.model import Confidence, Span
from capturelint.rulebook.op_spec import size_arguments
from capturelint.values.domain import Tensor, Value, device_confidence, options, tensors
from capturelint.values.facts import CallFact, Context, Effect, NodeSpan, StoreFact

if TYPE_CHECKING:
    import libcst as cst

    from capturelint.project.definitions import FunctionInfo
    from capturelint.project.module import Module
    from capturelint.rulebook.ops import OpTable


#: form feeds before the indent of a line that counts
_FORM_FEEDS = re.compile(r"^[ \t\f]*\f", re.MULTILINE)


@dataclass(eq=False, repr=False, slots=True)
class Unit:
    """An outermost function, method or module-level statement with all contexts that were evaluated in it."""

    module: Module
    node: ast.AST
    contexts: list[Context] = field(default_factory=list)
    #: every function that the regions enter
    captured: frozenset[FunctionInfo] = frozenset()
    ops: OpTable | None = None

    @property
    def first_line(self) -> int:
        decorators = getattr(self.node, "decorator_list", [])
        line: int = min([self.node.lineno, *(decorator.lineno for decorator in decorators)])  # type: ignore[attr-defined]
        while decorators and line > 1 and not self.module.line_text(line).lstrip().startswith("@"):
            line -= 1  # `@(` may stand alone
        return line

    @property
    def text(self) -> str:
        """The unit's source lines; an indented one is wrapped in an ``if``, so that it parses by itself.

        Python counts indents anew behind a form feed; so does LibCST, and places what follows as if none were there.
        """
        text = self.module.text.between(self.first_line, self.node.end_lineno) + "\n"  # type: ignore[attr-defined]
        text = _FORM_FEEDS.sub("", text) if "\f" in text else text
        return f"if True:\n{text}" if text[:1] in " \t" else text

    @property
    def line_offset(self) -> int:
        """What to add to a line of ``text`` for the line in the file."""
        return self.first_line - (2 if self.text.startswith("if True:\n") and self.node.col_offset else 1)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Support:
    """The contexts in which something holds, and how sure it is in the surest of them."""

    confidence: Confidence
    contexts: tuple[Context, ...]
    why: str = ""


class Facts:
    """The facts of one unit, by the spans that LibCST gives: lines and columns from 1 and 0, in characters."""

    def __init__(self, unit: Unit, positions: object, tree: cst.CSTNode) -> None:
        self._unit = unit
        self._positions = positions
        self._tree = tree
        self._parents: dict[int, cst.CSTNode] = {}
        self._offset = unit.line_offset
        self._has_form_feeds = unit.module.holds("\f")

    def node_span(self, node: cst.CSTNode) -> NodeSpan:
        """The span of a node as ``ast`` has it."""
        found = self._positions[node]  # type: ignore[index]
        start_line, end_line = found.start.line + self._offset, found.end.line + self._offset
        return (
            start_line,
            self._bytes(start_line, found.start.column),
            end_line,
            self._bytes(end_line, found.end.column),
        )

    def span(self, node: cst.CSTNode) -> Span:
        found = self._positions[node]  # type: ignore[index]
        start_line, end_line = found.start.line + self._offset, found.end.line + self._offset
        start = found.start.column + self._left_out(start_line)
        return Span(start_line, start + 1, end_line, found.end.column + self._left_out(end_line) + 1)

    def _left_out(self, line: int) -> int:
        """How many characters at the beginning of a line ``Unit.text`` lacks."""
        left_out = _FORM_FEEDS.match(self._unit.module.line_text(line)) if self._has_form_feeds else None
        return left_out.end() if left_out is not None else 0

    def _bytes(self, line: int, column: int) -> int:
        text = self._unit.module.line_text(line)
        column += self._left_out(line)
        return column if text.isascii() else len(text[:column].encode())

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node around a node; few findings ask, so this is worked out for the first one that does."""
        if not self._parents:
            stack = [self._tree]
            while stack:
                current = stack.pop()
                for child in current.children:
                    self._parents[id(child)] = current
                    stack.append(child)
        return self._parents.get(id(node))

    # -- questions ---------------------------------------------------------------------------------------------------

    def values(self, node: cst.CSTNode) -> Iterable[tuple[Context, Value]]:
        span = self.node_span(node)
        return [(c, c.values[span]) for c in self._unit.contexts if span in c.values]

    def calls(self, node: cst.CSTNode) -> Iterable[tuple[Context, CallFact]]:
        span = self.node_span(node)
        return [(c, c.calls[span]) for c in self._unit.contexts if span in c.calls]

    @property
    def captured(self) -> frozenset[FunctionInfo]:
        """The functions that some region enters: what they set themselves is set anew before they read it."""
        return self._unit.captured

    def undecided(self, node: cst.CSTNode) -> bool:
        """Whether changing host state decides a test, a subject or a number of rounds here."""
        span = self.node_span(node)
        return any(span in context.undecided for context in self._unit.contexts)

    def works_within(self, node: cst.CSTNode) -> bool:
        """Whether a block works with tensors, itself or in the functions that it calls."""
        first, start, last, end = self.node_span(node)
        queue: list[tuple[Context, bool]] = [(context, False) for context in self._unit.contexts]
        seen: set[Context] = set()
        while queue:
            context, whole = queue.pop()
            if whole and context in seen:
                continue
            seen.add(context)

            def within(span: NodeSpan, whole: bool = whole) -> bool:
                return whole or ((first, start) <= span[:2] and span[2:] <= (last, end))

            for span, value in context.values.items():
                if within(span) and any(isinstance(option, Tensor) for option in options(value)):
                    return True
            queue.extend((inner, True) for span, entered in context.enters.items() if within(span) for inner in entered)
        return False

    def sizes(self, fact: CallFact) -> frozenset[int | str]:
        """Which arguments of a call are sizes: by position, and by name."""
        found: set[int | str] = set()
        for callee in fact.callees:
            spec = self._unit.ops.lookup(callee) if self._unit.ops is not None else None
            if spec is not None:
                found.update(size_arguments(spec, bound=fact.receiver is not None))
        return frozenset(found)

    def effects(self, node: cst.CSTNode) -> list[tuple[Effect, Support]]:
        """What a call, an index or an operator does, each effect once, with the contexts that it does it in."""
        span = self.node_span(node)
        found: dict[tuple[str, str, str], list[tuple[Context, Effect]]] = {}
        for context in self._unit.contexts:
            effects: tuple[Effect, ...] = context.indexes.get(span, ())
            if span in context.calls:
                effects = (*context.calls[span].effects, *effects)
            for effect in effects:
                found.setdefault((effect.kind, effect.on, effect.detail), []).append((context, effect))
        result = []
        for entries in found.values():
            best = max((effect for _, effect in entries), key=lambda e: e.confidence.rank)
            contexts = tuple(dict.fromkeys(c for c, e in entries if e.confidence is best.confidence))
            result.append((best, Support(best.confidence, contexts, best.why)))
        return result

    def stores(self, node: cst.CSTNode) -> Iterable[tuple[Context, StoreFact]]:
        span = self.node_span(node)
        return [(c, c.stores[span]) for c in self._unit.contexts if span in c.stores]

    def device_tensor(self, node: cst.CSTNode) -> Support | None:
        """Whether a node is a device tensor, in some context."""
        found = [(context, device_confidence(value)) for context, value in self.values(node)]
        return self.support(found, self.node_span(node)[0])

    def is_boolean(self, node: cst.CSTNode) -> bool:
        """Whether a node is a tensor of booleans, in every context in which it is a tensor."""
        found = [tensor.dtype for _, value in self.values(node) for tensor in tensors(value)]
        return bool(found) and all(dtype == "bool" for dtype in found)

    def support(self, found: Iterable[tuple[Context, Confidence | None]], line: int) -> Support | None:
        """The contexts that are surest, given how sure each is; ``line`` is where the code stands."""
        sure = [(c, min(confidence, c.cap_at(line))) for c, confidence in found if confidence is not None]
        if not sure:
            return None
        best = max((confidence for _, confidence in sure), key=lambda c: c.rank)
        return Support(best, tuple(dict.fromkeys(c for c, confidence in sure if confidence is best)))

    def text(self, node: cst.CSTNode, limit: int = 48) -> str:
        """A node's source on one line, shortened."""
        from capturelint.passes.text import code_of

        text = code_of(node)
        return text if len(text) <= limit else text[: limit - 3] + "..."


def characters(module: Module, span: NodeSpan) -> Span:
    """A span of ``ast`` as findings have it: lines and columns from 1, in characters."""

    def column(line: int, offset: int) -> int:
        text = module.line_text(line)
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="replace"))

    return Span(span[0], column(span[0], span[1]) + 1, span[2], column(span[2], span[3]) + 1)
