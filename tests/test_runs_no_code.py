"""``check`` reads the code that it checks and never runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from conftest import Ran, write_files

SIDE_EFFECT = """\
import pathlib

pathlib.Path(__file__).with_name({name!r}).write_text("imported")
"""
FILES = {
    "pyproject.toml": "",
    "conftest.py": SIDE_EFFECT.format(name="by_conftest"),
    "setup.py": SIDE_EFFECT.format(name="by_setup"),
    "sitecustomize.py": SIDE_EFFECT.format(name="by_sitecustomize"),
    "pkg/__init__.py": SIDE_EFFECT.format(name="by_package"),
    "pkg/helper.py": SIDE_EFFECT.format(name="by_helper") + "\n\ndef read(x):\n    return x.item()\n",
    "pkg/run.py": SIDE_EFFECT.format(name="by_module")
    + """
import torch
from pkg.helper import read

graph = torch.cuda.CUDAGraph()
static = torch.zeros(4, device="cuda")
with torch.cuda.graph(graph):
    read(static)
""",
}


def test_check_runs_none_of_the_code(tmp_path: Path, run_tool: Callable[..., Ran]) -> None:
    project = tmp_path / "project"
    write_files(project, FILES)
    ran = run_tool("check", "--format", "json", project, cwd=tmp_path)
    report = json.loads(ran.out)
    # it did look at all of it: the finding lies behind an import
    assert [(finding["rule"], Path(finding["path"]).name) for finding in report["findings"]] == [("CG101", "helper.py")]
    assert report["summary"]["files"] == 6
    left = {file.relative_to(project).as_posix() for file in project.rglob("*") if file.is_file()}
    assert left == set(FILES)
