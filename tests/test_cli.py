"""The command line around the core: options, destinations, messages, exit statuses. The core's answer is given here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import A_REGION, Cli, Core, Ran, write_files

from capturelint import __version__
from capturelint.cli.terminal import use_color
from capturelint.errors import ConfigError, UsageError
from capturelint.model import (
    CheckResult,
    Confidence,
    Consequence,
    Diagnostic,
    Finding,
    RegionRef,
    Severity,
    Span,
)
from capturelint.report.formats import FORMATS

REGION = A_REGION
FINDING = Finding(
    rule="CG101",
    name="host-scalar-read",
    path="a.py",
    span=Span(2, 12, 2, 20),
    message="`.item()` makes the CPU wait",
    label="reads a device tensor",
    help="read it after replay",
    severity=Severity.ERROR,
    confidence=Confidence.LIKELY,
    consequence=Consequence.CAPTURE_ERROR,
    regions=(RegionRef("comment", "a.py", 1, "step"),),
    why=("x is a parameter of a region",),
)
SOURCE = "def step(x):  # capturelint: region\n    return x.item()\n"
NOTHING = CheckResult(regions=(REGION,), files=2)
ONE = replace(NOTHING, findings=(FINDING,), timings={"sources": 0.25, "reach": 1.5})


# check: reports


def test_text_report(core: Core, cli: Cli) -> None:
    core.result = ONE
    assert cli("check") == Ran(
        1,
        """\
a.py:2:12: error CG101 host-scalar-read [likely]
  `.item()` makes the CPU wait
  |
2 |     return x.item()
  |            ^^^^^^^^ reads a device tensor
  |
  captured here      a.py:1   def step(x):  # capturelint: region
  help: read it after replay

