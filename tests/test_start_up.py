"""What a run imports: start-up is paid by each editor save and each commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, clean_environment

HEAVY = ("libcst", "yaml", "torch", "capturelint.values", "capturelint.lifecycle", "capturelint.passes.base")
CAPTURES = """\
import torch

def run(graph, x):
    with torch.cuda.graph(graph):
        y = x + 1
    return y
"""


def imported(*arguments: str, cwd: Path) -> set[str]:
    """The modules that a run of the command line has imported when it ends."""
    program = (
        "import sys\n"
        "from capturelint.cli.main import main\n"
        f"status = main({list(arguments)!r})\n"
        "print(*sys.modules, file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env=clean_environment(PYTHONPATH=str(REPOSITORY)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture(autouse=True)
def rules_are_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "first.py").write_text(CAPTURES, encoding="utf-8")
    imported("check", "first.py", cwd=tmp_path)


def test_the_version_needs_no_analysis(tmp_path: Path) -> None:
    assert not {"capturelint.check", "capturelint.config", *HEAVY} & imported("--version", cwd=tmp_path)


def test_a_file_without_a_region_imports_no_analysis(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "plain.py").write_text("def double(x):\n    return 2 * x\n", encoding="utf-8")
    assert not set(HEAVY) & imported("check", "--no-cache", "plain.py", cwd=tmp_path / "alone")


def test_a_region_without_a_candidate_needs_no_libcst(tmp_path: Path) -> None:
    found = imported("check", "--no-cache", "first.py", cwd=tmp_path)
    assert "capturelint.values.engine" in found
    assert not {"libcst", "yaml"} & found


def test_a_kept_result_needs_no_analysis(tmp_path: Path) -> None:
    imported("check", "first.py", cwd=tmp_path)
    assert not set(HEAVY) & imported("check", "first.py", cwd=tmp_path)
