"""What is shipped: the wheel and the sdist, the README's commands, and that importing the package is light."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import Ran, clean_environment, copy_repository, write_files

from capturelint import __version__

PROGRAM = """\
import torch


def step(x):
    return x.max().item()


graph = torch.cuda.CUDAGraph()
static = torch.zeros(4, device="cuda")
with torch.cuda.graph(graph):
    step(static)
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)], cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=False
    )


def run_well(*command: str | Path, cwd: Path) -> str:
    done = run(*command, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Built:
    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist, and the wheel that is built from it, so that the sdist is known to be complete."""
    folder = tmp_path_factory.mktemp("build")
    source = copy_repository(folder / "source")
    run_well(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", source, cwd=folder)
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return Built(wheel, sdist)


def files_below(folder: Path) -> set[str]:
    return {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


@pytest.mark.slow
def test_wheel_holds_the_package_and_the_rules(built: Built, repository: Path) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read(f"capturelint-{__version__}.dist-info/METADATA").decode()
    rules = {f"capturelint/_rules/{name}" for name in files_below(repository / "rules")}
    package = {f"capturelint/{name}" for name in files_below(repository / "capturelint")}
    compiled = {name for name in names if "/compiled/" in name}
    assert "capturelint/_rules/CG101.yaml" in names
    assert names - compiled == rules | package
    assert sorted(re.sub(r"-[0-9a-f]{32}", "", name) for name in compiled) == [
        "capturelint/_rules/compiled/rules.json",
        "capturelint/_rules/ops/compiled/ops.json",
        "capturelint/_rules/presets/compiled/presets.json",
    ]
    assert built.wheel.name == f"capturelint-{__version__}-py3-none-any.whl"
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ") and "extra" not in line]
    assert sorted(re.split(r"[>;]", line.removeprefix("Requires-Dist: "))[0] for line in needed) == [
        "click",
        "libcst",
        "pathspec",
        "pyyaml",
        "tomli",
    ]


@pytest.mark.slow
def test_sdist_is_complete(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in (
        *("LICENSE", "README.md", "rules/CG101.yaml", "tests/test_packaging.py", ".pre-commit-hooks.yaml"),
        *("docs/ci.md", "capturelint.schema.json", "tests/schemas/sarif-2.1.0.json"),
    ):
        assert name in names


@pytest.mark.slow
def test_wheel_works_in_an_empty_environment_without_torch(built: Built, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    run_well(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    run_well(scripts / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", built.wheel, cwd=tmp_path)
    assert run(scripts / "python", "-c", "import torch", cwd=tmp_path).returncode == 1

    write_files(tmp_path, {"program/run.py": PROGRAM})
    done = run(scripts / "capturelint", "check", "--format", "json", "program", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    (finding,) = report["findings"]
    assert (finding["rule"], finding["path"], finding["line"]) == ("CG101", "program/run.py", 5)
    counts = {"files": 1, "regions": 1, "findings": 1, "suppressed": 0, "baseline": 0, "hidden": 0}
    counts |= {"unchanged": 0, "fixed": 0}
    assert report["summary"] == counts

    assert (
        run_well(scripts / "python", "-m", "capturelint", "--version", cwd=tmp_path) == f"capturelint {__version__}\n"
    )
    assert "CG101" in run_well(scripts / "capturelint", "rules", cwd=tmp_path)
    checked = ("-X", "importtime", "-m", "capturelint", "check", "--exit-zero", "program/run.py")
    loaded = run(scripts / "python", *checked, cwd=tmp_path).stderr
    assert " libcst" in loaded
    assert " yaml" not in loaded
    assert run_well(scripts / "capturelint", "explain", "CG101", cwd=tmp_path).startswith("CG101 host-scalar-read")


def test_importing_the_package_is_light() -> None:
    code = "import sys; import capturelint; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'capturelint'" in loaded
    for name in ("torch", "libcst", "yaml", "click", "pathspec"):
        assert f"'{name}'" not in loaded


def test_readme_s_commands(repository: Path) -> None:
    """There are two, each a single line, and CI runs the second as it stands."""
    readme = (repository / "README.md").read_text(encoding="utf-8")
    first, second = re.findall(r"<!-- command: \w+ -->\n```console\n(.*)\n```\n", readme)
    assert first.startswith("python3 -m venv ")
    assert "capturelint check fixtures/programs" in first
    for part in ("'.[test]'", "ruff check", "ruff format --check", "mypy", "pytest"):
        assert part in second
    ci = (repository / ".ci" / "run").read_text(encoding="utf-8")
    extract = re.search(r"^command=\$\((.*)\)$", ci, re.MULTILINE)
    assert extract is not None
    done = subprocess.run(["bash", "-c", extract.group(1)], cwd=repository, capture_output=True, text=True, check=True)
    assert done.stdout == second + "\n"


def test_readme_s_sample_is_what_the_tool_says(repository: Path, run_tool: Callable[..., Ran]) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    sample = re.search(r"<!-- sample -->\n```console\n\$ capturelint (.*)\n((?:.*\n)*?)```\n", readme)
    assert sample is not None
    arguments, output = sample.groups()
    assert run_tool(*shlex.split(arguments), cwd=repository) == Ran(1, output, "")
