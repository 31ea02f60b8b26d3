#!/usr/bin/env python3
"""Prints recall, false alarms and extra findings on the labelled code in fixtures/, which are the README's figures.

usage: python benchmarks/score.py [--verbose] [--record]

--record also writes what was found to fixtures/truth/found.json and fixtures/cases/found.json, which the tests compare.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# This checkout is what gets measured, installed or not; the scoring itself is shared with the tests.
sys.path[:0] = [str(Path(__file__).resolve().parent.parent / folder) for folder in (".", "tests")]

from scoring import CASES, TRUTH, Score, record, score_all_cases, score_truth  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verbose", action="store_true", help="list what was missed and what was flagged wrongly")
    parser.add_argument("--record", action="store_true", help="write the found.json files")
    args = parser.parse_args()

    truth, truth_table = score_truth()
    cases, case_tables = score_all_cases()
    for name, score in {"truth": truth, **{f"cases/{name}": score for name, score in cases.items()}}.items():
        print(f"{name}: {score}")
        if args.verbose:
            print("".join(f"   {note}\n" for note in score.notes), end="")
    print(f"cases together: {sum(cases.values(), Score())}")
    if args.record:
        record(TRUTH, truth_table)
        record(CASES, case_tables)


if __name__ == "__main__":
    main()
