from __future__ import annotations

import ast
import codecs

import pytest

from capturelint.errors import SourceError
from capturelint.source.decoding import decode


def lines_by_ast(text: str) -> list[int]:
    return [statement.lineno for statement in ast.parse(text).body]


def test_plain_utf8() -> None:
    assert decode("name = 'größe'\n".encode(), "a.py") == "name = 'größe'\n"


def test_empty() -> None:
    assert decode(b"", "a.py") == ""


def test_byte_order_mark_goes() -> None:
    assert decode(codecs.BOM_UTF8 + b"a = 1\n", "a.py") == "a = 1\n"


@pytest.mark.parametrize(
    "head",
    [
        b"# -*- coding: latin-1 -*-\n",
        b"#!/usr/bin/env python\n# vim: set fileencoding=latin-1 :\n",
        b"\n# coding=latin-1\n",
        b"\x0c# coding: latin-1\r\n",
    ],
)
def test_coding_line(head: bytes) -> None:
    assert decode(head + b"name = '\xe9'\n", "a.py").endswith("name = 'é'\n")


def test_coding_line_with_bytes_of_its_own_encoding() -> None:
    assert decode(b"# coding: latin-1 \xe9\n", "a.py") == "# coding: latin-1 é\n"


def test_coding_line_counts_only_in_the_first_two_lines_and_before_code() -> None:
    assert decode("a = 1\n# coding: latin-1\nb = 'é'\n".encode(), "a.py").endswith("b = 'é'\n")
    assert decode("\n\n# coding: latin-1\nb = 'é'\n".encode(), "a.py").endswith("b = 'é'\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_numbers_are_those_of_ast(end: str) -> None:
    source = end.join(["a = 1", "\x0cb = 2", "c = '\x0b\u2028'", "d = 4", ""])
    text = decode(source.encode(), "a.py")
    assert "\r" not in text
    assert lines_by_ast(text) == [1, 2, 3, 4]
    assert text.split("\n")[3] == "d = 4"


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"a = 1\r\nb = '\xff'\r\n", 2, "not UTF-8"),
        (b"a\rb\rc = '\xff'", 3, "not UTF-8"),
        (b"# coding: klingon\n", 1, "unknown encoding: klingon"),
        (b"#!/bin/sh\n# coding: klingon\n", 2, "unknown encoding: klingon"),
        (b"# coding: ascii\nname = '\xc3\xa9'\n", 2, "not ascii"),
        (b"# coding: rot13\na = 1\n", 1, "rot-13 is not an encoding"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, "byte order mark"),
        (b"a = 1\nb = '\0'\n", 2, "NUL byte"),
        ("a = 1\n".encode("utf-16"), 1, "UTF-16"),
        (b"# coding: unicode_escape\nname = '\\ud800'\n", 1, "not an encoding"),
    ],
)
def test_errors(data: bytes, line: int, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        decode(data, "pkg/a.py")
    assert (caught.value.path, caught.value.line) == ("pkg/a.py", line)
    assert str(caught.value).startswith("cannot be read: ")
    assert "\n" not in str(caught.value)
