"""CG104: a wait that is left out."""

from __future__ import annotations

import libcst as cst

from capturelint.fixes.place import Place
from capturelint.model import Applicability, Edit, Fix, Span

_DROP = "leave the wait out"


def fix(place: Place) -> Fix | None:
    """A statement that only synchronizes goes; never safe, since something may be waited for."""
    node = place.node
    statement = place.parent(node)
    if not isinstance(node, cst.Call) or not isinstance(statement, cst.Expr):
        return None
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
    if name != "synchronize":
        return None
    line = place.parent(statement)
    block = place.parent(line) if line is not None else None
    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 and not line.trailing_whitespace.comment
    if alone and isinstance(block, cst.IndentedBlock) and len(block.body) > 1:
        number = place.facts.span(statement).line
        edit = Edit(Span(number, 1, place.facts.span(statement).end_line + 1, 1), "")
        return Fix(Applicability.UNSAFE, _DROP, (edit,))
    return place.fix(_DROP, statement, "pass", safe=False)
