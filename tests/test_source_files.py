from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from capturelint.errors import SourceError, UsageError
from capturelint.source.files import SourceFile, display_path, find_sources
from capturelint.source.prefilter import mentions_any
from capturelint.source.roots import find_project_root


def write(root: Path, *names: str, text: str = "a = 1\n") -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def found(root: Path, *paths: str, exclude: Sequence[str] = (), force_exclude: bool = False) -> list[str]:
    sources = find_sources(
        [root / path for path in paths or (".",)], root=root, exclude=exclude, force_exclude=force_exclude
    )
    return [source.path.relative_to(root).as_posix() for source in sources]


def test_python_files_alone_sorted(tmp_path: Path) -> None:
    write(tmp_path, "b.py", "a/z.py", "a/b.pyi", "a/c.txt", "a/d.pyc", "py", "B.py")
    assert found(tmp_path) == ["B.py", "a/z.py", "b.py"]


def test_default_excludes(tmp_path: Path) -> None:
    write(tmp_path, ".venv/a.py", "src/build/a.py", "src/__pycache__/a.py", "src/builder/a.py", "node_modules/a/b.py")
    assert found(tmp_path) == ["src/builder/a.py"]


def test_excluded_directory_named_by_the_user_is_walked(tmp_path: Path) -> None:
    write(tmp_path, "build/a.py", "build/build/a.py")
    assert found(tmp_path, "build") == ["build/a.py"]
    assert found(tmp_path, "build", force_exclude=True) == []


def test_config_excludes(tmp_path: Path) -> None:
    write(tmp_path, "a.py", "a_pb2.py", "vendor/a.py", "src/vendor/b.py", "tests/x/c.py", "src/keep/d.py")
    assert found(tmp_path, exclude=["*_pb2.py", "/vendor", "tests/**"]) == ["a.py", "src/keep/d.py", "src/vendor/b.py"]
    assert found(tmp_path, "src", exclude=["src/vendor/"]) == ["src/keep/d.py"]


def test_bad_exclude(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude: not a pattern"):
        found(tmp_path, exclude=["[z-a].py"])


def test_named_file_is_always_taken(tmp_path: Path) -> None:
    write(tmp_path, "build/a.py", "script", "ignored.py", "out.py")
    write(tmp_path, ".gitignore", text="ignored.py\n")
    assert found(tmp_path, "build/a.py", "script", "ignored.py", "out.py", exclude=["out.py"]) == [
        "build/a.py",
        "ignored.py",
        "out.py",
        "script",
    ]


def test_force_exclude_leaves_out_what_is_excluded_but_not_what_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, "build/a.py", "ignored.py", "out.py", "gen/x/b.py", "c.py")
    write(tmp_path, ".gitignore", text="ignored.py\n")
    names = ("build/a.py", "ignored.py", "out.py", "gen/x/b.py", "c.py")
    assert found(tmp_path, *names, exclude=["out.py", "gen"], force_exclude=True) == ["c.py", "ignored.py"]


def test_force_exclude_knows_names_without_py(tmp_path: Path) -> None:
    write(tmp_path, "scripts/run", "tool", "other")
    names = ("scripts/run", "tool", "other")
    assert found(tmp_path, *names, exclude=["scripts/run", "tool"], force_exclude=True) == ["other"]


def test_each_file_once(tmp_path: Path) -> None:
    write(tmp_path, "src/a.py")
    assert found(tmp_path, "src", "src/a.py", ".", "src/../src/a.py") == ["src/a.py"]


