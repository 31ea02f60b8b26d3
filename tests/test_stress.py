"""Work grows with the size of what is checked, not faster: counted in calls, which a busy machine does not change."""

from __future__ import annotations

import cProfile
import importlib.util
import pstats
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import REPOSITORY, write_files

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import CheckResult, Confidence

#: calls for twice the size, at most: what starts a run counts in both
TWICE = 2.3
#: the families of ``benchmarks/stress.py``, and a size at which they take a second
SIZES = {
    "repository": 150,
    "regions": 8,
    "one_file": 20,
    "deep": 20,
    "wide": 60,
    "methods": 40,
    "heirs": 20,
    "branches": 30,
    "elifs": 40,
    "sums": 100,
    "chains": 60,
    "nested": 40,
    "literals": 1000,
    "strings": 10_000,
    "recursive": 20,
    "attributes": 30,
    "plain_chains": 60,
    "conjunctions": 60,
    "names": 60,
    "handlers": 60,
    "leaving": 60,
    "entries": 60,
    "managers": 40,
    "members": 40,
    "replays_in_one": 30,
    "graphs_of_one": 10,
    "streams": 20,
    "doubled": 20,
    "globals_set": 40,
    "findings": 20,
    "forms": 5,
    "long_around": 15,
    "overridden": 8,
}


def stress() -> ModuleType:
    folder = str(REPOSITORY / "benchmarks")
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("stress", Path(folder, "stress.py"))
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(folder)


def calls_for(name: str, size: int, folder: Path) -> tuple[int, CheckResult]:
    family = next(each for each in stress().FAMILIES if each.__name__ == name)
    write_files(folder, dict(family(size)))
    options = CheckOptions((folder,), Config(), (), (), Confidence.LIKELY, folder, jobs=1)
    profile = cProfile.Profile()
    profile.enable()
    try:
        result = check_paths(options)
    finally:
        profile.disable()
    return pstats.Stats(profile).total_calls, result  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_twice_the_size_is_about_twice_the_work(name: str, tmp_path: Path) -> None:
    calls_for(name, 4, tmp_path / "first")  # what is imported and loaded once
    smaller, _ = calls_for(name, SIZES[name], tmp_path / "smaller")
    larger, result = calls_for(name, 2 * SIZES[name], tmp_path / "larger")
    assert result.regions
    assert result.diagnostics == ()
    assert larger / smaller < TWICE, f"{smaller} calls, then {larger}"
