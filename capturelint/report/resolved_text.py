"""The text and the JSON of ``capturelint config``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from capturelint.report.frame import printable
from capturelint.report.json import VERSION
from capturelint.report.style import Style
from capturelint.report.text import count
from capturelint.resolved import DEFAULT, Resolved, Setting


def render_resolved(resolved: Resolved, *, color: bool = False) -> str:
    """One line a setting, with where it comes from; what is not set is faint."""
    return "".join(f"{line}\n" for line in _lines(resolved, Style(color)))


def render_resolved_json(resolved: Resolved) -> str:
    """The same for tools."""
    document = {
        "version": VERSION,
        "root": resolved.root,
        "config_file": resolved.config_file,
        "path": resolved.path,
        "settings": {each.name: {"value": each.value, "origin": each.origin} for each in resolved.settings},
        "rules": list(resolved.rules),
    }
    return json.dumps(document, indent=1) + "\n"


def _lines(resolved: Resolved, style: Style) -> Iterator[str]:
    yield f"project             {printable(resolved.root)}"
    yield f"configuration file  {printable(resolved.config_file or 'none')}"
    if resolved.path is not None:
        yield f"settings for        {printable(resolved.path)}"
    yield f"rules               {count(len(resolved.rules), 'rule')}"
    yield ""
    shown = [(each, f"{each.name} = {_value(each.value)}") for each in resolved.settings]
    width = max(len(text) for _, text in shown if len(text) <= _WIDTH)
    for setting, text in shown:
        line = f"{printable(text):<{width}}  # {printable(setting.origin)}"
        yield style.faint(line) if _is_default(setting) else line


#: a longer setting does not push the others' origins to the right
_WIDTH = 60


def _is_default(setting: Setting) -> bool:
    return setting.origin == DEFAULT


def _value(value: Any) -> str:
    """As TOML would have it, on one line."""
    if value is None:
        return "(none)"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }" if value else "{}"
        )
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else json.dumps(key)
