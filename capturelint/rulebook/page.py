"""A rule as terminal text: its page for ``explain``, and one line of it for ``rules``."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill, indent

from capturelint.model import Consequence
from capturelint.rulebook.rules import HEADINGS, Example, FixPage, Rule

_MEANING = {
    Consequence.CAPTURE_ERROR: "capture raises",
    Consequence.STALE_REPLAY: "no error; replay uses what was true at capture",
    Consequence.CORRUPTION: "memory that the graph still writes is read, freed or shared",
    Consequence.COST: "correct, but memory, start-up time or speed is lost",
    Consequence.NONE: "about the check itself; no graph is harmed",
}


def render_page(rule: Rule, width: int = 100) -> str:
    """The full page: facts, then every heading in order, prose set to ``width``, examples indented as they are.

    Ends with a newline. Raises RulebookError when the rule's page is not as it should be.
    """
    blocks = [f"{rule.code} {rule.name}\n{rule.summary}", _fact_table(rule)]
    for heading in HEADINGS:
        content = getattr(rule.page, heading.replace("-", "_"))
        if content is None:
            continue
        blocks.append(
            f"{heading.replace('-', ' ').capitalize()}\n{indent(_content(heading, content, width - 2), '  ')}"
        )
    return "\n\n".join(blocks) + "\n"


def render_table(rules: Iterable[Rule]) -> str:
    """One line a rule: code, name, severity, consequence, summary. Ends with a newline."""
    rows = [("code", "name", "severity", "consequence", "summary")]
    rows += [(rule.code, rule.name, rule.severity.value, rule.consequence.value, rule.summary) for rule in rules]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(line.rstrip() + "\n" for line in lines)


def _fact_table(rule: Rule) -> str:
    facts = {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "consequence": f"{rule.consequence.value} ({_MEANING[rule.consequence]})",
        "breaks": ", ".join(rule.breaks) or "nothing",
        "since": rule.since,
        "torch versions": rule.torch_versions,
        "help": rule.help,
    }
    width = max(map(len, facts))
    return "\n".join(f"  {fact.ljust(width)}  {value}" for fact, value in facts.items())


def _content(heading: str, content: str | tuple[str, ...] | tuple[Example, ...] | FixPage, width: int) -> str:
    if isinstance(content, FixPage):
        return _fix(content, width)
    if isinstance(content, str):
        return "\n\n".join(_paragraph(text, width) for text in content.split("\n\n"))
    if heading == "references":
        return "\n".join(map(str, content))
    return "\n\n".join(_example(entry) for entry in content if isinstance(entry, Example))


def _paragraph(text: str, width: int) -> str:
    """Set to ``width``; what is indented (an error's text) stays as it is."""
    if text.startswith(" "):
        return text
    return fill(text, width, break_long_words=False, break_on_hyphens=False)


def _example(example: Example) -> str:
    """The title, then each file's code; file names only where there is more than one."""
    sources = example.sources()
    parts = [(f"# {path}\n" if len(sources) > 1 else "") + text.rstrip("\n") for path, text in sources.items()]
    return f"{example.title}:\n\n" + "\n\n".join(indent(part, "    ") for part in parts)


def _fix(page: FixPage, width: int) -> str:
    """When there is a fix, and each example before and after."""
    kinds = (("--fix", page.safe), ("--fix --unsafe-fixes", page.unsafe))
    parts = [_paragraph(f"{option}: {text}", width) for option, text in kinds if text is not None]
    for each in page.examples:
        note = " (unsafe)" if each.unsafe else ""
        before, after = (indent(text.rstrip("\n"), "    ") for text in (each.before, each.after))
        parts.append(f"{each.title}{note}, before:\n\n{before}\n\nafter:\n\n{after}")
    return "\n\n".join(parts)
