"""The report for people: each finding with its source line, where its region starts, and each call on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from capturelint.fixes.edits import wanted
from capturelint.model import (
    CheckResult,
    Diagnostic,
    Finding,
    Frame,
    RegionRef,
    Severity,
    Verdict,
    VerdictStatus,
    within,
)
from capturelint.report.diagnostics import checked_files, in_order, message_of, name_of, unchecked_files
from capturelint.report.frame import DEFAULT_WIDTH, display_width, printable, shorten, underline
from capturelint.report.options import ReportOptions
from capturelint.report.style import Style

#: how many calls between region and finding are shown, and how many of them stand next to the region
MAX_HOPS, FIRST_HOPS = 5, 2
_LABEL_WIDTH = 17
_SHOW_HIDDEN = "--min-confidence possible shows them"


def render_text(result: CheckResult, options: ReportOptions) -> str:
    """The whole report, ending in a newline; empty when it is to be quiet and there is nothing to report.

    Suppressed findings are only counted.
    """
    printer = _Printer(options, Style(options.color), options.width or DEFAULT_WIDTH)
    findings = sorted(result.findings, key=lambda finding: finding.sort_key)
    blocks = ["\n".join(printer.finding(finding)) for finding in findings if finding.suppressed is None]
    if result.diagnostics:
        blocks.append(render_diagnostics(result.diagnostics, printer.style))
    if not options.quiet:
        blocks.append(footer(result, options, printer.style))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def render_diagnostics(diagnostics: Sequence[Diagnostic], style: Style) -> str:
    """One line for each file that could not be checked, without a newline at the end."""
    lines = []
    for item in in_order(diagnostics):
        place = style.strong(printable(f"{within(item.path, item.cell)}:{item.line}:1:"))
        severity = style.severity(f"error {item.rule}", Severity.ERROR)
        lines.append(f"{place} {severity} {name_of(item)}  {one_line(message_of(item))}")
    return "\n".join(lines)


def looked_at(result: CheckResult, *, regions: bool = True) -> str:
    """How the closing line ends: how many files (and regions) were checked, and how many files could not be."""
    checked = f"{count(checked_files(result), 'file')} checked"
    unchecked = unchecked_files(result)
    rest = f"; {count(unchecked, 'file')} could not be checked" if unchecked else ""
    found = f", {count(len(result.regions), 'region')}" if regions else ""
    return f"({checked}{found}){rest}"


def footer(result: CheckResult, options: ReportOptions, style: Style) -> str:
    """The closing line: what counts, what was looked at, what is not shown; and one on what can be fixed."""
    counted = [finding for finding in result.findings if finding.suppressed is None]
    errors = sum(finding.severity is Severity.ERROR for finding in counted)
    parts = [count(errors, "error"), count(len(counted) - errors, "warning")]
    suppressed = len(result.findings) - len(counted)
    if suppressed:
        known = sum(f.suppressed is not None and f.suppressed.kind == "baseline" for f in result.findings)
        parts.append(f"{suppressed} suppressed" + (f" ({known} by the baseline)" if known else ""))
    if result.fixed:
        parts.insert(0, f"{result.fixed} fixed")
    text = f"{', '.join(parts)} {looked_at(result)}"
    if result.unchanged:
        text += f"; {count(result.unchanged, 'finding')} that did not change left out"
    if result.hidden:
        text += f"; {count(result.hidden, 'possible finding')} hidden ({_SHOW_HIDDEN})"
    text += _fixable(counted, unsafe=options.unsafe_fixes)
    return style.good(text) if not counted and not result.diagnostics else style.strong(text)


def _fixable(counted: Sequence[Finding], *, unsafe: bool) -> str:
    """What can be fixed; ``[*]`` marks those findings."""
    now = sum(wanted(finding, unsafe=unsafe) is not None for finding in counted)
    more = sum(wanted(finding, unsafe=True) is not None for finding in counted) - now
    if now:
        return f"\n[*] {now} fixable with --fix{f' ({more} more with --unsafe-fixes)' if more else ''}"
    return f"\n{more} fixable with --fix --unsafe-fixes" if more else ""


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def place_of(finding: Finding) -> str:
    return printable(f"{within(finding.path, finding.cell)}:{finding.span.line}:{finding.span.column}:")


def rule_of(finding: Finding, options: ReportOptions, style: Style) -> str:
    """How severe it is, the rule (a link to its page, where there is one), how sure it is, and `[*]` for a fix."""
    severity = style.severity(f"{finding.severity.value} {finding.rule}", finding.severity)
    linked = style.link(severity, options.url_of(finding.rule, finding.name))
    mark = " [*]" if wanted(finding, unsafe=options.unsafe_fixes) is not None else ""
    return f"{linked} {finding.name} [{finding.confidence.value}]{mark}"


@dataclass(frozen=True, slots=True)
class _Note:
    """A secondary location: what it is, where, and the source or message there."""

    label: str
    place: str
    text: str


@dataclass(frozen=True, slots=True)
class _Printer:
    options: ReportOptions
    style: Style
    width: int

    def finding(self, finding: Finding) -> Iterator[str]:
        yield f"{self.style.strong(place_of(finding))} {rule_of(finding, self.options, self.style)}"
        yield f"  {one_line(finding.message)}"
        yield from self._source(finding)
        yield from self._notes(finding)
        if self.options.verbose:
            yield from (f"  {self.style.faint('why:')} {one_line(reason)}" for reason in finding.why)
        if finding.help:
            yield f"  {self.style.strong('help:')} {one_line(finding.help)}"
        url = self.options.url_of(finding.rule, finding.name)
        if url is not None and not self.style.enabled:  # else the rule is a link
            yield f"  see: {printable(url)}"
        if finding.verdict is not None:
            yield f"  {self._verdict(finding.verdict)}"

    def _source(self, finding: Finding) -> Iterator[str]:
        line = self.options.read_line(within(finding.path, finding.cell), finding.span.line)
        if line is None:
            return
        number = str(finding.span.line)
        gutter = self.style.frame(" " * (len(number) + 1) + "|")
        shown = underline(line, finding.span, self.width - len(number) - 3)
        marks = self.style.severity("^" * shown.under, finding.severity)
        yield gutter
        yield f"{self.style.frame(number + ' |')} {shown.text}".rstrip()
        yield f"{gutter} {' ' * shown.before}{marks} {one_line(finding.label)}".rstrip()
        yield gutter

    def _notes(self, finding: Finding) -> Iterator[str]:
        notes = [note for region in finding.regions[:1] for note in self._way(region)]
        if self.options.verbose:
            notes += [self._region_note("also in", region) for region in finding.regions[1:]]
        notes += [
            _Note("related", f"{within(item.path, item.cell)}:{item.line}", item.message) for item in finding.related
        ]
        places = max((display_width(note.place) for note in notes), default=0)
        for note in notes:
            yield self._note(note, places)
        if len(finding.regions) > 1 and not self.options.verbose:
            yield f"  also in {count(len(finding.regions) - 1, 'other region')}"

    def _way(self, region: RegionRef) -> Iterator[_Note]:
        yield self._region_note("captured here", region)
        trace = region.trace
        if self.options.verbose or len(trace) <= MAX_HOPS:
            yield from map(self._hop, trace)
            return
        yield from map(self._hop, trace[:FIRST_HOPS])
        yield _Note(f"... {len(trace) - MAX_HOPS} more", "", "")
        yield from map(self._hop, trace[FIRST_HOPS - MAX_HOPS :])

    def _hop(self, frame: Frame) -> _Note:
        where = within(frame.path, frame.cell)
        source = self.options.read_line(where, frame.line)
        return _Note("called from", f"{where}:{frame.line}", source or f"in {frame.function}")

    def _region_note(self, label: str, region: RegionRef) -> _Note:
        where = within(region.path, region.cell)
        source = self.options.read_line(where, region.line)
        return _Note(label, f"{where}:{region.line}", source or f"{region.kind} in {region.name}")

    def _note(self, note: _Note, places: int) -> str:
        place = printable(note.place) + " " * (places - display_width(note.place))
        head = f"  {note.label:<{_LABEL_WIDTH}}  "
        room = max(self.width - len(head) - places - 3, 20)
        return f"{self.style.faint(head)}{place}   {shorten(note.text.strip(), room)}".rstrip()

    def _verdict(self, verdict: Verdict) -> str:
        """Evidence that starts with ``on`` says where it was got: ``confirmed on NVIDIA H200, torch 2.11: ...``."""
        evidence = one_line(verdict.evidence)
        text = f"{verdict.status.value}{' ' if evidence.startswith('on ') else ': '}{evidence}"
        return self.style.good(text) if verdict.status is VerdictStatus.REFUTED else self.style.strong(text)
