"""What only a terminal and a shell see: progress and completion."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import REPOSITORY, clean_environment, write_files

from capturelint.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def shown(stream: io.StringIO, *, wanted: bool = True, delay: float = 0.0) -> str:
    with Progress(stream, wanted=wanted, delay=delay) as progress:
        progress("evaluate")
        time.sleep(0.3)
    return stream.getvalue()


def test_progress_is_shown_and_taken_away() -> None:
    text = shown(Terminal(), delay=0.05)
    assert text.startswith("\r\x1b[Kchecking: evaluate (0 s)")
    assert text.endswith("\r\x1b[K")


def test_a_short_run_shows_nothing() -> None:
    assert shown(Terminal(), delay=2.0) == ""


def test_nothing_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO()) == ""
    assert shown(Terminal(), wanted=False) == ""
    monkeypatch.setenv("TERM", "dumb")
    assert shown(Terminal()) == ""


def test_a_terminal_that_goes_away_ends_nothing() -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    assert shown(Gone()) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo terminals")
def test_on_a_real_terminal(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.py": "x = 1\n"})
    parent, child = os.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "capturelint", "check", "a.py", "--quiet"],
            cwd=tmp_path,
            env=clean_environment(PYTHONPATH=str(REPOSITORY), TERM="xterm"),
            stdout=subprocess.DEVNULL,
            stderr=child,
            check=True,
        )
        os.set_blocking(parent, False)
        with pytest.raises(BlockingIOError):
            os.read(parent, 1)
    finally:
        os.close(parent)
        os.close(child)


# completion


def complete(*words: str) -> list[str]:
    program = "import sys; from capturelint.cli.main import main; sys.exit(main([]))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=clean_environment(
            PYTHONPATH=str(REPOSITORY),
            _CAPTURELINT_COMPLETE="bash_complete",
            COMP_WORDS=" ".join(("capturelint", *words)),
            COMP_CWORD=str(len(words)),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return [line.removeprefix("plain,") for line in done.stdout.splitlines()]


def test_commands_and_options_are_completed() -> None:
    assert complete("ex") == ["explain", "explain-finding"]
    assert complete("check", "--diff") == ["--diff-base", "--diff"]
    assert complete("check", "--format", "s") == ["sarif"]
    assert "check" in complete("nonsense", "")  # the word may be a slip; nothing is said on stderr


def test_rules_are_completed() -> None:
    assert complete("explain", "CG10") == sorted(code for code in complete("explain", "CG1") if code < "CG110")
    assert "CG101" in complete("explain", "CG10")
    assert complete("explain", "host-sc") == ["host-scalar-read"]
    assert complete("check", "--select", "CG201,CG101") == ["CG201,CG101"]


def test_the_script_that_the_shell_loads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from capturelint.cli.main import main; sys.exit(main([]))"],
        env=clean_environment(PYTHONPATH=str(REPOSITORY), _CAPTURELINT_COMPLETE="zsh_source"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("#compdef capturelint\n")
