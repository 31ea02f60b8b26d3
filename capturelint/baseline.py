"""The baseline: findings that were there when a project took the linter up, and that do not count until they change.

An entry is a rule, a path, the enclosing function and the text of the code, and how often they occur together. Line
numbers are no part of it, so that edits elsewhere in a file change nothing; one more copy of the same code counts.
Entries are kept sorted, each on a line of its own, so that two branches that change the file seldom meet.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from capturelint.errors import ConfigError, UsageError
from capturelint.fingerprint import normalized
from capturelint.model import Confidence, Finding, StaleEntry, Suppression
from capturelint.source.files import SourceFile, display_path
from capturelint.source.writing import write_atomically

VERSION = 1
KIND = "baseline"
#: a longer text is cut, and told by its hash
_LONGEST_TEXT, _CUT_TEXT = 100, 80
_HASHED = re.compile(r"\.\.\. \[([0-9a-f]{16})\]$")
_KEYS = ("path", "scope", "rule", "text", "count")


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """What a finding is told by. ``path`` counts from the baseline's directory; ``shown`` is the text for people."""

    path: str
    scope: str
    rule: str
    text: str
    shown: str = field(compare=False)

    @classmethod
    def of(cls, finding: Finding, base: Path) -> Entry:
        path = os.path.relpath(finding.path, base).replace(os.sep, "/")
        text = normalized(finding.text)
        shown = " ".join(finding.text.split())
        if len(text) > _LONGEST_TEXT:
            text = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
            shown = f"{shown[:_CUT_TEXT]}... [{text}]"
        return cls(path, finding.scope, finding.rule, text, shown)

    @classmethod
    def read(cls, path: str, scope: str, rule: str, shown: str) -> Entry:
        hashed = _HASHED.search(shown)
        return cls(path, scope, rule, hashed[1] if hashed else normalized(shown), shown)

    def __str__(self) -> str:
        where = f" in {self.scope}" if self.scope else ""
        return f"{self.path}: {self.rule}{where}: `{self.shown}`"


