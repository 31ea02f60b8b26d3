"""Names for findings that outlive edits elsewhere in the file: what baselines and other tools tell findings by."""

from __future__ import annotations

import hashlib
import re

_TRAILING_COMMA = re.compile(r",(?=[)\]}])")


def fingerprint(rule: str, path: str, scope: str, text: str, occurrence: int) -> str:
    """A stable hash of 16 hex digits. Line numbers are no part of it.

    ``path`` should be relative to the project, with ``/``. ``scope`` is the enclosing function's dotted name. ``text``
    is the source of the finding's span; white space and trailing commas in it don't count, since formatters move them.
    ``occurrence`` counts, from 0, the findings of the file that agree in all of the above.
    """
    parts = (rule, path, scope, normalized(text), str(occurrence))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def normalized(text: str) -> str:
    """What formatters leave of a text."""
    return _TRAILING_COMMA.sub("", "".join(text.split()))
