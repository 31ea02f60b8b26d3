from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from capturelint.model import (
    CheckResult,
    Confidence,
    Consequence,
    Diagnostic,
    Finding,
    Frame,
    ReachedFunction,
    Region,
    RegionRef,
    Related,
    Severity,
    Span,
    Suppression,
    UnresolvedCall,
    Verdict,
    VerdictStatus,
)
from capturelint.report.frame import display_width, shorten, underline
from capturelint.report.options import ReportOptions
from capturelint.report.regions_text import render_regions
from capturelint.report.text import render_text

LINES = {
    ("src/engine/runner.py", 57): "        if scores.max().item() > self.limit:",
    ("src/engine/graphs.py", 112): "        with torch.cuda.graph(self.graph, pool=self.pool):",
    ("src/engine/graphs.py", 113): "            self._decode()",
}
REGION = RegionRef(
    "torch.cuda.graph",
    "src/engine/graphs.py",
    112,
    "Graphs.capture",
    (Frame("src/engine/graphs.py", 113, "Graphs.capture"),),
)
FINDING = Finding(
    rule="CG101",
    name="host-scalar-read",
    path="src/engine/runner.py",
    span=Span(57, 12, 57, 31),
    message="`.item()` makes the CPU wait for the GPU; capture fails on this line",
    label="reads a device tensor",
    help="keep the comparison on the device (`torch.where`), or read the value after `replay()`",
    severity=Severity.ERROR,
    confidence=Confidence.CERTAIN,
    consequence=Consequence.CAPTURE_ERROR,
    regions=(REGION,),
    why=("scores is a device tensor: returned by the model", "branch taken: always"),
    verdict=Verdict(
        VerdictStatus.CONFIRMED,
        "on NVIDIA H200, torch 2.11: operation not permitted when stream is capturing",
    ),
)


def read_line(path: str, line: int) -> str | None:
    return LINES.get((path, line))


def render(*findings: Finding, read: Callable[[str, int], str | None] = read_line, **options: bool | int) -> str:
    result = CheckResult(findings=findings, regions=(Region("torch.cuda.graph", "a.py", 1, "f"),), files=12)
    return render_text(result, ReportOptions(read, **options))  # type: ignore[arg-type]


def test_a_finding_in_full() -> None:
    assert render(FINDING) == (
        """\
src/engine/runner.py:57:12: error CG101 host-scalar-read [certain]
  `.item()` makes the CPU wait for the GPU; capture fails on this line
   |
57 |         if scores.max().item() > self.limit:
   |            ^^^^^^^^^^^^^^^^^^^ reads a device tensor
   |
  captured here      src/engine/graphs.py:112   with torch.cuda.graph(self.graph, pool=self.pool):
  called from        src/engine/graphs.py:113   self._decode()
  help: keep the comparison on the device (`torch.where`), or read the value after `replay()`
  confirmed on NVIDIA H200, torch 2.11: operation not permitted when stream is capturing

1 error, 0 warnings (12 files checked, 1 region)
"""
    )


def test_verbose_adds_the_reasons() -> None:
    assert "why:" not in render(FINDING)
    lines = render(FINDING, verbose=True).splitlines()
    assert lines[8:11] == [
        "  why: scores is a device tensor: returned by the model",
        "  why: branch taken: always",
        "  help: keep the comparison on the device (`torch.where`), or read the value after `replay()`",
    ]


def test_no_source_no_frame() -> None:
    lines = render(replace(FINDING, verdict=None), read=lambda path, line: None).splitlines()
    assert lines[1:4] == [
        "  `.item()` makes the CPU wait for the GPU; capture fails on this line",
        "  captured here      src/engine/graphs.py:112   torch.cuda.graph in Graphs.capture",
        "  called from        src/engine/graphs.py:113   in Graphs.capture",
    ]


def hops(number: int) -> Finding:
    trace = tuple(Frame("a.py", line, f"f{line}") for line in range(1, number + 1))
    return replace(FINDING, regions=(replace(REGION, trace=trace),))


def test_five_hops_are_shown() -> None:
    assert [line.split()[2] for line in render(hops(5)).splitlines() if "called from" in line] == [
        f"a.py:{line}" for line in range(1, 6)
    ]


def test_more_hops_are_counted() -> None:
    text = render(hops(8))
    shown = [line.split() for line in text.splitlines() if "called from" in line or "more" in line]
    assert [words[2] if words[0] == "called" else " ".join(words) for words in shown] == [
        "a.py:1",
        "a.py:2",
        "... 3 more",
        "a.py:6",
        "a.py:7",
        "a.py:8",
    ]
    assert render(hops(8), verbose=True).count("called from") == 8


