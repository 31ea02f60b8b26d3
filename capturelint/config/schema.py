"""The JSON Schema of the configuration, for editors: made of the same table of keys that reads it.

It knows the form of a value, not whether the rule, preset or file that it names is there.
"""

from __future__ import annotations

import json

from capturelint.config.keys import CONFIG


def render_schema() -> str:
    """The schema of ``[tool.capturelint]`` and of a capturelint.toml, as capturelint.schema.json holds it."""
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "capturelint",
        "description": "[tool.capturelint] in pyproject.toml, or the whole of capturelint.toml",
        **CONFIG.schema(),
    }
    return json.dumps(document, indent=2) + "\n"
