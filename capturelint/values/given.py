"""What calls give: their arguments, all of them, or those alone that somebody asks for."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from capturelint.values.domain import UNKNOWN, Mapping, Sequence, Value, element_of, join
from capturelint.values.expressions import evaluate
from capturelint.values.frame import Arguments, Frame


@dataclass(frozen=True, slots=True)
class Wanted:
    """The positional arguments from ``first`` on, up to ``last`` (None: all of them), and the one named ``keyword``."""

    first: int
    last: int | None = None
    keyword: str | None = None

    def position(self, index: int) -> bool:
        return index >= self.first and (self.last is None or index < self.last)

    def after(self, count: int) -> Wanted:
        """The same of a call that leaves out the first ``count`` arguments, as they are given already."""
        last = max(self.last - count, 0) if self.last is not None else None
        return Wanted(max(self.first - count, 0), last, self.keyword)


def arguments_of(node: ast.Call, frame: Frame) -> Arguments:
    """Evaluates a call's arguments; starred ones of known length are spread."""
    return _arguments(node.args, node.keywords, frame, None)


def wanted_arguments(node: ast.Call, frame: Frame, wanted: Wanted) -> Arguments:
    """The same where somebody asks for a few of them: others are left unknown, which whole trees may hang on."""
    keywords = [each for each in node.keywords if each.arg is not None and each.arg == wanted.keyword]
    if not keywords and wanted.keyword is not None:
        keywords = [each for each in node.keywords if each.arg is None]
    return _arguments(node.args, keywords, frame, wanted)


def _arguments(args: list[ast.expr], named: list[ast.keyword], frame: Frame, wanted: Wanted | None) -> Arguments:
    positional: list[Value] = []
    rest: Value | None = None
    spread = False  # after a starred argument, positions are those of the values
    for index, argument in enumerate(args):
        if isinstance(argument, ast.Starred):
            spread = True
            value = evaluate(argument.value, frame)
            if isinstance(value, Sequence) and value.items is not None and rest is None:
                positional.extend(value.items)
            else:
                rest = join(rest, element_of(value)) if rest is not None else element_of(value)
        elif wanted is not None and not spread and not wanted.position(index):
            positional.append(UNKNOWN)
        elif rest is None:
            positional.append(evaluate(argument, frame))
        else:
            rest = join(rest, evaluate(argument, frame))
    keywords: list[tuple[str, Value]] = []
    opened = False
    for keyword in named:
        value = evaluate(keyword.value, frame)
        if keyword.arg is not None:
            keywords.append((keyword.arg, value))
            continue
        opened = True
        if isinstance(value, Mapping):
            keywords.extend((key, item) for key, item in value.items if isinstance(key, str))
            opened = not value.complete
    return Arguments(tuple(positional), tuple(keywords), rest, opened)
