"""Writes ``tensors.yaml``: the signature and the kind of result of every operator that torch itself describes.

Sources, in this order: torch's type stubs and function annotations (parameters and their order), its operator schemas
and tags (views, in-place writes, randomness), and a run of its operator database on the CPU (dtype and rank of
results). Needs torch, numpy and expecttest; nothing else in the project does::

    python rules/ops/generate.py

The other files in this folder are written by hand and add to, or correct, what is generated here.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from signatures import Signature, python_signature, schema_signature, schemas, stub_functions

#: owner as written in code -> (module, prefix of its operators in the schemas)
OWNERS: dict[str, tuple[Any, str]] = {
    "torch": (torch, ""),
    "torch.Tensor": (torch.Tensor, ""),
    "torch.nn.functional": (torch.nn.functional, ""),
    "torch.linalg": (torch.linalg, "linalg_"),
    "torch.fft": (torch.fft, "fft_"),
    "torch.special": (torch.special, "special_"),
    "torch.sparse": (torch.sparse, "sparse_"),
    "torch.nested": (torch.nested, "nested_"),
    "torch.masked": (torch.masked, "masked_"),
    "torch.signal.windows": (torch.signal.windows, ""),
    "torch.nn.init": (torch.nn.init, ""),
}
#: private operators that nobody writes in a model
SKIPPED = re.compile(
    r"_(test|functional|mkldnn|mps|miopen|cudnn|nnpack|validate|sobol|triton|histogramdd|cslt|dyn_quant|wrapped|lstm_mps"
    r"|foobar|xla|propagate|make_dep|sync$|lazy|print|disable|enable|from_functional|to_functional|is_functional|use_)"
    r"|.*backward|.*(miopen|mkldnn|_mps|_cpu$|for_cpu)"
)
RESULTS = {
    **dict.fromkeys(["sum", "nansum", "prod", "amax", "amin", "norm"], "reduce"),
    **dict.fromkeys(["all", "any"], "reduce:bool"),
    **dict.fromkeys(["argmax", "argmin", "count_nonzero"], "reduce:int"),
    **dict.fromkeys(["mean", "nanmean", "std", "var", "logsumexp", "quantile", "nanquantile"], "reduce:float"),
    **dict.fromkeys(["linalg.norm", "linalg.vector_norm", "special.logsumexp"], "reduce:float"),
    **dict.fromkeys(["max", "min", "median", "nanmedian"], "reduce-or-pair"),
    **dict.fromkeys(["std_mean", "var_mean", "aminmax"], "tensors:2"),
    **dict.fromkeys(["dot", "vdot", "dist", "trace"], "tensor:rank0"),
    **dict.fromkeys(["softmax", "log_softmax", "nn.functional.softmax", "nn.functional.log_softmax"], "tensor:float"),
    **dict.fromkeys(["detach", "pin_memory"], "same"),
}
#: operators whose result has the dtype and rank of their first tensor, whatever the other tensors are
FIRST_TENSOR_RULES = re.compile(
    r"index_(?!put)\w+|gather|scatter\w*|put|(layer|rms|group|batch|instance)_norm|linear|conv\w*|prelu|grid_sample|bmm|mm|take"
)
#: parameters that torch annotates as numbers but only hands on to tensor arithmetic, where a tensor is as good
TENSOR_AS_GOOD = {
    "normalize": {"eps"},
    "local_response_norm": {"alpha", "beta", "k"},
    "gumbel_softmax": {"tau", "eps"},
    "gaussian_nll_loss": {"eps"},
    "triplet_margin_with_distance_loss": {"margin"},
    "constant_": {"val"},
}
RANDOM = re.compile(r"(alpha_|feature_|feature_alpha_)?dropout\dd|gumbel_softmax|fractional_max_pool\w+")


def writes(name: str) -> list[str]:
    """Arguments that every overload writes to, ``out`` excepted."""
    sets = [
        {a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write}
        for schema in schemas().get(name, [])
        if "out" not in schema.overload_name
    ]
    return sorted(set.intersection(*sets)) if sets else []


def is_view(name: str) -> bool:
    return any(
        item.alias_info and not item.alias_info.is_write
        for schema in schemas().get(name, [])
        for item in schema.returns
    )


def is_random(name: str) -> bool:
    packet = getattr(torch.ops.aten, name, None)
    overloads = packet.overloads() if packet is not None else []
    return any(torch.Tag.nondeterministic_seeded in getattr(packet, overload).tags for overload in overloads)


def declared_result(returns: Iterable[str]) -> str:
    """The kind of result that the declared return types allow."""
    texts = sorted(text.strip("'\"") for text in returns)
    for text in texts:
        if match := re.fullmatch(r"(?:torch\.)?return_types\.(\w+)", text):
            return f"tensors:{getattr(torch.return_types, match.group(1)).n_fields}"
    kinds = {re.sub(r"\b_(?=[a-z])", "", text) for text in texts if "TypeGuard" not in text and "TypeIs" not in text}
    if not kinds:
        return "host"
    for kind in sorted(kinds):
        if re.fullmatch(r"[Tt]uple\[(Tensor(, )?)+\]", kind):
            return f"tensors:{kind.count('Tensor')}"
    known = {"Tensor": "tensor", "None": "none", "Self": "self"}
    known |= {"bool": "host", "int": "host", "float": "host", "str": "host", "dtype": "dtype"}
    found = {known.get(kind, "tensors" if "Tensor" in kind and "[" in kind else "unknown") for kind in kinds}
    return found.pop() if len(found) == 1 else "tensor" if "tensor" in found else "unknown"


@functools.cache
def observed() -> dict[str, str]:
    """The kinds of result that torch's own sample inputs give on the CPU, by operator name."""
    from torch.testing._internal.common_methods_invocations import op_db

    facts: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    names: dict[str, list[str]] = defaultdict(list)
    for info in op_db:
        names[info.name] += [alias.name for alias in info.aliases]
        for dtype in (torch.float32, torch.int64, torch.bool):
            if info.supports_dtype(dtype, "cpu"):
                facts[info.name] += sample_results(info, dtype)
    results = {name: summary(pairs) for name, pairs in facts.items()}
    return {n: results[name] for name, aliases in names.items() for n in (*aliases, name) if results.get(name)}


