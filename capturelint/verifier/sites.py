"""Where in the user's code an operator was called: the innermost frames that belong to the project."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

_LIBRARY_PARTS = ("/site-packages/", "/dist-packages/", "/lib/python")
_OWN = str(Path(__file__).resolve().parents[1])
_REGION = str(Path(__file__).resolve().parent / "region.py")
_MOST_FRAMES = 12
#: inside of what these call, user frames are compiled code: the call is the line to name
_COMPILERS = ("/torch/_dynamo/", "/torch/_inductor/")


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the user's code."""

    path: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{Path(self.path).name}:{self.line}"


@dataclass
class UserCode:
    """Tells the project's files from libraries and from this package. ``roots`` are absolute directories."""

    roots: tuple[str, ...]
    _known: dict[str, bool] = field(default_factory=dict)

    def owns(self, filename: str) -> bool:
        known = self._known.get(filename)
        if known is None:
            known = self._known[filename] = self._look(filename)
        return known

    def _look(self, filename: str) -> bool:
        if filename.startswith("<"):
            return False
        path = str(Path(filename).resolve())
        inside = [root for root in self.roots if path.startswith(root.rstrip("/") + "/")]
        if not inside or path.startswith(_OWN):
            return False
        below = path[len(max(inside, key=len)) :]
        return not any(part in below for part in _LIBRARY_PARTS)

    def stack(self) -> tuple[Site, ...]:
        """The user's frames that are running now, innermost first.

        Backward runs on threads of autograd's own, while the thread that called ``backward()`` waits: its frames are
        the ones to name there.
        """
        sites = tuple(self._sites(sys._getframe(1)))
        main = threading.main_thread().ident
        if sites or threading.get_ident() == main or main is None:
            return sites
        return tuple(self._sites(sys._current_frames().get(main)))

    def _sites(self, frame: FrameType | None) -> Iterator[Site]:
        found: list[Site] = []
        while frame is not None and len(found) < _MOST_FRAMES:
            code = frame.f_code
            if self.owns(code.co_filename):
                found.append(Site(code.co_filename, frame.f_lineno, code.co_name))
            elif _compiles(code.co_filename):
                found.clear()
            elif code.co_name == "call" and code.co_filename == _REGION:
                # what runs the region is not part of it
                break
            frame = frame.f_back
        return iter(found)

    def blame(self, error: BaseException) -> tuple[Site, ...]:
        """The user's frames of the first error in a chain, innermost first.

        What a failed capture raises last hides the cause, which is the ``__context__`` of the last error.
        """
        chain = [error]
        while chain[-1].__context__ is not None and chain[-1].__context__ not in chain:
            chain.append(chain[-1].__context__)
        for link in reversed(chain):
            frames = traceback.extract_tb(link.__traceback__)
            compiled = next((index for index, frame in enumerate(frames) if _compiles(frame.filename)), len(frames))
            sites = [
                Site(frame.filename, frame.lineno or 0, frame.name)
                for frame in frames[:compiled]
                if self.owns(frame.filename)
            ]
            if sites:
                return tuple(reversed(sites))
        return ()


def _compiles(filename: str) -> bool:
    return any(part in filename for part in _COMPILERS)


def first_error(error: BaseException) -> BaseException:
    """The error that started a chain."""
    seen = [error]
    while seen[-1].__context__ is not None and seen[-1].__context__ not in seen:
        seen.append(seen[-1].__context__)
    return seen[-1]


def one_line(error: BaseException) -> str:
    """The first line of an error's message, with its type where there is no message."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
