"""Names for streams and events, as the state of a walk speaks of them."""

from __future__ import annotations

from dataclasses import dataclass

from capturelint.values import identity
from capturelint.values.domain import ExternalInstance, Value, is_none, options
from capturelint.values.identity import Place


@dataclass(frozen=True, slots=True)
class Key:
    """A stream or an event. ``role`` says how it came about, ``at`` where."""

    role: str
    at: Place | None = None

    @property
    def exact(self) -> bool:
        """Whether two keys that differ are two objects: a parameter may well be some other known stream."""
        return self.role in (identity.MADE, identity.RECORDED)


CAPTURE = Key("capture")
DEFAULT = Key(identity.DEFAULT)


def streams_of(value: Value | None) -> list[ExternalInstance | None]:
    """The streams or events that a value may be; None stands for one that nothing is known of."""
    found: list[ExternalInstance | None] = []
    for option in options(value):
        if is_none(option):
            continue  # what is called or entered is not None
        known = isinstance(option, ExternalInstance) and option.cls in identity.STREAMS | identity.EVENTS
        found.append(option if isinstance(option, ExternalInstance) and known else None)
    return found or [None]


def key_of(value: ExternalInstance, bound: dict[Place, Key | None]) -> Key | None:
    """The key of a stream or event; ``bound`` says what the calls that ask for the current stream gave."""
    role, at = identity.role_of(value), identity.place_of(value)
    if role == identity.DEFAULT:
        return DEFAULT
    if at is not None and at in bound:
        return bound[at]
    return Key(role, at) if role and at is not None else None
