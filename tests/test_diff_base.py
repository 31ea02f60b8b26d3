"""``--diff-base``: what a change brings about, asked of real repositories."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from conftest import Cli, clean_environment, write_files
from test_pre_commit import commit_all, git

from capturelint.errors import UsageError
from capturelint.source.changes import changes_since

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

CAPTURE = """\
import torch

graph = torch.cuda.CUDAGraph()
static = torch.zeros(4, device="cuda")
with torch.cuda.graph(graph):
    static.sum().item()
    static.add_(1)
    static.mul_(2)
"""
HELPER = "def scale(x):\n    return x / x.max().item()\n"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(os.environ) - set(clean_environment()):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One commit, tagged ``before``, with a finding on line 6 of a.py and none in the rest."""
    root = tmp_path / "project"
    write_files(root, {"a.py": CAPTURE, "b/helper.py": HELPER, "pyproject.toml": ""})
    commit_all(root)
    git(root, "tag", "before")
    monkeypatch.chdir(root)
    return root


def change(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "-q", "-m", "change")


def found(cli: Cli, *arguments: str, base: str = "before") -> list[tuple[str, int]]:
    ran = cli("check", "--format", "json", "--diff-base", base, *arguments)
    report = json.loads(ran.out)
    assert report["errors"] == [], ran.err
    assert ran.status == (1 if report["findings"] or report["diagnostics"] else 0)
    return [(finding["path"], finding["line"]) for finding in report["findings"]]


def test_nothing_changed(project: Path, cli: Cli) -> None:
    assert found(cli) == []
    assert cli("check", "--diff-base", "before").out == (
        "0 errors, 0 warnings (2 files checked, 1 region); 1 finding that did not change left out\n"
    )
    report = json.loads(cli("check", "--diff-base", "before", "--format", "json").out)
    assert report["summary"]["unchanged"] == 1
    assert report["summary"]["findings"] == 0


@pytest.mark.parametrize("how", ["committed", "staged", "in the working tree"])
def test_a_changed_line(project: Path, cli: Cli, how: str) -> None:
    change(project, "a.py", "static.add_(1)", "static.max().item()")
    if how == "staged":
        git(project, "add", "--all")
    elif how == "committed":
        commit(project)
    assert found(cli) == [("a.py", 7)]
    assert found(cli, base="HEAD") == ([] if how == "committed" else [("a.py", 7)])


def test_lines_that_only_moved_are_not_changed(project: Path, cli: Cli) -> None:
    change(project, "a.py", "import torch\n", "import os\n\nimport torch\n")
    change(project, "a.py", "    static.mul_(2)\n", "")
    assert found(cli) == []


def test_new_files(project: Path, cli: Cli) -> None:
    write_files(project, {"new.py": CAPTURE, ".gitignore": "ignored.py\n", "ignored.py": CAPTURE})
    assert found(cli) == [("new.py", 6)]
    assert found(cli, "ignored.py") == [("ignored.py", 6)]
    git(project, "add", "--intent-to-add", "new.py")
    assert found(cli) == [("new.py", 6)]
    commit(project)
    assert found(cli) == [("new.py", 6)]


def test_renamed_files_are_compared_with_what_they_were(project: Path, cli: Cli) -> None:
    git(project, "mv", "a.py", "größe x.py")
    assert found(cli) == []
    change(project, "größe x.py", "static.add_(1)", "static.max().item()")
    assert found(cli) == [("größe x.py", 7)]
    commit(project)
    assert found(cli) == [("größe x.py", 7)]


@pytest.mark.parametrize("name", ['quote".py', "tab\t.py", "back\\slash.py", "-dash.py", "new\nline.py"])
def test_odd_names(project: Path, cli: Cli, name: str) -> None:
    write_files(project, {name: CAPTURE})
    commit(project)
    assert found(cli, base="HEAD") == []
    change(project, name, "static.add_(1)", "static.max().item()")
    assert found(cli, base="HEAD") == [(name, 7)]


def test_content_that_looks_like_a_difference(project: Path, cli: Cli) -> None:
    decoy = 'TEXT = """\n++ b/other.py\n@@ -1 +1,99 @@\n-- a/a.py\ndiff --git a/x b/x\n"""\n'
    change(project, "a.py", "import torch\n", decoy + "import torch\n")
    assert found(cli) == []
    change(project, "a.py", "static.mul_(2)", "static.max().item()")
    assert found(cli) == [("a.py", 14)]


def test_a_new_call_brings_an_old_line_into_a_graph(project: Path, cli: Cli) -> None:
    change(project, "a.py", "    static.mul_(2)\n", "    static.mul_(2)\n    scale(static)\n")
    change(project, "a.py", "import torch\n", "import torch\n\nfrom b.helper import scale\n")
    assert found(cli) == [("b/helper.py", 2)]
    commit(project)
    change(project, "a.py", "static.mul_(2)", "static.mul_(3)")
    assert found(cli, base="HEAD") == []


