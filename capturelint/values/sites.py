"""Allocation sites: the objects of the project's classes that the evaluator tells apart, with their attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capturelint.project.definitions import ClassInfo
    from capturelint.values.change import Change
    from capturelint.values.domain import MadeAt, Value


@dataclass(eq=False, repr=False, slots=True)
class Site:
    """Where objects of a class are made; ``generic`` stands for an object whose making is not in view."""

    cls: ClassInfo
    generic: bool = False
    arguments: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    label: str = ""
    #: counts how often the constructor's arguments were widened; answers about older ones no longer hold
    version: int = 0
    #: made by code inside a region: it does not outlive a replay
    in_region: bool = False
    #: stands for an argument of a declared class: which object it is differs from call to call
    passed: bool = False
    #: some object of the project keeps it in an attribute
    held: bool = False
    #: a record of which each replay's caller gives another one
    varies: Change | None = None

    #: made by a function's code, not by a constructor or a module
    local: bool = False
    #: its class is what some table of the project names for such a place: an option chooses the table
    chosen: bool = False
    #: the call that makes it, where that is in view
    made: MadeAt | None = None

    @property
    def of_one_call(self) -> bool:
        """A record that a function makes for one capture or batch, or that comes from somewhere: it is not kept."""
        return self.cls.is_dataclass and (self.generic or (self.local and not self.held))

    @property
    def lasting(self) -> bool:
        """Whether the object outlives the capture: not made in the region, and no record of one capture or batch."""
        if self.in_region:
            return False
        return not self.cls.is_dataclass or (self.held and not self.passed)

    def __repr__(self) -> str:
        return f"<{self.cls.qualname}{' (any)' if self.generic else ''}>"
