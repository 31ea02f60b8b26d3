"""Colours and links of the text report."""

from __future__ import annotations

from dataclasses import dataclass

from capturelint.model import Severity

_RESET = "\x1b[0m"
_BOLD, _DIM, _RED, _GREEN, _YELLOW, _BLUE = "1", "2", "31", "32", "33", "34"


@dataclass(frozen=True, slots=True)
class Style:
    """Wraps text in the codes of terminals, or leaves it as it is."""

    enabled: bool

    def _paint(self, text: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{text}{_RESET}" if self.enabled and text else text

    def severity(self, text: str, severity: Severity) -> str:
        return self._paint(text, _BOLD, _RED if severity is Severity.ERROR else _YELLOW)

    def strong(self, text: str) -> str:
        return self._paint(text, _BOLD)

    def frame(self, text: str) -> str:
        return self._paint(text, _BLUE)

    def faint(self, text: str) -> str:
        return self._paint(text, _DIM)

    def good(self, text: str) -> str:
        return self._paint(text, _GREEN)

    def link(self, text: str, url: str | None) -> str:
        """``text`` as a link that terminals open; as it is where there is no ``url``."""
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if self.enabled and url else text
