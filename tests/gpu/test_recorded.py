"""What the GPU runs under fixtures/gpu recorded is what issue and documentation say of it. Needs no GPU."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

GPU = Path(__file__).resolve().parents[2] / "fixtures" / "gpu"


def recorded(name: str) -> dict[str, Any]:
    file = GPU / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"{file.name} is not recorded")
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return document


def test_records_name_device_and_torch() -> None:
    for name in ("truth", "cases", "ten", "trouble"):
        assert ", torch " in recorded(name)["device"]


def test_constructs_agree_with_the_truth_file() -> None:
    document = recorded("truth")
    truth = json.loads((GPU.parent / "truth" / "truth.json").read_text(encoding="utf-8"))["constructs"]
    assert [row["construct"] for row in document["rows"]] == [entry["construct"] for entry in truth]
    for row in document["rows"]:
        proven = [finding["line"] for finding in row["findings"] if finding["verdict"] == "confirmed"]
        agrees = bool(proven) if row["expect"] != "safe" else not proven
        assert agrees == row["agrees"], row["construct"]
    assert document["constructs"] == 185
    assert document["seconds"] < 180
    assert document["differ"] == []


def test_ten_hazards_in_one_region() -> None:
    document = recorded("ten")
    assert document["hazards"] == 10
    assert document["missing"] == []
    assert document["region_seconds"] < 2


def test_labelled_cases() -> None:
    document = recorded("cases")
    assert document["run"] == document["cases"]
    assert document["confirmed"] >= 0.85 * document["wanted"]
    assert document["safe_with_confirmed"] == []


def test_trouble_is_named_and_the_neighbours_are_verified() -> None:
    regions = {(row["file"], row["region"]): row for row in recorded("trouble")["regions"]}
    said = {file: row["problem"] for (file, _), row in regions.items() if row["problem"]}
    assert "hangs" in said["hang.py"]
    assert "device-side assert" in said["illegal_access.py"]
    assert "SIGSEGV" in said["segfault.py"]
    assert "No module named" in said["import_error.py"]
    assert "out of memory" in said["out_of_memory.py"]
    assert regions["exits.py", "region"]["problem"] == "the code called sys.exit(3)"
    assert "status 7" in regions["exits.py", "at_once"]["problem"]
    assert regions["fine.py", "region"]["comparisons"] == 3
    assert regions["fine.py", "read"]["problem"] is None


def test_an_interrupt_leaves_nothing_behind() -> None:
    document = recorded("interrupt")
    assert document["status"] == 130
    assert document["workers_before"] >= 1
    assert document["workers_left"] == 0


def test_the_readme_counts_what_the_whole_output_holds() -> None:
    text = (GPU / "check_fixtures.txt").read_text(encoding="utf-8")
    readme = (GPU.parents[1] / "README.md").read_text(encoding="utf-8")
    for word in ("confirmed", "inconclusive", "unverified"):
        (count,) = re.findall(rf"(\d+) (?:findings )?{word}\b", readme)
        assert int(count) == len(re.findall(rf"^  {word}\b", text, re.MULTILINE))
    assert text.strip().splitlines()[-1] in readme
    assert text.split("\n\n")[0] in readme


def test_regions_are_spread_over_gpus() -> None:
    document = recorded("spread")
    assert len(document["worker_starts"]) == document["gpus"] == 2
    assert document["problems"] == []
    assert document["seconds"] < 0.75 * recorded("truth")["seconds"]
