"""Runs the linter on pinned packages and compares with the judgements under fixtures/ecosystem/.

usage: python benchmarks/ecosystem.py CORPUS [NAME ...]

CORPUS holds one folder a package (``sglang``, ``vllm``, ...) with its unpacked wheel, at the versions that
``fixtures/ecosystem/judgements.json`` names. Each finding at default confidence is printed with its judgement:
``true``, ``false``, ``depends`` on a mode or a choice, or ``not judged``. Judged findings that are no longer reported
are counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

JUDGEMENTS = Path(__file__).parent.parent / "fixtures" / "ecosystem" / "judgements.json"
Key = tuple[str, int, str]


def findings(root: Path) -> dict[Key, dict[str, Any]]:
    """The findings in a package, by path, line and rule."""
    command = [sys.executable, "-m", "capturelint", "check", "--exit-zero", "--format", "json", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return {(each["path"], each["line"], each["rule"]): each for each in json.loads(done.stdout)["findings"]}


def show(package: str, root: Path, judged: dict[Key, dict[str, Any]]) -> Counter[str]:
    found = findings(root)
    counts: Counter[str] = Counter()
    print(f"{package}: {len(found)} findings, {len(judged.keys() - found.keys())} judged ones not reported")
    for key in sorted(found):
        judgement = judged.get(key)
        word = judgement["judgement"] if judgement is not None else "not judged"
        counts[word] += 1
        second = judgement.get("second") if judgement is not None else None
        also = f" (second: {second['judgement']})" if second is not None else ""
        reason = judgement["reason"] if judgement is not None else found[key]["message"]
        print(f"  {word:<10} {key[2]} {key[0]}:{key[1]}{also}  {reason}")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    document = json.loads(JUDGEMENTS.read_text(encoding="utf-8"))
    total: Counter[str] = Counter()
    for package in document["packages"]:
        name = package.partition("==")[0]
        root = (arguments.corpus / name).resolve()
        if (arguments.names and name not in arguments.names) or not root.is_dir():
            continue
        entries = [each for each in document["judgements"] if each["package"] == package]
        total += show(package, root, {(each["path"], each["line"], each["rule"]): each for each in entries})
    print(", ".join(f"{word} {count}" for word, count in sorted(total.items())) or "no findings")


if __name__ == "__main__":
    main()
