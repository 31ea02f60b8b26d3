"""Opens the units that hold candidates and runs all passes over each in one traversal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capturelint.errors import SourceError
from capturelint.passes.hazard import Hazard
from capturelint.passes.unit import Facts, Unit
from capturelint.project.definitions import FunctionInfo
from capturelint.values.facts import Context

if TYPE_CHECKING:
    from capturelint.rulebook.ops import OpTable


@dataclass(frozen=True, slots=True)
class UnitHazards:
    unit: Unit
    hazards: tuple[Hazard, ...]


def units_of(contexts: Iterable[Context], ops: OpTable) -> list[Unit]:
    """Groups contexts by the outermost function that holds them; those without a candidate are left out."""
    contexts = list(contexts)
    captured = frozenset(context.function for context in contexts if context.is_call and context.function is not None)
    units: dict[int, Unit] = {}
    for context in contexts:
        node = outermost(context)
        unit = units.setdefault(id(node), Unit(context.module, node, captured=captured, ops=ops))  # type: ignore[arg-type]
        unit.contexts.append(context)
    return [unit for unit in units.values() if any(context.candidates for context in unit.contexts)]


def outermost(context: Context) -> object:
    info: FunctionInfo | None = context.function
    if info is None:
        return context.node
    while info.parent is not None:
        info = info.parent
    if info.name == "<lambda>":
        return statement_of(context, info)
    return info.node


def statement_of(context: Context, info: FunctionInfo) -> object:
    """The module-level (or class-level) statement that a lambda stands in."""
    import ast

    for statement in ast.walk(context.module.tree):
        if isinstance(statement, ast.stmt) and not isinstance(statement, (ast.ClassDef, ast.If, ast.Try, ast.With)):
            if statement.lineno <= info.line <= (statement.end_lineno or 0) and any(
                inner is info.node for inner in ast.walk(statement)
            ):
                return statement
    return info.node


def run_passes(unit: Unit) -> UnitHazards:
    """Parses one unit with LibCST and asks every pass. Raises SourceError for the little that LibCST does not take."""
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    from capturelint.passes.collection import Collection
    from capturelint.passes.control_flow import ControlFlow
    from capturelint.passes.hidden_waits import HiddenWaits
    from capturelint.passes.host_data import HostData
    from capturelint.passes.host_state import HostState
    from capturelint.passes.host_waits import HostWaits
    from capturelint.passes.precedence import most_specific
    from capturelint.passes.region_state import RegionState
    from capturelint.passes.reseeding import Reseeding
    from capturelint.passes.scalars import FrozenScalars
    from capturelint.passes.shapes import Shapes

    try:
        wrapper = MetadataWrapper(cst.parse_module(unit.text), unsafe_skip_copy=True)
    except cst.ParserSyntaxError:
        # a line that goes on where none has begun is the only such syntax that is known
        text = "LibCST cannot read this function, a backslash before a statement for one; nothing in it is reported"
        raise SourceError(unit.module.display, unit.first_line, text) from None
    facts = Facts(unit, wrapper.resolve(PositionProvider), wrapper.module)
    kinds = (
        *(HostWaits, HiddenWaits, HostData, ControlFlow, Shapes),
        *(RegionState, FrozenScalars, HostState, Collection, Reseeding),
    )
    passes = [kind(facts) for kind in kinds]
    cst.visit_batched(wrapper.module, passes)
    return UnitHazards(unit, most_specific(hazard for each in passes for hazard in each.hazards.values()))
