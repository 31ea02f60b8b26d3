"""What to write instead, chosen from the syntax at a hazard. Pure text: no facts are asked for here.

Each function gives None where nothing better can be said than what the rule's page says.
"""

from __future__ import annotations

import libcst as cst

from capturelint.passes.text import code_of

#: longer expressions make advice hard to read; they are left out
_LONG = 44
_NEUTRAL: tuple[tuple[type[cst.BaseAugOp], str, str], ...] = (
    (cst.AddAssign, "+=", "0"),
    (cst.SubtractAssign, "-=", "0"),
    (cst.MultiplyAssign, "*=", "1"),
)


def condition_text(test: cst.BaseExpression, is_bool: bool) -> str:
    """A condition for ``torch.where``, which wants booleans."""
    text = code_of(test)
    return text if is_bool or isinstance(test, cst.Comparison) else f"{text} != 0"


def branch(node: cst.If, condition: str, negated: bool) -> str | None:
    """``if condition: ...``: what its two sides do decides what can stand in its place."""
    yes, no = _sole(node.body), None
    if isinstance(node.orelse, cst.If):
        return None
    if node.orelse is not None:
        no = _sole(node.orelse.body)
        if no is None:
            return None
    chosen = _chosen(yes, no, condition, negated)
    if chosen is not None:
        return f"compute both sides and choose on the device: `{chosen}`"
    return _left_early(node, condition, negated) if node.orelse is None else None


def _chosen(
    yes: cst.BaseSmallStatement | None, no: cst.BaseSmallStatement | None, condition: str, negated: bool
) -> str | None:
    if isinstance(yes, cst.Assign) and len(yes.targets) == 1:
        target = code_of(yes.targets[0].target)
        other = code_of(no.value) if isinstance(no, cst.Assign) else target
        same = no is None or (isinstance(no, cst.Assign) and code_of(no.targets[0].target) == target)
        return _short(f"{target} = {_where(condition, code_of(yes.value), other, negated)}") if same else None
    if isinstance(yes, cst.AugAssign) and no is None:
        for kind, sign, neutral in _NEUTRAL:
            if isinstance(yes.operator, kind):
                chosen = _where(condition, code_of(yes.value), neutral, negated)
                return _short(f"{code_of(yes.target)} {sign} {chosen}")
    if isinstance(yes, cst.Return) and isinstance(no, cst.Return) and yes.value and no.value:
        return _short(f"return {_where(condition, code_of(yes.value), code_of(no.value), negated)}")
    return None


def _where(condition: str, yes: str, no: str, negated: bool) -> str:
    first, second = (no, yes) if negated else (yes, no)
    return f"torch.where({condition}, {first}, {second})"


def _left_early(node: cst.If, condition: str, negated: bool) -> str | None:
    """``if condition: return`` and the like, without an ``else``."""
    last = _last(node.body)
    if isinstance(last, cst.Raise):
        wanted = condition if negated else f"~({condition})"
        return f"check on the device (`torch._assert_async({wanted})`), or look at the value after `replay()`"
    if isinstance(last, cst.Return):
        return (
            "a graph runs to its end: compute what follows in any case and choose the result with "
            f"`torch.where({condition}, ...)`, or decide before `replay()` which graph to replay"
        )
    if isinstance(last, (cst.Break, cst.Continue)):
        return (
            "let the loop run a fixed number of times, and keep what is finished as it is: "
            f"`torch.where({condition}, old, new)`"
        )
    return None


def loop(node: cst.While, condition: str) -> str:
    """A loop until something converges."""
    only = _sole(node.body)
    step = "x = torch.where(condition, step(x), x)"
    if isinstance(only, cst.Assign) and len(only.targets) == 1 and isinstance(only.targets[0].target, cst.Name):
        target = only.targets[0].target.value
        step = f"{target} = torch.where({condition}, {code_of(only.value)}, {target})"
    return (
        f"run a fixed number of iterations, and let a mask freeze what is finished: `{_short(step) or 'torch.where'}`"
    )


def check(condition: str) -> str:
    return f"check on the device with `torch._assert_async({condition})`, or look at the value after `replay()`"


def choice(node: cst.IfExp, condition: str, negated: bool) -> str | None:
    chosen = _short(_where(condition, code_of(node.body), code_of(node.orelse), negated))
    return f"choose on the device: `{chosen}`" if chosen is not None else None


def boolean(node: cst.BooleanOperation) -> str | None:
    name = "torch.logical_and" if isinstance(node.operator, cst.And) else "torch.logical_or"
    text = _short(f"{name}({code_of(node.left)}, {code_of(node.right)})")
    return f"stay on the device: `{text}`" if text is not None else None


