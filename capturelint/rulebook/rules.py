"""The rule catalogue: one YAML file a rule, loaded and validated.

A file has two parts, in fixed order: the facts that every run needs, then the page that only ``explain`` and the tests
need. Only the facts are parsed at load; a page is parsed when it is first asked for.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from capturelint.errors import RulebookError, UsageError
from capturelint.model import Consequence, Severity
from capturelint.rulebook.compiled import read_all
from capturelint.rulebook.entries import Entries, parse, split
from capturelint.rulebook.location import rules_directory
from capturelint.suggest import did_you_mean

FACTS = ("code", "name", "summary", "consequence", "since", "torch-versions", "breaks", "message", "help")
HEADINGS = (
    "what-it-flags",
    "why-it-breaks-a-graph",
    "bad",
    "good",
    "fix",
    "when-it-is-fine",
    "what-it-misses",
    "how-the-verifier-confirms-it",
    "references",
)
#: headings that a page may leave out
OPTIONAL = frozenset(("fix",))
#: what must be the same at every replay, and that nothing in a region may wait for the GPU
BREAKS = ("kernels", "order", "arguments", "addresses", "host-wait")

#: the diagnostics' code; no selector and no comment switches it off
UNCHECKED_FILE = "CG000"

_CODE = re.compile(r"CG\d{3}\Z")
_PREFIX = re.compile(r"CG\d{0,2}\Z")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")
_VERSION = re.compile(r"\d+\.\d+\.\d+\Z")
_TORCH = re.compile(r"(>=|<=|==|!=|<|>)\d+\.\d+(,(>=|<=|==|!=|<|>)\d+\.\d+)*\Z")
_EXPECT = re.compile(r"# expect: *(CG\d{3}(?: *, *CG\d{3})*)")
_SUMMARY_WORDS = 12


@dataclass(frozen=True)
class Example:
    """A runnable module, with the expected findings as trailing comments (``# expect: CG101``).

    ``code`` is the main module (``example.py``); ``files`` holds further (path, text) pairs of a multi-file example.
    """

    title: str
    code: str
    files: tuple[tuple[str, str], ...] = ()

    MAIN = "example.py"

    def sources(self) -> dict[str, str]:
        """Every file of the example by path, the main module first."""
        return {self.MAIN: self.code, **dict(self.files)}

    def expected(self) -> set[tuple[str, int, str]]:
        """What the comments announce, as (path, line, code)."""
        return {
            (path, number, code)
            for path, text in self.sources().items()
            for number, line in enumerate(text.splitlines(), 1)
            for match in _EXPECT.finditer(line)
            for code in re.split(r" *, *", match.group(1))
        }


@dataclass(frozen=True)
class FixExample:
    """A module before and after ``--fix``; ``unsafe``: after ``--fix --unsafe-fixes``."""

    title: str
    before: str
    after: str
    unsafe: bool = False


@dataclass(frozen=True)
class FixPage:
    """What ``--fix`` does about a rule's findings: when that surely keeps the meaning, and when it may not."""

    safe: str | None
    unsafe: str | None
    examples: tuple[FixExample, ...]


@dataclass(frozen=True)
class Page:
    """What ``explain`` shows of a rule beyond its facts; the fields are HEADINGS, in order."""

    what_it_flags: str
    why_it_breaks_a_graph: str
    bad: tuple[Example, ...]
    good: tuple[Example, ...]
    fix: FixPage | None
    when_it_is_fine: str
    what_it_misses: str
    how_the_verifier_confirms_it: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class Rule:
    """The facts of one rule. ``message`` may hold ``{expression}``, which stands for the offending source text."""

    code: str
    name: str
    summary: str
    consequence: Consequence
    since: str
    torch_versions: str
    breaks: tuple[str, ...]
    message: str
    help: str
    source: Path

    @property
    def severity(self) -> Severity:
        """That of the consequence; but a file that could not be checked fails every run, though it harms no graph."""
        return Severity.ERROR if self.code == UNCHECKED_FILE else self.consequence.severity

    def message_for(self, expression: str) -> str:
        return self.message.format(expression=expression)

    @cached_property
    def page(self) -> Page:
        """The rest of the file. Raises RulebookError when it is not as it should be."""
        return _read_page(self.source)


@dataclass(frozen=True)
class Rulebook:
    """All rules, by code. Selectors are a code, a prefix of one (``CG1``, ``CG``), ``ALL``, or a rule's name."""

    rules: Mapping[str, Rule]

    @cached_property
    def by_name(self) -> Mapping[str, Rule]:
        return {rule.name: rule for rule in self.rules.values()}

    def get(self, code_or_name: str) -> Rule | None:
        return self.rules.get(code_or_name) or self.by_name.get(code_or_name)

    def resolve(self, selector: str) -> frozenset[str]:
        """The codes that ``selector`` stands for. Raises UsageError when it stands for none."""
        if selector == "ALL":
            return frozenset(self.rules)
        rule = self.get(selector)
        if rule is not None:
            return frozenset({rule.code})
        codes = frozenset(code for code in self.rules if _PREFIX.match(selector) and code.startswith(selector))
        if not codes:
            known = (*self.rules, *self.by_name, *sorted({code[:3] for code in self.rules}), "ALL")
            raise UsageError(f"unknown rule {selector!r}{did_you_mean(selector, known)}")
        return codes

    def select(self, select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
        """The codes to run: all of them, or those in ``select``, less those in ``ignore``.

        The more precise selector wins (``--select CG101 --ignore CG1`` keeps CG101); of two as precise, ``ignore``.
        Raises UsageError for an unknown selector.
        """
        chosen = [(self._precision(text), True, self.resolve(text)) for text in tuple(select) or ("ALL",)]
        dropped = [(self._precision(text), False, self.resolve(text)) for text in ignore]
        codes: frozenset[str] = frozenset()
        for _, wanted, named in sorted(chosen + dropped, key=lambda entry: (entry[0], not entry[1])):
            codes = codes | named if wanted else codes - named
        return codes

    def _precision(self, selector: str) -> int:
        if selector == "ALL":
            return 0
        return len(selector) if _PREFIX.match(selector) else len("CG101")


def load_rulebook(directory: Path | None = None) -> Rulebook:
    """Loads ``CG*.yaml`` from ``directory``, or from where the package keeps its rules.

    Raises RulebookError, naming file and key, when a file is not as it should be.
    """
    return _load(directory or rules_directory())


@lru_cache(maxsize=8)
def _load(directory: Path) -> Rulebook:
    rules: dict[str, Rule] = {}
    names: dict[str, Path] = {}
    for rule in read_all(sorted(directory.glob("CG*.yaml")), parse_facts, _read_facts):
        if rule.name in names:
            raise RulebookError(f"{rule.source}: name: {rule.name!r} is already taken by {names[rule.name].name}")
        names[rule.name] = rule.source
        rules[rule.code] = rule
    if not rules:
        raise RulebookError(f"{directory}: holds no rule files (CG*.yaml)")
    return Rulebook(rules)


def parse_facts(path: Path) -> dict[str, Any]:
    """What the YAML before the page holds."""
    return parse(path, split(path, HEADINGS[0])[0], FACTS)


def _read_facts(path: Path, data: Mapping[str, Any]) -> Rule:
    entries = Entries(path, data)
    code = entries.text("code", _CODE, "must look like CG101")
    if code != path.stem:
        raise entries.error("code", f"{code} is not the file's name")
    summary = entries.text("summary")
    if len(summary.split()) > _SUMMARY_WORDS or summary != summary[0].lower() + summary[1:]:
        raise entries.error("summary", f"must have at most {_SUMMARY_WORDS} words and start in lower case")
    message = entries.text("message")
    try:
        fields = {field for _, field, _, _ in string.Formatter().parse(message) if field is not None}
    except ValueError as error:
        raise entries.error("message", str(error)) from None
    if fields - {"expression"}:
        raise entries.error("message", "the only placeholder is {expression}")
    return Rule(
        code=code,
        name=entries.text("name", _NAME, "must be lower-case words joined by '-'"),
        summary=summary,
        consequence=Consequence(entries.choice("consequence", tuple(member.value for member in Consequence))),
        since=entries.text("since", _VERSION, "must be a version such as 0.1.0"),
        torch_versions=entries.text("torch-versions", _TORCH, "must be a version range such as >=2.0"),
        breaks=entries.choices("breaks", BREAKS),
        message=message,
        help=entries.text("help"),
        source=path,
    )


def _read_page(path: Path) -> Page:
    entries = Entries(path, parse(path, split(path, HEADINGS[0])[1], HEADINGS, OPTIONAL))
    return Page(
        what_it_flags=entries.text("what-it-flags"),
        why_it_breaks_a_graph=entries.text("why-it-breaks-a-graph"),
        bad=_examples(entries, "bad"),
        good=_examples(entries, "good"),
        fix=_fix(entries) if "fix" in entries.data else None,
        when_it_is_fine=entries.text("when-it-is-fine"),
        what_it_misses=entries.text("what-it-misses"),
        how_the_verifier_confirms_it=entries.text("how-the-verifier-confirms-it"),
        references=entries.urls("references"),
    )


def _examples(entries: Entries, key: str) -> tuple[Example, ...]:
    """A list of examples, or a single one."""
    value = entries.data[key]
    if isinstance(value, dict):
        return (_example(entries, key, value),)
    return entries.several(key, lambda where, entry: _example(entries, where, entry))


def _fix(entries: Entries) -> FixPage:
    value = entries.data["fix"]
    if not isinstance(value, dict) or not {"examples"} < value.keys() <= {"safe", "unsafe", "examples"}:
        raise entries.error("fix", "must be a mapping with examples, and safe or unsafe or both")
    if not isinstance(value["examples"], list) or not value["examples"]:
        raise entries.error("fix.examples", "must be a list of at least one")
    texts = {key: entries.checked_text(f"fix.{key}", value[key]) for key in ("safe", "unsafe") if key in value}
    examples = tuple(
        _fix_example(entries, f"fix.examples[{number}]", each) for number, each in enumerate(value["examples"])
    )
    for each in examples:
        if ("unsafe" if each.unsafe else "safe") not in texts:
            raise entries.error("fix", f"says nothing of when {each.title!r} holds")
    return FixPage(texts.get("safe"), texts.get("unsafe"), examples)


def _fix_example(entries: Entries, where: str, value: object) -> FixExample:
    keys = {"title", "before", "after"}
    if not isinstance(value, dict) or value.keys() - {"unsafe"} != keys or value.get("unsafe", True) is not True:
        raise entries.error(where, "must be a mapping with title, before, after, and unsafe: true where it is")
    title, before, after = (entries.checked_text(f"{where}.{key}", value[key]) for key in ("title", "before", "after"))
    return FixExample(title, before + "\n", after + "\n", "unsafe" in value)


def _example(entries: Entries, where: str, value: object) -> Example:
    if not isinstance(value, dict):
        raise entries.error(where, "must be a mapping with title and code")
    unknown = value.keys() - {"title", "code", "files"}
    if unknown:
        raise entries.error(f"{where}.{min(map(str, unknown))}", "unknown key")
    files = value.get("files", {})
    if not isinstance(files, dict) or not all(isinstance(path, str) for path in files):
        raise entries.error(f"{where}.files", "must map paths to code")

    def code(key: str, text: object) -> str:
        return entries.checked_text(f"{where}.{key}", text) + "\n"

    return Example(
        title=entries.checked_text(f"{where}.title", value.get("title")),
        code=code("code", value.get("code")),
        files=tuple((path, code(f"files.{path}", text)) for path, text in files.items()),
    )