@dataclass(frozen=True)
class Baseline:
    """``file`` is absolute. ``least`` is the confidence that findings had to have when the file was written."""

    file: Path
    counts: Mapping[Entry, int] = field(default_factory=dict)
    least: Confidence = Confidence.LIKELY

    def path_of(self, entry: Entry) -> Path:
        return Path(os.path.normpath(self.file.parent / entry.path))

    def marked(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings, those in the baseline as suppressed. Of more copies than it counts the last ones are left."""
        left = dict(self.counts)
        result = []
        for finding in sorted(findings, key=lambda each: each.sort_key):
            entry = Entry.of(finding, self.file.parent)
            if finding.suppressed is None and left.get(entry, 0) > 0:
                left[entry] -= 1
                finding = replace(finding, suppressed=Suppression(KIND))
            result.append(finding)
        return result

    def counted(self, findings: Iterable[Finding]) -> Counter[Entry]:
        """What the baseline would hold for these findings: all that count, or would without it."""
        kept = (each for each in findings if each.suppressed is None or each.suppressed.kind == KIND)
        return Counter(Entry.of(finding, self.file.parent) for finding in kept)


@dataclass(frozen=True, slots=True)
class View:
    """What a run could see: the rules and files that it checked (less those that failed), and how sure it had to be."""

    known: frozenset[str]
    codes: frozenset[str]
    files: frozenset[Path]
    failed: frozenset[Path]
    directories: tuple[Path, ...]
    least: Confidence

    def has(self, baseline: Baseline, entry: Entry) -> bool:
        """Whether the run would have found what an entry says. A file that is gone was not checked by its name."""
        if (entry.rule in self.known and entry.rule not in self.codes) or self.least > baseline.least:
            return False
        path = baseline.path_of(entry)
        if path in self.files:
            return path not in self.failed
        return any(path.is_relative_to(directory) for directory in self.directories)


@dataclass(frozen=True, slots=True)
class Update:
    """A baseline as it would be after a run, and what that adds to it and removes from it."""

    baseline: Baseline
    added: tuple[tuple[Entry, int], ...]
    removed: tuple[tuple[Entry, int], ...]


@dataclass(frozen=True, slots=True)
class Compared:
    findings: tuple[Finding, ...]
    stale: tuple[StaleEntry, ...]
    update: Update


def compare(baseline: Baseline, findings: Iterable[Finding], view: View) -> Compared:
    """What a run found against a baseline: which findings it holds, which of its entries are gone, and what is new.

    What the run could not see, since other files or rules were checked, is neither gone nor changed by an update.
    """
    marked = baseline.marked(findings)
    now = baseline.counted(marked)
    before = baseline.counts
    unseen = {entry: max(count, now[entry]) for entry, count in before.items() if not view.has(baseline, entry)}
    shown = {entry: entry for entry in before}  # a text that is cut may be laid out anew, and stays as it was written
    after = {shown.get(entry, entry): count for entry, count in now.items()} | unseen
    least = min(view.least, baseline.least, key=lambda each: each.rank)
    added, removed = _more(after, before), _more(before, after)
    return Compared(
        tuple(marked),
        tuple(StaleEntry(display_path(baseline.path_of(entry)), str(entry), count) for entry, count in removed),
        Update(Baseline(baseline.file, after, least), added, removed),
    )


def _more(counts: Mapping[Entry, int], than: Mapping[Entry, int]) -> tuple[tuple[Entry, int], ...]:
    more = ((entry, count - than.get(entry, 0)) for entry, count in sorted(counts.items()))
    return tuple((entry, count) for entry, count in more if count > 0)


# -- the file --------------------------------------------------------------------------------------------------------


def write(baseline: Baseline) -> bool:
    """Writes the file, unless it holds just that; whether it was written. Raises UsageError."""
    data = "".join(_lines(baseline)).encode("utf-8")
    try:
        if baseline.file.is_file() and baseline.file.read_bytes() == data:
            return False
        write_atomically(baseline.file, data)
    except OSError as error:
        raise UsageError(f"cannot write {display_path(baseline.file)}: {error.strerror or error}") from error
    return True


def _lines(baseline: Baseline) -> Iterator[str]:
    yield f'{{\n "version": {VERSION},\n "min-confidence": "{baseline.least.value}",\n "findings": ['
    for index, (entry, count) in enumerate(sorted(baseline.counts.items())):
        row = {"path": entry.path, "scope": entry.scope, "rule": entry.rule, "text": entry.shown}
        if count > 1:
            row["count"] = count  # type: ignore[assignment]
        yield f"{',' if index else ''}\n  {json.dumps(row)}"
    yield "\n ]\n}\n" if baseline.counts else "]\n}\n"


def load(file: Path) -> Baseline:
    """Reads a baseline. Raises ConfigError for what is none, or was written by a later version of capturelint."""
    shown = display_path(file)
    try:
        document = json.loads(file.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        hint = "; --update-baseline makes it" if isinstance(error, FileNotFoundError) else ""
        raise ConfigError(shown, "", f"the baseline cannot be read: {error.strerror or error}{hint}") from error
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ConfigError(shown, "", f"not a baseline: no valid JSON ({error})") from error
    return _Reader(shown).baseline(document, SourceFile.at(file).path)


@dataclass(frozen=True, slots=True)
class _Reader:
    source: str

    def baseline(self, document: Any, file: Path) -> Baseline:
        if not isinstance(document, dict) or "version" not in document:
            raise ConfigError(self.source, "", "not a baseline: it has no version")
        version = document["version"]
        if version != VERSION:
            newer = isinstance(version, int) and version > VERSION
            why = "a newer capturelint wrote it" if newer else f"should be {VERSION}"
            raise ConfigError(self.source, "version", f"{version!r} cannot be read: {why}")
        known = {member.value: member for member in Confidence}
        least = document.get("min-confidence", Confidence.LIKELY.value)
        if not isinstance(least, str) or least not in known:
            raise ConfigError(self.source, "min-confidence", f"{least!r} is none of {', '.join(known)}")
        rows = document.get("findings")
        if not isinstance(rows, list):
            raise ConfigError(self.source, "findings", "should be a list")
        counts: dict[Entry, int] = {}
        for index, row in enumerate(rows):
            entry, count = self.entry(f"findings[{index}]", row)
            if entry in counts:
                raise ConfigError(self.source, f"findings[{index}]", f"is there twice ({entry})")
            counts[entry] = count
        return Baseline(file, counts, known[least])

    def entry(self, key: str, row: Any) -> tuple[Entry, int]:
        if not isinstance(row, dict):
            raise ConfigError(self.source, key, "should be an object")
        for name in row:
            if name not in _KEYS:
                raise ConfigError(self.source, f"{key}.{name}", "unknown key")
        texts = [row.get(name) for name in ("path", "scope", "rule", "text")]
        for name, value in zip(_KEYS, texts, strict=False):
            if not isinstance(value, str):
                raise ConfigError(self.source, f"{key}.{name}", "should be a string")
        count = row.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise ConfigError(self.source, f"{key}.count", "should be a number of at least 1")
        return Entry.read(*map(str, texts)), count
