"""The jobs that docs/ci.md shows: their steps, run by a shell in a clone, as GitHub and GitLab run them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from conftest import REPOSITORY, clean_environment, copy_repository, write_files
from test_diff_base import CAPTURE
from test_pre_commit import commit_all, git
from test_report_sarif import validator

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="needs git"),
    pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash"),
]

BROKEN = CAPTURE.replace("static.add_(1)", "static.max().item()")


def snippet(name: str) -> Any:
    """The YAML below the comment ``<!-- name -->``."""
    text = (REPOSITORY / "docs" / "ci.md").read_text(encoding="utf-8")
    found = re.search(rf"<!-- {re.escape(name)} -->\n```yaml\n(.*?)```", text, re.DOTALL)
    assert found is not None, name
    return yaml.safe_load(found.group(1))


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder for the PATH with a ``capturelint`` that runs this checkout, as the job's own installation would."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "capturelint"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m capturelint "$@"\n')
    script.chmod(0o755)
    return folder


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository with a finding on line 6 of src/a.py on its first branch, and one more on line 7 on ``feature``."""
    root = tmp_path / "upstream"
    write_files(root, {"src/a.py": CAPTURE, "pyproject.toml": ""})
    commit_all(root)
    git(root, "branch", "-M", "main")
    git(root, "checkout", "-q", "-b", "feature")
    write_files(root, {"src/a.py": BROKEN})
    git(root, "commit", "-q", "-am", "change")
    return root


def clone(upstream: Path, branch: str, depth: int) -> Path:
    """As the services do it: ``depth`` 0 is the whole history."""
    target = upstream.parent / "checkout"
    shallow = [f"--depth={depth}"] if depth else []
    git(upstream.parent, "clone", "-q", *shallow, "-b", branch, upstream.as_uri(), str(target))
    return target


def run(script: str, folder: Path, tools: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    path = clean_environment()["PATH"]
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**clean_environment(), **environ, "PATH": f"{tools}:{path}"},
        capture_output=True,
        text=True,
        check=False,
    )


# GitHub


def github_steps() -> list[dict[str, Any]]:
    return list(snippet("github")["jobs"]["capturelint"]["steps"])


def github_step(name: str) -> dict[str, Any]:
    (step,) = (step for step in github_steps() if step.get("name") == name)
    return step


def check_on_github(upstream: Path, tools: Path, base: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    (checkout,) = (step for step in github_steps() if str(step.get("uses")).startswith("actions/checkout@"))
    folder = clone(upstream, "feature", int(checkout["with"]["fetch-depth"]))
    step = github_step("Check")
    environ = {name: text.replace("${{ github.base_ref }}", base) for name, text in step["env"].items()}
    return run(step["run"], folder, tools, environ), folder


def test_github_on_a_pull_request(upstream: Path, tools: Path) -> None:
    ran, folder = check_on_github(upstream, tools, "main")
    assert ran.returncode == 1, ran.stderr
    (command,) = ran.stdout.splitlines()
    assert command.startswith("::error title=capturelint (CG101),file=src/a.py,line=7,endLine=7,col=5,")
    report = json.loads((folder / github_step("Upload")["with"]["sarif_file"]).read_text())
    assert [error.message for error in validator().iter_errors(report)] == []
    (result,) = report["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert (location["artifactLocation"]["uri"], location["region"]["startLine"]) == ("src/a.py", 7)


def test_github_on_a_branch(upstream: Path, tools: Path) -> None:
    ran, _ = check_on_github(upstream, tools, "")
    assert ran.returncode == 1, ran.stderr
    assert [re.search(r"line=(\d+)", line).group(1) for line in ran.stdout.splitlines()] == ["6", "7"]  # type: ignore[union-attr]


def test_github_uploads_what_went_wrong(upstream: Path, tools: Path) -> None:
    write_files(upstream, {"capturelint.toml": "slect = []\n"})
    git(upstream, "add", "--all")
    git(upstream, "commit", "-q", "-m", "slip")
    ran, folder = check_on_github(upstream, tools, "main")
    assert ran.returncode == 2
    assert ran.stdout.startswith(
        "::error title=capturelint (config-error),file=capturelint.toml::capturelint.toml: slect:"
    )
    report = json.loads((folder / "capturelint.sarif").read_text())
    assert report["runs"][0]["invocations"][0]["executionSuccessful"] is False
    assert github_step("Upload")["if"] == "${{ !cancelled() }}"  # uploaded although the step before failed


# GitLab


def gitlab_job() -> dict[str, Any]:
    return dict(snippet("gitlab")["capturelint"])


def check_on_gitlab(upstream: Path, tools: Path, base: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    job = gitlab_job()
    folder = clone(upstream, "feature", job["variables"]["GIT_DEPTH"])
    install, *checks = job["script"]
    assert install.startswith("python -m pip install ")
    return run("\n".join(checks), folder, tools, {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base} if base else {}), folder


def test_gitlab_on_a_merge_request(upstream: Path, tools: Path) -> None:
    ran, folder = check_on_gitlab(upstream, tools, git(upstream, "rev-parse", "main"))
    assert ran.returncode == 1, ran.stderr
    reports = gitlab_job()["artifacts"]["reports"]
    (issue,) = json.loads((folder / reports["codequality"]).read_text())
    assert issue["location"] == {"path": "src/a.py", "lines": {"begin": 7, "end": 7}}
    assert (issue["check_name"], issue["severity"]) == ("CG101", "major")
    top = ElementTree.parse(folder / reports["junit"]).getroot()
    assert (top.attrib["tests"], top.attrib["failures"]) == ("1", "1")


def test_gitlab_on_a_branch(upstream: Path, tools: Path) -> None:
    ran, folder = check_on_gitlab(upstream, tools, "")
    assert ran.returncode == 1, ran.stderr
    issues = json.loads((folder / "gl-code-quality-report.json").read_text())
    assert [issue["location"]["lines"]["begin"] for issue in issues] == [6, 7]


# what both install


@pytest.mark.slow
def test_both_install_it(tmp_path: Path) -> None:
    """The install steps, with what they say to fill in, in an environment of their own."""
    repository = copy_repository(tmp_path / "capturelint")
    revision = commit_all(repository)
    steps = {github_step("Install")["run"], gitlab_job()["script"][0]}
    assert len(steps) == 1
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    step = steps.pop().replace("REPOSITORY", repository.as_uri()).replace("REVISION", revision)
    ran = run(f"{step} --quiet && capturelint --version", tmp_path, tmp_path / "venv" / "bin", {})
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("capturelint ")