1 error, 0 warnings (2 files checked, 1 region)
""",
        "",
    )


def test_json_report(core: Core, cli: Cli) -> None:
    core.result = ONE
    ran = cli("check", "--format", "json")
    assert (ran.status, ran.err) == (1, "")
    report = json.loads(ran.out)
    assert [finding["rule"] for finding in report["findings"]] == ["CG101"]
    assert report["summary"] == {
        "files": 2, "regions": 1, "findings": 1,
        "suppressed": 0, "baseline": 0, "hidden": 0, "unchanged": 0, "fixed": 0,
    }  # fmt: skip


def test_several_reports_of_one_run(core: Core, cli: Cli, tmp_path: Path) -> None:
    core.result = ONE
    ran = cli("check", "--output", "json:report.json", "--output", "text:report.txt")
    assert ran.out == (tmp_path / "report.txt").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["findings"] == 1
    assert len(core.asked) == 1


def test_output_to_stdout(core: Core, cli: Cli, tmp_path: Path) -> None:
    ran = cli("check", "--output", "json:-", "--output", "text:report.txt")
    assert json.loads(ran.out)["version"] == 1
    assert (tmp_path / "report.txt").read_text().startswith("0 errors")


def test_files_get_no_colours(core: Core, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core.result = ONE
    monkeypatch.setenv("FORCE_COLOR", "1")
    ran = cli("check", "--output", "text:report.txt")
    assert "\x1b[" in ran.out
    assert "\x1b[" not in (tmp_path / "report.txt").read_text()
    assert "\x1b[" not in cli("check", "--color", "never").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "json"], "--output json: should be FORMAT:FILE, such as json:report.json"),
        (["--output", "json:"], "--output json:: should be FORMAT:FILE, such as json:report.json"),
        (["--output", "xml:a"], f"--output xml:a: 'xml' is none of the formats {', '.join(FORMATS)}"),
        (
            ["--output", "json:no/a"],
            "--output json:no/a: cannot write no/a: its directory does not exist",
        ),
        (["--output", "json:."], "--output json:.: cannot write .: is a directory"),
        (["--output", "json:a", "--output", "text:a"], "two reports go to a"),
        (["--format", "text", "--output", "json:-"], "two reports go to stdout"),
        (["--format", "xml"], f"Invalid value for '--format': 'xml' is not one of {', '.join(map(repr, FORMATS))}."),
        (["--jobs", "0"], "Invalid value for '--jobs' / '-j': 0 is not in the range x>=1."),
    ],
)
def test_wrong_options(core: Core, cli: Cli, arguments: list[str], message: str) -> None:
    assert cli("check", *arguments) == Ran(2, "", f"error: {message}\n")
    assert core.asked == []


def test_unknown_option(core: Core, cli: Cli) -> None:
    ran = cli("check", "--nope")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("error: No such option")  # the rest is click's, and differs with its version
    assert "--nope" in ran.err
    assert ran.err.count("\n") == 1


def test_report_that_cannot_be_written(core: Core, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("capturelint.cli.output.write_atomically", refuse)
    ran = cli("check", "--output", "json:report.json")
    assert (ran.status, ran.err) == (2, "error: cannot write report.json: Permission denied\n")


def test_verbose_quiet_timings(core: Core, cli: Cli) -> None:
    core.result = ONE
    assert "  why: x is a parameter of a region\n" in cli("check", "--verbose").out
    assert "files checked" not in cli("check", "--quiet").out
    assert cli("check", "--timings").err == "sources         0.250 s\nreach           1.500 s\n"


# check: what the core is asked


def test_what_the_core_is_asked(core: Core, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    cli(
        *("check", "src", "a.py", "--select", "CG1, host-sized-shape", "--select", "CG3", "--ignore", "CG101"),
        *("--min-confidence", "possible", "--force-exclude", "--jobs", "3"),
    )
    assert core.asked_for("paths") == (Path("src"), Path("a.py"))
    assert core.asked_for("select") == ("CG1", "host-sized-shape", "CG3")
    assert core.asked_for("ignore") == ("CG101",)
    assert core.asked_for("min_confidence") is Confidence.POSSIBLE
    assert core.asked_for("force_exclude") is True
    assert core.asked_for("jobs") == 3
    assert core.asked_for("root") == tmp_path


def test_defaults(core: Core, cli: Cli) -> None:
    cli("check")
    assert core.asked_for("paths") == (Path(),)
    assert core.asked_for("select") == core.asked_for("ignore") == ()
    assert core.asked_for("min_confidence") is Confidence.LIKELY
    assert core.asked_for("force_exclude") is False
    assert core.asked_for("jobs") is None


def test_configuration(core: Core, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "capturelint.toml").write_text(
        'select = ["CG1"]\nignore = ["CG101"]\nmin-confidence = "certain"\n'
        'fail-on = "warning"\nrequire-regions = true\n'
    )
    core.result = CheckResult(findings=(replace(FINDING, severity=Severity.WARNING),), regions=(REGION,), files=1)
    assert cli("check").status == 0  # the finding is only likely
    assert cli("check", "--min-confidence", "likely").status == 1
    assert cli("check", "--min-confidence", "likely", "--fail-on", "error").status == 0
    core.result = CheckResult(files=1)
    assert cli("check").status == 1


def test_explicit_configuration(core: Core, cli: Cli, tmp_path: Path) -> None:
    write_files(tmp_path, {"other/x.toml": 'ignore = ["CG3"]'})
    cli("check", "--config", "other/x.toml")
    assert core.asked_for("config").ignore == ("CG3",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slect = []", "capturelint.toml: slect: unknown key; did you mean 'select'?"),
        ('ignore = ["CG1O1"]', "capturelint.toml: ignore: unknown rule 'CG1O1'; did you mean 'CG101'?"),
    ],
)
def test_wrong_configuration(core: Core, cli: Cli, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "capturelint.toml").write_text(text)
    assert cli("check") == Ran(2, "", f"error: {message}\n")


# check: exit status and messages


def test_exit_status(core: Core, cli: Cli) -> None:
    assert cli("check").status == 0
    core.result = ONE
    assert cli("check").status == 1
    assert cli("check", "--exit-zero").status == 0
    assert cli("check", "--min-confidence", "certain").status == 0
    core.result = CheckResult(diagnostics=(Diagnostic("a.py", 3, "invalid syntax"),), regions=(REGION,), files=2)
    ran = cli("check")
    assert ran.status == 1
    assert ran.out.startswith("a.py:3:1: error CG000 syntax-error  invalid syntax (read as Python 3.")


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_no_region(core: Core, cli: Cli, output_format: str) -> None:
    core.result = CheckResult(files=2)
    ran = cli("check", "--format", output_format)
    assert ran.status == 0
    assert ran.err.startswith("0 regions found; ")
    assert "`@capturelint.capture_region`" in ran.err
    assert cli("check", "--quiet").err == ""
    for quiet in ([], ["--quiet"]):
        ran = cli("check", "--require-regions", *quiet)
        assert ran.status == 1
        assert ran.err.endswith("\nerror: a region is required (--require-regions)\n")


def test_no_region_where_not_all_could_be_checked(core: Core, cli: Cli) -> None:
    core.result = CheckResult(diagnostics=(Diagnostic("a.py", 3, "invalid syntax"),), files=1)
    assert cli("check").err == ""  # nothing was looked at: how to mark a function is not the answer
    core.result = replace(core.result, files=3)
    assert cli("check").err.startswith("0 regions found in what could be checked (2 files); only captured code ")
    assert cli("check", "--quiet").err == ""


def test_notes(core: Core, cli: Cli) -> None:
    core.result = replace(ONE, notes=("the region pattern 'a:b' matches no function", "another"))
    notes = "note: the region pattern 'a:b' matches no function\nnote: another\n"
    for command in ("check", "regions"):
        assert cli(command).err == notes
        assert cli(command, "--format", "json").err == notes
    assert cli("check", "--quiet").err == ""


def test_configuration_that_is_not_used_is_a_note(core: Core, cli: Cli, tmp_path: Path) -> None:
    write_files(tmp_path, {"capturelint.toml": "", "pyproject.toml": "[tool.capturelint]\n"})
    assert cli("check").err == (
        "note: [tool.capturelint] in pyproject.toml is not used: capturelint.toml beside it comes first\n"
    )


def test_hidden_findings_are_counted(core: Core, cli: Cli) -> None:
    core.result = replace(NOTHING, hidden_in=(("a.py", 2), ("b.py", 3)))
    assert cli("check").out == (
        "0 errors, 0 warnings (2 files checked, 1 region);"
        " 5 possible findings hidden (--min-confidence possible shows them)\n"
    )
    assert json.loads(cli("check", "--format", "json").out)["summary"]["hidden"] == 5
    assert cli("check", "--quiet").out == ""


@pytest.mark.parametrize("command", ["check", "regions"])
def test_empty_paths(core: Core, cli: Cli, command: str) -> None:
    message = "error: PATH: the path is empty; the working directory is `.`\n"
    assert cli(command, "") == Ran(2, "", message)
    assert cli(command, "a.py", "") == Ran(2, "", message)
    assert cli(command, "--config", "") == Ran(2, "", "error: --config: the path is empty\n")
    assert core.asked == []


@pytest.mark.parametrize("selectors", [["--select", ""], ["--select", " , "], ["--select", "", "--select", ","]])
def test_to_select_nothing_is_not_to_select_everything(core: Core, cli: Cli, selectors: list[str]) -> None:
    assert cli("check", *selectors) == Ran(
        2, "", "error: --select: names no rule; without the option all are checked\n"
    )
    assert core.asked == []


def test_to_ignore_nothing(core: Core, cli: Cli) -> None:
    assert cli("check", "--ignore", "").status == 0
    assert core.asked_for("ignore") == ()


def test_no_files(core: Core, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    core.result = CheckResult()
    ran = cli("check", "empty")
    assert (ran.status, ran.err) == (0, "no Python files found in empty\n")
    assert cli("check", "empty", "--require-regions").status == 1


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UsageError("no.py: no such file or directory"), 2, "error: no.py: no such file or directory"),
        (ConfigError("a.toml", "select", "two\nlines"), 2, "error: a.toml: select: two lines"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_errors_are_one_line(core: Core, cli: Cli, error: BaseException, status: int, message: str) -> None:
    core.result = error
    assert cli("check") == Ran(status, "", message + "\n" if message else "")


def test_internal_error(core: Core, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    core.result = ZeroDivisionError("by\nzero")
    ran = cli("check")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        "internal error: ZeroDivisionError: by zero; this is a bug in capturelint: please report it"
        " with the traceback that CAPTURELINT_DEBUG=1 shows\n"
    )
    monkeypatch.setenv("CAPTURELINT_DEBUG", "1")
    ran = cli("check")
    assert ran.err.startswith("Traceback (most recent call last):\n")
    assert ran.status == 2


# other commands


def test_regions(core: Core, cli: Cli) -> None:
    assert cli("regions") == Ran(
        0,
        """\
