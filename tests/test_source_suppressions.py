from __future__ import annotations

import textwrap

import pytest

from capturelint.model import Span
from capturelint.source.suppressions import parse_suppressions


def covered(source: str, code: str = "CG101", name: str = "host-scalar-read") -> list[int]:
    """The lines of ``source`` on which a finding of the rule is suppressed."""
    text = textwrap.dedent(source)
    found = parse_suppressions(text)
    return [line for line in range(1, text.count("\n") + 2) if found.match(code, name, line)]


def test_trailing_comment_covers_its_statement() -> None:
    assert covered(
        """\
        a = x.item()
        b = x.item()  # capturelint: ignore[CG101] sampled on the host
        c = x.item()
        """
    ) == [2]


def test_trailing_comment_covers_all_lines_of_its_statement() -> None:
    source = """\
        a = f(
            x.item(),{0}
            y.item(),
        ){1}
        b = x.item()
        """
    assert covered(source.format("  # capturelint: ignore[CG101]", "")) == [1, 2, 3, 4]
    assert covered(source.format("", "  # capturelint: ignore[CG101]")) == [1, 2, 3, 4]


def test_comment_on_its_own_line_covers_the_next_statement() -> None:
    assert covered(
        """\
        a = x.item()
        # capturelint: ignore[CG101]

        # and why
        b = f(
            x.item()
        )
        c = x.item()
        """
    ) == [5, 6, 7]


def test_compound_statement_is_covered_in_its_header_alone() -> None:
    source = """\
        {0}
        if (
            x.item() > 0
        ):{1}
            y.item()
        """
    assert covered(source.format("# capturelint: ignore[CG101]", "")) == [2, 3, 4]
    assert covered(source.format("", "  # capturelint: ignore[CG101]")) == [2, 3, 4]


def test_def_is_covered_whole() -> None:
    source = """\
        a = 1
        {0}
        @decorated
        @twice(
            1
        )
        async def f(
            x,
        ):{1}
            if x:
                x.item()

            def g():
                x.item()

            return x
            # the end
        b = x.item()
        """
    assert covered(source.format("# capturelint: ignore[CG101]", "")) == list(range(3, 17))
    assert covered(source.format("", "  # capturelint: ignore[CG101]")) == list(range(7, 17))


def test_def_on_one_line() -> None:
    assert covered("def f(x): return x.item()  # capturelint: ignore[CG101]\na = x.item()\n") == [1]


def test_comment_on_a_decorator_covers_the_decorator() -> None:
    assert covered("@wrap(x)  # capturelint: ignore[CG101]\ndef f(x):\n    x.item()\n") == [1]


def test_class_is_covered_whole() -> None:
    source = "{0}@wrap\nclass A:{1}\n    b = x.item()\n\n    def f(x):\n        x.item()\na = x.item()\n"
    assert covered(source.format("# capturelint: ignore[CG101]\n", "")) == [2, 3, 4, 5, 6, 7]
    assert covered(source.format("", "  # capturelint: ignore[CG101]")) == [2, 3, 4, 5, 6]


def test_comment_within_a_body_is_about_the_next_statement_there() -> None:
    assert covered("def f(x):\n    # capturelint: ignore[CG101]\n    x.item()\n    x.item()\n") == [3]


def test_file_ignore() -> None:
    assert covered("a = 1\n# capturelint: file-ignore[CG101] generated\nb = 2\n") == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "selector", ["CG101", "CG1", "CG", "host-scalar-read", "CG999, CG101", "CG999 CG101", " CG101 "]
)
def test_selectors(selector: str) -> None:
    assert covered(f"a = x.item()  # capturelint: ignore[{selector}]\n") == [1]


@pytest.mark.parametrize("selector", ["CG102", "CG1010", "cg101", "host-scalar", "CG2", "C"])
def test_other_selectors(selector: str) -> None:
    assert covered(f"a = x.item()  # capturelint: ignore[{selector}]\n") == []


