"""``explain`` for an operator: what the tables say of it, by its arguments, and whether anybody measured it."""

from __future__ import annotations

import pytest

from capturelint.errors import RulebookError
from capturelint.rulebook.captured import load_captured
from capturelint.rulebook.op_page import render_operator
from capturelint.rulebook.ops import load_ops


def page(dotted: str) -> str:
    text = render_operator(dotted, load_ops(), load_captured())
    assert text is not None
    return text


@pytest.mark.parametrize(
    ("dotted", "lines"),
    [
        (
            "torch.linalg.inv",
            ["CG105 hidden-sync: the error code is read back", "NVIDIA H200, torch 2.11.0+cu130: fails"],
        ),
        ("torch.Tensor.allclose", ["returns read, a host value", ": fails"]),
        ("torch.nn.functional.one_hot", ["(tensor on the device; num_classes is -1)", "depends on its arguments"]),
        ("torch.nonzero", ["CG401 dynamic-shape"]),
        ("torch.Tensor.add_", ["CG105 host-number (alpha on the device)", "writes to self"]),
        ("torch.Tensor.transpose", ["can share memory", ": captures"]),
        ("torch.rand", ["draws random numbers"]),
        ("torch.nn.init.trunc_normal_", ["torch >=2.13"]),
        ("torch.linalg.qr", ["nothing that breaks a capture is known", ": not measured"]),
        ("torch.distributions.Categorical", ["mode validation"]),
    ],
)
def test_operators(dotted: str, lines: list[str]) -> None:
    text = page(dotted)
    assert text.startswith(dotted)
    for line in lines:
        assert line in text, text


def test_names_that_nobody_knows() -> None:
    assert render_operator("torch.no_such_thing", load_ops(), load_captured()) is None


def test_a_missing_file_is_named(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RulebookError, match="nowhere"):
        load_captured(tmp_path / "nowhere.json")
