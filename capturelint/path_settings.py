"""Which rules, which confidence and which severity count for a file: the run's, and what the configuration changes."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from capturelint.config import Override
from capturelint.errors import ConfigError
from capturelint.model import CheckResult, Confidence, Severity
from capturelint.rulebook import Rulebook

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from capturelint.check import CheckOptions


@dataclass(frozen=True, slots=True)
class Settings:
    """What counts for one file. ``dropped`` holds the rules whose findings are left out at the very end."""

    codes: frozenset[str]
    min_confidence: Confidence
    fail_on: Severity
    dropped: frozenset[str] = frozenset()


class PathSettings:
    """Asked with paths as reports show them. Raises UsageError for unknown rules and ConfigError for bad patterns."""

    def __init__(self, rulebook: Rulebook, options: CheckOptions) -> None:
        self.rulebook = rulebook
        self._options = options
        self._root = Path(os.path.realpath(options.root))
        self._known: dict[str, Settings] = {}
        source = options.config.source or ""
        self._overrides = [
            (_spec(override.paths, source, f"overrides[{index}].paths"), override)
            for index, override in enumerate(options.overrides)
        ]
        self._ignores = [
            (_spec((pattern,), source, f'per-file-ignores."{pattern}"'), self._resolved(selectors))
            for pattern, selectors in options.config.per_file_ignores.items()
        ]
        self.base = self._made([])

    @cached_property
    def codes(self) -> frozenset[str]:
        """The rules that run for some file."""
        selected = [self.rulebook.select(each.select, ()) for _, each in self._overrides if each.select]
        return self.base.codes.union(*selected)

    @cached_property
    def least_confidence(self) -> Confidence:
        """The lowest that some file asks for."""
        asked = [each.min_confidence for _, each in self._overrides if each.min_confidence is not None]
        return min(self.base.min_confidence, *asked, key=lambda confidence: confidence.rank) if asked else (
            self.base.min_confidence
        )  # fmt: skip

    def at(self, path: str) -> Settings:
        if not self._overrides and not self._ignores:
            return self.base
        if path not in self._known:
            below = self._below_root(path)
            matching = [override for spec, override in self._overrides if spec.match_file(below)]
            dropped = [codes for spec, codes in self._ignores if spec.match_file(below)]
            self._known[path] = self._made(matching, frozenset().union(*dropped))
        return self._known[path]

    def matching(self, path: str) -> list[int]:
        """The overrides that are about a file, by their number."""
        below = self._below_root(path)
        return [index for index, (spec, _) in enumerate(self._overrides) if spec.match_file(below)]

    def narrowed(self, result: CheckResult) -> CheckResult:
        """A result with all ``codes`` and the ``least_confidence``, less what the settings of its files leave out."""
        if not self._overrides and not self._ignores:
            return result
        kept = []
        hidden = Counter(dict(result.hidden_in))
        for finding in result.findings:
            settings = self.at(finding.path)
            if finding.rule not in settings.codes or finding.rule in settings.dropped:
                continue
            if finding.confidence >= settings.min_confidence:
                kept.append(finding)
            elif finding.suppressed is None:
                hidden[finding.path] += 1
        return replace(result, findings=tuple(kept), hidden_in=tuple(sorted(hidden.items())))

    def _made(self, matching: Sequence[Override], dropped: frozenset[str] = frozenset()) -> Settings:
        options = self._options
        selects = [each.select for each in matching if each.select]
        confidences = [each.min_confidence for each in matching if each.min_confidence is not None]
        severities = [each.fail_on for each in matching if each.fail_on is not None]
        select = options.select or (selects[-1] if selects else options.config.select)
        ignore = (*options.ignore, *options.config.ignore, *(rule for each in matching for rule in each.ignore))
        return Settings(
            codes=self.rulebook.select(select, ignore),
            min_confidence=confidences[-1] if confidences else options.min_confidence,
            fail_on=severities[-1] if severities else options.fail_on,
            dropped=dropped,
        )

    def _resolved(self, selectors: Sequence[str]) -> frozenset[str]:
        return frozenset().union(*(self.rulebook.resolve(selector) for selector in selectors))

    def _below_root(self, path: str) -> str:
        absolute = Path(os.path.realpath(path))
        return absolute.relative_to(self._root).as_posix() if absolute.is_relative_to(self._root) else path


def _spec(patterns: Sequence[str], source: str, key: str) -> GitIgnoreSpec:
    import pathspec

    try:
        spec = pathspec.GitIgnoreSpec.from_lines(patterns)
        spec.match_file("a.py")
    except (ValueError, re.error) as error:
        raise ConfigError(source, key, f"not a pattern: {error}") from None
    return spec
