"""Source text of LibCST nodes."""

from __future__ import annotations

import libcst as cst

_EMPTY = cst.Module(body=[])


def code_of(node: cst.CSTNode) -> str:
    """A node's source on one line."""
    return " ".join(_EMPTY.code_for_node(node).split())
