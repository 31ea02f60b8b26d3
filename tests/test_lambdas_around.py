"""Lambdas among the code around a capture: they are functions without statements."""

from __future__ import annotations

from pathlib import Path

from capturelint.lifecycle.around import Surroundings
from capturelint.project.project import Project
from capturelint.regions.declaration import Declaration
from capturelint.rulebook.ops import load_ops
from capturelint.source.files import SourceFile
from capturelint.values.engine import Engine

TEXT = """
def invalidate(runner):
    runner.graph = None

feed = lambda runner, x: invalidate(runner)
"""


def test_a_lambda_has_no_helpers(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    project = Project(tmp_path, [SourceFile(path, "program.py", content=TEXT.encode())])
    module = project.module_at(path)
    assert module is not None
    engine = Engine(project, load_ops())
    around = Surroundings(engine, Declaration("comment", module, module.tree.body[0], "invalidate"))
    functions = {info.is_lambda: info for info in module.all_functions()}
    assert not around.drops_graph(functions[True])
    assert around.drops_graph(functions[False])
