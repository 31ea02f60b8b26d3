"""capturelint finds what breaks CUDA graphs before capture does.

``capture_region`` marks a function as captured. Importing this package imports no third-party module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capturelint.marker import capture_region

if TYPE_CHECKING:
    from capturelint.verifier.api import verify

__all__ = ["__version__", "capture_region", "verify"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # the verifier is imported when it is asked for, and torch when it runs
    if name == "verify":
        from capturelint.verifier.api import verify

        return verify
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
