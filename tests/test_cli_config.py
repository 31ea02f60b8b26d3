"""``capturelint config``: what counts, and which line says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Cli, write_files

from capturelint.config.origins import key_lines, line_of

PYPROJECT = '''\
[project]
name = "x"
description = """
[tool.capturelint]
select = [
"""

[tool.capturelint]
select = [
  "CG1",  # ignore = 3
  "CG3",
]
"min-confidence" = "certain"
vocabulary.synchronizes = ["a.b"]
harness = [{ region = "a:b" }]

[tool.capturelint.per-file-ignores]
"tests/**" = ["CG101"]

[[tool.capturelint.overrides]]
paths = ["other/**"]
ignore = ["CG1"]

[[tool.capturelint.overrides]]
paths = ["tests/**"]
fail-on = "warning"
ignore = ["CG102"]
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"pyproject.toml": PYPROJECT, "tests/a.py": "", "a.py": ""})
    return tmp_path


def settings(cli: Cli, *arguments: str) -> dict[str, Any]:
    ran = cli("config", "--format", "json", *arguments)
    assert (ran.status, ran.err) == (0, "")
    return dict(json.loads(ran.out)["settings"])


def test_where_each_setting_comes_from(project: Path, cli: Cli) -> None:
    found = settings(cli)
    assert found["select"] == {"value": ["CG1", "CG3"], "origin": "pyproject.toml:9"}
    assert found["min-confidence"] == {"value": "certain", "origin": "pyproject.toml:13"}
    assert found["fail-on"] == {"value": "error", "origin": "default"}
    assert found["ignore"] == {"value": [], "origin": "default"}
    assert found["vocabulary.synchronizes"] == {"value": ["a.b"], "origin": "pyproject.toml:14"}
    assert found["vocabulary.predicates"] == {"value": {}, "origin": "default"}
    assert found["harness"] == {"value": [{"region": "a:b"}], "origin": "pyproject.toml:15"}
    assert found["per-file-ignores"] == {"value": {"tests/**": ["CG101"]}, "origin": "pyproject.toml:17"}
    assert found["overrides"]["origin"] == "pyproject.toml:20"


def test_for_one_file(project: Path, cli: Cli) -> None:
    found = settings(cli, "tests/a.py")
    assert found["fail-on"] == {"value": "warning", "origin": "pyproject.toml:26"}
    assert found["ignore"] == {"value": ["CG102"], "origin": "pyproject.toml:27"}
    assert settings(cli, "a.py")["fail-on"]["origin"] == "default"
    report = json.loads(cli("config", "--format", "json", "tests/a.py").out)
    assert report["path"] == "tests/a.py"
    assert not {"CG101", "CG102", "CG201"} & set(report["rules"])
    assert {"CG103", "CG301"} <= set(report["rules"])
    assert "CG101" in json.loads(cli("config", "--format", "json").out)["rules"]


def test_the_command_line_comes_first(project: Path, cli: Cli) -> None:
    found = settings(cli, "tests/a.py", "--fail-on", "error", "--ignore", "CG3", "--select", "CG1")
    assert found["fail-on"] == {"value": "error", "origin": "command line (--fail-on)"}
    assert found["select"] == {"value": ["CG1"], "origin": "command line (--select)"}
    assert found["ignore"] == {
        "value": ["CG3", "CG102"],
        "origin": "command line (--ignore), pyproject.toml:27",
    }


def test_text(project: Path, cli: Cli) -> None:
    out = cli("config", "tests/a.py").out
    assert out.startswith(f"project             {project}\nconfiguration file  pyproject.toml\n")
    lines = {line.split(" = ")[0]: line for line in out.splitlines() if " = " in line}
    assert lines["select"].split("  #") == ['select = ["CG1", "CG3"]' + lines["select"].split("]")[1].split("  #")[0],
                                            " pyproject.toml:9"]  # fmt: skip
    assert lines["fail-on"].startswith('fail-on = "warning" ')
    assert lines["fail-on"].endswith("  # pyproject.toml:26")
    assert lines["torch-version"].startswith("torch-version = (none) ")
    assert lines["torch-version"].endswith("  # default")


def test_without_a_configuration(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {each["origin"] for each in settings(cli).values()} == {"default"}
    assert "configuration file  none\n" in cli("config").out


def test_a_wrong_configuration(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "capturelint.toml").write_text("slect = []")
    assert cli("config").err == "error: capturelint.toml: slect: unknown key; did you mean 'select'?\n"
    assert cli("config").status == 2


def test_schema(cli: Cli) -> None:
    assert cli("config", "--schema").out == (REPOSITORY / "capturelint.schema.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1\nb = 2\n", ("b",), 2),
        ("a = [\n  1,\n]\nb = 2\n", ("b",), 4),
        ('a = """\nb = 1\n"""\nb = 2\n', ("b",), 4),
        ("a = '''\n[b]\n'''\n[b]\nc = 1\n", ("b", "c"), 5),
        ("[x]\ny.z = 1\n", ("x", "y", "z"), 2),
        ("[x]\n'y' . \"z.w\" = 1\n", ("x", "y", "z.w"), 2),
        ("x = { y = 1,  z = 2 }\n", ("x", "z"), 1),
        ("[[x]]\ny = 1\n[[x]]\ny = 2\n", ("x", 1, "y"), 4),
        ("[[x]]\ny = 1\n", ("x",), 1),
        ("# a = 1\r\na = 1\r\n", ("a",), 2),
        ("a = 1\n", ("b",), None),
    ],
)
def test_lines_of_keys(text: str, path: tuple[str | int, ...], line: int | None) -> None:
    assert line_of(key_lines(text), path) == line
