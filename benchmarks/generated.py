"""What generated code is made of."""

from __future__ import annotations

from collections.abc import Iterator

#: names and texts of files
Files = Iterator[tuple[str, str]]

REGION = """\
import torch
{imports}

class Runner{name}:
    def __init__(self):
        self.static = torch.zeros(8, device="cuda")

    def capture(self, flag, other):
        self.graph = torch.cuda.CUDAGraph()
        x = self.static
        with torch.cuda.graph(self.graph):
{body}
"""


def region(body: str, imports: str = "", name: str = "") -> str:
    """A module with one region whose block is ``body``."""
    lines = "\n".join(f"            {line}" for line in body.splitlines())
    return REGION.format(imports=imports, name=name, body=lines)


def numbered(text: str, size: int, between: str = "\n") -> str:
    """``text`` once for each number, with the number for ``#`` and the one after it for ``$``."""
    return between.join(text.replace("#", str(i)).replace("$", str(i + 1)) for i in range(size))


def beside(text: str, body: str) -> Files:
    """A module with ``text``, and a region whose block is ``body``, which has it as ``lib``."""
    yield "lib.py", text
    yield "run.py", region(body, "import lib\nfrom lib import *\n")