def test_missing_path(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    (tmp_path / "broken.py").symlink_to("nowhere.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    for name in ("nowhere.py", "a.py/b.py", "broken.py"):
        with pytest.raises(UsageError, match=rf"{re.escape(name)}: no such file or directory$"):
            found(tmp_path, name)
    with pytest.raises(UsageError, match=r"loop\.py: cannot be read: Too many levels of symbolic links$"):
        found(tmp_path, "loop.py")


GITIGNORES = {
    ".gitignore": "# a comment\n\n*.gen.py\n/top.py\nout/\n!kept.gen.py\ndata/**\nspaced.py   \n",
    "sub/.gitignore": "local.py\n!top.py\n!x.gen.py\n",
    "odd/.gitignore": "*\n!*/\n!keep.py\n",
    "bad/.gitignore": "!\n[z-a].py\nno.py\n/\n",
}
GITIGNORE_FILES = [
    "top.py",
    "a.gen.py",
    "kept.gen.py",
    "out/a.py",
    "sub/out/a.py",
    "sub/top.py",
    "sub/local.py",
    "sub/deep/local.py",
    "sub/x.gen.py",
    "sub/y.gen.py",
    "local.py",
    "odd/a.py",
    "odd/keep.py",
    "odd/in/keep.py",
    "odd/in/a.py",
    "data/a.py",
    "data/in/a.py",
    "spaced.py",
    "bad/no.py",
    "bad/yes.py",
    "outside/out.py",
]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_gitignore_agrees_with_git(tmp_path: Path) -> None:
    write(tmp_path, *GITIGNORE_FILES)
    for name, text in GITIGNORES.items():
        write(tmp_path, name, text=text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    write(tmp_path, ".git/info/exclude", text="outside/\n")
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard", "*.py"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert found(tmp_path) == sorted(listed.stdout.split())
    assert "sub/top.py" in found(tmp_path)
    assert found(tmp_path, "sub") == [name for name in found(tmp_path) if name.startswith("sub/")]


def test_ignored_directory_named_by_the_user_is_walked(tmp_path: Path) -> None:
    write(tmp_path, "out/a.py", "out/b.py", "out/in/c.py")
    write(tmp_path, ".gitignore", text="out/\n")
    write(tmp_path, "out/.gitignore", text="b.py\n")
    assert found(tmp_path) == []
    assert found(tmp_path, "out") == ["out/a.py", "out/in/c.py"]
    assert found(tmp_path, "out/in") == ["out/in/c.py"]


def test_gitignore_can_be_switched_off(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    write(tmp_path, ".gitignore", text="*\n")
    assert find_sources([tmp_path], root=tmp_path) == []
    assert len(find_sources([tmp_path], root=tmp_path, respect_gitignore=False)) == 1


def test_links(tmp_path: Path) -> None:
    write(tmp_path, "pkg/a.py", "real.py")
    (tmp_path / "pkg/loop").symlink_to(tmp_path)
    (tmp_path / "link.py").symlink_to("real.py")
    (tmp_path / "broken.py").symlink_to("nowhere.py")
    (tmp_path / "dir.py").symlink_to("pkg")
    assert found(tmp_path) == ["pkg/a.py", "real.py"]
    assert found(tmp_path, "link.py") == ["link.py"]
    assert found(tmp_path, "pkg/loop/pkg") == ["pkg/loop/pkg/a.py"]


def test_a_file_that_several_links_lead_to_is_taken_once(tmp_path: Path) -> None:
    write(tmp_path, "pkg/a.py", "outside/real.py")
    (tmp_path / "again").symlink_to("pkg")
    for name in ("one.py", "two.py"):
        (tmp_path / "pkg" / name).symlink_to("../outside/real.py")
    assert found(tmp_path, "again", "pkg") == ["again/one.py", "pkg/a.py"]
    assert found(tmp_path, "again") == ["again/a.py", "again/one.py"]
    assert found(tmp_path, ".") == ["outside/real.py", "pkg/a.py"]


def test_pipes_do_not_hang(tmp_path: Path) -> None:
    write(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe.py")
    os.mkfifo(tmp_path / ".gitignore")
    assert found(tmp_path) == ["a.py"]


def test_what_is_neither_file_nor_directory_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "link.py").symlink_to("pipe.py")
    for name in ("pipe.py", "link.py"):
        with pytest.raises(UsageError, match=rf"{re.escape(name)}: not a file or directory but a pipe$"):
            found(tmp_path, name)
    with pytest.raises(UsageError, match=r"^/dev/null: not a file or directory but a device$"):
        find_sources([Path("/dev/null")], root=tmp_path)


def test_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket has to be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.py")
        with pytest.raises(UsageError, match=r"^socket\.py: not a file or directory but a socket$"):
            find_sources([Path("socket.py")], root=tmp_path)
        assert found(tmp_path) == []


def test_notebooks_are_found_and_ignored_as_modules_are(tmp_path: Path) -> None:
    write(tmp_path, "a.ipynb", "b.py", "old.ipynb", "sub/c.ipynb", ".ipynb_checkpoints/a-checkpoint.ipynb")
    assert found(tmp_path) == ["a.ipynb", "b.py", "old.ipynb", "sub/c.ipynb"]
    (tmp_path / ".gitignore").write_text("old.ipynb\n/sub/*.ipynb\n")
    assert found(tmp_path) == ["a.ipynb", "b.py"]


def test_directory_that_cannot_be_listed_becomes_a_source_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.py", "closed/b.py")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.chdir(tmp_path)
    good, closed = find_sources([tmp_path], root=tmp_path)
    assert good.read() == b"a = 1\n"
    with pytest.raises(
        SourceError, match=r"^cannot be read: the directory cannot be listed: Permission denied$"
    ) as caught:
        closed.read()
    assert caught.value.path == "closed"


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read: No such file or directory"):
        SourceFile.at(tmp_path / "gone.py").read()


def test_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    assert display_path("a/../b.py") == "b.py"
    assert display_path("../b.py") == (tmp_path / "b.py").as_posix()
    assert display_path(tmp_path / "inside.py") == (tmp_path / "inside.py").as_posix()
    assert SourceFile.at(Path("b.py")) == SourceFile(tmp_path / "in" / "b.py", "b.py")


def test_five_thousand_files_are_found_quickly(tmp_path: Path) -> None:
    for directory in range(250):
        (tmp_path / f"pkg{directory}").mkdir()
        for name in range(20):
            (tmp_path / f"pkg{directory}/module_{name}.py").touch()
    patterns = [f"name{index}/" for index in range(60)] + [f"*.ext{index}" for index in range(60)] + ["*.py[cod]"]
    write(tmp_path, ".gitignore", text="\n".join(patterns))
    find_sources([tmp_path], root=tmp_path)
    start = time.perf_counter()
    assert len(find_sources([tmp_path], root=tmp_path)) == 5000
    # takes 0.1 s; the bound leaves room for a busy machine
    assert time.perf_counter() - start < 1.0


@pytest.mark.parametrize("marker", ["pyproject.toml", "capturelint.toml", "setup.py", "setup.cfg", ".git"])
def test_root_is_the_nearest_directory_with_a_marker(tmp_path: Path, marker: str) -> None:
    write(tmp_path, "pyproject.toml", f"one/{marker}", "one/pkg/a.py", "one/pkg/in/b.py", "two/c.py")
    assert find_project_root([tmp_path / "one/pkg/a.py"]) == tmp_path / "one"
    assert find_project_root([tmp_path / "one/pkg", tmp_path / "one/pkg/in/b.py"]) == tmp_path / "one"
    assert find_project_root([tmp_path / "one/pkg", tmp_path / "two/c.py"]) == tmp_path


def test_root_without_markers_is_the_common_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "one/a.py", "one/in/b.py")
    assert find_project_root([tmp_path / "one/a.py"]) == tmp_path / "one"
    assert find_project_root([tmp_path / "one/a.py", tmp_path / "one/in"]) == tmp_path / "one"
    monkeypatch.chdir(tmp_path / "one")
    assert find_project_root([]) == tmp_path / "one"
    assert find_project_root([Path("in")]) == tmp_path / "one/in"


def test_mentions_any() -> None:
    assert mentions_any(b"with torch.cuda.graph(g):", [b"make_graphed", b"cuda.graph"])
    assert not mentions_any(b"with torch.cuda.graph(g):", [b"make_graphed"])
    assert not mentions_any(b"anything", [])
