"""What ``--fix`` writes and says: files as they were but for the fix, rounds, exit status, reports."""

from __future__ import annotations

import codecs
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from fixing import fixed, fixed_text

from capturelint.cli.main import main
from capturelint.errors import UsageError
from capturelint.fixes.edits import applied, going_together
from capturelint.fixes.files import edited, replace_file
from capturelint.fixes.keywords import keyword_set
from capturelint.model import Applicability, Edit, Fix, Span

HEAD = "import torch\n\nfrom capturelint import capture_region\n\n\n@capture_region\n"
SAFE = HEAD + "def region(x: torch.Tensor) -> torch.Tensor:\n    return x + torch.tensor(3.0, device='cuda')\n"
UNSAFE = HEAD + "def region(x: torch.Tensor) -> torch.Tensor:\n    return x / x.sum().item()\n"
NEITHER = HEAD + "def region(x: torch.Tensor) -> torch.Tensor:\n    return x[: int(x.sum())]\n"


Cli = Callable[..., Ran]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: str) -> Ran:
        status = main(arguments)
        return Ran(status, *capsys.readouterr())

    return run


# -- the command line ------------------------------------------------------------------------------------------------


def test_fix_writes_and_reports_what_is_left(project: Path, cli: Cli) -> None:
    (project / "safe.py").write_text(SAFE)
    (project / "unsafe.py").write_text(UNSAFE)
    run = cli("check", "safe.py", "unsafe.py", "--fix")
    assert run.status == 1
    assert "torch.full((), 3.0, device='cuda')" in (project / "safe.py").read_text()
    assert (project / "unsafe.py").read_text() == UNSAFE
    assert "unsafe.py:8:16: error CG101" in run.out and "safe.py:8" not in run.out.replace("unsafe.py", "")
    assert "1 fixed, 1 error, 0 warnings" in run.out
    assert run.out.endswith("\n1 fixable with --fix --unsafe-fixes\n")


def test_fix_of_everything_passes(project: Path, cli: Cli) -> None:
    (project / "a.py").write_text(UNSAFE)
    run = cli("check", "a.py", "--fix", "--unsafe-fixes")
    assert run.status == 0
    assert run.out == "1 fixed, 0 errors, 0 warnings (1 file checked, 1 region)\n"
    assert "return x / x.sum().detach()" in (project / "a.py").read_text()
    assert cli("check", "a.py", "--fix", "--unsafe-fixes").out.startswith("0 errors")


def test_a_mark_and_a_line_say_what_is_fixable(project: Path, cli: Cli) -> None:
    (project / "safe.py").write_text(SAFE)
    (project / "unsafe.py").write_text(UNSAFE)
    (project / "neither.py").write_text(NEITHER)
    names = ("safe.py", "unsafe.py", "neither.py")
    run = cli("check", *names)
    heads = {line.split(":")[0]: line.endswith(" [*]") for line in run.out.splitlines() if ": error CG" in line}
    assert heads == {"safe.py": True, "unsafe.py": False, "neither.py": False}
    assert run.out.endswith("\n[*] 1 fixable with --fix (1 more with --unsafe-fixes)\n")
    assert cli("check", *names, "--unsafe-fixes").out.endswith("\n[*] 2 fixable with --fix\n")
    assert "fixable" not in cli("check", "neither.py").out


def test_diff_writes_nothing_and_fails_where_there_is_one(project: Path, cli: Cli) -> None:
    (project / "safe.py").write_text(SAFE)
    (project / "unsafe.py").write_text(UNSAFE)
    run = cli("check", "safe.py", "unsafe.py", "--diff")
    assert run.status == 1
    assert run.out == (
        "--- a/safe.py\n+++ b/safe.py\n@@ -5,4 +5,4 @@\n \n @capture_region\n"
        " def region(x: torch.Tensor) -> torch.Tensor:\n"
        "-    return x + torch.tensor(3.0, device='cuda')\n+    return x + torch.full((), 3.0, device='cuda')\n"
    )
    assert run.err == "would fix 1 finding in 1 file\n"
    assert (project / "safe.py").read_text() == SAFE
    assert cli("check", "safe.py", "--fix", "--diff").status == 1
    assert (project / "safe.py").read_text() == SAFE
    assert cli("check", "safe.py", "--diff", "--exit-zero").status == 0
    quiet = cli("check", "unsafe.py", "--diff")
    assert (quiet.status, quiet.out) == (0, "")


def test_the_json_report_carries_the_fix(project: Path, cli: Cli) -> None:
    (project / "a.py").write_text(SAFE)
    (finding,) = json.loads(cli("check", "a.py", "--format", "json").out)["findings"]
    assert finding["fix"]["applicability"] == "safe"
    (edit,) = finding["fix"]["edits"]
    line = SAFE.split("\n")[edit["line"] - 1]
    assert line[: edit["column"] - 1] + edit["text"] + line[edit["end_column"] - 1 :] == (
        "    return x + torch.full((), 3.0, device='cuda')"
    )
    assert json.loads(cli("check", "a.py", "--fix", "--format", "json").out)["summary"]["fixed"] == 1


