"""The knowledge in ``rules/``, loaded and validated. Operator tables are in ``capturelint.rulebook.ops``."""

from __future__ import annotations

from capturelint.rulebook.location import rules_directory
from capturelint.rulebook.page import render_page, render_table
from capturelint.rulebook.rules import Example, Page, Rule, Rulebook, load_rulebook

__all__ = [
    "Example",
    "Page",
    "Rule",
    "Rulebook",
    "load_rulebook",
    "render_page",
    "render_table",
    "rules_directory",
]