def chained(node: cst.Comparison) -> str | None:
    """``0 < t < 1`` as two comparisons."""
    parts: list[str] = []
    left = node.left
    for target in node.comparisons:
        operator = cst.Module(body=[]).code_for_node(target.operator).strip()
        parts.append(f"({code_of(left)} {operator} {code_of(target.comparator)})")
        left = target.comparator
    text = _short(" & ".join(parts))
    return f"compare elementwise: `{text}`" if text is not None else None


def bounded(bound: str) -> str:
    """A loop to a bound that the device knows."""
    return f"loop to a fixed bound and mask the surplus steps: `torch.where(i < {bound}, new, old)`"


def masked(count: str) -> str:
    """A slice or a size that the device knows."""
    return f"work at full size and mask what is beyond `{count}`: `torch.arange(size, device=...) < {count}`"


def picked(node: cst.BaseExpression) -> str | None:
    """``x[i]`` with a 0-d tensor."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    text = _short(f"{code_of(node.value)}.index_select(0, {code_of(node.slice[0].slice.value)}.view(1))")
    return f"pick the row on the device: `{text}`" if text is not None else None


def mask_read(node: cst.Subscript) -> str | None:
    mask = _index(node)
    text = _short(f"torch.where({mask}, {code_of(node.value)}, 0)") if mask is not None else None
    return f"keep the shape and blank out the rest, with the mask broadcast: `{text}`" if text is not None else None


def mask_write(node: cst.Subscript) -> str | None:
    mask, base = _index(node), code_of(node.value)
    text = _short(f"{base}.copy_(torch.where({mask}, value, {base}))") if mask is not None else None
    return f"write at full shape, with the mask broadcast: `{text}`" if text is not None else None


def index_write(node: cst.Subscript) -> str | None:
    """``x[rows] = 3.0``: a number is copied to the device to be scattered."""
    index = _index(node)
    text = _short(f"{code_of(node.value)}.index_fill_(0, {index}, value)") if index is not None else None
    return f"fill on the device: `{text}`" if text is not None else None


def element_write(node: cst.Subscript) -> str | None:
    text = _short(f"{code_of(node)}.fill_(value)")
    return f"fill on the device: `{text}`" if text is not None else None


def host_index(node: cst.Subscript) -> str:
    return (
        "make the index a tensor on the device before capture and keep it, or take a slice: "
        f"`{_short(code_of(node.value)) or 'x'}[index]`"
    )


def constructor(node: cst.Call) -> str | None:
    """``torch.tensor(3.0, device="cuda")`` and the like."""
    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else code_of(node.func)
    if name in ("cuda", "to"):
        return "move it to the device before capture and keep it, or copy from pinned memory with `non_blocking=True`"
    if name not in ("tensor", "as_tensor", "asarray", "new_tensor", "scalar_tensor", "from_numpy") or not node.args:
        return None
    data = node.args[0].value
    if isinstance(data, (cst.Integer, cst.Float, cst.UnaryOperation)):
        return f"fill it on the device: `torch.full((), {code_of(data)}, device=...)`, or make it once before capture"
    return "make it once, before capture, and keep it in a buffer that the region only reads"


def operand(node: cst.BinaryOperation, read: str, inner: str) -> str | None:
    """A number that was read to be an operand: the tensor itself does."""
    text = _short(code_of(node).replace(read, inner))
    return f"a 0-d tensor is an operand as it is: `{text}`" if text is not None else None


def read_of(node: cst.Call) -> str | None:
    """What ``x.item()``, ``float(x)`` and the like read."""
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("item", "tolist") and not node.args:
        return code_of(node.func.value)
    if isinstance(node.func, cst.Name) and node.func.value in ("int", "float", "bool") and len(node.args) == 1:
        return code_of(node.args[0].value)
    return None


def _index(node: cst.Subscript) -> str | None:
    if len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        return None
    return code_of(node.slice[0].slice.value)


def _short(text: str) -> str | None:
    return text if len(text) <= 2 * _LONG and "\n" not in text else None


def _sole(block: cst.BaseSuite) -> cst.BaseSmallStatement | None:
    """The only statement of a block."""
    if isinstance(block, cst.SimpleStatementSuite):
        return block.body[0] if len(block.body) == 1 else None
    if len(block.body) == 1 and isinstance(block.body[0], cst.SimpleStatementLine):
        line = block.body[0]
        return line.body[0] if len(line.body) == 1 else None
    return None


def _last(block: cst.BaseSuite) -> cst.BaseSmallStatement | None:
    if isinstance(block, cst.SimpleStatementSuite):
        return block.body[-1]
    last = block.body[-1] if block.body else None
    return last.body[-1] if isinstance(last, cst.SimpleStatementLine) and last.body else None
