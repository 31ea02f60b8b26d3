"""The configuration: ``[tool.capturelint]`` in pyproject.toml, or the same keys at the top of capturelint.toml.

Everything in it is checked when it is loaded; what is wrong is a ConfigError that names the file and the key.
"""

from __future__ import annotations

from capturelint.config.load import OWN_FILE, PYPROJECT, check_selectors, load_config, parse_config
from capturelint.config.model import Config, Override, Vocabulary

__all__ = [
    "OWN_FILE",
    "PYPROJECT",
    "Config",
    "Override",
    "Vocabulary",
    "check_selectors",
    "load_config",
    "parse_config",
]
