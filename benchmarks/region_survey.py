"""How many of the capture sites of real packages are found, by package and form, and with how many functions behind.

usage: python benchmarks/region_survey.py CORPUS [NAME ...]

CORPUS holds one folder a package (``sglang``, ``vllm``, ...) with its unpacked wheel, at the versions that
``fixtures/ecosystem/capture_sites.json`` names. A site counts as found when a region begins there, or when the call
that stands there is one that hands a region what it captures.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter, defaultdict
from pathlib import Path

from capturelint.check import CheckOptions, check_paths
from capturelint.config import Config
from capturelint.model import CheckResult, Confidence, Region

SITES = Path(__file__).parent.parent / "fixtures" / "ecosystem" / "capture_sites.json"
#: forms that stand for a call or a decorator one line above what they declare
NEAR = 5


def survey(root: Path) -> CheckResult:
    os.chdir(root)
    return check_paths(CheckOptions((Path(),), Config(), (), (), Confidence.LIKELY, root))


def places(region: Region) -> set[tuple[str, int]]:
    return {(region.path, region.line), *((frame.path, frame.line) for frame in region.given_by)}


def find(site: dict[str, object], regions: list[Region]) -> Region | None:
    """The region at a site; of several the one that reaches most."""
    line = int(str(site["line"]))
    near = [
        region
        for region in regions
        if any(path == site["path"] and abs(at - line) <= NEAR for path, at in places(region))
    ]
    return max(near, key=lambda region: len(region.reached), default=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--missing", action="store_true", help="list the sites that are not found or reach nothing")
    arguments = parser.parse_args()
    sites = json.loads(SITES.read_text())
    by_package: dict[str, list[dict[str, object]]] = defaultdict(list)
    for site in sites:
        by_package[str(site["package"])].append(site)
    total, found, resolved = Counter[str](), Counter[str](), Counter[str]()
    outside, outside_resolved = 0, 0
    for package, wanted in sorted(by_package.items()):
        name = package.partition("==")[0]
        root = (arguments.corpus / name).resolve()
        if (arguments.names and name not in arguments.names) or not root.is_dir():
            continue
        regions = list(survey(root).regions)
        print(f"{package}: {len(regions)} regions, {sum(len(r.reached) for r in regions)} reached functions")
        for site in wanted:
            form = str(site["form"])
            region = find(site, regions)
            total[form] += 1
            found[form] += region is not None
            reaches = region is not None and bool(region.reached)
            resolved[form] += reaches
            if form in FORMS and name != "nemo-toolkit":
                outside += 1
                outside_resolved += reaches
            if arguments.missing and form in FORMS and not reaches:
                word = "missing " if region is None else "no callee"
                print(f"   {word} {form} {site['path']}:{site['line']} {site['where']}  callee: {site['callee']}")
    print("form  sites  found  with a function behind")
    for form in sorted(total, key=lambda form: int(form[1:])):
        print(f"{form:<5} {total[form]:>5} {found[form]:>6} {resolved[form]:>6}")
    all_sites, all_found = sum(total[form] for form in FORMS), sum(found[form] for form in FORMS)
    if all_sites:
        print(f"F1 to F9: {all_found}/{all_sites} found ({100 * all_found / all_sites:.1f}%)")
    if outside:
        print(
            f"outside NeMo: {outside_resolved}/{outside} with a function behind"
            f" ({100 * outside_resolved / outside:.1f}%)"
        )


FORMS = tuple(f"F{number}" for number in range(1, 10))

if __name__ == "__main__":
    main()
