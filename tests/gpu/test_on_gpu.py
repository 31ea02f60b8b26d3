"""The verifier on a real GPU, in small: skipped, visibly, where there is none. ``run_all`` measures the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "capturelint", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


def test_a_function_with_ten_hazards_gets_ten_verdicts() -> None:
    result = run("verify", "fixtures/gpu/ten.py", "--color", "never")
    assert result.returncode == 1
    assert result.stdout.count("confirmed on ") >= 10
    assert "refuted" not in result.stdout


def test_a_right_function_passes() -> None:
    result = run("check", "fixtures/truth/masked_fill.py", "--verify-on-gpu")
    assert result.returncode == 0, result.stdout


def test_the_api_reports_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    import capturelint

    (tmp_path / "api_regions.py").write_text(
        "def wrong(x):\n    return x * x.sum().item()\n\n\ndef right(x):\n    return x * x.sum()\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module: Any = importlib.import_module("api_regions")
    report = capturelint.verify(module.wrong, inputs=["float32[8, 16]"])
    assert not report
    assert [(item.line, item.rules[0]) for item in report.observations] == [(2, "CG101")]
    assert capturelint.verify(module.right, inputs=["float32[8, 16]"])


def test_rule_pages_of_what_only_the_verifier_sees(tmp_path: Path) -> None:
    from capturelint.rulebook import load_rulebook

    for code in ("CG100", "CG600", "CG603"):
        for number, example in enumerate(load_rulebook().rules[code].page.bad):
            if "inputs=" not in example.code:
                continue  # nothing says how to call it
            file = tmp_path / f"{code.lower()}_{number}.py"
            file.write_text(example.code, encoding="utf-8")
    from capturelint.check import CheckOptions, check_paths
    from capturelint.config import Config
    from capturelint.model import Confidence, VerdictStatus
    from capturelint.verifier.run import VerifyOptions, verify_result

    checked = check_paths(CheckOptions((tmp_path,), Config(), (), (), Confidence.LIKELY, tmp_path))
    verified = verify_result(checked, VerifyOptions(tmp_path, Path.cwd(), (tmp_path,), time_limit=60.0))
    seen = {
        (Path(finding.path).name[:5].upper(), finding.span.line)
        for finding in verified.result.findings
        if finding.verdict is not None and finding.verdict.status is VerdictStatus.CONFIRMED
    }
    announced = {
        (code, line)
        for code in ("CG100", "CG600", "CG603")
        for example in load_rulebook().rules[code].page.bad
        if "inputs=" in example.code
        for _, line, _ in example.expected()
    }
    assert announced
    assert announced <= seen
