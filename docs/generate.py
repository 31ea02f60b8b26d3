"""Writes a page for each rule, and their index, from ``rules/`` into ``docs/rules/``: ``python docs/generate.py``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from capturelint.rulebook.rules import Example, FixPage, Rule, load_rulebook  # noqa: E402 - found in the checkout

FOLDER = ROOT / "docs" / "rules"
NOTE = "<!-- written by docs/generate.py from rules/{source}; edit that -->"
FAMILIES = {
    "CG0": "About the check itself",
    "CG1": "The CPU waits for the GPU, or reads from it",
    "CG2": "Data of the host enters the region",
    "CG3": "Python decides what is recorded",
    "CG4": "Shapes that data or changing numbers decide",
    "CG5": "Tensors that the graph knows by their address",
    "CG6": "Host state that a graph keeps as it was",
    "CG7": "Streams and threads",
    "CG8": "How and when a graph is captured",
    "CG9": "Training",
}


def pages() -> dict[str, str]:
    """Every file of ``docs/rules`` by its name."""
    rules = load_rulebook().rules
    return {"README.md": _index(rules.values()), **{f"{code}.md": page(rule) for code, rule in rules.items()}}


def _index(rules: Iterable[Rule]) -> str:
    lines = [NOTE.format(source=""), "# Rules", ""]
    lines.append(
        "`capturelint explain CG101` shows the same pages. In examples, `# expect:` ends each line that is reported. A"
        " fix is `safe` where `--fix` applies it, `unsafe` where only `--unsafe-fixes` does (see [fixes](../fixes.md))."
    )
    family = ""
    for rule in rules:
        if rule.code[:3] != family:
            family = rule.code[:3]
            lines += ["", f"## {FAMILIES[family]}", ""]
            lines += ["| rule | name | what it finds | consequence | fix |", "| --- | --- | --- | --- | --- |"]
        summary = rule.summary.replace("|", "\\|")
        cells = (f"[{rule.code}]({rule.code}.md)", f"`{rule.name}`", summary, rule.consequence.value, fix_of(rule))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def fix_of(rule: Rule) -> str:
    """``safe``, ``unsafe``, both, or nothing."""
    fix = rule.page.fix
    kinds = () if fix is None else (("safe", fix.safe), ("unsafe", fix.unsafe))
    return ", ".join(name for name, text in kinds if text is not None)


def page(rule: Rule) -> str:
    """A rule's page: the facts, and each heading of its file in its order."""
    page = rule.page
    facts = {
        "severity": rule.severity.value,
        "consequence": rule.consequence.value,
        "breaks": ", ".join(rule.breaks) or "nothing",
        "since": rule.since,
        "torch versions": f"`{rule.torch_versions}`",
        "fix": fix_of(rule) or "none",
    }
    blocks = [NOTE.format(source=rule.source.name), f"# {rule.code} {rule.name}", _sentence(rule.summary)]
    blocks.append("\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in facts.items())]))
    blocks.append(f"Help: {rule.help}")
    blocks += ["## What it flags", page.what_it_flags, "## Why it breaks a graph", page.why_it_breaks_a_graph]
    blocks += ["## Bad", *_examples(page.bad), "## Good", *_examples(page.good)]
    if page.fix is not None:
        blocks += ["## Fix", *_fix(page.fix)]
    blocks += ["## When it is fine", page.when_it_is_fine, "## What it misses", page.what_it_misses]
    blocks += ["## How the verifier confirms it", page.how_the_verifier_confirms_it]
    blocks += ["## References", "\n".join(f"- <{address}>" for address in page.references)]
    return "\n\n".join(block.rstrip() for block in blocks) + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _examples(examples: Iterable[Example]) -> Iterator[str]:
    for example in examples:
        yield f"{_sentence(example.title)}"
        sources = example.sources()
        for name, text in sources.items():
            yield _code(text) if len(sources) == 1 else f"`{name}`\n\n{_code(text)}"


def _fix(fix: FixPage) -> Iterator[str]:
    for option, text in (("--fix", fix.safe), ("--fix --unsafe-fixes", fix.unsafe)):
        if text is not None:
            yield f"`{option}`: {text}"
    for example in fix.examples:
        yield f"{_sentence(example.title)} Before{' (unsafe)' if example.unsafe else ''}:"
        yield _code(example.before)
        yield "After:"
        yield _code(example.after)


def _code(text: str) -> str:
    fence = "````" if "```" in text else "```"
    return f"{fence}python\n{text.rstrip()}\n{fence}"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    wanted = pages()
    for stale in {each.name for each in FOLDER.glob("*.md")} - set(wanted):
        (FOLDER / stale).unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
