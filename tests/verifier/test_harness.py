"""Harness entries, tensor specs, the plan and the skeleton: all of it without torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from capturelint.config import parse_config
from capturelint.errors import ConfigError, UsageError
from capturelint.model import CheckResult, Region
from capturelint.verifier.harness import Harness, read_entry, read_file
from capturelint.verifier.plan import make_plan
from capturelint.verifier.skeleton import skeleton
from capturelint.verifier.specs import TensorSpec, parse_spec, parse_value


class TestSpecs:
    @pytest.mark.parametrize(
        ("text", "spec"),
        [
            ("float16[8, 4096]", TensorSpec("float16", (8, 4096))),
            ("int32[8] in 1..4096", TensorSpec("int32", (8,), 1.0, 4096.0)),
            ("float32[]", TensorSpec("float32", ())),
            ("bool[8,16]", TensorSpec("bool", (8, 16))),
            ("torch.bfloat16[2, 3, ]", TensorSpec("bfloat16", (2, 3))),
            ("float32[4] in -1.5..2e3", TensorSpec("float32", (4,), -1.5, 2000.0)),
            ("long[3] cpu", TensorSpec("int64", (3,), device="cpu")),
        ],
    )
    def test_right_ones(self, text: str, spec: TensorSpec) -> None:
        assert parse_spec(text) == spec

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("float32", "is not a tensor spec"),
            ("float23[2]", "no dtype 'float23'; did you mean"),
            ("float32[2,,3]", "a size is missing"),
            ("int32[2] in 5..1", "the range is empty"),
            ("float32[-1]", "is not a tensor spec"),
        ],
    )
    def test_wrong_ones_say_why(self, text: str, said: str) -> None:
        with pytest.raises(UsageError, match=said.replace("?", r"\?")):
            parse_spec(text)

    def test_plain_values(self) -> None:
        assert [parse_value(text) for text in ("8", "-0.5", "true", "none", "'auto'")] == [8, -0.5, True, None, "auto"]


class TestEntries:
    @pytest.mark.parametrize(
        ("entry", "key", "said"),
        [
            ({}, "harness[0].region", "is not a region"),
            ({"region": "a:b", "inptus": 1}, "harness[0].inptus", "unknown key; did you mean 'inputs'?"),
            ({"region": "a:b", "setup": "make"}, "harness[0].setup", "is not a reference"),
            ({"region": "a:b", "inputs": {"x": "float23[1]"}}, "harness[0].inputs.x", "no dtype"),
            ({"region": "a:b", "time-limit": -1}, "harness[0].time-limit", "number of seconds"),
            ("a:b", "harness[0]", "should be a table"),
        ],
    )
    def test_wrong_ones_name_file_and_key(self, entry: object, key: str, said: str) -> None:
        with pytest.raises(ConfigError) as caught:
            read_entry(entry, "h.yaml", "harness[0]")
        assert str(caught.value).startswith(f"h.yaml: {key}: ")
        assert said in str(caught.value)

    def test_config_holds_entries(self) -> None:
        table = {"harness": [{"region": "pkg.mod:Model.forward", "setup": "tests.h:make", "inputs": ["float32[8]"]}]}
        (entry,) = parse_config(table, "capturelint.toml").harness
        assert (entry.region, entry.setup, entry.inputs) == ("pkg.mod:Model.forward", "tests.h:make", ["float32[8]"])
        with pytest.raises(ConfigError, match=r"capturelint\.toml: harness: should be an array of tables"):
            parse_config({"harness": {}}, "capturelint.toml")

    def test_file(self, tmp_path: Path) -> None:
        file = tmp_path / "h.yaml"
        file.write_text("harness:\n  - region: a/b.py:run\n    run: drive.py:main\n", encoding="utf-8")
        (entry,) = read_file(file, "h.yaml")
        assert Harness.from_json(entry.to_json()) == entry
        file.write_text("harness: [", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"^h\.yaml: cannot be read as YAML"):
            read_file(file, "h.yaml")

    @pytest.mark.parametrize(
        ("region", "path", "name", "fits"),
        [
            ("pkg.mod:Model.forward", "src/pkg/mod.py", "Model.forward", True),
            ("pkg.mod:Model.*", "pkg/mod.py", "Model.forward", True),
            ("mod:forward", "pkg/other.py", "forward", False),
            ("pkg/mod.py:run", "pkg/mod.py", "run", True),
            ("mod.py:run", "pkg/mod.py", "run", True),
            ("**:run", "anything.py", "run", True),
            ("pkg.mod:run", "pkg/mod.py", "run.<locals>.inner", True),
        ],
    )
    def test_matching(self, region: str, path: str, name: str, fits: bool) -> None:
        assert Harness(region).matches(path, name) is fits


def region(path: str, name: str, kind: str = "torch.cuda.graph", line: int = 3) -> Region:
    return Region(kind, path, line, name)


class TestPlan:
    def test_marked_regions_need_no_entry_and_others_are_told_what_to_add(self, tmp_path: Path) -> None:
        result = CheckResult(regions=(region("a.py", "f", "capture_region"), region("b.py", "Runner.capture")))
        plan = make_plan(result, (), tmp_path, tmp_path, 60.0, 3)
        assert [job.name for job in plan.jobs] == ["f"]
        assert plan.missing["b.py", 3] == (
            "add a harness: `- region: b.py:Runner.capture` with `run:` or `inputs:` in capturelint-harness.yaml"
        )

    def test_regions_of_one_program_are_one_job(self, tmp_path: Path) -> None:
        result = CheckResult(regions=(region("b.py", "A.capture"), region("b.py", "B.capture", line=9)))
        entry = Harness("b.py:*", run="drive.py:main", time_limit=5.0)
        plan = make_plan(result, (entry,), tmp_path, tmp_path, 60.0, 3)
        (job,) = plan.jobs
        assert job.is_program and job.time_limit == 5.0
        assert len(plan.regions[job.number]) == 2

    def test_a_program_runs_even_where_the_linter_found_no_region(self, tmp_path: Path) -> None:
        (tmp_path / "b.py").touch()
        entry = Harness("b.py:*", run="drive.py:main")
        assert len(make_plan(CheckResult(), (entry,), tmp_path, tmp_path, 60.0, 3, (tmp_path,)).jobs) == 1
        assert make_plan(CheckResult(), (entry,), tmp_path, tmp_path, 60.0, 3).jobs == []


def test_skeleton_takes_specs_from_annotations(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "class M:\n    def forward(self, x: Float[Tensor, '8 16'], n: int, y: torch.Tensor, z=None):\n        pass\n",
        encoding="utf-8",
    )
    text = skeleton((region("a.py", "M.forward", "config"), region("a.py", "g", "capture_region")), tmp_path, tmp_path)
    (tmp_path / "h.yaml").write_text(text, encoding="utf-8")
    (entry,) = read_file(tmp_path / "h.yaml", "h.yaml")
    assert (entry.region, entry.setup) == ("a.py:M.forward", "tests.harness:make")
    assert entry.inputs == {"x": "float32[8, 16]", "n": "8", "y": "float32[8, 16]", "z": "float32[8, 16]"}
    assert 'y: "float32[8, 16]"  # a guess' in text
