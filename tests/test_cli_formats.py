"""Formats from the command line: a report for tools is a whole document, whatever becomes of the run."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import REPOSITORY, Cli, Core, clean_environment
from test_cli import ONE

from capturelint.errors import UsageError
from capturelint.model import CheckResult, Diagnostic
from capturelint.source.writing import write_atomically

MACHINE = ("json", "sarif", "github", "gitlab", "junit")


def said(output_format: str, text: str) -> str:
    """The error that a report holds, and a check that it is a document of its format."""
    if output_format == "json":
        (error,) = json.loads(text)["errors"]
        return str(error["message"])
    if output_format == "sarif":
        (invocation,) = json.loads(text)["runs"][0]["invocations"]
        notes = invocation.get("toolConfigurationNotifications", []) + invocation["toolExecutionNotifications"]
        return str(notes[0]["message"]["text"])
    if output_format == "gitlab":
        (issue,) = json.loads(text)
        return str(issue["description"])
    if output_format == "junit":
        (error,) = ElementTree.fromstring(text).iter("error")
        return error.attrib["message"]
    command, _, message = text.rstrip("\n").rpartition("::")
    assert command.startswith("::error title=capturelint")
    return message


@pytest.mark.parametrize("output_format", MACHINE)
def test_a_wrong_configuration(core: Core, cli: Cli, tmp_path: Path, output_format: str) -> None:
    (tmp_path / "capturelint.toml").write_text("slect = []")
    message = "capturelint.toml: slect: unknown key; did you mean 'select'?"
    ran = cli("check", "--format", output_format, "--output", f"{output_format}:report")
    assert (ran.status, ran.err) == (2, f"error: {message}\n")
    assert said(output_format, ran.out) == message
    assert (tmp_path / "report").read_text() == ran.out


@pytest.mark.parametrize("output_format", MACHINE)
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UsageError("no.py: no such file"), "no.py: no such file"),
        (ZeroDivisionError("x"), "ZeroDivisionError: x; this"),
    ],
)
def test_a_run_that_raises(core: Core, cli: Cli, output_format: str, error: Exception, message: str) -> None:
    core.result = error
    ran = cli("check", "--format", output_format)
    assert ran.status == 2
    assert said(output_format, ran.out).startswith(message)


@pytest.mark.parametrize("output_format", MACHINE)
def test_syntax_errors(core: Core, cli: Cli, output_format: str) -> None:
    core.result = CheckResult(diagnostics=(Diagnostic("a.py", 3, "cannot be read: it is odd"),), files=1)
    ran = cli("check", "--format", output_format)
    assert (ran.status, ran.err) == (1, "")
    assert "cannot be read: it is odd" in ran.out


def test_people_read_errors_on_stderr(core: Core, cli: Cli, tmp_path: Path) -> None:
    core.result = UsageError("it broke")
    ran = cli("check", "--output", "json:report.json", "--output", "concise:report.txt")
    assert (ran.status, ran.out, ran.err) == (2, "", "error: it broke\n")
    assert json.loads((tmp_path / "report.json").read_text())["errors"][0]["kind"] == "usage-error"
    assert not (tmp_path / "report.txt").exists()


def test_an_interrupt_leaves_reports_alone(core: Core, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("of the last run")
    core.result = KeyboardInterrupt()
    assert cli("check", "--output", "json:report.json").status == 130
    assert (tmp_path / "report.json").read_text() == "of the last run"


def test_a_report_that_cannot_be_written_is_said_on_stdout(
    core: Core, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("capturelint.cli.output.write_atomically", refuse)
    ran = cli("check", "--format", "json", "--output", "sarif:report.sarif")
    assert ran.status == 2
    assert said("json", ran.out) == "cannot write report.sarif: Permission denied"


@pytest.mark.parametrize("output_format", ["full", "text"])
def test_names_of_the_full_format(core: Core, cli: Cli, output_format: str) -> None:
    core.result = ONE
    assert cli("check", "--format", output_format) == cli("check")


def test_statistics(core: Core, cli: Cli, tmp_path: Path) -> None:
    core.result = ONE
    ran = cli("check", "--statistics", "--output", "json:report.json")
    assert ran.out == "1  CG101  host-scalar-read\n1 error, 0 warnings (2 files checked, 1 region)\n"
    assert ran.status == 1
    assert json.loads((tmp_path / "report.json").read_text())["summary"]["findings"] == 1
    assert json.loads(cli("check", "--statistics", "--format", "json").out)["statistics"][0]["count"] == 1
    ran = cli("check", "--statistics", "--format", "sarif")
    assert (ran.status, ran.err) == (
        2,
        "error: --statistics: there are none as sarif; with --format json they are for tools\n",
    )
    assert cli("check", "--statistics", "--output", "json:-").status == 2


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to("report")
    write_atomically(link, b"new")
    assert (target.read_bytes(), link.is_symlink()) == (b"new", True)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "fresh", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh", "link", "report"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report"
    target.write_text("old")

    def refuse(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(target, b"new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_devices_are_written_to_as_they_are() -> None:
    write_atomically(Path(os.devnull), b"x")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_wrong_outputs_are_said_on_stdout_too(core: Core, cli: Cli) -> None:
    ran = cli("check", "--format", "json", "--output", "sarif:no/where")
    message = "--output sarif:no/where: cannot write no/where: its directory does not exist"
    assert (ran.status, ran.err) == (2, f"error: {message}\n")
    assert said("json", ran.out) == message
    assert core.asked == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--nope"], "No such option"),
        (["--jobs", "0"], "Invalid value for '--jobs'"),
        (["--select", ""], "--select: names no rule; without the option all are checked"),
        ([""], "PATH: the path is empty; the working directory is `.`"),
    ],
)
@pytest.mark.parametrize("spelling", [["--format", "json"], ["--format=json"]])
def test_a_wrong_command_line(
    core: Core, cli: Cli, tmp_path: Path, wrong: list[str], message: str, spelling: list[str]
) -> None:
    ran = cli("check", *spelling, "--output", "sarif:report.sarif", *wrong)
    assert ran.status == 2
    assert said("json", ran.out).startswith(message)
    assert said("sarif", (tmp_path / "report.sarif").read_text()).startswith(message)
    assert ran.err.startswith(f"error: {message}")
    assert cli("check", *wrong).out == ""


def test_help_is_no_error(cli: Cli) -> None:
    ran = cli("check", "--format", "json", "--help")
    assert ran.status == 0
    assert ran.out.startswith("Usage: capturelint check ")


def test_regions_for_tools(core: Core, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "capturelint.toml").write_text("slect = []")
    ran = cli("regions", "--format", "json")
    assert ran.status == 2
    assert said("json", ran.out).startswith("capturelint.toml: slect: unknown key")
    assert cli("regions").out == ""


def test_paths_start_at_the_repository_s_top(
    core: Core, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.result = ONE
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert ",file=sub/a.py,line=2," in cli("check", "--format", "github").out
    assert json.loads(cli("check", "--format", "gitlab").out)[0]["location"]["path"] == "sub/a.py"
    run = json.loads(cli("check", "--format", "sarif").out)["runs"][0]
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{tmp_path.as_uri()}/"
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "sub/a.py", "uriBaseId": "%SRCROOT%"}
    assert json.loads(cli("check", "--format", "json").out)["findings"][0]["path"] == "a.py"


def test_links_of_the_configuration(core: Core, cli: Cli, tmp_path: Path) -> None:
    core.result = ONE
    (tmp_path / "capturelint.toml").write_text('rule-url = "https://example.org/{name}"')
    (rule,) = json.loads(cli("check", "--format", "sarif").out)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["helpUri"] == "https://example.org/host-scalar-read"
    link = "\x1b]8;;https://example.org/host-scalar-read\x1b\\"
    assert link in cli("check", "--color", "always").out
    assert link not in cli("check").out


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("into", ["pipe", "file"])
def test_stdout_by_its_name(tmp_path: Path, into: str) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    command = [
        sys.executable,
        "-m",
        "capturelint",
        "check",
        "a.py",
        "--output",
        "json:/dev/stdout",
        "--format",
        "github",
    ]
    environ = clean_environment(PYTHONPATH=str(REPOSITORY))
    if into == "pipe":
        out = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, check=True).stdout
    else:
        with (tmp_path / "out").open("wb") as stream:
            subprocess.run(command, cwd=tmp_path, env=environ, stdout=stream, stderr=subprocess.DEVNULL, check=True)
        out = (tmp_path / "out").read_bytes()
    assert json.loads(out)["summary"]["files"] == 1


def test_a_file_that_cannot_be_replaced_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(16, "Device or resource busy")

    target = tmp_path / "mounted"
    target.write_text("old")
    monkeypatch.setattr(Path, "replace", refuse)
    write_atomically(target, b"new")
    assert target.read_text() == "new"
    with pytest.raises(OSError, match="busy"):
        write_atomically(tmp_path / "fresh", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["mounted"]