def test_more_regions_are_counted() -> None:
    others = (replace(REGION, path="b.py", line=3), replace(REGION, path="c.py", line=4))
    finding = replace(FINDING, regions=(REGION, *others))
    text = render(finding)
    assert text.count("captured here") == 1
    assert "  also in 2 other regions\n" in text
    assert "  also in 1 other region\n" in render(replace(FINDING, regions=(REGION, others[0])))
    verbose = render(finding, verbose=True)
    assert "  also in            b.py:3                     torch.cuda.graph in Graphs.capture\n" in verbose


def test_related() -> None:
    finding = replace(FINDING, related=(Related("src/run.py", 22, "static input made here"),))
    assert "  related            src/run.py:22              static input made here\n" in render(finding)


def test_verdict_without_a_place() -> None:
    text = render(replace(FINDING, verdict=Verdict(VerdictStatus.UNREACHED, "the line did not run")))
    assert "  unreached: the line did not run\n" in text


def test_order_and_suppressed() -> None:
    first = replace(FINDING, path="a.py", severity=Severity.WARNING)
    hidden = replace(FINDING, path="b.py", suppressed=Suppression("inline", "read once"))
    text = render(FINDING, hidden, first)
    assert re.findall(r"^\S+", text, re.MULTILINE)[0] == "a.py:57:12:"
    assert "b.py" not in text
    assert text.endswith("\n1 error, 1 warning, 1 suppressed (12 files checked, 1 region)\n")


def test_diagnostics() -> None:
    found = (
        Diagnostic("b.py", 3, "invalid syntax"),
        Diagnostic("a.py", 1, "cannot be read: Permission denied"),
        Diagnostic("notes", 1, "invalid syntax"),
        Diagnostic("c.py", 9, "internal error: KeyError: 'x'"),
    )
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert render_text(CheckResult(diagnostics=found, files=6), ReportOptions(read_line)) == (
        "a.py:1:1: error CG000 unreadable-file  cannot be read: Permission denied\n"
        f"b.py:3:1: error CG000 syntax-error  invalid syntax (read as Python {python})\n"
        "c.py:9:1: error CG000 internal-error  internal error: KeyError: 'x'\n"
        f"notes:1:1: error CG000 syntax-error  invalid syntax (read as Python {python}; it should be a Python file)\n"
        "\n"
        "0 errors, 0 warnings (2 files checked, 0 regions); 4 files could not be checked\n"
    )


def test_a_file_that_could_not_be_checked_is_not_counted_as_checked() -> None:
    result = CheckResult(diagnostics=(Diagnostic("b.py", 3, "invalid syntax"), Diagnostic("b.py", 4, "x")), files=1)
    assert render_text(result, ReportOptions(read_line)).endswith(
        "\n0 errors, 0 warnings (0 files checked, 0 regions); 1 file could not be checked\n"
    )


def test_hidden_findings_are_counted() -> None:
    result = CheckResult(findings=(FINDING,), files=1, hidden_in=(("x.py", 1),))
    assert render_text(result, ReportOptions(read_line)).endswith(
        "\n1 error, 0 warnings (1 file checked, 0 regions);"
        " 1 possible finding hidden (--min-confidence possible shows them)\n"
    )


def test_quiet() -> None:
    assert render(quiet=True) == ""
    assert "files checked" not in render(FINDING, quiet=True)


def test_colour_changes_nothing_but_colours() -> None:
    colored = render(FINDING, color=True)
    assert "\x1b[1;31merror CG101\x1b[0m" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == render(FINDING)


def test_control_characters_do_not_reach_the_terminal() -> None:
    finding = replace(FINDING, path="a\x1b[31m.py", message="evil\x1b]0;title\x07 \u202e text")
    text = render(finding, read=lambda path, line: "x = '\x1b[2J\u202e' + y.item()")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)


def shown(line: str, start: str, width: int = 80) -> tuple[str, str]:
    """The line as shown, and the part of it that is underlined, by columns."""
    column = line.index(start) + 1
    result = underline(line, Span(1, column, 1, column + len(start)), width)
    columns: list[str] = []
    for character in result.text:
        wide = display_width(character)
        if wide:
            columns += [character, *[""] * (wide - 1)]
        else:
            columns[-1] += character
    return result.text, "".join(columns[result.before : result.before + result.under])


