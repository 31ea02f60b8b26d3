"""What looks like code that has a safe fix, and would mean something else after it: ``--fix`` lets it be."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixing import fixed_text

HEAD = "import torch\n\nfrom capturelint import capture_region\n\n\n"
REGION = '@capture_region(inputs={"x": "float32[8, 16]", "h": "float16[8, 16]", "ids": "int64[8] in 0..100"})\n'
PROGRAM = """\
def run(steps, record):
    static_in = torch.zeros(4, 8, device="cuda")
    {before}
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        out = static_in.sin()
    kept = []
    for _ in range(steps):
        {new}
        g.replay()
        {after}
    return kept
"""
NOISE = 'static_in = torch.randn(4, 8, device="cuda")'
SAME = {
    "a record": ("pass", NOISE, "kept.append(Pair(static_in, out.clone()))"),
    "a list that grows": ("pass", NOISE, "kept += [static_in]"),
    "a view": ("pass", NOISE, "kept.append(static_in.view(-1))"),
    "a view's name": ("flat = static_in.reshape(-1)", NOISE, "kept.append(flat.sum().item())"),
    "a function": ("pass", NOISE, "record(static_in)"),
    "a dict": ("pass", NOISE, "kept.append(dict(inp=static_in))"),
    "one of two": ("first = static_in if steps else None", NOISE, "kept.append(first.sum().item())"),
    "a gradient": ("static_in.requires_grad_()", NOISE, "pass"),
    "another layout": ("static_in.t_()", NOISE, "pass"),
    "no name any more": ("pass", f"del static_in; {NOISE}", "pass"),
    "written to later": ("pass", 'new = torch.randn(4, 8, device="cuda"); static_in = new', "new.mul_(2)"),
}


@pytest.mark.parametrize(("before", "new", "after"), SAME.values(), ids=SAME.keys())
def test_an_input_that_others_hold_is_not_filled(tmp_path: Path, before: str, new: str, after: str) -> None:
    text = "import torch\n\n\n" + PROGRAM.format(before=before, new=new, after=after)
    after_fixing, left = fixed_text(tmp_path, text)
    assert after_fixing == text
    assert "CG501" in {each.rule for each in left.findings}


def test_an_input_that_is_only_computed_with_is_filled(tmp_path: Path) -> None:
    used = "kept.append((static_in.view(-1).sum() + static_in[0].max()).item()); static_in.add_(1)"
    after, _ = fixed_text(tmp_path, "import torch\n\n\n" + PROGRAM.format(before="pass", new=NOISE, after=used))
    assert 'static_in.copy_(torch.randn(4, 8, device="cuda"))' in after


HOISTED = """\
def run():
    x = torch.zeros(4, 3, device="cuda")
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g){context}:
        {first}
        mix = torch.tensor([0.2, 0.5, 0.3], device={device})
        {then}
        out = (x * mix).sum(1)
    g.replay()
    return out.clone()
"""
BOUND_INSIDE = {
    "an annotation": ("", "y: torch.Tensor = x * 2", "y.device", "pass"),
    "several at once": ("", "y, z = x * 2, x * 3", "z.device", "pass"),
    "an expression": ("", "(y := x * 2)", "y.device", "pass"),
    "a loop": ("", "for y in (x, x): y.abs()", "y.device", "pass"),
    "a view that is written to": ("", "pass", "x.device", "mix.view(-1).mul_(2)"),
    "a view with a name": ("", "pass", "x.device", "w = mix.to(torch.float32); w += 1"),
    "a view of a function": ("", "pass", "x.device", "torch.atleast_1d(mix).mul_(3)"),
}


@pytest.mark.parametrize(("context", "first", "device", "then"), BOUND_INSIDE.values(), ids=BOUND_INSIDE.keys())
def test_what_rests_on_the_block_stays_in_it(tmp_path: Path, context: str, first: str, device: str, then: str) -> None:
    text = "import torch\n\n\n" + HOISTED.format(context=context, first=first, device=device, then=then)
    after, left = fixed_text(tmp_path, text)
    assert after == text
    assert "CG201" in {each.rule for each in left.findings}


#: statements of a region, and the rule that finds them
STATEMENTS = {
    "steps of bool": ("return torch.tensor([0, 1], dtype=torch.bool, device='cuda')", "CG201"),
    "complex steps": ("return torch.tensor([0, 1], dtype=torch.complex64, device='cuda')", "CG201"),
    "steps of uint16": ("return torch.tensor([1, 2, 3], dtype=torch.uint16, device='cuda')", "CG201"),
    "steps that a float32 rounds": (
        "return torch.tensor([16777217, 16777218], dtype=torch.float32, device='cuda')",
        "CG201",
    ),
    "more than a float16 holds": ("h[h[:, :3].argmax(0)] = -1e9", "CG201"),
    "an index of int16": ("return x[x.sum(1).argmax().to(torch.int16)] + x", "CG402"),
    "a mask of uint8": ("return x[(x.sum() > 0).to(torch.uint8)] + x", "CG402"),
    "written to after it was read": ("y = ids.clone(); return y[0].item() - y.add_(1)", "CG101"),
    "joined comparisons": ("return x * 2 if 0 < x.sum() < 3 else -x", "CG301"),
    "a target with an effect": ("bufs = [x * 1, x * 2]; bufs.pop()[x > 0] += 1", "CG401"),
    "a comment in a list": ("return torch.tensor([1,  # one\n        2], device='cuda')", "CG201"),
    "a comment in an index": ("return x[[0,  # first\n        2]] + 1", "CG201"),
    "a comment in a choice": ("return (x * 2  # double\n        if x.sum() > 0 else -x)", "CG301"),
}


@pytest.mark.parametrize(("body", "rule"), STATEMENTS.values(), ids=STATEMENTS.keys())
def test_a_statement_is_let_be(tmp_path: Path, body: str, rule: str) -> None:
    text = HEAD + REGION + f"def region(x: torch.Tensor, h: torch.Tensor, ids: torch.Tensor):\n    {body}\n"
    after, left = fixed_text(tmp_path, text)
    assert after == text
    assert rule in {each.rule for each in left.findings}


@pytest.mark.parametrize(
    ("signature", "is_fixed"), [("flag, x", False), ("flag: bool, x", False), ("flag: torch.Tensor, x", True)]
)
def test_a_flag_that_is_a_bool_for_other_callers_decides_in_python(
    tmp_path: Path, signature: str, is_fixed: bool
) -> None:
    text = f"""{HEAD}def scale({signature}):
    return x * 2 if flag else x * 3


{REGION}def region(x: torch.Tensor, h: torch.Tensor, ids: torch.Tensor):
    return scale((x > 0).any(), x)
"""
    after, _ = fixed_text(tmp_path, text)
    assert ("torch.where(flag, x * 2, x * 3)" in after) is is_fixed
