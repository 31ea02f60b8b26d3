"""The command line as a process of its own, with the real core: what users and CI see when something is wrong."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import REPOSITORY, Ran, clean_environment, write_files

Tool = Callable[..., Ran]

GOOD = "import torch\n\n\ndef scale(x):\n    return x\n"
HAZARD = """\
import torch

graph = torch.cuda.CUDAGraph()
größe = torch.zeros(4, device="cuda")
with torch.cuda.graph(graph):
    größe.max().item()
"""
FOUND = "a.py:6:5: error CG101 host-scalar-read"


def start(*arguments: str, cwd: Path, stdout: int = subprocess.PIPE, **environ: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "capturelint", *arguments],
        cwd=cwd,
        env=clean_environment(PYTHONPATH=str(REPOSITORY), **environ),
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_files(tmp_path, {"pyproject.toml": "", "a.py": HAZARD})
    return tmp_path


def test_a_finding_fails_the_run(project: Path, run_tool: Tool) -> None:
    ran = run_tool("check", cwd=project)
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.startswith(FOUND)
    assert "\x1b[" not in ran.out
    assert run_tool("check", "--exit-zero", cwd=project).status == 0
    assert run_tool("check", "--ignore", "CG1", cwd=project).status == 0
    assert run_tool("check", "--select", "host-scalar-read", cwd=project).status == 1
    assert run_tool("check", "--select", "CG2,CG3", cwd=project).status == 0


def test_command_line_and_configuration(project: Path, run_tool: Tool) -> None:
    def status(config: str, *arguments: str) -> int:
        write_files(project, {"capturelint.toml": config})
        return run_tool("check", *arguments, cwd=project).status

    assert status('select = ["CG2"]') == 0
    assert status('select = ["CG2"]', "--select", "CG1") == 1  # replaces
    assert status('ignore = ["CG2"]', "--ignore", "CG1") == 0  # adds
    assert status('ignore = ["CG101"]', "--ignore", "CG2") == 0
    assert status('[per-file-ignores]\n"a.py" = ["CG1"]') == 0
    assert status('[per-file-ignores]\n"b.py" = ["CG1"]') == 1
    assert status('exclude = ["a.py"]') == 0
    assert status('exclude = ["a.py"]', "a.py") == 1
    assert status('exclude = ["a.py"]', "a.py", "--force-exclude") == 0


def test_output_is_the_same_each_time(project: Path, run_tool: Tool) -> None:
    for name in "bcdef":
        write_files(project, {f"{name}.py": HAZARD})
    outputs = {run_tool("check", "--format", "json", cwd=project, PYTHONHASHSEED=str(seed)).out for seed in range(3)}
    assert len(outputs) == 1
    findings = json.loads(outputs.pop())["findings"]
    assert [finding["path"] for finding in findings] == [f"{name}.py" for name in "abcdef"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "gone.py"], "error: gone.py: no such file or directory\n"),
        (["check", "a.py", "gone"], "error: gone: no such file or directory\n"),
        (["check", "--select", "CG1O1"], "error: unknown rule 'CG1O1'; did you mean 'CG101'?\n"),
        (
            ["check", "--ignore", "host-scalar-raed"],
            "error: unknown rule 'host-scalar-raed'; did you mean 'host-scalar-read'?\n",
        ),
        (["check", "--config", "gone.toml"], "error: gone.toml: cannot be read: No such file or directory\n"),
        (["regions", "gone.py"], "error: gone.py: no such file or directory\n"),
        (["check", ""], "error: PATH: the path is empty; the working directory is `.`\n"),
        (["check", "--select", ""], "error: --select: names no rule; without the option all are checked\n"),
        (["check", "/dev/null"], "error: /dev/null: not a file or directory but a device\n"),
    ],
)
def test_wrong_runs(project: Path, run_tool: Tool, arguments: Sequence[str], message: str) -> None:
    assert run_tool(*arguments, cwd=project) == Ran(2, "", message)


BAD_FILES = {
    "syntax.py": (b"import torch\ntorch.cuda.graph\ndef f(:\n", 3),
    "bytes.py": (b"# torch.cuda.graph\n\nx = '\xff'\n", 3),
    "coding.py": (b"# coding: klingon\n# torch.cuda.graph\n", 1),
    "nul.py": (b"# torch.cuda.graph\n\0\n", 2),
    "utf16.py": ("# torch.cuda.graph\n".encode("utf-16"), 1),
}


def test_bad_files_hide_nothing(project: Path, run_tool: Tool) -> None:
    for name, (data, _) in BAD_FILES.items():
        (project / name).write_bytes(data)
    ran = run_tool("check", "--format", "json", cwd=project)
    report = json.loads(ran.out)
    assert (ran.status, ran.err) == (1, "")
    assert [finding["path"] for finding in report["findings"]] == ["a.py"]
    assert {item["path"]: item["line"] for item in report["diagnostics"]} == {
        name: line for name, (_, line) in BAD_FILES.items()
    }
    text = run_tool("check", "--ignore", "CG", cwd=project).out
    assert re.search(r"^syntax\.py:3:1: error CG000 syntax-error  \S", text, re.MULTILINE)
    assert "; 5 files could not be checked" in text


def test_file_that_cannot_be_read(project: Path, run_tool: Tool) -> None:
    unreadable = Path("/proc/self/mem")  # a regular file that not even root can read from its start
    if not unreadable.is_file():
        pytest.skip("needs /proc")
    (project / "closed.py").symlink_to(unreadable)
    ran = run_tool("check", cwd=project)
    assert ran.status == 1
    assert ran.out.startswith(FOUND)
    assert "closed.py:1:1: error CG000 unreadable-file  cannot be read: Input/output error\n" in ran.out
    assert ran.out.endswith("(1 file checked, 1 region); 1 file could not be checked\n")


def test_pipe_is_refused_at_once(project: Path, run_tool: Tool) -> None:
    os.mkfifo(project / "pipe.py")
    refused = Ran(2, "", "error: pipe.py: not a file or directory but a pipe\n")
    assert run_tool("check", "pipe.py", cwd=project) == refused
    assert run_tool("regions", "a.py", "pipe.py", cwd=project) == refused
    assert run_tool("check", cwd=project).out.startswith(FOUND)


def test_file_that_is_no_python(project: Path, run_tool: Tool) -> None:
    write_files(project, {"notes.ipynb": '{"cells": {}}', "README": "how to run it\n"})
    ran = run_tool("check", "notes.ipynb", "README", cwd=project)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert ran == Ran(
        1,
        "README:1:1: error CG000 syntax-error  invalid syntax"
        f" (read as Python {python}; it should be a Python file)\n"
        "notes.ipynb:1:1: error CG000 unreadable-file  cannot be read: not a notebook: it has no list of cells\n\n"
        "0 errors, 0 warnings (0 files checked, 0 regions); 2 files could not be checked\n",
        "",
    )
    assert run_tool("check", cwd=project).out.startswith(FOUND)  # and nothing about the two


def test_syntax_error_names_the_python_that_read_it(project: Path, run_tool: Tool) -> None:
    write_files(project, {"a.py": "import torch\n\nx = 1 ?? 2\n"})
    ran = run_tool("check", "--format", "json", cwd=project)
    (diagnostic,) = json.loads(ran.out)["diagnostics"]
    assert (diagnostic["path"], diagnostic["line"]) == ("a.py", 3)
    assert diagnostic["message"].endswith(f" (read as Python {sys.version_info.major}.{sys.version_info.minor})")


def test_marks_that_say_nothing_are_reported(project: Path, run_tool: Tool) -> None:
    mark = "    größe.max().item()  # Capturelint: Ignore[CG101] read once\n"
    write_files(project, {"a.py": HAZARD.replace("    größe.max().item()\n", mark)})
    findings = json.loads(run_tool("check", "--format", "json", cwd=project).out)["findings"]
    assert [(finding["rule"], finding["line"], finding["suppressed"]) for finding in findings] == [
        ("CG101", 6, None),
        ("CG002", 6, None),
    ]
    assert findings[1]["message"] == "this comment is not read; write `# capturelint: ignore[CG101]`"


def test_file_in_another_encoding(project: Path, run_tool: Tool) -> None:
    (project / "a.py").write_bytes(("# coding: latin-1\n" + HAZARD).encode("latin-1"))
    ran = run_tool("check", cwd=project)
    assert ran.out.startswith("a.py:7:5: error CG101")
    assert "7 |     größe.max().item()\n  |     ^^^^^^^^^^^^^^^^^^ " in ran.out


def test_windows_line_ends(project: Path, run_tool: Tool) -> None:
    (project / "a.py").write_bytes(HAZARD.replace("\n", "\r\n").encode())
    ran = run_tool("check", cwd=project)
    assert ran.out.startswith(FOUND)
    assert "\r" not in ran.out


def test_terminal_without_these_characters(project: Path, run_tool: Tool) -> None:
    ran = run_tool("check", cwd=project, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert ran.status == 1
    assert ran.out.isascii()
    assert "gr\\xf6\\xdfe.max().item()" in ran.out


def test_empty_directory(project: Path, run_tool: Tool) -> None:
    (project / "empty").mkdir()
    ran = run_tool("check", "empty", cwd=project)
    assert (ran.status, ran.err) == (0, "no Python files found in empty\n")


def test_no_regions(project: Path, run_tool: Tool) -> None:
    write_files(project, {"a.py": GOOD})
    ran = run_tool("check", cwd=project)
    assert (ran.status, ran.out) == (0, "0 errors, 0 warnings (1 file checked, 0 regions)\n")
    assert ran.err.startswith("0 regions found; ")
    assert run_tool("check", "--require-regions", cwd=project).status == 1


def test_regions(project: Path, run_tool: Tool) -> None:
    source = "from b import helper\n" + HAZARD + "    helper(größe)\n    missing(größe)\n"
    write_files(project, {"a.py": source, "b.py": "def helper(x):\n    return x * 2\n"})
    ran = run_tool("regions", "--format", "json", cwd=project)
    (region,) = json.loads(ran.out)["regions"]
    assert (region["kind"], region["path"], region["line"]) == ("torch.cuda.graph", "a.py", 6)
    (reached,) = region["reached"]
    assert (reached["path"], reached["line"], reached["name"]) == ("b.py", 1, "helper")
    assert (reached["called_from"]["path"], reached["called_from"]["line"]) == ("a.py", 8)
    (unresolved,) = region["unresolved"]
    assert (unresolved["path"], unresolved["line"], unresolved["column"]) == ("a.py", 9, 5)
    assert unresolved["reason"]
    assert "called from a.py:8" in run_tool("regions", cwd=project).out


@pytest.mark.parametrize("arguments", [["rules"], ["explain", "CG101"], ["check"], ["check", "--format", "json"]])
def test_reader_that_has_gone_away(project: Path, arguments: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = start(*arguments, cwd=project, stdout=write_end)
    os.close(write_end)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (141, b"")


REPORTS = [
    *(["rules"], ["explain", "CG101"], ["regions"], ["check"], ["check", "--format", "json"]),
    *(["--help"], ["check", "--help"], ["--version"]),
]


def in_shell(redirections: str, *arguments: str, cwd: Path) -> Ran:
    """Runs the tool with the shell's redirections, which can close a stream as ``>&-`` does."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-m", "capturelint", *arguments],
        cwd=cwd,
        env=clean_environment(PYTHONPATH=str(REPOSITORY)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("arguments", REPORTS, ids=" ".join)
@pytest.mark.parametrize(
    ("redirections", "problem"),
    [
        (">&-", "it is closed"),
        (">/dev/full", "No space left on device"),
        ("1</dev/null", "Bad file descriptor"),
    ],
)
def test_stdout_that_takes_nothing(project: Path, arguments: list[str], redirections: str, problem: str) -> None:
    if "full" in redirections and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    ran = in_shell(redirections, *arguments, cwd=project)
    assert ran == Ran(2, "", f"error: cannot write to stdout: {problem}\n")


def test_long_report_to_a_full_stdout(project: Path) -> None:
    write_files(project, {f"{name}.py": HAZARD for name in "bcdefghijklmnopqrstuvwxyz"})
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    ran = in_shell(">/dev/full", "check", "--format", "json", cwd=project)
    assert ran == Ran(2, "", "error: cannot write to stdout: No space left on device\n")


@pytest.mark.parametrize("redirections", ["2>&-", "2>/dev/full"])
def test_stderr_that_takes_nothing_changes_nothing(project: Path, redirections: str) -> None:
    if "full" in redirections and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    assert in_shell(redirections, "check", "gone.py", cwd=project) == Ran(2, "", "")
    write_files(project, {"a.py": GOOD})
    ran = in_shell(redirections, "check", cwd=project)
    assert ran == Ran(0, "0 errors, 0 warnings (1 file checked, 0 regions)\n", "")


def open_when_read(pipe: Path) -> int:
    """Opens the pipe for writing as soon as somebody reads it; while it is open, the reader waits."""
    for _ in range(600):
        with contextlib.suppress(OSError):
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.05)
    raise AssertionError(f"nobody reads {pipe}: {errno.errorcode[errno.ENXIO]}")