def test_strings_are_no_comments() -> None:
    assert (
        covered('a = "# capturelint: ignore[CG101]", x.item()\nb = """\n# capturelint: file-ignore[CG101]\n"""\n') == []
    )


def test_comment_after_a_multiline_string_is_trailing() -> None:
    found = parse_suppressions('a = """\ntext"""  # noqa: CG101\n')
    assert found.match("CG101", "host-scalar-read", 1) is not None


def test_entry() -> None:
    (entry,) = parse_suppressions("x.item()  # type: ignore  # capturelint: ignore[CG101] - read once # more\n").entries
    assert (entry.kind, entry.codes, entry.reason) == ("ignore", ("CG101",), "read once")
    text = "# capturelint: ignore[CG101] - read once"
    assert entry.span == Span(1, 27, 1, 27 + len(text))


def test_no_reason() -> None:
    (entry,) = parse_suppressions("x.item()  # capturelint:ignore[CG101]\n").entries
    assert entry.reason is None


def test_two_directives_in_one_comment() -> None:
    found = parse_suppressions("x.item()  # capturelint: ignore[CG101] a # capturelint: ignore[CG102] b\n")
    assert [(entry.codes, entry.reason) for entry in found.entries] == [(("CG101",), "a"), (("CG102",), "b")]


def test_unused_by_selector() -> None:
    found = parse_suppressions("x.item()  # capturelint: ignore[CG101, CG102, CG1]\ny  # capturelint: ignore[CG201]\n")
    assert found.match("CG101", "host-scalar-read", 1) is found.entries[0]
    assert [entry.unused_codes for entry in found.unused()] == [("CG102",), ("CG201",)]


def test_the_narrowest_entry_is_used_first() -> None:
    found = parse_suppressions(
        "# capturelint: file-ignore[CG101]\n"
        "def f(x):  # capturelint: ignore[CG101]\n"
        "    x.item()  # capturelint: ignore[CG101]\n"
    )
    for line, index in ((3, 2), (2, 1), (1, 0)):
        assert found.match("CG101", "host-scalar-read", line) is found.entries[index]
    assert found.unused() == []


@pytest.mark.parametrize(
    ("comment", "lines"),
    [
        ("# noqa: CG101", [1]),
        ("# noqa:F401,CG101", [1]),
        ("# NOQA: E501 CG1 why", [1]),
        ("# noqa", []),
        ("# noqa: F401", []),
        ("# noqa: CG102", []),
    ],
)
def test_noqa(comment: str, lines: list[int]) -> None:
    source = f"CG = x.item()  {comment}\n"
    found = parse_suppressions(source)
    assert [line for line in (1, 2) if found.match("CG101", "host-scalar-read", line)] == lines
    assert [entry.unused_codes for entry in found.unused()] == ([("CG102",)] if "CG102" in comment else [])


