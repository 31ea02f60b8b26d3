"""CG502: state that the region rebinds in Python, which replays never do again."""

from __future__ import annotations

import libcst as cst

from capturelint.model import Confidence
from capturelint.passes.base import CapturePass
from capturelint.passes.unit import Support
from capturelint.values.domain import Instance, Unknown, options
from capturelint.values.effects import deep_confidence
from capturelint.values.facts import StoreFact


class RegionState(CapturePass):
    """``self.h = f(self.h)`` inside a region."""

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(_Locals())

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._functions.pop()

    def __init__(self, facts) -> None:  # type: ignore[no-untyped-def]
        super().__init__(facts)
        self._functions: list[_Locals] = [_Locals()]

    def visit_Assign(self, node: cst.Assign) -> None:
        read = _reads(node.value)
        for target in node.targets:
            for part, source in _pairs(target.target, node.value):
                self._bound(part, source if source is not None else node.value, read)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        """``self.w @= x``: tensors have no in-place matrix product, so Python binds a new one."""
        name = _dotted(node.target)
        if isinstance(node.operator, cst.MatrixMultiplyAssign) and name is not None and name != "self":
            self._store(node.target, name, direct=True)

    def visit_Global(self, node: cst.Global) -> None:
        self._functions[-1].outer.update(item.name.value for item in node.names)

    def visit_Nonlocal(self, node: cst.Nonlocal) -> None:
        self._functions[-1].outer.update(item.name.value for item in node.names)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self._bound(node.target, node.value, _reads(node.value))

    def _bound(self, target: cst.BaseExpression, value: cst.BaseExpression, read: _Reads) -> None:
        scope = self._functions[-1]
        if isinstance(target, cst.Name) and target.value in scope.outer:
            if target.value in read.names:
                self._store(target, target.value, direct=True)
            return
        if isinstance(target, cst.Name):
            scope.names[target.value] = scope.names.get(target.value, frozenset()) | scope.expand(read)
            source = _dotted(value)
            if source is not None:
                scope.saved[target.value] = source
            return
        if not isinstance(target, (cst.Attribute, cst.Subscript)):
            return
        name = _dotted(target)
        if name is None:
            return
        if name in read.attributes and name not in scope.stored:
            self._store(target, name, direct=True)
        elif isinstance(value, cst.Name) and scope.saved.get(value.value) == name:
            pass  # put back as it was
        elif name in scope.expand(read) and name not in scope.stored:
            self._store(target, name, direct=False)
        scope.names[name] = scope.names.get(name, frozenset()) | scope.expand(read)
        scope.stored.add(name)

    def _store(self, target: cst.BaseExpression, name: str, *, direct: bool) -> None:
        found = [(context, _carries(fact)) for context, fact in self.facts.stores(target)]
        support = self.facts.support(found, self.facts.node_span(target)[0])
        if support is None:
            return
        cap = Confidence.CERTAIN if direct else Confidence.LIKELY
        support = Support(min(support.confidence, cap, key=lambda c: c.rank), support.contexts)
        message = (
            f"`{name}` is bound to a new tensor inside the region, made from its old value: Python does that at "
            "capture only, so every replay starts from the tensor of capture time"
        )
        self.report("CG502", target, message, "bound once, at capture", support)


class _Reads:
    """The names and dotted attributes that an expression reads."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()


class _Locals:
    """Local names and attributes bound in one function, with the attributes that their values came from."""

    def __init__(self) -> None:
        self.names: dict[str, frozenset[str]] = {}
        self.stored: set[str] = set()
        #: local names that hold exactly what an attribute held
        self.saved: dict[str, str] = {}
        #: names declared ``global`` or ``nonlocal``
        self.outer: set[str] = set()

    def expand(self, read: _Reads) -> frozenset[str]:
        found = frozenset(read.attributes)
        for name in (*read.names, *read.attributes):
            found |= self.names.get(name, frozenset())
        return found


class _Collector(cst.CSTVisitor):
    def __init__(self) -> None:
        self.reads = _Reads()

    def visit_Subscript(self, node: cst.Subscript) -> None:
        name = _dotted(node)
        if name is not None:
            self.reads.attributes.add(name)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = _dotted(node)
        if name is not None:
            # a host fact of the tensor (its shape, its device) does not carry its value
            base, _, last = name.rpartition(".")
            if last in ("shape", "dtype", "device", "ndim"):
                return False
            self.reads.attributes.add(name)
            while "." in base:
                self.reads.attributes.add(base)
                base = base.rpartition(".")[0]
            self.reads.names.add(base or name.partition(".")[0])
            return False
        return True

    def visit_Name(self, node: cst.Name) -> None:
        self.reads.names.add(node.value)

    def visit_Comparison(self, node: cst.Comparison) -> bool:
        return not any(isinstance(part.operator, (cst.Is, cst.IsNot)) for part in node.comparisons)


def _reads(node: cst.BaseExpression) -> _Reads:
    collector = _Collector()
    node.visit(collector)
    return collector.reads


def _dotted(node: cst.BaseExpression) -> str | None:
    """``a.b``, ``a.b["key"]`` or ``a.b[i]``; None for anything else."""
    parts: list[str] = []
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        if not isinstance(index, cst.Index) or not isinstance(index.value, (cst.SimpleString, cst.Integer, cst.Name)):
            return None
        inner = _dotted(node.value)
        return f"{inner}[{index.value.value}]" if inner is not None and "." in inner else None
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    return ".".join(reversed([*parts, node.value]))


def _pairs(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    if isinstance(target, (cst.Tuple, cst.List)):
        sources = value.elements if isinstance(value, (cst.Tuple, cst.List)) else ()
        same = len(sources) == len(target.elements)
        return [
            pair
            for index, element in enumerate(target.elements)
            for pair in _pairs(element.value, sources[index].value if same else value)
        ]
    return [(target, value)]


def _carries(fact: StoreFact) -> Confidence | None:
    """Whether what is stored is a device tensor (or holds one), where it outlives the call."""
    if not any(
        isinstance(option, Unknown) or (isinstance(option, Instance) and option.site.lasting)
        for option in options(fact.owner)
    ):
        return None
    sure = deep_confidence(fact.value)
    if (
        sure is not None
        and not fact.outer
        and all(isinstance(option, Unknown) and option.parameter is None for option in options(fact.owner))
    ):
        return Confidence.POSSIBLE  # whether an object that nothing is known of lasts is not known either
    return sure