def test_only_new_ways_count(project: Path, cli: Cli) -> None:
    calls = CAPTURE.replace("import torch\n", "import torch\n\nfrom b.helper import scale\n").replace(
        "static.mul_(2)", "scale(static)"
    )
    write_files(project, {"a.py": calls})
    commit(project)
    write_files(project, {"second.py": calls})
    # the helper's line was captured before; the new file has a finding of its own
    assert found(cli, base="HEAD") == [("second.py", 8)]


def test_a_branch_is_compared_with_where_it_was_left(project: Path, cli: Cli) -> None:
    main = git(project, "rev-parse", "--abbrev-ref", "HEAD")
    git(project, "checkout", "-q", "-b", "feature")
    change(project, "a.py", "static.mul_(2)", "static.max().item()")
    commit(project)
    git(project, "checkout", "-q", main)
    change(project, "a.py", "static.sum().item()", "static.sum()")  # fixed there, later
    commit(project)
    git(project, "checkout", "-q", "feature")
    assert found(cli, base=main) == [("a.py", 8)]


def test_from_a_sub_directory(project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(project, {"sub/c.py": CAPTURE})
    commit(project)
    change(project, "sub/c.py", "static.add_(1)", "static.max().item()")
    git(project, "config", "diff.relative", "true")
    git(project, "config", "diff.noprefix", "true")
    git(project, "config", "color.ui", "always")
    monkeypatch.chdir(project / "sub")
    assert found(cli, base="HEAD") == [("c.py", 7)]
    assert found(cli, "..", base="HEAD") == [("c.py", 7)]
    assert found(cli, "..", base="before") == [("c.py", 6), ("c.py", 7)]


def test_another_repository_than_the_working_directory_s(
    project: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(project, "a.py", "static.add_(1)", "static.max().item()")
    monkeypatch.chdir(tmp_path)
    assert found(cli, "project") == [("project/a.py", 7)]


def test_through_a_link(project: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(project, "a.py", "static.add_(1)", "static.max().item()")
    (tmp_path / "link").symlink_to(project)
    monkeypatch.chdir(tmp_path)
    assert found(cli, "link") == [("link/a.py", 7)]


def test_a_file_that_could_not_be_checked(project: Path, cli: Cli) -> None:
    write_files(project, {"broken.py": "def f(:\n"})
    ran = cli("check", "--diff-base", "before", "--format", "json")
    assert [each["path"] for each in json.loads(ran.out)["diagnostics"]] == ["broken.py"]
    assert ran.status == 1
    commit(project)
    ran = cli("check", "--diff-base", "HEAD", "--format", "json")
    assert json.loads(ran.out)["diagnostics"] == []
    assert (ran.status, ran.err) == (0, "note: 1 file that did not change since HEAD could not be checked\n")


# what goes wrong


def refused(cli: Cli, base: str, *arguments: str) -> str:
    ran = cli("check", "--diff-base", base, *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    return ran.err.removeprefix("error: ").rstrip("\n")


@pytest.mark.parametrize("base", ["gone", "before..HEAD", "", "--help", "before^{tree}", "HEAD:a.py"])
def test_unknown_revisions(project: Path, cli: Cli, base: str) -> None:
    assert refused(cli, base) == (
        f"--diff-base: unknown revision {base!r}; name a commit, a branch or a tag of this repository"
    )


def test_an_error_is_in_reports_for_tools(project: Path, cli: Cli) -> None:
    ran = cli("check", "--diff-base", "gone", "--format", "json")
    assert json.loads(ran.out)["errors"][0]["message"].startswith("--diff-base: unknown revision 'gone'")
    assert ran.status == 2


def test_no_repository(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"a.py": CAPTURE, "pyproject.toml": ""})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert refused(cli, "HEAD") == f"--diff-base: {tmp_path} is in no git repository"


def test_no_commit_yet(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"a.py": CAPTURE})
    git(tmp_path, "init", "-q")
    monkeypatch.chdir(tmp_path)
    assert refused(cli, "HEAD").startswith("--diff-base: unknown revision 'HEAD'; name a commit")


def test_no_git(project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert refused(cli, "before") == "--diff-base needs git, which is not installed"


def test_a_shallow_clone(project: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(project, "a.py", "static.add_(1)", "static.max().item()")
    commit(project)
    git(project, "tag", "after")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", project.as_uri(), str(shallow))
    monkeypatch.chdir(shallow)
    message = refused(cli, "before")
    assert message.startswith("--diff-base: unknown revision 'before'; this is a shallow clone: ")
    assert "fetch-depth: 0" in message
    git(shallow, "fetch", "-q", "--unshallow", "--tags")
    assert found(cli) == [("a.py", 7)]


def test_no_common_history(project: Path, cli: Cli) -> None:
    main = git(project, "rev-parse", "--abbrev-ref", "HEAD")
    git(project, "checkout", "-q", "--orphan", "other")
    git(project, "commit", "-q", "-m", "other")
    assert refused(cli, main) == f"--diff-base: HEAD and {main!r} have no common commit"


def test_git_s_own_words(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "not a number")
    with pytest.raises(UsageError, match=r"^--diff-base: .*GIT_CONFIG_COUNT"):
        changes_since("before", project)