def sample_results(info: Any, dtype: torch.dtype) -> Iterator[tuple[Any, Any]]:
    try:
        samples = list(info.sample_inputs("cpu", dtype))[:24]
    except Exception:  # an operator whose samples need what this machine lacks is left to the declarations
        return
    for sample in samples:
        if "dtype" not in sample.kwargs:
            try:
                result = info.op(sample.input, *sample.args, **sample.kwargs)
            except Exception:
                continue
            yield sample.input, result


def summary(pairs: list[tuple[Any, Any]]) -> str:
    results = [result for _, result in pairs]
    if results and all(isinstance(result, (tuple, list)) for result in results):
        lengths = {len(result) for result in results}
        return "" if len(lengths) > 1 else f"tensors:{lengths.pop()}"
    if not results or not all(isinstance(result, torch.Tensor) for result in results):
        return ""
    rank0 = all(result.dim() == 0 for result in results)
    inputs = [value for value, _ in pairs if isinstance(value, torch.Tensor)]
    varied = any(value.dim() for value in inputs)
    suffix = ":rank0" if rank0 and varied and len(results) > 2 else ""
    if all(result.dtype is torch.bool for result in results):
        return "tensor:bool" + suffix
    if all(not (result.is_floating_point() or result.is_complex() or result.dtype is torch.bool) for result in results):
        return "tensor:int" + suffix if any(value.is_floating_point() for value in inputs) else "tensor" + suffix
    if len(inputs) == len(pairs) and varied and all(v.dtype is r.dtype and v.dim() == r.dim() for v, r in pairs):
        return "same"
    return ("tensor:float" if all(result.is_floating_point() for result in results) else "tensor") + suffix


