"""Writes ``captured.json``: what a GPU did with each operator of torch's operator database while capturing.

The argument is the result of a run on a GPU: for each operator the outcome, and for those whose outcome depends on the
arguments each sample with its own. Samples of the other operators are spelled from the database of the torch that is
installed here, as calls that work on the CPU::

    python rules/ops/record_captured.py RESULTS.json
"""

from __future__ import annotations

import argparse
import json
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import torch

#: samples of an operator that always does the same
_FEW = 4
#: how many samples of the database the run tried
_TRIED = 10
_LEGEND = (
    "samples are a call's arguments; T<dims> is a tensor, with i for integers, b for booleans, c for complex numbers, "
    "@cpu for one on the host"
)
_KINDS = {torch.bool: "b", torch.float32: "", torch.float64: "", torch.complex64: "c", torch.complex128: "c"}
_OWNERS = ("torch", "torch.Tensor", "torch.nn.functional")


def callee(name: str) -> tuple[str, Any] | None:
    """How an operator is called: ``linalg.pinv.hermitian`` is a variant of ``torch.linalg.pinv``."""
    parts = name.removeprefix("torch.").split(".")
    for count in range(len(parts), 0, -1):
        for owner in _OWNERS:
            dotted = ".".join((owner, *parts[:count]))
            found = _resolve(dotted)
            if callable(found) and not isinstance(found, type(torch)):
                return dotted, found
    inplace = _resolve(f"torch.Tensor.{parts[0]}_")
    return (f"torch.Tensor.{parts[0]}_", inplace) if inplace is not None else None


def _resolve(dotted: str) -> Any:
    found: Any = torch
    for part in dotted.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def token(value: Any) -> str | None:
    """A value as it stands in a sample; None where it can't be spelled."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return None
        return f"T{value.dim()}" + _KINDS.get(value.dtype, "i")
    if isinstance(value, (list, tuple)):
        inner = [token(each) for each in value]
        text = ", ".join(each for each in inner if each is not None)
        return (
            None if None in inner else f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(inner) == 1)})"
        )
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    if value is None or isinstance(value, (bool, int, float, complex, str, slice)):
        return repr(value)
    if isinstance(value, torch.dtype):
        return str(value)
    return "..." if value is Ellipsis else None


def call_text(args: Any, kwargs: Any) -> str | None:
    words = [token(value) for value in args] + [
        None if (text := token(value)) is None else f"{name}={text}" for name, value in kwargs.items()
    ]
    return None if None in words else ", ".join(word for word in words if word is not None)


def spelled(info: Any, function: Any, dtype: str) -> Iterator[str]:
    """The database's samples as calls of ``function`` that work."""
    kind = getattr(torch, dtype)
    for index, sample in enumerate(islice(info.sample_inputs("cpu", kind), _TRIED)):
        args = (sample.input, *sample.args)
        text = call_text(args, sample.kwargs)
        if text is None or is_empty(sample):
            continue
        try:
            function(*args, **sample.kwargs)
        except Exception:  # the database calls it in another way
            continue
        yield with_host_tensors(text, info, kind, index).replace("device='cpu'", "device='cuda'")


def with_host_tensors(text: str, info: Any, kind: torch.dtype, index: int) -> str:
    """``text`` with the tensors marked that the database makes on the host, whatever device it is asked for."""
    try:
        sample = next(islice(info.sample_inputs("meta", kind), index, None))
    except Exception:  # made from values, which that device has none of
        return text
    found = iter(
        [tensor.device.type == "cpu" for tensor in _tensors((sample.input, *sample.args, *sample.kwargs.values()))]
    )
    return re.sub(r"\bT\d[ibc]?", lambda match: match[0] + "@cpu" * next(found, False), text)


def is_empty(sample: Any) -> bool:
    """An empty tensor leaves an operator nothing to do: what that did says nothing of the operator."""
    return any(tensor.numel() == 0 for tensor in _tensors((sample.input, *sample.args, *sample.kwargs.values())))


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def measured(samples: list[dict[str, Any]], info: Any, dtype: str) -> list[list[str]]:
    """Samples with outcomes of their own, as the run wrote them, without those on empty tensors."""
    tried = list(islice(info.sample_inputs("cpu", getattr(torch, dtype)), _TRIED)) if info is not None else []
    ranks = [[tensor.dim() for tensor in _tensors((each.input, *each.args))] for each in tried]
    same = ranks == [[int(rank) for rank in re.findall(r"\bT(\d)", " ".join(each["args"]))] for each in samples]
    found = []
    for index, sample in enumerate(samples):
        words = [*sample["args"], *(f"{name}={text}" for name, text in sample["kwargs"].items())]
        cut = any(word.count("[") != word.count("]") or word.count("(") != word.count(")") for word in words)
        if cut or (same and is_empty(tried[index])):
            continue
        words = [_index(word.replace("inf", 'float("inf")')) for word in words]
        found.append([sample["capture"], ", ".join(words)])
    return found


def _index(word: str) -> str:
    """A list of slices and lists, given as an index, means a tuple of them."""
    return f"({word[1:-1]},)" if word.startswith("[") and ("slice(" in word or "[" in word[1:]) else word


def describe(name: str, row: dict[str, Any], infos: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"capture": row["capture"]}
    info, known = infos.get(name), callee(name)
    if info is not None and row["capture"] == "ok":
        tried = list(islice(info.sample_inputs("cpu", getattr(torch, row["dtype"])), _TRIED))
        if tried and all(is_empty(each) for each in tried):
            found["capture"] = "empty"
    if known is None:
        return found
    found["call"], function = known
    if row["capture"] == "depends":
        found["samples"] = measured(row["samples"], info, row["dtype"])
    elif found["capture"] in ("ok", "error") and info is not None:
        texts = dict.fromkeys(spelled(info, function, row["dtype"]))
        found["samples"] = [[row["capture"], text] for text in list(texts)[:_FEW]]
    return found


def main() -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    results = json.loads(parser.parse_args().results.read_text(encoding="utf-8"))
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    infos = {f"{i.name}.{i.variant_test_name}".rstrip("."): i for i in op_db}
    head = {"torch": results["torch"], "gpu": results["gpu"], "source": results["source"], "legend": _LEGEND}
    lines = [f" {json.dumps(name)}: {json.dumps(text)}," for name, text in head.items()]
    rows = [
        f"  {json.dumps(name)}: {json.dumps(describe(name, row, infos))}"
        for name, row in sorted(results["ops"].items())
    ]
    text = "{\n" + "\n".join(lines) + '\n "operators": {\n' + ",\n".join(rows) + "\n }\n}\n"
    Path(__file__).with_name("captured.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
