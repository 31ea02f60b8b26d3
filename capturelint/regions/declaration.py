"""What every way to declare a region comes to: a block of statements, or a callable with what it is called with."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.model import Frame

if TYPE_CHECKING:
    from capturelint.project.definitions import FunctionInfo
    from capturelint.project.module import Module
    from capturelint.values.domain import Value
    from capturelint.values.frame import Arguments


@dataclass(eq=False, repr=False, slots=True)
class Declaration:
    """A region before it is evaluated.

    A block has ``body``; otherwise ``target`` is called with ``arguments`` (None: as far as its own annotations and
    callers tell). ``holder`` is the function that holds the block or the declaring call, None at module level.
    ``inputs`` gives tensor specs by parameter name, as the marker states them.
    """

    kind: str
    module: Module
    node: ast.AST
    name: str
    holder: FunctionInfo | None = None
    body: list[ast.stmt] | None = None
    target: Value | None = None
    arguments: Arguments | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    compiled: bool = False
    #: compiled with ``fullgraph=True``: the compiler itself refuses to break the graph, and says where
    refuses_breaks: bool = False
    #: the statements from the one that begins the capture to the one that ends it, where no one statement holds them
    stretch: list[ast.stmt] | None = None
    #: where the project's own context manager begins the capture
    begins_at: tuple[Frame, ...] = ()

    @property
    def line(self) -> int:
        return getattr(self.node, "lineno", 1)

    @property
    def code(self) -> ast.AST:
        """The node that holds the region's own code; made up for a stretch of a module's statements."""
        if self.stretch is None or self.holder is not None:
            return self.node
        whole = ast.If(test=ast.Constant(True), body=self.stretch, orelse=[])
        whole.lineno, whole.col_offset = self.stretch[0].lineno, self.stretch[0].col_offset
        whole.end_lineno, whole.end_col_offset = self.stretch[-1].end_lineno, self.stretch[-1].end_col_offset
        return whole
