"""capturelint finds what breaks CUDA graphs before capture does.

``capture_region`` marks a function as captured. Importing this package imports no third-party module.
"""

from __future__ import annotations

from capturelint.marker import capture_region

__all__ = ["__version__", "capture_region"]

__version__ = "0.1.0"
