"""One module's index: what its top level binds, and who calls what by name. Made on demand from ``ast``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from capturelint.errors import SourceError
from capturelint.model import Span
from capturelint.project.bindings import Definition, ImportedName
from capturelint.project.bodies import Bodies, Body
from capturelint.project.definitions import ClassInfo, FunctionInfo
from capturelint.project.forms import MENTIONED, Form
from capturelint.project.index import Indexer
from capturelint.project.looked import HOLDS, REPEATS, Looked, text_reply
from capturelint.project.lookup import Lookup
from capturelint.project.parsing import parse_body, parse_outline, parse_source
from capturelint.project.text import Text
from capturelint.source.files import SourceFile


@dataclass(eq=False, repr=False, slots=True)
class Module:
    """``top``: the module's tree, in which functions have no bodies until somebody asks for one (see ``bodies``).

    ``functions`` and ``classes`` hold what is known by node identity: those in bodies only where these were asked for.
    """

    file: SourceFile
    #: dotted name under the import root, for example ``pkg.sub.mod``
    name: str
    is_package: bool
    text: Text
    top: ast.Module
    report: Callable[[SourceError], object]
    names: dict[str, list[Definition]] = field(default_factory=dict)
    star_imports: list[ImportedName] = field(default_factory=list)
    functions: dict[int, FunctionInfo] = field(default_factory=dict)
    classes: dict[int, ClassInfo] = field(default_factory=dict)
    bodies: Bodies = field(init=False)
    #: functions in the order in which the index comes by, with the bodies that hold more of them
    order: list[FunctionInfo | Body] = field(default_factory=list)
    top_classes: tuple[ClassInfo, ...] = ()
    #: kept here by those who work it out: what the code of the module and of each function binds, by node identity
    own_code: dict[int, Any] = field(default_factory=dict)
    looked: Looked = field(default_factory=Looked)
    _uses: Lookup | None = None

    @property
    def display(self) -> str:
        return self.file.display

    @property
    def source(self) -> str:
        """All of the text, on which everything that is found rests then: ``holds`` asks for less."""
        self.looked.wholly = True
        return self.text.source

    def holds(self, text: str) -> bool:
        return self._reply(HOLDS, text)

    def repeats(self, name: str) -> bool:
        """Whether the text holds an identifier more than once."""
        return self._reply(REPEATS, name)

    def _reply(self, kind: str, text: str) -> bool:
        known = self.looked.texts.get((kind, text))
        if known is None:
            known = self.looked.texts[kind, text] = text_reply(kind, self.text.source, text)
        return known

    @property
    def lines(self) -> list[str]:
        return self.source.split("\n")

    def line_text(self, line: int) -> str:
        return self.text.line(line)

    def text_between(self, span: Span) -> str:
        """The source text of a finding's span."""
        return self.text.of_span(span)

    def text_of(self, node: ast.AST) -> str:
        return self.text.of_node(node)

    def segment(self, node: ast.AST, limit: int = 80) -> str:
        """The source text of a node on one line, shortened to ``limit`` characters."""
        text = " ".join(self.text_of(node).split())
        return text if len(text) <= limit else text[: limit - 3] + "..."

    @property
    def tree(self) -> ast.Module:
        """The module's whole tree, for those who walk into functions."""
        self.looked.listed = True
        for body in self.bodies.all:
            self._loaded(body)
        return self.top

    def load(self, body: Body) -> None:
        """Puts a body back into its function, and registers the functions and classes that it holds."""
        node = body.function.head
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        body.function.later = None
        self.looked.bodies.add(body.place)
        node.body = self._statements(body, node)
        node.end_lineno, node.end_col_offset = node.body[-1].end_lineno, node.body[-1].end_col_offset
        Indexer(self).within(body)

    def _statements(self, body: Body, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
        try:
            return parse_body(self.text.source[body.lines.begin : body.lines.end], body.lines.first)
        except (SyntaxError, RecursionError, MemoryError):
            pass
        try:
            _, tree = parse_source(self.file, self.source.encode())
        except SourceError as error:
            self.report(error)
            return [_unknown(body.lines.first)]
        place = (node.lineno, node.col_offset)
        functions = (each for each in ast.walk(tree) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))
        return next(each.body for each in functions if (each.lineno, each.col_offset) == place)

    def function(self, node: ast.AST) -> FunctionInfo:
        return self.functions[id(node)]

    def all_functions(self, *words: str, form: Form = MENTIONED) -> Iterator[FunctionInfo]:
        """Every function and lambda; of those with a name only the ones whose text holds one of ``words``, if given.

        They stand there in the form, of which some need no word: give an empty one. Words beyond ASCII tell nothing.
        """
        words = words if all(word.isascii() for word in words) else ()
        self.looked.listed = self.looked.listed or not words
        asked = self.bodies.mentioning(words, form, whole=True) if words else self.bodies.all
        functions = {body.function for body in asked}
        others = {body.function for body in self.bodies.all} - functions if words else set()
        for each in list(self.order):
            if isinstance(each, FunctionInfo):
                if each not in others:
                    yield each
            elif each.function in functions:
                yield from self._loaded(each).inner

    def all_classes(self) -> Iterator[ClassInfo]:
        yield from self.top_classes
        holding = set(self.bodies.with_classes())
        for each in self.order:
            if isinstance(each, Body) and each in holding:
                yield from self._loaded(each).classes

    def inner_functions(self, owner: FunctionInfo) -> Iterator[FunctionInfo]:
        """The functions and lambdas that stand directly in a function."""
        body = self.bodies.at(owner.line)
        known = [*(self._loaded(body).inner if body is not None else ()), *self.order]
        return (info for info in known if isinstance(info, FunctionInfo) and info.parent is owner)

    def may_speak_of(self, function: FunctionInfo, name: str, form: Form) -> bool:
        """Whether a function's body holds a name in a form, as far as that is known without it."""
        body = function.later
        self.looked.words.add((name, form.name))
        return body is None or not name.isascii() or self.bodies.may_hold(body, name, form)

    def _loaded(self, body: Body) -> Body:
        if body.function.later is not None:
            self.load(body)
        return body

    @property
    def uses(self) -> Lookup:
        """Who calls and binds what in this module, by name; worked out when first asked for."""
        if self._uses is None:
            self._uses = Lookup(self)
        return self._uses

    def calls_named(self, name: str) -> list[tuple[FunctionInfo | None, ast.Call]]:
        """Calls whose callee's last identifier is ``name``, with the innermost function that holds each."""
        return self.uses.calls(name)


def _unknown(line: int) -> ast.Return:
    """Stands for a body that can't be parsed: what such a function returns is not known."""
    place = {"lineno": line, "col_offset": 0, "end_lineno": line, "end_col_offset": 0}
    return ast.Return(value=ast.Name(id="<not parsed>", ctx=ast.Load(), **place), **place)


def parse_module(
    file: SourceFile, data: bytes, name: str, is_package: bool, report: Callable[[SourceError], object]
) -> Module:
    """Decodes, parses and indexes a file's bytes; ``report`` hears of wrong bodies. Raises SourceError."""
    source, tree, bodies = parse_outline(file, data)
    module = Module(file, name, is_package, Text(source), tree, report)
    module.looked.wholly = bodies is None
    Indexer(module, bodies or {}).run()
    return module
