"""Local names of one evaluation of a function, and what closures see of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capturelint.values.domain import Value, join

if TYPE_CHECKING:
    from capturelint.project.module import Module
    from capturelint.values.lazy import LazyScope


@dataclass(eq=False, repr=False, slots=True)
class Scope:
    """``names`` is what holds at the current statement (None: not reachable); ``ever`` all that names were bound to."""

    module: Module
    parent: Scope | LazyScope | None = None
    names: dict[str, Value] | None = field(default_factory=dict)
    ever: dict[str, Value] = field(default_factory=dict)
    outer_names: set[str] = field(default_factory=set)
    global_names: set[str] = field(default_factory=set)
    #: what was ever in front of a dot in ``names``: for ``self.x.y`` both ``self.x`` and ``self``
    _owners: set[str] = field(default_factory=set)

    def bind(self, name: str, value: Value) -> None:
        if name in self.outer_names and self.parent is not None:
            holder = self.parent.holder_of(name)
            if holder is not None:
                holder.bind(name, join(holder.lookup(name), value))
                return
        if self.names is not None:
            self.names[name] = value
        self.ever[name] = join(self.ever[name], value) if name in self.ever else value

    def narrow(self, key: str, value: Value) -> None:
        """Says what a name or a chain of attributes (``self.x``) is from here on."""
        if self.names is not None:
            self.names[key] = value
            owner = key.rpartition(".")[0]
            while owner and owner not in self._owners:
                self._owners.add(owner)
                owner = owner.rpartition(".")[0]

    def forget_attributes(self, name: str) -> None:
        """What is bound anew takes what was known of its attributes with it."""
        if self.names is not None and name in self._owners:
            for key in [key for key in self.names if key.startswith(name + ".")]:
                del self.names[key]

    def holder_of(self, name: str) -> Scope | LazyScope | None:
        """The scope, this one or an enclosing function's, that binds ``name``."""
        if name in self.ever:
            return self
        return self.parent.holder_of(name) if self.parent is not None else None

    def lookup(self, name: str) -> Value | None:
        """What a name is bound to here or in an enclosing function; None where neither binds it."""
        if self.names is not None and name in self.names:
            return self.names[name]
        if name in self.ever:
            return self.ever[name]
        return self.parent.lookup(name) if self.parent is not None else None


def join_names(left: dict[str, Value] | None, right: dict[str, Value] | None) -> dict[str, Value] | None:
    """The names after two branches meet; a branch that does not get here counts for nothing."""
    if left is None or right is None:
        return right if left is None else left
    if left is right:
        return left
    joined = left | right
    for name, theirs in right.items():
        ours = left.get(name)
        if ours is not theirs and ours is not None:
            joined[name] = join(ours, theirs)
    return joined
