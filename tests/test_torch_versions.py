"""Facts that hold for some versions of torch: ``torch-version`` in config says which is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import Confidence
from capturelint.rulebook.versions import holds, is_range

SOURCE = """\
import torch

from capturelint import capture_region


@capture_region(inputs={"x": "float32[8]"})
def region(x: torch.Tensor) -> torch.Tensor:
    staging = torch.empty(8, pin_memory=True)
    x += torch.ones(8).to("cuda", non_blocking=True)
    torch.nn.init.trunc_normal_(x)
    return staging
"""
STAGING, COPY, INIT = (8, "CG105"), (9, "CG201"), (10, "CG105")


def found(folder: Path, version: str | None, least: Confidence = Confidence.LIKELY) -> list[tuple[int, str]]:
    (folder / "region.py").write_text(SOURCE, encoding="utf-8")
    config = replace(Config(), torch_version=version)
    options = CheckOptions((folder,), config, (), (), least, folder)
    return [(finding.span.line, finding.rule) for finding in check_paths(options).findings]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.9", [STAGING]), ("2.10", [STAGING, COPY]), ("2.11", [COPY]), ("2.13", [COPY, INIT]), (None, [COPY, INIT])],
)
def test_what_holds(
    version: str | None, expected: list[tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert found(tmp_path, version) == expected


def test_what_holds_for_old_versions_alone_is_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert STAGING in found(tmp_path, None, Confidence.POSSIBLE)
    assert STAGING not in found(tmp_path, "2.11", Confidence.POSSIBLE)


def test_ranges() -> None:
    assert holds(">=2.3,<2.11", "2.10.1") and not holds(">=2.3,<2.11", "2.11.0+cu130")
    assert holds("", "1.0") and holds(">=2.13", None) and not holds("<2.11", None)
    assert is_range(">=2.3,<2.11") and not is_range("2.11") and not is_range("newer")
