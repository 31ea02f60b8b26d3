"""Findings about the comments and marks in the code themselves: those that do nothing (CG001, CG002)."""

from __future__ import annotations

from collections.abc import Iterator

from capturelint.errors import UsageError
from capturelint.model import Applicability, Confidence, Finding, Fix, Span
from capturelint.project.module import Module
from capturelint.regions.needles import MARKED
from capturelint.rulebook import Rule, Rulebook
from capturelint.source.prefilter import mentions_any
from capturelint.source.suppression_edits import without
from capturelint.source.suppressions import SuppressionEntry, SuppressionSet

_UNUSED, _NOT_READ = "CG001", "CG002"
_HOW_TO_MARK = "put `# capturelint: region` on or above the `def` of the function that is captured"


def about_comments(
    rulebook: Rulebook, codes: frozenset[str], comments: SuppressionSet, module: Module
) -> Iterator[Finding]:
    """Asked once every finding of the file was matched. Of the comments in a file, and of the marks of regions."""
    if _UNUSED in codes:
        yield from _unused(rulebook, codes, comments, module)
    if _NOT_READ in codes:
        yield from _unknown(rulebook, comments, module)
        rule = rulebook.rules[_NOT_READ]
        for malformed in comments.malformed:
            yield _about(rule, module, malformed.span, malformed.message)
        if mentions_any(module.source.encode("utf-8", "replace"), MARKED):
            yield from _idle_marks(rule, module)


def _idle_marks(rule: Rule, module: Module) -> Iterator[Finding]:
    """Imported where there are marks: the analysis takes long to import, and most projects have no region."""
    from capturelint.passes.unit import characters
    from capturelint.regions.marked import idle_comments, marked_classes

    for span, message in idle_comments(module):
        yield _about(rule, module, span, message, help_text=_HOW_TO_MARK)
    for decorator, cls in marked_classes(module):
        place = (decorator.lineno, decorator.col_offset, decorator.end_lineno or 0, decorator.end_col_offset or 0)
        message = f"`capture_region` marks no region on the class `{cls.name}`"
        yield _about(rule, module, characters(module, place), message, help_text="mark the method that is captured")


def _unused(rulebook: Rulebook, codes: frozenset[str], comments: SuppressionSet, module: Module) -> Iterator[Finding]:
    for entry in comments.unused():
        unused = [code for code in entry.unused_codes if _enabled(rulebook, codes, code)]
        if unused:
            names = ", ".join(unused)
            fix = Fix(Applicability.SAFE, f"remove {names}", (without(entry, unused, module.lines),))
            yield _about(rulebook.rules[_UNUSED], module, entry.span, f"unused suppression of {names}", fix)


def _unknown(rulebook: Rulebook, comments: SuppressionSet, module: Module) -> Iterator[Finding]:
    for entry in comments.entries:
        for selector in entry.codes:
            problem = _problem(rulebook, entry, selector)
            if problem is not None:
                # unsafe: a slip of the finger is put right rather than removed
                edit = without(entry, [selector], module.lines)
                fix = Fix(Applicability.UNSAFE, f"remove {selector}", (edit,))
                yield _about(rulebook.rules[_NOT_READ], module, entry.span, problem, fix)


def _problem(rulebook: Rulebook, entry: SuppressionEntry, selector: str) -> str | None:
    try:
        rulebook.resolve(selector)
    except UsageError as error:
        return str(error)
    return None


def _enabled(rulebook: Rulebook, codes: frozenset[str], selector: str) -> bool:
    """A suppression of a rule that is switched off in this run is not called unused."""
    try:
        return rulebook.resolve(selector) <= codes
    except UsageError:
        return False


def _about(
    rule: Rule, module: Module, span: Span, message: str, fix: Fix | None = None, help_text: str | None = None
) -> Finding:
    return Finding(
        rule=rule.code, name=rule.name, path=module.display, span=span, message=message, label="",
        help=help_text or rule.help, severity=rule.severity, confidence=Confidence.CERTAIN,
        consequence=rule.consequence, fix=fix, text=module.text_between(span),
    )  # fmt: skip
