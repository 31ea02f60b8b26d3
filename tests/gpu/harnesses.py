"""Writes the harness of every labelled case: ``python tests/gpu/harnesses.py`` makes fixtures/gpu/cases.yaml anew."""

from __future__ import annotations

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "fixtures" / "gpu" / "cases.yaml"


def entries() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for meta_file in sorted((ROOT / "fixtures" / "cases").glob("*/*/meta.yaml")):
        case = meta_file.parent.relative_to(ROOT).as_posix()
        entry = yaml.safe_load(meta_file.read_text(encoding="utf-8"))["entry"]
        harness: dict[str, object] = {"region": f"{case}/case.py:*", "path": [case]}
        if "main" in entry:
            harness["run"] = "fixtures/gpu/drive.py:main"
        else:
            harness["run"] = "fixtures/gpu/drive.py:captured"
            if "consecutive" not in entry.get("check", ""):
                harness["reference"] = "fixtures/gpu/drive.py:eager"
        found.append(harness)
    return found


if __name__ == "__main__":
    header = "# How the verifier runs the labelled cases; made by tests/gpu/harnesses.py.\n"
    TARGET.write_text(header + yaml.safe_dump({"harness": entries()}, sort_keys=False), encoding="utf-8")
