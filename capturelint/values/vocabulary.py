"""The project's own words, from config and presets: which of its names synchronize, are safe, or tell of capture."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass, field

#: modules that re-export names under another path; the tables know one spelling
_ALIASES = (
    ("torch.cuda.graphs.", "torch.cuda."),
    ("torch.cuda.streams.", "torch.cuda."),
    ("torch._tensor.Tensor", "torch.Tensor"),
    ("torch.nn.parameter.", "torch.nn."),
    ("torch.nn.modules.", "torch.nn.modules."),
    ("torch.nn.module.", "torch.nn."),
    ("torch.functional.", "torch."),
    ("torch.autograd.grad_mode.", "torch."),
    ("torch.optim.adam.", "torch.optim."),
    ("numpy.core.", "numpy."),
    ("triton.runtime.jit.", "triton."),
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Dotted names or ``*`` patterns. ``predicates`` and ``flags`` give values inside a region.

    ``breaks`` are decorators whose functions may leave the capture. ``other_hardware`` are patterns for the parts of a
    dotted name, in lower case, that tell code for hardware which the project does not run on. ``on_hardware`` are those
    of ``predicates`` that hold outside regions too.
    """

    synchronizes: tuple[str, ...] = ()
    reads_device: tuple[str, ...] = ()
    capture_safe: tuple[str, ...] = ()
    allows_sync: tuple[str, ...] = ()
    starts_capture: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    eager: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    other_hardware: tuple[str, ...] = ()
    flags: dict[str, bool] = field(default_factory=dict)
    predicates: dict[str, bool] = field(default_factory=dict)
    on_hardware: dict[str, bool] = field(default_factory=dict)

    def canonical(self, dotted: str) -> str:
        for old, new in _ALIASES:
            if dotted.startswith(old) and old != new:
                return new + dotted[len(old) :]
        return dotted

    def predicate(self, dotted: str) -> bool | None:
        """The value of a predicate inside a region: exact name first, then the last part, then patterns."""
        if dotted in self.predicates:
            return self.predicates[dotted]
        last = dotted.rpartition(".")[2]
        return self.predicates.get(last)

    def asks_for_hardware(self, dotted: str) -> bool | None:
        """The value of a predicate that tells hardware apart: the same in all code, inside regions and outside."""
        return self.on_hardware.get(dotted, self.on_hardware.get(dotted.rpartition(".")[2]))

    def flag(self, name: str) -> bool | None:
        """The value of a host flag inside a region, by the last part of its name."""
        return next((value for pattern, value in self.flags.items() if fnmatch.fnmatchcase(name, pattern)), None)

    def is_eager(self, qualname: str) -> bool:
        """Whether a function (or its class) says by its name that it is the path without graphs."""
        parts = [part.lower() for part in qualname.split(".") if not part.startswith("<")]
        return any(self._says_eager(part) for part in parts)

    def is_for_other_hardware(self, dotted: str) -> bool:
        """Whether a function, its class or a module that holds it says by its name that other hardware runs it."""
        return bool(self.other_hardware) and any(
            fnmatch.fnmatchcase(part, pattern) for part in dotted.lower().split(".") for pattern in self.other_hardware
        )

    def _says_eager(self, part: str) -> bool:
        found = [pattern for pattern in self.eager if fnmatch.fnmatchcase(part, pattern.lstrip("!"))]
        return bool(found) and not any(pattern.startswith("!") for pattern in found)

    @staticmethod
    def matches(dotted: str, patterns: Iterable[str]) -> bool:
        return any(
            dotted == pattern or dotted.endswith("." + pattern) or fnmatch.fnmatchcase(dotted, pattern)
            for pattern in patterns
        )
