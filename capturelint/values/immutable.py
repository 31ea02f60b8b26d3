"""Classes of values that are never changed, and made by the million."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda function: function


_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def immutable(cls: type[_T]) -> type[_T]:
    """A frozen dataclass by the word of the type checker, which is held to it.

    At run time nothing guards the fields: a frozen dataclass takes three times as long to make.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
