"""Who calls and binds what in a module, by name: asked of the functions alone whose text holds the name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from capturelint.project.bodies import Body
from capturelint.project.definitions import FunctionInfo
from capturelint.project.forms import CALLED, FIRST, ITEM_STORED, MENTIONED, STORED, Form
from capturelint.project.uses import Uses, find_uses

if TYPE_CHECKING:
    from capturelint.project.module import Module

Calls = list[tuple[FunctionInfo | None, ast.Call]]
Stores = list[tuple[FunctionInfo | None, ast.AST, ast.expr]]
Items = list[tuple[FunctionInfo | None, ast.AST, ast.Subscript]]


class Lookup:
    """A module's ``Uses`` (which says what each entry is), put together from those of its functions."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._calls: dict[str, Calls] = {}
        self._with_globals: list[Body] | None = None
        #: what is said outside of bodies, and functions for their bodies, in the order of a walk
        self._outside: list[tuple[int, Uses]] = []
        bodies = {body.function: body for body in module.bodies.all}
        found = find_uses([module.top], None, module.functions, bodies.keys())
        for rank, part in enumerate(found):
            if isinstance(part, Uses):
                self._outside.append((rank, part))
            else:
                bodies[part].rank = rank

    def calls(self, name: str) -> Calls:
        known = self._calls.get(name)
        if known is None:
            known = self._calls[name] = [each for uses in self._of(name, CALLED) for each in uses.calls.get(name, ())]
        return known

    def all_calls(self) -> dict[str, Calls]:
        """Every call, by the callee's last identifier."""
        found: dict[str, Calls] = {}
        for uses in self._of("", MENTIONED):
            for name, calls in uses.calls.items():
                found.setdefault(name, []).extend(calls)
        return found

    def attribute_stores(self, name: str) -> Stores:
        return [each for uses in self._of(name, STORED) for each in uses.attribute_stores.get(name, ())]

    def attribute_items(self, name: str) -> Items:
        return [each for uses in self._of(name, ITEM_STORED) for each in uses.attribute_items.get(name, ())]

    def item_stores(self, name: str) -> list[tuple[FunctionInfo, ast.AST]]:
        return [each for uses in self._of(name, ITEM_STORED) for each in uses.item_stores.get(name, ())]

    def globals(self, name: str) -> list[FunctionInfo]:
        if self._with_globals is None:
            self._with_globals = self._module.bodies.mentioning(("global",), FIRST)
        bodies = [body for body in self._with_globals if self._module.bodies.may_hold(body, name, MENTIONED)]
        return [each for uses in self._ranked(bodies) for each in uses.globals.get(name, ())]

    @property
    def withs(self) -> Iterator[tuple[FunctionInfo | None, ast.With | ast.AsyncWith]]:
        for uses in self._of("with", FIRST):
            yield from uses.withs

    def names_given_to(self, call: ast.Call) -> tuple[str, ...]:
        """The last identifiers of what ``call``'s result is assigned to, directly."""
        body = self._module.bodies.at(call.lineno)
        held = [self._of_body(body)] if body is not None and call.lineno >= body.lines.first else []
        found = (uses.assigned.get(id(call)) for uses in (*held, *(uses for _, uses in self._outside)))
        return next((names for names in found if names is not None), ())

    def _of(self, name: str, form: Form) -> list[Uses]:
        """What may speak of a name, in the order of a walk. Identifiers beyond ASCII may be spelled in many ways."""
        module = self._module
        module.looked.listed = module.looked.listed or not (name and name.isascii())
        bodies = module.bodies.mentioning((name,), form) if name and name.isascii() else module.bodies.all
        return self._ranked(bodies)

    def _ranked(self, bodies: list[Body]) -> list[Uses]:
        if not bodies:
            return [uses for _, uses in self._outside]
        ranked = [*self._outside, *((body.rank, self._of_body(body)) for body in bodies)]
        ranked.sort(key=_rank)
        return [uses for _, uses in ranked]

    def _of_body(self, body: Body) -> Uses:
        if body.uses is None:
            node = body.function.node
            assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            found = find_uses(node.body, body.function, self._module.functions)
            body.uses = next((each for each in found if isinstance(each, Uses)), Uses())
        return body.uses


def _rank(ranked: tuple[int, Uses]) -> int:
    return ranked[0]
