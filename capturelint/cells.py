"""A result's places in notebooks: a cell and a line in it, in place of a line of all code cells together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from capturelint.errors import SourceError
from capturelint.model import (
    CheckResult,
    Diagnostic,
    Finding,
    Frame,
    ReachedFunction,
    Region,
    RegionRef,
    Related,
    UnresolvedCall,
)
from capturelint.source.files import SourceFile
from capturelint.source.notebooks import Notebook

_Placed = TypeVar("_Placed", Frame, Related, Region, RegionRef, ReachedFunction, UnresolvedCall, Diagnostic)


def in_cells(result: CheckResult, files: Iterable[SourceFile]) -> CheckResult:
    """The result as reports show it. ``files`` are all that it may speak of."""
    notebooks = {file.display: file for file in files if file.is_notebook}
    return _Places(notebooks).result(result) if notebooks else result


@dataclass
class _Places:
    files: dict[str, SourceFile]

    @cached_property
    def _read(self) -> dict[str, Notebook | None]:
        return {}

    @cached_property
    def _mention(self) -> re.Pattern[str]:
        return re.compile(rf"(?P<path>{'|'.join(map(re.escape, self.files))}):(?P<line>\d+)")

    def notebook(self, path: str) -> Notebook | None:
        """None for a file that is no notebook, or none that can be read: then there is a diagnostic about the file."""
        if path not in self.files:
            return None
        if path not in self._read:
            try:
                self._read[path] = self.files[path].notebook()
            except SourceError:
                self._read[path] = None
        return self._read[path]

    def result(self, result: CheckResult) -> CheckResult:
        return replace(
            result,
            findings=tuple(map(self.finding, result.findings)),
            regions=tuple(map(self.region, result.regions)),
            diagnostics=tuple(map(self.placed, result.diagnostics)),
        )

    def placed(self, thing: _Placed) -> _Placed:
        notebook = self.notebook(thing.path)
        if notebook is None:
            return thing
        cell, line = notebook.place(thing.line)
        return replace(thing, line=line, cell=cell)

    def text(self, text: str) -> str:
        """What is said of other places, such as ``assigned at a.ipynb:18``."""

        def in_cell(match: re.Match[str]) -> str:
            notebook = self.notebook(match["path"])
            if notebook is None:
                return match.group()
            cell, line = notebook.place(int(match["line"]))
            return f"{match['path']}:cell {cell}:{line}"

        return self._mention.sub(in_cell, text)

    def finding(self, finding: Finding) -> Finding:
        changes: dict[str, Any] = {
            "regions": tuple(map(self.reference, finding.regions)),
            "related": tuple(replace(self.placed(each), message=self.text(each.message)) for each in finding.related),
            "why": tuple(map(self.text, finding.why)),
            "message": self.text(finding.message),
        }
        notebook = self.notebook(finding.path)
        if notebook is not None:
            span = finding.span
            cell, line = notebook.place(span.line)
            changes["span"] = replace(span, line=line, end_line=line + span.end_line - span.line)
            changes |= {"cell": cell, "fix": None}  # edits go into source text, which a notebook does not hold as such
        return replace(finding, **changes)

    def reference(self, region: RegionRef) -> RegionRef:
        return replace(self.placed(region), trace=tuple(map(self.placed, region.trace)))

    def region(self, region: Region) -> Region:
        return replace(
            self.placed(region),
            reached=tuple(
                replace(self.placed(each), called_from=self.placed(each.called_from)) for each in region.reached
            ),
            unresolved=tuple(map(self.placed, region.unresolved)),
            given_by=tuple(map(self.placed, region.given_by)),
        )
