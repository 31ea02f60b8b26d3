"""How a name is written where it is called, bound or changed: what a text can tell before it is parsed.

A form fits wherever the syntax may mean what is asked, and in some other places: whoever asks looks at the syntax then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from capturelint.project.targets import may_be_bound, may_set_item


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """What stands around an identifier: ``follows`` after it, and before it a dot, or what ``begins`` its line."""

    name: str
    follows: re.Pattern[str] | None = None
    #: the same where more than what follows counts: asked of the text and of where the identifier begins and ends in it
    fitting: Callable[[str, int, int], bool] | None = None
    dotted: bool = False
    begins: re.Pattern[str] | None = None
    #: what stands before the quote where a string with the name will do as well
    quoted: re.Pattern[str] | None = None
    #: found by itself, whatever the identifier
    anywhere: re.Pattern[str] | None = None

    def fits(self, source: str, start: int, end: int) -> bool:
        if self.quoted is not None and source[start - 1 : start] in _QUOTES:
            return self.quoted.search(source, max(0, start - _REACH), start - 1) is not None
        if self.dotted and not _is_dotted(source, start):
            return False
        if self.begins is not None and self.begins.fullmatch(source, source.rfind("\n", 0, start) + 1, start) is None:
            return False
        if self.fitting is not None:
            return self.fitting(source, start, end)
        return self.follows is None or self.follows.match(source, end) is not None


def _is_dotted(source: str, start: int) -> bool:
    while start and source[start - 1] in _SPACE:
        start -= 1
    return source[start - 1 : start] == "."


_QUOTES = ("'", '"')
_SPACE = " \t\n\\"
#: how far before a quoted name its call begins
_REACH = 120
_GROWS = re.compile(r"[ \t]*\.\s*(?:append|add|appendleft|extend|insert|update|setdefault|append_module)\b")


def _may_change(source: str, start: int, end: int) -> bool:
    return _GROWS.match(source, end) is not None or may_set_item(source, start, end)


MENTIONED = Form("mentioned")
CALLED = Form("called", re.compile(r"[ \t]*(?:[(\[)\\#\n]|$)"))
#: ``x.name = ...``, also among other targets, and where loops and ``with`` bind it
STORED = Form("stored", fitting=may_be_bound, dotted=True)
#: the same, and ``register_buffer("name", ...)``
STORED_OR_REGISTERED = Form(
    "stored or registered",
    fitting=may_be_bound,
    dotted=True,
    quoted=re.compile(r"(?:register_\w+|add_module|setattr|__setattr__)\s*\((?:[^()'\"]*,)?\s*$"),
)
#: ``x.name[key] = ...``
ITEM_STORED = Form("item stored", fitting=may_set_item)
#: ``x.name.append(...)``, ``x.name[key] = ...``
CHANGED = Form("changed", fitting=_may_change, dotted=True)
#: for keywords
FIRST = Form("first", begins=re.compile(r"[ \t\f]*(?:async[ \t]+)?"))
#: methods that bind attributes or entries, or put other tensors behind those of a module
_REBINDS = (
    "__setattr__|register_buffer|register_parameter|set_|update|half|float|double|bfloat16|type|cpu|to_empty|to"
    "|load_state_dict|zero_grad"
)
#: assignments to attributes and entries, also among other targets, and calls that do the like
REBINDING = Form(
    "rebinding",
    anywhere=re.compile(
        r"\.\w+[\s)]*=(?!=)|[\])]\s*=(?!=)|\|=|^[ \t]*[(\[*]*[^\n#=(]*,[^\n]*=(?!=)"
        rf"|\.\w+(?:\[[^\n]*?\])?\s*,[^\n()]*=(?!=)|\bsetattr\b|\.\s*(?:{_REBINDS})\s*\(",
        re.MULTILINE,
    ),
)
#: what a name or an attribute is deleted by, or set to None; parameters and keywords that are None look alike
DROPPING = Form("dropping", anywhere=re.compile(r"=[\s\\(]*None\b|\bdel\b"))

FORMS = {
    form.name: form
    for form in (MENTIONED, CALLED, STORED, STORED_OR_REGISTERED, ITEM_STORED, CHANGED, FIRST, REBINDING, DROPPING)
}
