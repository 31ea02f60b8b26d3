"""The hook, run by pre-commit itself: it gets single files and still sees the project that they belong to."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, clean_environment, copy_repository, write_files

PROJECT = {
    "pyproject.toml": "[tool.capturelint]\nexclude = ['generated']\n",
    "runner.py": """\
import torch

from kernels import scale

graph = torch.cuda.CUDAGraph()
static = torch.zeros(4, device="cuda")
with torch.cuda.graph(graph):
    static.sum().item()
    scale(static)
""",
    "kernels.py": "def scale(x):\n    return x / x.max().item()\n",
    "notes.txt": "no Python\n",
}


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=clean_environment(), check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit_all(folder: Path) -> str:
    git(folder, "init", "-q")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "all")
    return git(folder, "rev-parse", "HEAD")


def documented_hook(heading: str, repository: str, revision: str) -> str:
    """The snippet of docs/ci.md below ``<!-- heading -->``, with what it says to fill in."""
    text = (REPOSITORY / "docs" / "ci.md").read_text(encoding="utf-8")
    snippet = re.search(rf"<!-- {heading} -->\n```yaml\n(repos:\n.*?)```", text, re.DOTALL)
    assert snippet is not None
    return snippet.group(1).replace("REPOSITORY", repository).replace("REVISION", revision)


def test_the_readme_shows_the_same_hook() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert documented_hook("hook", "REPOSITORY", "REVISION") in readme


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_hook_reports_on_the_files_passed(tmp_path: Path) -> None:
    hook_repository = copy_repository(tmp_path / "capturelint")
    revision = commit_all(hook_repository)
    project = tmp_path / "project"
    write_files(project, PROJECT)
    write_files(project, {".pre-commit-config.yaml": documented_hook("hook", hook_repository.as_uri(), revision)})
    commit_all(project)

    def run_hook(*files: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--color", "never", "--files", *files],
            cwd=project,
            env=clean_environment(PRE_COMMIT_HOME=str(tmp_path / "home")),
            capture_output=True,
            text=True,
            check=False,
        )

    ran = run_hook("kernels.py", "notes.txt")
    assert "kernels.py:2:16: error CG101 host-scalar-read" in ran.stdout, ran.stdout + ran.stderr
    assert "runner.py:7   with torch.cuda.graph(graph):" in ran.stdout
    assert "runner.py:8:" not in ran.stdout  # a finding of its own, in a file that was not passed
    assert ran.returncode == 1

    ran = run_hook("runner.py")
    assert "runner.py:8:5: error CG101 host-scalar-read" in ran.stdout
    assert "kernels.py:2:" not in ran.stdout
    assert ran.returncode == 1

    ran = run_hook("notes.txt")
    assert ran.returncode == 0
    assert "(no files to check)Skipped" in ran.stdout

    write_files(project, {"kernels.py": "def scale(x):\n    return x / x.max()\n"})
    assert run_hook("kernels.py").returncode == 0

    # the whole project, whatever was changed
    whole = documented_hook("hook: whole project", hook_repository.as_uri(), revision)
    write_files(project, {"kernels.py": PROJECT["kernels.py"], ".pre-commit-config.yaml": whole})
    commit_all(project)
    ran = run_hook("notes.txt")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    write_files(project, {"kernels.py": PROJECT["kernels.py"].replace("x.max()", "x.min()")})
    git(project, "add", "kernels.py")
    ran = run_hook("notes.txt")
    assert "kernels.py:2:16: error CG101 host-scalar-read" in ran.stdout, ran.stdout + ran.stderr
    assert "runner.py:8:" not in ran.stdout
    assert ran.returncode == 1