a.py:1 comment step
  enters 1 function
    b.py:1  helper  called from a.py:2
  could not follow 1 call
    a.py:3:5  plan()  not defined in the project

1 region, 1 function entered, 1 call not followed (2 files checked)
""",
        "",
    )
    report = json.loads(cli("regions", "--format", "json").out)
    assert report["regions"][0]["reached"][0]["called_from"] == {
        "path": "a.py",
        "cell": None,
        "line": 2,
        "function": "step",
    }


def test_regions_says_that_there_are_none(core: Core, cli: Cli) -> None:
    core.result = CheckResult(files=1)
    ran = cli("regions")
    assert (ran.status, ran.out) == (0, "0 regions, 0 functions entered, 0 calls not followed (1 file checked)\n")
    assert ran.err.startswith("0 regions found; ")
    assert cli("regions", "--require-regions").status == 1


def test_regions_shows_diagnostics_and_ignores_findings(core: Core, cli: Cli) -> None:
    core.result = ONE
    assert cli("regions").status == 0
    core.result = replace(ONE, diagnostics=(Diagnostic("c.py", 1, "invalid syntax"),))
    ran = cli("regions")
    assert ran.status == 1
    assert "c.py:1:1: error CG000 syntax-error  invalid syntax (read as Python 3." in ran.out
    assert ran.out.endswith(
        "\n\n1 region, 1 function entered, 1 call not followed (1 file checked); 1 file could not be checked\n"
    )


def test_rules(cli: Cli) -> None:
    ran = cli("rules")
    lines = ran.out.splitlines()
    assert ran.status == 0
    assert lines[0].split() == ["code", "name", "severity", "consequence", "summary"]
    rows = {line.split()[0]: line.split()[1:4] for line in lines[1:]}
    assert rows["CG101"] == ["host-scalar-read", "error", "capture-error"]
    assert rows["CG000"] == ["syntax-error", "error", "none"]  # harms no graph, and fails every run
    assert rows["CG001"] == ["unused-suppression", "warning", "none"]
    rules = json.loads(cli("rules", "--format", "json").out)["rules"]
    assert [rule["code"] for rule in rules] == sorted(line.split()[0] for line in lines[1:])
    assert all(rule["summary"] and rule["severity"] in ("error", "warning") for rule in rules)


@pytest.mark.parametrize("rule", ["CG101", "host-scalar-read"])
def test_explain(cli: Cli, rule: str) -> None:
    ran = cli("explain", rule)
    assert ran.status == 0
    assert ran.out.startswith("CG101 host-scalar-read\n")


def test_explain_unknown_rule(cli: Cli) -> None:
    assert cli("explain", "CG1O1") == Ran(2, "", "error: unknown rule 'CG1O1'; did you mean 'CG101'?\n")
    ran = cli("explain", "CG1")
    assert ran.status == 2
    assert ran.err.startswith("error: CG1 stands for ")
    assert "CG101" in ran.err


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version") == Ran(0, f"capturelint {__version__}\n", "")
    for arguments in (["--help"], ["check", "-h"], ["regions", "--help"], ["rules", "--help"], ["explain", "--help"]):
        ran = cli(*arguments)
        assert (ran.status, ran.err) == (0, "")
        assert ran.out.startswith(f"Usage: capturelint {' '.join(arguments[:-1])}".rstrip())
    ran = cli()
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("Usage: capturelint")


def test_unknown_command(cli: Cli) -> None:
    assert cli("chekc") == Ran(2, "", "error: no command 'chekc'; did you mean 'check'?\n")
    assert cli("zzz") == Ran(2, "", "error: no command 'zzz'\n")


# terminals


class _Stream:
    def __init__(self, terminal: bool) -> None:
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("choice", "terminal", "environ", "expected"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colours(choice: str, terminal: bool, environ: dict[str, str], expected: bool) -> None:
    assert use_color(choice, _Stream(terminal), environ) is expected  # type: ignore[arg-type]


def test_start_up_is_light() -> None:
    code = (
        "import sys\n"
        "import capturelint\n"
        "light = set(sys.modules)\n"
        "import capturelint.cli.check\n"
        "print([name for name in ('click', 'yaml', 'libcst', 'pathspec', 'torch') if name in light])\n"
        "print([name for name in ('yaml', 'libcst', 'pathspec', 'torch') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
