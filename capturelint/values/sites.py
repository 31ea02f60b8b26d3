"""Allocation sites: the objects of the project's classes that the evaluator tells apart, with their attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capturelint.project.definitions import ClassInfo
    from capturelint.values.domain import Value


@dataclass(eq=False, slots=True)
class Site:
    """Where objects of a class are made; ``generic`` stands for an object whose making is not in view.

    ``attributes`` is what construction stored; other methods' stores are added when an attribute is asked for.
    """

    cls: ClassInfo
    generic: bool = False
    arguments: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    label: str = ""
    attributes: dict[str, Value] = field(default_factory=dict)
    #: attributes being worked out, so that a circle ends
    visited_names: set[str] = field(default_factory=set)
    #: attributes whose stores outside the class's own methods have been looked for
    searched: set[str] = field(default_factory=set)
