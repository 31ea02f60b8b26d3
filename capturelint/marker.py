"""What user code imports: ``capture_region`` marks a function as captured. Costs nothing at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])


@overload
def capture_region(function: _F, /) -> _F: ...
@overload
def capture_region(*, inputs: Any = None, setup: Any = None, vary: Any = None) -> Callable[[_F], _F]: ...
def capture_region(function: Any = None, /, *, inputs: Any = None, setup: Any = None, vary: Any = None) -> Any:
    """Marks ``function`` as code that a CUDA graph captures; returns it unchanged.

    The linter reads the mark from the source. The arguments are for the verifier, which calls the function on a GPU:

    inputs: a mapping from parameter to tensor spec (``"float16[8, 4096]"``, ``"int32[8] in 1..4096"``), or a function
        of a seed that returns the arguments.
    setup: a callable that returns the object to bind ``self`` to, for methods.
    vary: a callable that takes an integer and changes host state between capture and replay.
    """

    def mark(marked: _F) -> _F:
        marked.__capturelint__ = {"inputs": inputs, "setup": setup, "vary": vary}  # type: ignore[attr-defined]
        return marked

    return mark(function) if function is not None else mark
