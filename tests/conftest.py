from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from capturelint.cli.main import main
from capturelint.model import CheckResult, Frame, ReachedFunction, Region, UnresolvedCall

REPOSITORY = Path(__file__).resolve().parent.parent
A_REGION = Region(
    "comment",
    "a.py",
    1,
    "step",
    (ReachedFunction("b.py", 1, "helper", Frame("a.py", 2, "step")),),
    (UnresolvedCall("a.py", 3, 5, "plan()", "not defined in the project"),),
)
#: what tools leave in a checkout and a copy of it does not need
_LEFTOVERS = (".git", ".venv*", ".*_cache", "__pycache__", "*.egg-info", "dist", "build")


@dataclass(frozen=True)
class Ran:
    """What a run of the command line came to."""

    status: int
    out: str
    err: str


Cli = Callable[..., Ran]


def write_files(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def copy_repository(target: Path) -> Path:
    """A copy of this checkout as it stands, without what git ignores."""
    return Path(shutil.copytree(REPOSITORY, target, ignore=shutil.ignore_patterns(*_LEFTOVERS)))


def clean_environment(**changes: str) -> dict[str, str]:
    """The environment without what would change colours, or where Python and git look for things."""
    dropped = ("NO_COLOR", "FORCE_COLOR", "PYTHONPATH", "CAPTURELINT_DEBUG", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("GIT_")}
    return {**kept, **changes}


@dataclass
class Core:
    """Stands in for ``check_paths``: returns ``result``, or raises it, and keeps what it was asked."""

    result: CheckResult | BaseException
    asked: list[object] = field(default_factory=list)

    def __call__(self, options: object, progress: object = None) -> CheckResult:
        self.asked.append(options)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result

    def asked_for(self, name: str) -> Any:
        return getattr(self.asked[-1], name)


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Core:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "CAPTURELINT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    write_files(tmp_path, {"a.py": "def step(x):  # capturelint: region\n    return x.item()\n", "pyproject.toml": ""})
    core = Core(CheckResult(regions=(A_REGION,), files=2))
    monkeypatch.setattr("capturelint.check.check_paths", core)
    return core


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: str | Path) -> Ran:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps the tests away from the user's cache, and gives them an empty one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAPTURELINT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def repository() -> Path:
    return REPOSITORY


@pytest.fixture
def run_tool() -> Callable[..., Ran]:
    """Runs ``python -m capturelint`` as a process of its own: ``run_tool("check", ".", cwd=..., env=...)``."""

    def run(*arguments: str | Path, cwd: Path, **environ: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "capturelint", *map(str, arguments)],
            cwd=cwd,
            env=clean_environment(PYTHONPATH=str(REPOSITORY), **environ),
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