def test_noqa_on_a_line_of_its_own_is_nothing() -> None:
    assert covered("# noqa: CG101\nx.item()\n") == []


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# capturelint: ignore", "name the rules that it is about: `ignore[CG101]`"),
        ("# capturelint: ignore[]", "name the rules that it is about: `ignore[CG101]`"),
        ("# capturelint: ignore[ , ]", "name the rules that it is about: `ignore[CG101]`"),
        ("# capturelint: ignore[CG101", "name the rules that it is about: `ignore[CG101]`"),
        ("# capturelint: ignore CG101", "name the rules that it is about: `ignore[CG101]`"),
        ("# capturelint: file-ignore", "name the rules that it is about: `file-ignore[CG101]`"),
        ("# capturelint: ignroe[CG201]", "`ignroe` is no directive; write `# capturelint: ignore[CG201]`"),
        ("# capturelint: fileignore[CG1]", "`fileignore` is no directive; write `# capturelint: file-ignore[CG1]`"),
        ("# capturelint: file ignore[CG1]", "`file` is no directive; write `# capturelint: ignore[CG1]`"),
        ("# capturelint: regoin", "`regoin` is no directive; write `# capturelint: region`"),
        ("# capturelint: Ignore[CG1]", "`Ignore` is no directive; write `# capturelint: ignore[CG1]`"),
        ("# capturelint: disable=CG101", "`disable` is no directive; write `# capturelint: ignore[CG101]`"),
        ("# capturelint: skip[CG102]", "`skip` is no directive; write `# capturelint: ignore[CG102]`"),
        ("# Capturelint: Ignore[CG1]", "this comment is not read; write `# capturelint: ignore[CG1]`"),
        ("# CAPTURELINT: REGION", "this comment is not read; write `# capturelint: region`"),
        ("# capturelint ignore[CG1]", "this comment is not read; write `# capturelint: ignore[CG1]`"),
        ("# capturelint : region", "this comment is not read; write `# capturelint: region`"),
        ("# capturelint region", "this comment is not read; write `# capturelint: region`"),
        (
            "# capturelint: region, ignore[CG101]",
            "what follows `region` is not read; write `# capturelint: region  # capturelint: ignore[CG101]`",
        ),
        (
            "# capturelint: region ignore[CG101] why",
            "what follows `region` is not read; write `# capturelint: region  # capturelint: ignore[CG101]`",
        ),
    ],
)
def test_malformed(comment: str, message: str) -> None:
    found = parse_suppressions(f"a = 1  {comment}\n")
    assert found.entries == ()
    (malformed,) = found.malformed
    assert malformed.message == message
    assert malformed.span == Span(1, 8, 1, 8 + len(comment))


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            ", region",
            "what follows `ignore[CG101]` is not read; write `# capturelint: ignore[CG101]  # capturelint: region`",
        ),
        (
            "; file-ignore[CG2]",
            "what follows `ignore[CG101]` is not read;"
            " write `# capturelint: ignore[CG101]  # capturelint: file-ignore[CG2]`",
        ),
        ("[CG102]", "a second list is not read; name all rules in one: `ignore[CG101, CG102]`"),
    ],
)
def test_what_is_read_in_part_still_counts(rest: str, message: str) -> None:
    found = parse_suppressions(f"a = x.item()  # capturelint: ignore[CG101]{rest}\n")
    assert [malformed.message for malformed in found.malformed] == [message]
    assert found.match("CG101", "host-scalar-read", 1) is not None


@pytest.mark.parametrize(
    "comment",
    [
        "# capturelint: region",
        "# capturelint:region of the decoder",
        "# capturelint: region  # capturelint: ignore[CG101] why",
        "# capturelint: ignore[CG101] region and ignore are words too",
        "# capturelint: ignore[CG101] [TICKET-7] read once",
        "# capturelint: see the notes",
        "# Capturelint: this function is captured",
        "# capturelint regions are listed there",
        "# capturelint ignores this line",
        "# capturelint",
        "# from capturelint import capture_region",
    ],
)
def test_not_malformed(comment: str) -> None:
    assert parse_suppressions(f"a = 1  {comment}\n").malformed == ()


def test_a_directive_after_a_region_is_read_in_a_comment_of_its_own() -> None:
    assert covered("def f(x):  # capturelint: region  # capturelint: ignore[CG101]\n    x.item()\n") == [1, 2]


def test_comment_at_the_end_covers_nothing() -> None:
    source = "x.item()\n# capturelint: ignore[CG101]\n"
    assert covered(source) == [2]  # its own line, where no finding can be
    assert len(parse_suppressions(source).unused()) == 1


@pytest.mark.parametrize("tail", ["b = (", "  b = 1\n c = 2\n", 'b = """', "b = '", "b = $\n", "\tb\n        c\n"])
def test_what_cannot_be_tokenized_does_not_raise(tail: str) -> None:
    parse_suppressions("if a:  # capturelint: ignore[CG101]\n" + tail)
