"""Messages and help are about the code at hand: what the branch chooses, what a read is for, what an index is."""

from __future__ import annotations

from pathlib import Path

import pytest
from scoring import check

HEAD = """\
import torch

from capturelint import capture_region

@capture_region(inputs={"x": "float32[8, 16]", "n": "int64[]", "mask": "bool[8]", "rows": "int64[3]"})
def region(x, n, mask, rows, other, limit):
"""
#: code, rule, part of the message, part of the help
CASES = [
    ("if mask.any():\n    y = x + 1\nelse:\n    y = x", "CG301", "`if` on", "`y = torch.where(mask.any(), x + 1, x)`"),
    ("if x.sum() > 0:\n    x = x * 2", "CG301", "`x.sum() > 0`", "`x = torch.where(x.sum() > 0, x * 2, x)`"),
    ("if n:\n    x = x * 2", "CG301", "", "`x = torch.where(n != 0, x * 2, x)`"),
    ("if not mask.all():\n    x += other", "CG301", "", "`x += torch.where(mask.all(), 0, other)`"),
    ("if mask.any():\n    return x\nelse:\n    return -x", "CG301", "", "`return torch.where(mask.any(), x, -x)`"),
    ("if x.isnan().any():\n    raise ValueError", "CG301", "", "`torch._assert_async(~(x.isnan().any()))`"),
    ("if mask.any():\n    return x * 2\nreturn x", "CG301", "", "a graph runs to its end"),
    ("for i in range(9):\n    if x.sum() < 1:\n        break\n    x = x / 2", "CG301", "", "a fixed number of times"),
    ("while x.norm() > limit:\n    x = x / 2", "CG301", "`while`", "`x = torch.where(x.norm() > limit, x / 2, x)`"),
    ("while (x > 1).any():\n    x = x / 2\n    x = x - 1", "CG301", "", "a fixed number of iterations"),
    ("assert (x > 0).all()", "CG301", "`assert`", "`torch._assert_async((x > 0).all())`"),
    ("y = x if mask.any() else -x", "CG301", "conditional expression", "`torch.where(mask.any(), x, -x)`"),
    ("y = 0 < n < 3", "CG301", "chained", "`(0 < n) & (n < 3)`"),
    ("y = [r for r in x if r.sum() > 0]", "CG301", "comprehension", "keep every element"),
    ("for i in range(n):\n    x = x + i", "CG302", "`range(n)`", "`torch.where(i < n, new, old)`"),
    ("if x.max().item() > 3:\n    x = -x", "CG101", "to decide an `if`", "`x = torch.where(x.max() > 3, -x, x)`"),
    ("while bool(mask.any()):\n    x = -x", "CG101", "to decide a `while`", "`x = torch.where(mask.any(), -x, x)`"),
    ("for i in range(int(n) + 1):\n    x = x + i", "CG101", "for the bound of a loop", "mask the surplus steps"),
    ("y = x[: n.item()]", "CG101", "for the bound of a slice", "mask what is beyond `n`"),
    ("y = x.new_zeros(n.item(), 4)", "CG101", "for a size of `new_zeros`", "at full size"),
    ("y = x * n.item()", "CG101", "for an operand", "`x * n`"),
    ("y = x * float(n)", "CG101", "for an operand", "`x * n`"),
    ("y = n.item()", "CG101", "wait for the GPU; capture", "after `replay()`"),
    ("y = x[:n]", "CG402", "slice bound", "mask what is beyond `n`"),
    ("y = x[n]", "CG402", "0-d tensor", "`x.index_select(0, n.view(1))`"),
    ("y = torch.zeros(n, device='cuda')", "CG402", "", "mask what is beyond `n`"),
    ("y = x[mask]", "CG401", "boolean mask", "`torch.where(mask, x, 0)`"),
    ("x[mask] = x.sum()", "CG401", "", "`x.copy_(torch.where(mask, value, x))`"),
    ("y = mask.nonzero()", "CG401", "", "`torch.nonzero_static(mask, size=...)`"),
    ("y = torch.where(mask)", "CG401", "", "`torch.where(mask, a, b)`"),
    ("y = torch.nn.functional.one_hot(rows)", "CG401", "", "`one_hot(rows, num_classes=...)`"),
    ("y = x.repeat_interleave(rows)", "CG401", "", "`output_size=...`"),
    ("x[rows] = 3.0", "CG201", "", "`x.index_fill_(0, rows, value)`"),
    ("x[0, 1] = 3.0", "CG201", "single element", "`x[0, 1].fill_(value)`"),
    ("y = x[[0, 2]]", "CG201", "", "make the index a tensor on the device before capture"),
    ("y = torch.tensor(3.0, device='cuda')", "CG201", "", "`torch.full((), 3.0, device=...)`"),
    ("y = torch.tensor([1.0, 2.0], device='cuda')", "CG201", "", "before capture, and keep it"),
    ("y = x + torch.ones(16).cuda()", "CG201", "", "before capture and keep it"),
]


@pytest.mark.parametrize(("code", "rule", "message", "help"), CASES, ids=[case[0] for case in CASES])
def test_what_is_said(code: str, rule: str, message: str, help: str, tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(HEAD + "".join(f"    {line}\n" for line in code.split("\n")), encoding="utf-8")
    found = check(file, tmp_path).findings
    assert [finding.rule for finding in found] == [rule]
    assert message in found[0].message
    assert help in (found[0].help or "")
