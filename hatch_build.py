"""Build hook: puts compiled rules into the wheel, beside the YAML that they are made from."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledRules(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # a checkout compiles its rules itself, whenever they change
            return
        sys.path.insert(0, self.root)
        try:
            from capturelint.rulebook.build import compile_rules
        finally:
            sys.path.remove(self.root)
        self._scratch = tempfile.TemporaryDirectory()
        for file, place in compile_rules(Path(self.root, "rules"), Path(self._scratch.name)):
            build_data["force_include"][str(file)] = f"capturelint/_rules/{place}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._scratch.cleanup()
