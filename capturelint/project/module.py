"""One module's index: what its top level binds, and who calls what by name. Made on demand from ``ast``."""

from __future__ import annotations

import ast
import warnings
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from capturelint.errors import SourceError
from capturelint.model import Span
from capturelint.project.definitions import CHILDLESS, ClassInfo, FunctionInfo, children
from capturelint.project.uses import Uses, find_uses
from capturelint.source.decoding import decode
from capturelint.source.files import SourceFile

_TOO_DEEP = "too many nested parentheses"


@dataclass(frozen=True, slots=True)
class ImportedName:
    """``from module import name``, or ``import module`` when ``name`` is None. ``level`` counts leading dots."""

    module: str
    name: str | None
    level: int = 0


@dataclass(frozen=True, slots=True)
class AssignedName:
    """A module-level name bound to an expression; ``target`` is the whole target (it may be a tuple)."""

    target: ast.expr
    value: ast.expr


Definition = FunctionInfo | ClassInfo | ImportedName | AssignedName


@dataclass(eq=False, repr=False, slots=True)
class Module:
    file: SourceFile
    #: dotted name under the import root, for example ``pkg.sub.mod``
    name: str
    is_package: bool
    source: str
    tree: ast.Module
    names: dict[str, list[Definition]] = field(default_factory=dict)
    star_imports: list[ImportedName] = field(default_factory=list)
    functions: dict[int, FunctionInfo] = field(default_factory=dict)
    classes: dict[int, ClassInfo] = field(default_factory=dict)
    #: kept here by those who work it out: what the code of the module and of each function binds, by node identity
    own_code: dict[int, Any] = field(default_factory=dict)
    _uses: Uses | None = None
    #: where each line begins in ``source``; the lines themselves would take twice the memory of the source
    _starts: array[int] | None = None

    @property
    def display(self) -> str:
        return self.file.display

    @property
    def lines(self) -> list[str]:
        return self.source.split("\n")

    def line_text(self, line: int) -> str:
        if self._starts is None:
            self._starts = array("L", accumulate((len(each) + 1 for each in self.lines), initial=0))
        if not 0 < line < len(self._starts):
            return ""
        return self.source[self._starts[line - 1] : self._starts[line] - 1]

    def text_between(self, span: Span) -> str:
        """The source text of a finding's span."""
        lines = [self.line_text(line) for line in range(span.line, span.end_line + 1)]
        if not lines:
            return ""
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return "\n".join(lines)

    def text_of(self, node: ast.AST) -> str:
        """The source text of a node, as ``ast.get_source_segment`` gives it, which splits the source at each call."""
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start, end = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
        lines = [self.line_text(each).encode() for each in range(first, last + 1)]
        lines[-1] = lines[-1][:end]
        lines[0] = lines[0][start:]
        return b"\n".join(lines).decode()

    def segment(self, node: ast.AST, limit: int = 80) -> str:
        """The source text of a node on one line, shortened to ``limit`` characters."""
        text = " ".join(self.text_of(node).split())
        return text if len(text) <= limit else text[: limit - 3] + "..."

    def function(self, node: ast.AST) -> FunctionInfo:
        return self.functions[id(node)]

    def all_functions(self) -> Iterator[FunctionInfo]:
        return iter(self.functions.values())

    @property
    def uses(self) -> Uses:
        """Who calls and binds what in this module, by name; worked out when first asked for."""
        if self._uses is None:
            self._uses = find_uses(self.tree, self.functions)
        return self._uses

    def calls_named(self, name: str) -> list[tuple[FunctionInfo | None, ast.Call]]:
        """Calls whose callee's last identifier is ``name``, with the innermost function that holds each."""
        return self.uses.calls.get(name, [])


def parse_module(file: SourceFile, data: bytes, name: str, is_package: bool) -> Module:
    """Decodes, parses and indexes a file's bytes. Raises SourceError."""
    source, tree = parse_source(file, data)
    module = Module(file, name, is_package, source, tree)
    _Indexer(module).run()
    return module


def parse_source(file: SourceFile, data: bytes) -> tuple[str, ast.Module]:
    """A file's text and its tree. Raises SourceError."""
    source = decode(data, file.display)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return source, ast.parse(source)
    except SyntaxError as error:
        # what no version takes is kept from LibCST's parser, which such nesting crashes
        newer = "" if error.msg.startswith(_TOO_DEEP) else _if_newer(source)
        raise SourceError(file.display, error.lineno or 1, f"{error.msg}{newer}") from None
    except (RecursionError, MemoryError):
        raise SourceError(file.display, 1, "nested too deeply to parse") from None


