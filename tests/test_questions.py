"""What one file's bytes reply to the questions that are asked about all files."""

from __future__ import annotations

import pytest

from capturelint.project.questions import DERIVE, STORE, TEXT, WORD, Reply, reply


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ((WORD, "graph"), "self.graph", True),
        ((WORD, "graph"), "graphs = my_graph", False),
        ((TEXT, "step", "step("), "runner.step(x)", True),
        ((TEXT, "step", "step("), "restep(x)", False),
        ((STORE, "limit"), "self.limit = 3", True),
        ((STORE, "limit"), "self.limit == 3", False),
        ((STORE, "limit"), "self.limits = 3; limit = self.limit", False),
        ((STORE, "limit"), "if self.limit > 3 and limits: self.limit //= 2", True),
        ((STORE, "limit"), "a.limit[key] = 3", True),
        ((DERIVE, "Base"), "class A(mod.Base[int], B): pass\nclass C(Base): pass", ["A", "C"]),
        ((DERIVE, "Base"), "# class A(Base)", []),
    ],
)
def test_replies(question: tuple[str, ...], text: str, expected: Reply) -> None:
    assert reply(question, text.encode()) == expected
