"""The byte test that keeps most files from being parsed at all."""

from __future__ import annotations

from collections.abc import Sequence


def mentions_any(data: bytes, needles: Sequence[bytes]) -> bool:
    """Whether one of ``needles`` occurs in ``data``. Plain substring tests: a regex alternation is 40 times slower."""
    for needle in needles:  # noqa: SIM110 - this runs for every file, and a generator takes longer than the tests
        if needle in data:
            return True
    return False
