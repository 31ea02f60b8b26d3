"""Compiles ``rules/`` for a wheel, which is told where the files go by the build hook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from capturelint.rulebook.compiled import PACKED, compiled_name, save
from capturelint.rulebook.op_reader import parse_ops
from capturelint.rulebook.presets import parse_preset
from capturelint.rulebook.rules import parse_facts

_SECTIONS: tuple[tuple[str, str, Callable[[Path], dict[str, Any]]], ...] = (
    ("", "CG*.yaml", parse_facts),
    ("ops", "*.yaml", parse_ops),
    ("presets", "*.yaml", parse_preset),
)


def compile_rules(rules: Path, scratch: Path) -> Iterator[tuple[Path, str]]:
    """Writes one file a folder of ``rules`` to ``scratch``; gives each with where it belongs below the rules' folder.

    Raises RulebookError for a file that is not as it should be.
    """
    for folder, pattern, parse in _SECTIONS:
        paths = sorted((rules / folder).glob(pattern))
        name = compiled_name(paths)
        assert name is not None, f"no {pattern} in {rules / folder}"
        save(scratch, name, {path.name: parse(path) for path in paths})
        yield scratch / name, (Path(folder) / PACKED / name).as_posix()