def test_interrupt(project: Path) -> None:
    os.mkfifo(project / "pipe.toml")
    process = start("check", "--config", "pipe.toml", cwd=project)
    write_end = open_when_read(project / "pipe.toml")
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    os.close(write_end)
    assert (process.returncode, out, errors) == (130, b"", b"interrupted\n")


def on_a_terminal(*arguments: str, cwd: Path, **environ: str) -> str:
    parent, child = pty.openpty()
    process = start(*arguments, cwd=cwd, stdout=child, TERM="xterm", **environ)
    os.close(child)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(parent, 65536):
            shown += chunk
    process.communicate(timeout=60)
    os.close(parent)
    return shown.decode()


def test_colours_on_a_terminal(project: Path) -> None:
    assert "\x1b[1;31merror CG101\x1b[0m" in on_a_terminal("check", cwd=project)
    assert "\x1b[" not in on_a_terminal("check", cwd=project, NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal("check", "--format", "json", cwd=project)


@pytest.mark.parametrize("arguments", [("config", "loop.py"), ("explain-finding", "loop.py:5"), ("check", "loop.py")])
def test_a_link_to_itself_is_no_fault_of_the_tool(run_tool: Tool, tmp_path: Path, arguments: Sequence[str]) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    done = run_tool(*arguments, cwd=tmp_path)
    assert "internal error" not in done.err
    assert done.status == (0 if arguments[0] == "config" else 2)