def members(owner: Any) -> list[str]:
    names = (name for name in dir(owner) if callable(getattr(owner, name, None)))
    return [
        n for n in names if not isinstance(getattr(owner, n), type) and not n.startswith("__") and not SKIPPED.match(n)
    ]


def signatures(name: str, owner: Any, prefix: str) -> dict[str, Signature]:
    """Signatures of one namespace's callables, by name."""
    stubs = stub_functions("_C/_VariableFunctions.pyi") if not prefix else {}
    if owner is torch.nn.functional:
        stubs = {**stubs, **stub_functions("_C/_nn.pyi")}
    if owner is torch.Tensor:
        stubs = stub_functions("_C/__init__.pyi", "TensorBase")
    found = {}
    for member in members(owner):
        function = getattr(owner, member)
        if isinstance(owner, ModuleType) and not (getattr(function, "__module__", None) or "torch").startswith("torch"):
            continue
        private = isinstance(owner, ModuleType) and member.startswith("_") and member not in stubs
        python = python_signature(function) if inspect.isfunction(function) else None
        signature = python or stubs.get(member) or schema_signature(prefix + member)
        if signature is not None and not private:
            found[member] = signature
    return found


def result_of(name: str, member: str, prefix: str, signature: Signature) -> tuple[str, list[str]]:
    """The kind of result and the parameters written to."""
    written = [signature.order[0] if w in ("self", "input") else w for w in writes(prefix + member)]
    if member in ("record_stream", "retain_grad"):
        written = []
    declared = declared_result(signature.returns)
    if re.search(r"[a-z0-9]_$", member) and declared != "none":
        return "self", written or signature.order[:1]
    short = name.removeprefix("torch").removeprefix(".Tensor").lstrip(".")
    key = f"{short}.{member}".lstrip(".")
    if key in RESULTS:
        return RESULTS[key], written
    seen = observed().get(key) or observed().get(f"nn.functional.{member}", "")
    if seen == "same" and not signature.only_tensor and not FIRST_TENSOR_RULES.fullmatch(member):
        seen = "tensor"
    if any(name.startswith("*") for name in signature.order):
        seen = seen.partition(":")[0] if seen.startswith("tensors") else seen
    return (seen if declared in ("tensor", "unknown") and seen else declared), written


class Group(NamedTuple):
    """What the lines of one block share."""

    owner: str
    returns: str
    view: bool
    random: bool
    mutates: tuple[str, ...]


def main() -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    groups: dict[Group, list[str]] = defaultdict(list)
    for name, (owner, prefix) in OWNERS.items():
        for member, signature in sorted(signatures(name, owner, prefix).items()):
            result, written = result_of(name, member, prefix, signature)
            if result in ("unknown", "") or (result == "host" and name != "torch.Tensor"):
                continue
            random = is_random(prefix + member) or "generator" in signature.order or bool(RANDOM.fullmatch(member))
            group = Group(name, result, is_view(prefix + member), random, tuple(written))
            groups[group].append(f"{member} {signature.render(TENSOR_AS_GOOD.get(member, set()))}".rstrip())
    write(groups)


def write(groups: dict[Group, list[str]]) -> None:
    version = torch.__version__.partition("+")[0]
    lines = [
        "# Written by generate.py; do not edit. Each line is a name and its parameters in order; int and number mark",
        "# parameters that take host numbers only, so that a device tensor given there is read by the CPU.",
        "version: 1",
        f'source: "torch {version}: type stubs, operator schemas and tags, operator database run on the CPU"',
        "signatures:",
    ]
    for group, rows in sorted(groups.items()):
        lines += [f"  - owner: {group.owner}", f'    returns: "{group.returns}"']
        lines += ["    view: true"] * group.view + ["    random: true"] * group.random
        lines += [f"    mutates: [{', '.join(group.mutates)}]"] * bool(group.mutates)
        lines += ["    lines: |", textwrap.indent("\n".join(rows), " " * 6)]
    Path(__file__).with_name("tensors.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
