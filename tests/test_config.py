from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from capturelint.config import Config, Vocabulary, check_selectors, load_config
from capturelint.errors import ConfigError, UsageError
from capturelint.model import Confidence, Severity

EVERYTHING = """
select = ["CG1", "CG201"]
ignore = ["host-scalar-read"]
exclude = ["vendor", "*_pb2.py"]
regions = ["pkg.mod:Class.method", "**:*Backend.init_forward_metadata_in_graph"]
presets = ["sglang"]
min-confidence = "certain"
fail-on = "warning"
require-regions = true
torch-version = "2.11"
max-graphs = 64

[per-file-ignores]
"tests/**" = ["CG1"]

[vocabulary]
synchronizes = ["pkg.wait"]
reads-device = ["pkg.to_host"]
capture-safe = ["pkg.safe"]
allows-sync = ["pkg.allow"]
starts-capture = ["pkg.Graphs.record"]
predicates = { "pkg.is_capturing" = true, "pkg.is_eager" = false }
"""


@pytest.fixture(autouse=True)
def _in_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(root: Path, text: str, name: str = "capturelint.toml") -> Config:
    (root / name).write_text(text)
    return load_config(root, None)


def load_error(root: Path, text: str, name: str = "capturelint.toml") -> str:
    with pytest.raises(ConfigError) as caught:
        load(root, text, name)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_every_key(tmp_path: Path) -> None:
    assert load(tmp_path, EVERYTHING) == Config(
        select=("CG1", "CG201"),
        ignore=("host-scalar-read",),
        exclude=("vendor", "*_pb2.py"),
        regions=("pkg.mod:Class.method", "**:*Backend.init_forward_metadata_in_graph"),
        presets=("sglang",),
        min_confidence=Confidence.CERTAIN,
        fail_on=Severity.WARNING,
        require_regions=True,
        torch_version="2.11",
        max_graphs=64,
        per_file_ignores={"tests/**": ("CG1",)},
        vocabulary=Vocabulary(
            synchronizes=("pkg.wait",),
            reads_device=("pkg.to_host",),
            capture_safe=("pkg.safe",),
            allows_sync=("pkg.allow",),
            starts_capture=("pkg.Graphs.record",),
            predicates={"pkg.is_capturing": True, "pkg.is_eager": False},
        ),
        source="capturelint.toml",
    )


def test_defaults(tmp_path: Path) -> None:
    config = load_config(tmp_path)
    assert config == Config()
    assert (config.min_confidence, config.fail_on, config.source) == (Confidence.LIKELY, Severity.ERROR, None)


def test_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    config = load(tmp_path, EVERYTHING)
    assert pickle.loads(pickle.dumps(config)) == config


def test_pyproject(tmp_path: Path) -> None:
    text = """
        [project]
        name = "x"
        [tool.capturelint]
        select = ["CG1"]
        [tool.capturelint.vocabulary]
        allows-sync = ["a.b"]
        """
    config = load(tmp_path, text, "pyproject.toml")
    assert config == Config(select=("CG1",), vocabulary=Vocabulary(allows_sync=("a.b",)), source="pyproject.toml")


def test_pyproject_without_our_table(tmp_path: Path) -> None:
    assert load(tmp_path, '[project]\nname = "x"\n', "pyproject.toml") == Config()


def test_own_file_comes_first(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.capturelint]\nselect = ["CG1"]\n')
    config = load(tmp_path, 'select = ["CG2"]')
    assert config.select == ("CG2",)
    assert config.notes == ("[tool.capturelint] in pyproject.toml is not used: capturelint.toml beside it comes first",)


