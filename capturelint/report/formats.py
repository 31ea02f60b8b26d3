"""The formats of a report, by name. Each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from capturelint.model import CheckResult
from capturelint.report.options import ReportOptions

DEFAULT_FORMAT = "full"


@dataclass(frozen=True, slots=True)
class Format:
    """One format: the function ``name`` of a module beside this one.

    What ``machine`` ones write is a whole document, even for a run that went wrong.
    """

    module: str
    name: str
    machine: bool = True

    def render(self, result: CheckResult, options: ReportOptions) -> str:
        text: str = getattr(import_module(f"capturelint.report.{self.module}"), self.name)(result, options)
        return text


_FULL = Format("text", "render_text", machine=False)
FORMATS: Mapping[str, Format] = {
    "full": _FULL,
    "concise": Format("concise", "render_concise", machine=False),
    "json": Format("json", "render_json"),
    "sarif": Format("sarif", "render_sarif"),
    "github": Format("github", "render_github"),
    "gitlab": Format("gitlab", "render_gitlab"),
    "junit": Format("junit", "render_junit"),
    "text": _FULL,  # its name before there was a second one for people
}
#: those of ``capturelint regions``
REGIONS: Mapping[str, Format] = {
    "text": Format("regions_text", "render_regions", machine=False),
    "json": Format("json", "render_regions_json"),
}
_COUNTS = Format("statistics", "render_statistics", machine=False)
#: what ``--statistics`` shows instead of the report on stdout
STATISTICS: Mapping[str, Format] = {
    "full": _COUNTS,
    "concise": _COUNTS,
    "text": _COUNTS,
    "json": Format("statistics", "render_statistics_json"),
}