def test_a_suppressed_finding_is_left_alone(project: Path, cli: Cli) -> None:
    text = SAFE.replace("'cuda')", "'cuda')  # capturelint: ignore[CG201] for a test")
    (project / "a.py").write_text(text)
    assert cli("check", "a.py", "--fix").status == 0
    assert (project / "a.py").read_text() == text


# -- rounds ----------------------------------------------------------------------------------------------------------


def test_what_overlaps_is_done_in_the_next_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = HEAD + (
        "def region(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:\n"
        "    y = x * 2\n    y[torch.zeros(3, dtype=torch.long).to(x.device)] = 3\n    return y\n"
    )
    after, left = fixed_text(tmp_path, text)
    assert "y.index_fill_(0, torch.zeros(3, dtype=torch.long, device=x.device), 3)" in after
    assert left.findings == ()


def test_the_first_of_two_that_overlap_wins() -> None:
    def fix(first: int, last: int, text: str) -> Fix:
        return Fix(Applicability.SAFE, "", (Edit(Span(1, first, 1, last), text),))

    outer, inner, behind, twin = fix(1, 9, "a"), fix(3, 5, "b"), fix(9, 12, "c"), fix(1, 9, "a")
    assert list(going_together([outer, inner, behind, twin])) == [outer, behind, twin]
    assert list(going_together([fix(4, 4, "x"), fix(4, 4, "y")])) == [fix(4, 4, "x")]


def test_what_would_not_parse_is_not_written(tmp_path: Path) -> None:
    assert edited(b"x = 1\n", "a.py", [Edit(Span(1, 5, 1, 6), "(")]) is None
    assert edited(b"x = 1\n", "a.py", [Edit(Span(1, 5, 1, 6), "2")]) == b"x = 2\n"


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_line_ends_and_byte_order_mark_stay(
    newline: str, mark: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SAFE.replace("    return", "    # \u00e4\x0c\n    return").rstrip("\n")
    (tmp_path / "a.py").write_bytes(mark + text.replace("\n", newline).encode())
    outcome = fixed(tmp_path)
    expected = text.replace("torch.tensor(3.0", "torch.full((), 3.0").replace("\n", newline).encode()
    assert outcome.after == {"a.py": mark + expected}


def test_mixed_line_ends_stay_where_they_are() -> None:
    text = "a = 1\r\nb = 2\nc = 3\rd = 4"
    edits = [Edit(Span(1, 5, 1, 6), "f(\n1)"), Edit(Span(3, 5, 3, 6), "30"), Edit(Span(4, 5, 4, 6), "")]
    assert applied(text, edits) == "a = f(\r\n1)\r\nb = 2\nc = 30\rd = "


def test_a_coding_line_is_kept_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "# -*- coding: latin-1 -*-\n# \u00fcber\n" + SAFE
    (tmp_path / "a.py").write_bytes(text.encode("latin-1"))
    assert fixed(tmp_path).after["a.py"] == text.replace("torch.tensor(3.0", "torch.full((), 3.0").encode("latin-1")


def test_characters_beyond_the_first_plane_count_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = HEAD + "def region(x):\n    return ('\U0001f600', x.sum() + torch.tensor(3.0, device='cuda'), '\u00e4')\n"
    after, _ = fixed_text(tmp_path, text)
    assert after == text.replace("torch.tensor(3.0", "torch.full((), 3.0")


def test_mode_and_link_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text("old\n")
    real.chmod(0o750)
    link.symlink_to(real)
    replace_file(link, b"new\n")
    assert link.is_symlink() and real.read_text() == "new\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.py", "real.py"]


def test_a_folder_that_takes_no_file_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*/missing/a\.py"):
        replace_file(tmp_path / "missing" / "a.py", b"")
    assert list(tmp_path.iterdir()) == []


# -- keywords --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()", "f(k=1)"),
        ("f(a)", "f(a, k=1)"),
        ("f(a,)", "f(a, k=1,)"),
        ("f( a, b )", "f( a, b, k=1 )"),
        ("f(a, k=0, b=2)", "f(a, k=1, b=2)"),
        ("f(\n    a,\n    b=1,\n)", "f(\n    a,\n    b=1,\n    k=1,\n)"),
        ("f(\n    a,\n    b=1\n)", "f(\n    a,\n    b=1,\n    k=1\n)"),
        ("f(\n    a,  # one\n)", "f(\n    a,  # one\n    k=1,\n)"),
        ("f(\n    a,  # one\n    b  # two\n)", "f(\n    a,  # one\n    b,  # two\n    k=1\n)"),
        ("f(a,\n  b)", "f(a,\n  b,\n  k=1)"),
        ("f(a, **options)", None),
        ("f(a, k=chosen)", None),
    ],
)
def test_a_keyword_is_laid_out_as_its_neighbours(before: str, after: str | None) -> None:
    import libcst as cst

    call = cst.parse_expression(before)
    assert isinstance(call, cst.Call)
    changed = keyword_set(call, "k", cst.Integer("1"))
    assert (cst.Module([]).code_for_node(changed) if changed is not None else None) == after
