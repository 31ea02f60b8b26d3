# ruff: noqa: E402 - the repository goes on the import path first
"""Runs the verifier over the fixtures on this machine's GPU and writes what came out under fixtures/gpu/.

``python tests/gpu/measure.py [truth] [cases] [ten] [trouble] [interrupt] [spread] [check]``; all where none is named.
CAPTURELINT_GPU_RESULTS names another directory to write to.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import yaml
from processes import children_of

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import Confidence, Finding, VerdictStatus
from capturelint.verifier.harness import read_file
from capturelint.verifier.parent import gpu_list, spread
from capturelint.verifier.run import Verified, VerifyOptions, verify_result

RESULTS = Path(os.environ.get("CAPTURELINT_GPU_RESULTS", ROOT / "fixtures" / "gpu"))
TRUTH, CASES, GPU = ROOT / "fixtures" / "truth", ROOT / "fixtures" / "cases", ROOT / "fixtures" / "gpu"


def verify(paths: list[Path], *, time_limit: float = 60.0, workers: int = 1, harness: Path | None = None) -> Verified:
    options = CheckOptions(tuple(paths), Config(), (), (), Confidence.LIKELY, ROOT)
    checked = check_paths(options)
    entries = read_file(harness, harness.name) if harness is not None else ()
    return verify_result(
        checked,
        VerifyOptions(ROOT, ROOT, tuple(paths), entries, time_limit, workers_per_gpu=workers),
    )


def head(verified: Verified) -> dict[str, Any]:
    outcomes = verified.outcomes.values()
    trials = [seconds for outcome in outcomes for seconds in outcome.trial_seconds]
    return {
        "device": verified.ran.device,
        "seconds": round(verified.ran.seconds, 2),
        "worker_starts": [round(seconds, 2) for seconds in verified.ran.starts],
        "trials": len(trials),
        "ms_a_trial": round(1e3 * sum(trials) / max(1, len(trials)), 2),
        "comparisons": sum(outcome.comparisons for outcome in outcomes),
    }


def row(finding: Finding) -> dict[str, Any]:
    verdict = finding.verdict
    return {
        "rule": finding.rule,
        "line": finding.span.line,
        "path": finding.path,
        "found_by": "verifier" if finding.message.startswith("found by running it") else "linter",
        "verdict": verdict.status.value if verdict else None,
        "evidence": verdict.evidence if verdict else None,
    }


def write(name: str, document: dict[str, Any]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1).replace(f"{ROOT}/", "")  # where this checkout lies is nobody's business
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(
        f"{name}: {json.dumps({key: value for key, value in document.items() if key not in ('rows', 'stderr')})[:1500]}"
    )


def confirmed(finding: Finding) -> bool:
    return finding.verdict is not None and finding.verdict.status is VerdictStatus.CONFIRMED


def measure_truth() -> None:
    verified = verify([TRUTH])
    truth = json.loads((TRUTH / "truth.json").read_text(encoding="utf-8"))["constructs"]
    by_path: dict[str, list[Finding]] = {}
    for finding in verified.result.findings:
        by_path.setdefault(Path(finding.path).stem, []).append(finding)
    outcomes = {Path(verified.plan.regions[n][0].path).stem: o for n, o in verified.outcomes.items()}
    rows = []
    for construct in truth:
        name, hazard = construct["construct"], construct["expect"] != "safe"
        found = by_path.get(name, [])
        proven = [finding for finding in found if confirmed(finding)]
        lines = {line for f in proven for line in range(f.span.line, f.span.end_line + 1)}
        agrees = bool(lines & set(construct["lines"])) if hazard else not proven
        outcome = outcomes.get(name)
        rows.append(
            {
                "construct": name,
                "expect": construct["expect"],
                "lines": construct.get("lines"),
                "agrees": agrees and outcome is not None and outcome.problem is None,
                "problem": outcome.problem if outcome else "not run",
                "notes": outcome.notes if outcome else [],
                "seconds": round(outcome.seconds, 3) if outcome else None,
                "findings": [row(finding) for finding in found],
            }
        )
    bad = [entry["construct"] for entry in rows if not entry["agrees"]]
    write(
        "truth", head(verified) | {"constructs": len(rows), "agree": len(rows) - len(bad), "differ": bad, "rows": rows}
    )


def measure_cases() -> None:
    verified = verify([CASES], time_limit=150.0, workers=4, harness=GPU / "cases.yaml")
    rows = []
    for number, regions in sorted(verified.plan.regions.items()):
        outcome = verified.outcomes[number]
        directory = Path(regions[0].path).parent
        meta = yaml.safe_load((ROOT / directory / "meta.yaml").read_text(encoding="utf-8"))
        found = [finding for finding in verified.result.findings if Path(finding.path).parent == directory]
        rows.append(_case_row(meta, directory.as_posix(), found, outcome))
    wanted = sum(entry["wanted"] for entry in rows)
    got = sum(entry["confirmed"] for entry in rows)
    false = [entry["case"] for entry in rows if entry["safe"] and entry["proven"]]
    cases = len(list(CASES.glob("*/*/meta.yaml")))
    document = {"cases": cases, "run": len(rows), "wanted": wanted, "confirmed": got}
    document["share"] = round(got / max(1, wanted), 3)
    write("cases", head(verified) | document | {"safe_with_confirmed": false, "rows": rows})


def _case_row(meta: dict[str, Any], directory: str, found: list[Finding], outcome: Any) -> dict[str, Any]:
    proven = [finding for finding in found if confirmed(finding)]
    there, silent = meta["gpu"]["outcome"], meta["runtime"] in ("silent_stale", "wrong_result")
    failed = there in ("raised", "mismatch") or (there == "ran" and silent)
    expected = [
        entry
        for entry in meta.get("expect", [])
        if failed and entry.get("required", True) and entry["certainty"] in ("error", "silent")
    ]
    groups = [expected] if meta.get("match") == "any" and expected else [[entry] for entry in expected]
    hits = [any(_hit(entry, directory, proven) for entry in group) for group in groups]
    return {
        "case": directory.split("cases/")[1],
        "safe": not meta.get("expect"),
        "wanted": len(groups),
        "confirmed": sum(hits),
        "missed": [[entry["line"] for entry in group] for group, hit in zip(groups, hits, strict=True) if not hit],
        "proven": [[Path(f.path).name, f.span.line, f.rule] for f in proven],
        "problem": outcome.problem,
        "notes": outcome.notes[:6],
        "comparisons": outcome.comparisons,
        "seconds": round(outcome.seconds, 2),
        "findings": [row(finding) for finding in found],
    }


def _hit(entry: dict[str, Any], directory: str, proven: list[Finding]) -> bool:
    file = f"{directory}/{entry.get('file', 'case.py')}"
    lines = {entry["line"], *(entry.get("alt_lines") or [])}
    return any(
        finding.path == file and lines & set(range(finding.span.line, finding.span.end_line + 1)) for finding in proven
    )


def measure_ten() -> None:
    verified = verify([GPU / "ten.py"])
    outcome = verified.outcomes[0]
    rows = [row(finding) for finding in verified.result.findings]
    source = (GPU / "ten.py").read_text(encoding="utf-8").splitlines()
    marked = {number: line.split("# ")[1] for number, line in enumerate(source, 1) if ":" in line and "  # " in line}
    lines = sorted({entry["line"] for entry in rows if entry["verdict"] == "confirmed"})
    extra = {"region_seconds": round(outcome.seconds, 3), "problem": outcome.problem, "notes": outcome.notes}
    missing = [text for number, text in marked.items() if number not in lines]
    write("ten", head(verified) | extra | {"hazards": len(marked), "missing": missing, "rows": rows})


def measure_trouble() -> None:
    verified = verify([GPU / "trouble"], time_limit=25.0)
    rows = []
    for number, regions in sorted(verified.plan.regions.items()):
        outcome = verified.outcomes[number]
        shown = {"file": Path(regions[0].path).name, "region": regions[0].name, "status": outcome.status}
        rows.append(shown | {"problem": outcome.problem, "comparisons": outcome.comparisons})
    findings = [row(finding) for finding in verified.result.findings]
    write("trouble", head(verified) | {"regions": rows, "findings": findings})


def measure_interrupt() -> None:
    """Ctrl-C in the middle of a hang: status 130, and no worker left."""
    command = [sys.executable, "-m", "capturelint", "verify", str(GPU / "trouble" / "hang.py")]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(20)
    before = children_of(process.pid)
    start = time.perf_counter()
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    took = time.perf_counter() - start
    time.sleep(1)
    left = [pid for pid in before if Path(f"/proc/{pid}").exists()]
    document = {"status": process.returncode, "seconds": round(took, 2), "workers_before": len(before)}
    write("interrupt", document | {"workers_left": len(left), "stderr": err[-500:], "stdout": out[-200:]})


def measure_spread() -> None:
    """The constructs over all GPUs; nothing is recorded where there is but one."""
    gpus = len(spread(gpu_list(), 1))
    if gpus < 2:
        print("spread: needs two GPUs, nothing recorded")
        return
    verified = verify([TRUTH])
    problems = [outcome.problem for outcome in verified.outcomes.values() if outcome.problem]
    write(
        "spread",
        head(verified)
        | {
            "gpus": gpus,
            "regions": len(verified.outcomes),
            "confirmed": sum(map(confirmed, verified.result.findings)),
            "problems": problems,
        },
    )


def measure_check() -> None:
    """``check fixtures --verify-on-gpu``: the whole output as it is printed, and how many verdicts of which kind."""
    command = [sys.executable, "-m", "capturelint", "check", "fixtures", "--verify-on-gpu", "--color", "never"]
    command += ["--harness", "fixtures/gpu/cases.yaml", "--workers", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    text = done.stdout.replace(f"{ROOT}/", "")
    (RESULTS / "check_fixtures.txt").write_text(text, encoding="utf-8")
    verdicts = Counter(re.findall(r"^  (confirmed|refuted|unreached|inconclusive|unverified)\b", text, re.MULTILINE))
    print(f"check: {dict(verdicts)}; {text.strip().splitlines()[-1]}")


MEASURES: dict[str, Callable[[], None]] = {
    "truth": measure_truth,
    "ten": measure_ten,
    "trouble": measure_trouble,
    "interrupt": measure_interrupt,
    "cases": measure_cases,
    "spread": measure_spread,
    "check": measure_check,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or MEASURES:
        MEASURES[name]()
        sys.stdout.flush()
