"""Fixing until nothing changes: check, edit what goes together, and check again what came out.

Files are read once and kept in memory; nothing is written before the last round is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path

from capturelint.fixes.edits import going_together, wanted
from capturelint.fixes.files import edited, replace_file
from capturelint.model import CheckResult, Edit, Finding, Fix
from capturelint.source.decoding import decode

#: checks a project in which these files hold these bytes
Check = Callable[[Mapping[Path, bytes]], CheckResult]

#: each round settles what overlapped in the one before; a fix that calls for another one ends here at the latest
_MAX_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Fixed:
    """What is left after fixing, the files that changed by the names that reports show, and fixes by rule."""

    result: CheckResult
    before: dict[str, bytes]
    after: dict[str, bytes]
    counts: Counter[str]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def changed(self) -> list[str]:
        return sorted(name for name, data in self.after.items() if data != self.before[name])

    def write(self) -> None:
        """Raises UsageError for a file that can't be written; those before it are."""
        for name in self.changed:
            replace_file(Path(name), self.after[name])

    def diff(self) -> str:
        """A unified diff of all files, as `git apply` and `patch` read it."""
        return "".join(line for name in self.changed for line in _diff(name, self.before[name], self.after[name]))


@dataclass(slots=True)
class _Rounds:
    check: Check
    unsafe: bool
    given: Mapping[Path, bytes]
    before: dict[str, bytes] = field(default_factory=dict)
    after: dict[str, bytes] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    #: edits of which nothing that parses came out
    refused: set[tuple[str, tuple[Edit, ...]]] = field(default_factory=set)

    def overlay(self) -> dict[Path, bytes]:
        return {Path(name).absolute(): data for name, data in self.after.items() if data != self.before[name]}

    def run(self) -> Fixed:
        result = self.check({})
        seen: list[dict[Path, bytes]] = [{}]
        for _ in range(_MAX_ROUNDS):
            if not self._round(result):
                break
            result = self.check(self.overlay())
            if self.overlay() in seen:
                break  # fixes that undo each other
            seen.append(self.overlay())
        return Fixed(result, self.before, self.after, self.counts)

    def _round(self, result: CheckResult) -> bool:
        by_file: dict[str, list[tuple[Finding, Fix]]] = {}
        for finding in sorted(result.findings, key=lambda each: each.sort_key):
            fix = wanted(finding, unsafe=self.unsafe)
            if fix is not None and (finding.path, fix.edits) not in self.refused:
                by_file.setdefault(finding.path, []).append((finding, fix))
        changes = [self._edit(name, pairs) for name, pairs in by_file.items()]
        return any(changes)

    def _edit(self, name: str, pairs: list[tuple[Finding, Fix]]) -> bool:
        if name not in self.after:
            path = Path(name)
            given = self.given.get(path.absolute())
            self.before[name] = self.after[name] = path.read_bytes() if given is None else given
        chosen = {id(fix) for fix in going_together(fix for _, fix in pairs)}
        together = [(finding, fix) for finding, fix in pairs if id(fix) in chosen]
        for group in (together, *([each] for each in together)):
            data = edited(self.after[name], name, (edit for _, fix in group for edit in fix.edits))
            if data is not None:
                self.after[name] = data
                self.counts.update(finding.rule for finding, _ in group)
                return True
            if len(group) == 1:
                self.refused.add((name, group[0][1].edits))
        return False


def fix_until_stable(check: Check, *, unsafe: bool, given: Mapping[Path, bytes] | None = None) -> Fixed:
    """Applies the fixes of what ``check`` finds, in memory, until nothing is left to apply.

    ``given``: what files hold in place of what is on disk.
    """
    return _Rounds(check, unsafe, given or {}).run()


def _diff(name: str, before: bytes, after: bytes) -> Iterator[str]:
    old, new = (_lines(decode(data, name)) for data in (before, after))
    for line in unified_diff(old, new, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    """Lines as tools that read patches count them: a form feed ends none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
