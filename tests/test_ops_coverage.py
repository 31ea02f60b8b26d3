"""The operator tables cover torch's public names, and wrong tables are refused with file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capturelint.errors import RulebookError
from capturelint.rulebook.ops import OpTable, load_ops


@pytest.fixture(scope="module")
def table() -> OpTable:
    return load_ops()


#: members that no model code calls: why, then their names
EXCEPTIONS = {
    "removed from torch, they raise": "eig lstsq solve symeig matrix_rank resize resize_as",
    "helpers of torch's own code": "handle_torch_function boolean_dispatch has_torch_function has_torch_function_unary"
    " has_torch_function_variadic classproperty batch_norm_backward_elemt batch_norm_backward_reduce",
    "for other hardware": "miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu"
    " miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d"
    " mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer",
    "TorchScript's compiler": "import_ir_module import_ir_module_from_buffer parse_ir parse_schema parse_type_comment"
    " merge_type_from_type_comment unify_type_list",
}
NAMESPACES = [
    "",
    "Tensor",
    "nn.functional",
    "linalg",
    "fft",
    "special",
    "sparse",
    "nested",
    "masked",
    "nn.init",
    "cuda",
]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_public_callable_of_torch_is_known(table: OpTable, namespace: str) -> None:
    torch = pytest.importorskip("torch")
    owner: Any = torch
    for part in filter(None, namespace.split(".")):
        owner = getattr(owner, part)
    excepted = set(" ".join(EXCEPTIONS.values()).split())
    prefix = f"torch.{namespace}".rstrip(".")
    unknown = []
    for name in dir(owner):
        member = getattr(owner, name, None)
        if name.startswith("_") or not callable(member) or isinstance(member, type) or name in excepted:
            continue
        if (getattr(member, "__module__", None) or "torch").startswith("torch") and not table.lookup(
            f"{prefix}.{name}"
        ):
            unknown.append(name)
    assert unknown == []


def test_attributes_and_modules_of_torch_are_known(table: OpTable) -> None:
    torch = pytest.importorskip("torch")
    attributes = [n for n in dir(torch.Tensor) if not n.startswith("_") and not callable(getattr(torch.Tensor, n))]
    assert [name for name in attributes if not is_attribute(table, f"torch.Tensor.{name}")] == []
    classes = [name for name in dir(torch.nn) if isinstance(getattr(torch.nn, name), type)]
    modules = [n for n in classes if issubclass(getattr(torch.nn, n), torch.nn.Module) and n != "Module"]
    assert [name for name in modules if f"torch.nn.{name}" not in table.module_classes] == []
    optimizers = [n for n in dir(torch.optim) if isinstance(getattr(torch.optim, n), type) and n != "Optimizer"]
    assert [name for name in optimizers if table.optimizer(f"torch.optim.{name}") is None] == []


def is_attribute(table: OpTable, name: str) -> bool:
    spec = table.lookup(name)
    return spec is not None and spec.attribute


def test_effects_name_parameters_that_exist(table: OpTable) -> None:
    wrong = []
    for name in table.names():
        spec = table.lookup(name)
        assert spec is not None
        params = {param.lstrip("*") for param in spec.params} | {"self"}
        used = {parameter for effect in spec.effects for parameter in effect.on or ()}
        if not used <= params or not set(spec.mutates) <= params:
            wrong.append((name, sorted((used | set(spec.mutates)) - params)))
    assert wrong == []


WRONG = {
    "version: 2\nsource: x\n": "version: must be 1",
    "version: 1\n": "source: must be text",
    "version: 1\nsource: x\nop: []\n": "op: unknown key",
    "version: 1\nsource: x\nops: [{names: a.b, returns: tensr}]\n": "ops[0].returns: 'tensr' is no kind of result",
    "version: 1\nsource: x\nops: [{names: a.b, effects: [{kind: sync}]}]\n": "ops[0].effects[0].kind: must be one of",
    "version: 1\nsource: x\nops: [{names: a.b}, {names: a.b}]\n": "ops[1].names: a.b is given twice",
    "version: 1\nsource: x\nops: [{names: a.b, effects: [{kind: format, when: {is: {x: y}}}]}]\n": "when.is.x: must be",
    "version: 1\nsource: x\nops: [{names: a.b, params: ['n:integer']}]\n": "ops[0].params: 'n:integer' must end in",
    "version: 1\nsource: x\nmodules: [{names: a.B, foward: tensor}]\n": "modules[0].foward: unknown key",
    "version: 1\nsource: x\nops: {names: a.b}\n": "ops: must be a list",
    "version: 1\nsource: x\npredicates: {a.b: {in-loop: true}}\n": "predicates.a.b.in-loop: unknown key",
    "version: 1\nsource: x\noptimizers: {a.B: fast}\n": "optimizers.a.B: 'fast' is not among",
    "- a\n": "must be a mapping",
    "a: [\n": "not valid YAML",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: WRONG[text])
def test_wrong_files_name_file_and_key(tmp_path: Path, text: str) -> None:
    (tmp_path / "wrong.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RulebookError) as caught:
        load_ops(tmp_path)
    assert "wrong.yaml" in str(caught.value)
    assert WRONG[text] in str(caught.value)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RulebookError, match="no operator tables"):
        load_ops(tmp_path)