def _if_newer(source: str) -> str:
    """What to say of syntax that a newer Python takes. Imported where a file is wrong, which few are."""
    from capturelint.source.newer_syntax import newer_version

    version = newer_version(source)
    return f": this is syntax of Python {version[0]}.{version[1]}" if version is not None else ""


class _Indexer:
    def __init__(self, module: Module) -> None:
        self.module = module

    def run(self) -> None:
        self._statements(self.module.tree.body)
        self._functions(self.module.tree, "", None)

    def _bind(self, name: str, definition: Definition) -> None:
        self.module.names.setdefault(name, []).append(definition)

    def _statements(self, body: list[ast.stmt]) -> None:
        """Top-level bindings, also those under ``if``, ``try``, ``with`` and loops."""
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                info = FunctionInfo(statement, self.module, statement.name)
                self.module.functions[id(statement)] = info
                self._bind(statement.name, info)
            elif isinstance(statement, ast.ClassDef):
                self._bind(statement.name, self._class(statement, ""))
            elif isinstance(statement, (ast.Import, ast.ImportFrom)):
                for name, imported in imported_names(statement):
                    if name == "*":
                        self.module.star_imports.append(imported)
                    else:
                        self._bind(name, imported)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    self._assigned(target, target, statement.value)
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self._assigned(statement.target, statement.target, statement.value)
            for inner in ("body", "orelse", "finalbody"):
                nested = getattr(statement, inner, None)
                if nested and not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    self._statements(nested)
            for handler in getattr(statement, "handlers", ()):
                self._statements(handler.body)

    def _assigned(self, part: ast.expr, target: ast.expr, value: ast.expr) -> None:
        if isinstance(part, ast.Name):
            self._bind(part.id, AssignedName(target, value))
        elif isinstance(part, (ast.Tuple, ast.List)):
            for element in part.elts:
                self._assigned(element, target, value)

    def _class(self, node: ast.ClassDef, prefix: str) -> ClassInfo:
        info = ClassInfo(node, self.module, prefix + node.name)
        self.module.classes[id(node)] = info
        self._class_body(info, node.body)
        return info

    def _class_body(self, info: ClassInfo, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                method = FunctionInfo(statement, self.module, f"{info.qualname}.{statement.name}", owner=info)
                self.module.functions[id(statement)] = method
                if statement.name not in info.methods or not method.has_decorator("setter", "overload", "deleter"):
                    info.methods[statement.name] = method
            elif isinstance(statement, ast.ClassDef):
                info.nested[statement.name] = self._class(statement, info.qualname + ".")
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        info.assigned[target.id] = statement.value
            elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                info.assigned.setdefault(statement.target.id, None)
                if statement.value is not None:
                    info.assigned[statement.target.id] = statement.value
                info.annotations[statement.target.id] = statement.annotation
            elif isinstance(statement, (ast.If, ast.Try, ast.With)):
                self._class_body(info, statement.body)
                self._class_body(info, getattr(statement, "orelse", []))

    def _functions(self, node: ast.AST, prefix: str, parent: FunctionInfo | None) -> None:
        """Registers every function, lambda and class that is not registered yet, with its parent."""
        stack: list[tuple[ast.AST, str, FunctionInfo | None]] = [(node, prefix, parent)]
        lambdas = "lambda" in self.module.source  # without one, expressions hold no functions
        while stack:
            current, prefix, parent = stack.pop()
            if isinstance(current, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                info = self.module.functions.get(id(current))
                if info is None:
                    label = current.name if not isinstance(current, ast.Lambda) else "<lambda>"
                    info = FunctionInfo(current, self.module, prefix + label, parent=parent)
                    self.module.functions[id(current)] = info
                else:
                    info.parent = parent
                parent, prefix = info, f"{info.qualname}.<locals>."
            elif isinstance(current, ast.ClassDef):
                if id(current) not in self.module.classes:
                    self._class(current, prefix)
                prefix = self.module.classes[id(current)].qualname + "."
            stack.extend(
                [
                    (child, prefix, parent)
                    for child in (children(current) if lambdas else _blocks(current))
                    if child.__class__ not in CHILDLESS
                ]
            )


def _blocks(node: ast.AST) -> list[ast.AST]:
    """The statements below a statement, with the handlers and cases that hold some."""
    held = node.__dict__
    return [each for name in _BLOCKS for each in held.get(name, ())]


_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


def imported_names(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, ImportedName]]:
    """The names that an import statement binds."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            if alias.asname:
                yield alias.asname, ImportedName(alias.name, None)
            else:
                top = alias.name.partition(".")[0]
                yield top, ImportedName(top, None)
        return
    for alias in statement.names:
        yield alias.asname or alias.name, ImportedName(statement.module or "", alias.name, statement.level)