@pytest.mark.parametrize(
    "line",
    [
        "x = y.item()",
        "\t\tx = y.item()",
        "x = '名前', y.item()",
        "x = 'e\u0301', y.item()",
        "x = '\u200b', y.item()",
        "\fx = y.item()",
        "y.item()",
    ],
)
def test_underline_is_under_its_text(line: str) -> None:
    assert shown(line, "y.item()")[1] == "y.item()"


def test_wide_text_is_underlined_in_its_full_width() -> None:
    result = underline("f('名前')", Span(1, 3, 1, 7), 80)
    assert (result.before, result.under) == (2, 6)


def test_span_of_several_lines_is_underlined_to_the_line_s_end() -> None:
    result = underline("    f(x,   ", Span(3, 5, 5, 2), 80)
    assert (result.before, result.under) == (4, 4)


def test_span_beyond_the_line() -> None:
    result = underline("ab", Span(1, 9, 1, 20), 80)
    assert (result.text, result.before, result.under) == ("ab", 2, 1)


@pytest.mark.parametrize("before", [0, 10, 75, 200, 100_000])
@pytest.mark.parametrize("after", [0, 10, 75, 100_000])
@pytest.mark.parametrize("filler", ["a", "名", "\t"])
def test_long_lines_are_cut_around_the_span(before: int, after: int, filler: str) -> None:
    text, underlined = shown(filler * before + "y.item()" + filler * after, "y.item()", 60)
    assert underlined == "y.item()"
    assert display_width(text) <= 60
    assert text.startswith("...") or text.lstrip().startswith((filler, "y"))


def test_long_spans_are_cut() -> None:
    line = "x = " + "y" * 500 + " + 1"
    result = underline(line, Span(1, 5, 1, 505), 60)
    assert display_width(result.text) == 60
    assert result.text.endswith("...")
    assert result.text[result.before : result.before + result.under] == "y" * result.under
    assert result.under > 30


def test_shorten() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("abcdefgh", 6) == "abc..."
    assert shorten("名前名前", 6) == "名..."


def test_narrow_terminal() -> None:
    assert max(map(len, render(FINDING, width=70).splitlines()[3:6])) <= 70


def test_regions() -> None:
    region = Region(
        "torch.cuda.graph",
        "src/graphs.py",
        112,
        "Graphs.capture",
        (
            ReachedFunction("src/runner.py", 50, "Runner._decode", Frame("src/graphs.py", 113, "Graphs.capture")),
            ReachedFunction("src/ops.py", 7, "scale", Frame("src/runner.py", 52, "Runner._decode")),
        ),
        (UnresolvedCall("src/runner.py", 61, 9, "self.backend.plan(\n  bs)", "type of self.backend is unknown"),),
    )
    result = CheckResult(regions=(region, Region("comment", "src/a.py", 3, "step")), files=4)
    assert render_regions(result) == (
        """\
src/a.py:3 comment step
  calls no function of the project

src/graphs.py:112 torch.cuda.graph Graphs.capture
  enters 2 functions
    src/runner.py:50  Runner._decode  called from src/graphs.py:113
    src/ops.py:7      scale           called from src/runner.py:52
  could not follow 1 call
    src/runner.py:61:9  self.backend.plan( bs)  type of self.backend is unknown

2 regions, 2 functions entered, 1 call not followed (4 files checked)
"""
    )


def test_regions_say_who_gives_them_what_they_capture() -> None:
    def shown(places: int) -> list[str]:
        given = tuple(Frame("src/run.py", line, f"f{line}") for line in range(8, 8 + places))
        region = Region("torch.cuda.graph", "a.py", 4, "Graphs.capture", given_by=given)
        return render_regions(CheckResult(regions=(region,), files=1)).partition("\n\n")[0].splitlines()

    assert shown(1) == [
        "a.py:4 torch.cuda.graph Graphs.capture",
        "  given what it captures by 1 call",
        "    src/run.py:8  in f8",
        "  calls no function of the project",
    ]
    assert shown(3)[1:5] == [
        "  given what it captures by 3 calls",
        "    src/run.py:8   in f8",
        "    src/run.py:9   in f9",
        "    src/run.py:10  in f10",
    ]
    assert len(shown(6)) == 9
    assert shown(9)[1:2] + shown(9)[-3:] == [
        "  given what it captures by 9 calls",
        "    src/run.py:13  in f13",
        "    and 3 more",
        "  calls no function of the project",
    ]


def test_control_characters_in_regions_do_not_reach_the_terminal() -> None:
    reached = (ReachedFunction("a\x1b[31m.py", 1, "f", Frame("b\x07.py", 2, "g")),)
    text = render_regions(CheckResult(regions=(Region("comment", "a\x1b[31m.py", 1, "f", reached),), files=1))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