@pytest.mark.parametrize("text", ['[project]\nname = "x"\n', "[tool]\nother = 1\n", "not TOML", None])
def test_a_pyproject_with_nothing_of_ours_is_no_note(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    assert load(tmp_path, 'select = ["CG2"]').notes == ()


def test_directories_above_count_up_to_the_repository_s_top(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "packages" / "one"
    inner.mkdir(parents=True)
    (tmp_path / "capturelint.toml").write_text('select = ["CG9"]\n')
    (inner / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert load_config(inner) == Config()
    (tmp_path / "repo" / ".git").mkdir()
    assert load_config(inner) == Config()
    (tmp_path / "repo" / "pyproject.toml").write_text('[tool.capturelint]\nselect = ["CG1"]\n')
    assert load_config(inner) == Config(select=("CG1",), source="repo/pyproject.toml")


def test_explicit_file(tmp_path: Path) -> None:
    (tmp_path / "capturelint.toml").write_text('select = ["CG2"]')
    (tmp_path / "other.toml").write_text('select = ["CG3"]')
    (tmp_path / "pyproject.toml").write_text('[tool.capturelint]\nselect = ["CG1"]\n')
    assert load_config(tmp_path, tmp_path / "other.toml").select == ("CG3",)
    assert load_config(tmp_path, tmp_path / "pyproject.toml").select == ("CG1",)
    with pytest.raises(ConfigError, match=r"^gone\.toml: cannot be read: No such file or directory$"):
        load_config(tmp_path, tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_config(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slect = []", "slect: unknown key; did you mean 'select'?"),
        ('min_confidence = "likely"', "min_confidence: unknown key; did you mean 'min-confidence'?"),
        ("zzz = 1", "zzz: unknown key"),
        ('select = "CG1"', "select: should be a list of strings, not a string"),
        ('select = ["CG1", 2]', "select[1]: should be a string, not an integer"),
        ('ignore = ["CG1", true]', "ignore[1]: should be a string, not a boolean"),
        ('exclude = [" "]', "exclude[0]: should not be empty"),
        ("require-regions = 1", "require-regions: should be true or false, not an integer"),
        ("fail-on = true", "fail-on: should be a string, not a boolean"),
        ('fail-on = "eror"', "fail-on: 'eror' is none of warning, error; did you mean 'error'?"),
        ('min-confidence = "x"', "min-confidence: 'x' is none of possible, likely, certain"),
        ("max-graphs = true", "max-graphs: should be a number, not a boolean"),
        ("max-graphs = 0", "max-graphs: should be at least 1"),
        ("torch-version = 2.11", "torch-version: should be a string with a version, such as '2.11'"),
        ('torch-version = "latest"', "torch-version: should be a string with a version, such as '2.11'"),
        ("per-file-ignores = []", "per-file-ignores: should be a table, not a list"),
        ('[per-file-ignores]\n"a/*" = "CG1"', 'per-file-ignores."a/*": should be a list of strings, not a string'),
        ("[vocabulary]\nsynchronize = []", "vocabulary.synchronize: unknown key; did you mean 'synchronizes'?"),
        ('[vocabulary]\ncapture-safe = ["a b"]', "vocabulary.capture-safe[0]: 'a b' is not a dotted name"),
        ("[vocabulary.predicates]\nf = 1", 'vocabulary.predicates."f": should be true or false, not an integer'),
        ('regions = ["pkg.mod.f"]', "regions[0]: 'pkg.mod.f' is not a pattern such as 'pkg.module:Class.method'"),
        ("select = []", "select: should not be empty; without this key all rules are checked"),
        ("[tool.capturelint]\nselect = []", "tool: unknown key; in capturelint.toml the keys stand at the top level"),
        ("[capturelint]\nselect = []", "capturelint: unknown key; in capturelint.toml the keys stand at the top level"),
        ("tool = 1", "tool: unknown key"),
        ("select = 2020-01-01", "select: should be a list of strings, not a date or time"),
    ],
)
def test_errors_name_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    assert load_error(tmp_path, text).startswith(f"capturelint.toml: {message}")


def test_error_in_pyproject_names_the_whole_key(tmp_path: Path) -> None:
    error = load_error(tmp_path, "[tool.capturelint]\nslect = []\n", "pyproject.toml")
    assert error.startswith("pyproject.toml: tool.capturelint.slect: unknown key")
    error = load_error(tmp_path, "[tool]\ncapturelint = 3\n", "pyproject.toml")
    assert error == "pyproject.toml: tool.capturelint: should be a table"


def test_bad_toml(tmp_path: Path) -> None:
    error = load_error(tmp_path, 'select = ["CG1"]\nignore = CG2')
    assert error.startswith("capturelint.toml: not valid TOML: ")
    assert "line 2" in error


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "capturelint.toml").write_bytes(b"# \xff\n")
    with pytest.raises(ConfigError, match=r"capturelint\.toml: not UTF-8"):
        load_config(tmp_path)


def test_selectors_are_checked_against_the_rules() -> None:
    def resolve(selector: str) -> frozenset[str]:
        if selector != "CG101":
            raise UsageError(f"unknown rule {selector!r}")
        return frozenset({selector})

    check_selectors(Config(select=("CG101",)), resolve)
    with pytest.raises(ConfigError, match=r"^a\.toml: ignore: unknown rule 'CG7'$"):
        check_selectors(Config(select=("CG101",), ignore=("CG7",), source="a.toml"), resolve)
    with pytest.raises(ConfigError, match=r"""^a\.toml: per-file-ignores\."x": unknown rule 'CG8'$"""):
        check_selectors(Config(per_file_ignores={"x": ("CG8",)}, source="a.toml"), resolve)


def test_what_the_readme_shows_is_valid(repository: Path, tmp_path: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    shown = [load(tmp_path, text, "pyproject.toml") for text in re.findall(r"```toml\n(.*?)```", readme, re.DOTALL)]
    assert [config.regions != () for config in shown] == [True, True]
    assert shown[1].vocabulary.predicates == {"engine.state.is_capturing": True}
    assert shown[1].presets == ("sglang", "lint/mine.yaml")
