"""What makes a tensor whatever it is made of, told by its words alone: ``[t.clone() for t in example]``."""

from __future__ import annotations

import ast

from capturelint.project.syntax import last_name

#: what makes a new tensor whatever it is called on
MAKING = frozenset(
    (
        *("clone", "zeros", "ones", "empty", "full", "rand", "randn", "randint", "arange", "linspace", "eye", "tensor"),
        *("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_empty"),
        *("new_full", "new_ones", "stack", "cat", "repeat", "as_tensor", "from_numpy", "randperm"),
    )
)
#: what computes a new tensor of one
COMPUTING = frozenset(
    ("tril", "triu", "cumsum", "softmax", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "outer", "flip")
)
#: what may give the very tensor that it is called on
MOVING = frozenset(("cuda", "to", "float", "half", "long", "int", "contiguous", "bfloat16"))
_CONTAINERS = ("list", "tuple", "dict")


def makes_anew(node: ast.expr) -> bool:
    """Whether an expression gives a new object, and not one that something else may hold."""
    if not isinstance(node, ast.Call):
        return isinstance(node, ast.BinOp)
    name = last_name(node.func)
    if name in MAKING | COMPUTING:
        return True
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    return name in MOVING and receiver is not None and makes_anew(receiver)


def makes_tensors(node: ast.expr) -> bool:
    """A container with tensors that are made for it."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _makes(node.elt)
    if isinstance(node, ast.DictComp):
        return _makes(node.value)
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(_makes(each) for each in node.elts)
    if isinstance(node, ast.Dict):
        return any(_makes(each) for each in node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CONTAINERS and node.args:
        return makes_tensors(node.args[0])
    return False


def _makes(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and makes_anew(node)
