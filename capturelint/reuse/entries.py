"""Results of earlier checks, taken over where everything that they rest on is as it was.

Two kinds of entries. One holds a result under a digest of everything: the tool and its rules, the options, the list of
files, and each file's content. The other, under the same digest without the contents, names the last result of such
runs. When files were edited since, that one still holds if nothing of them was edited that was looked at (``pieces``),
and each replies as before to every question that was asked about all files. Contents count, never times: each file is
read and hashed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capturelint.cache.codec import decode_result, encode_result
from capturelint.cache.digests import content_digest, digest, tool_digest
from capturelint.cache.store import Store
from capturelint.errors import SourceError
from capturelint.model import CheckResult
from capturelint.project.parsing import parse_source
from capturelint.project.questions import (
    SOME,
    STORE,
    Question,
    Reply,
    mentions_word,
    replies_nothing,
    reply,
    words_of,
)
from capturelint.project.search import MOST_STORING
from capturelint.reuse.pieces import Lines, Pieces, moved, pieces_of
from capturelint.reuse.places import files_of_findings, lines_of_regions, with_lines_moved
from capturelint.source.decoding import decode

if TYPE_CHECKING:
    from capturelint.check import CheckOptions
    from capturelint.project.looked import Looked
    from capturelint.project.project import Project
    from capturelint.source.files import SourceFile

#: counts up when the entries' form changes
_FORM = "3"
#: options that change nothing about what is found: contents count as those of files do, and a baseline comes later;
#: paths count, however they are written
_WITHOUT_SAY = frozenset(("jobs", "contents", "baseline", "explains", "cache", "paths"))
#: stands for the content of a file that cannot be read; no digest is as short
_UNREADABLE = b""
#: files whose text is their content
_PLAIN = (".py", ".pyi")
#: faults of the tool's own are no results
_OWN_FAULT = "internal error"


@dataclass(frozen=True, slots=True)
class _Rests:
    """What a result rests on, files by their place in the project's list.

    ``contents``: the digest of each. ``wholly``: files of which anything may have counted. ``partly``: files of which
    some pieces count. ``syntax``: files that were only parsed, and whether that went well. ``replies``: each question
    about all files, and who replied what.
    """

    contents: list[bytes]
    wholly: frozenset[int]
    partly: dict[int, Pieces]
    syntax: dict[int, bool]
    replies: list[tuple[Question, dict[int, Reply]]]


class Reuse:
    """The entries of one run. Made before anything is analysed; reads every file of the project."""

    def __init__(self, store: Store, options: CheckOptions, chosen: Sequence[SourceFile], project: Project) -> None:
        self._store = store
        self._project = project
        self._contents = [_digest_of(project, file) for file in project.files]
        self._run = digest((_FORM, tool_digest(), *_asked(options), str(len(chosen)), *_listed(project.files)))
        self._exact = digest((self._run, *self._contents))

    def find(self) -> CheckResult | None:
        """The result of an earlier run that holds for this one."""
        entry = _parsed(self._store.get(self._exact))
        last = self._store.get(self._run)
        if entry is not None:
            if last != self._exact.encode():  # the next edit is one of what is here now
                self._store.put(self._run, self._exact.encode())
            return _result(entry)
        entry = _parsed(self._store.get(last.decode("ascii", "replace"))) if last is not None else None
        if entry is None:
            return None
        try:
            rests = _rests(entry)
            lines = self._lines(rests)
        except (KeyError, TypeError, ValueError, IndexError):
            return None
        result = _result(entry) if lines is not None else None
        return self._moved(result, lines) if result is not None and lines else result

    def keep(self, result: CheckResult) -> None:
        """Keeps what was found, with what it rests on."""
        if any(each.message.startswith(_OWN_FAULT) for each in result.diagnostics):
            return
        entry = {"result": encode_result(result), "rests": self._rests_on(result)}
        self._store.put(self._exact, json.dumps(entry, separators=(",", ":")).encode())
        self._store.put(self._run, self._exact.encode())

    def _rests_on(self, result: CheckResult) -> dict[str, Any]:
        project = self._project
        places = {file.path: place for place, file in enumerate(project.files)}
        by_identity = {id(file): place for place, file in enumerate(project.files)}
        wholly = set(project.wholly())
        partly: list[list[Any]] = []
        lines: dict[str, set[int]] = {}
        for display, line in lines_of_regions(result):
            lines.setdefault(display, set()).add(line)
        spoken_of = files_of_findings(result)
        for path, looked in project.looked().items():
            place = places[path]
            pieces = None if path in wholly else self._pieces(place, looked, lines, spoken_of)
            if pieces is None:
                wholly.add(path)
            else:
                partly.append([place, pieces.as_plain()])
        return {
            "contents": [each.hex() for each in self._contents],
            "wholly": sorted(places[path] for path in wholly),
            "partly": partly,
            "syntax": [[places[path], right] for path, right in project.syntax.items()],
            "replies": [
                [question, [[by_identity[file], said] for file, said in said_by.items()]]
                for question, said_by in project.search.asked()
            ],
        }

    def _pieces(
        self, place: int, looked: Looked, lines: dict[str, set[int]], spoken_of: frozenset[str]
    ) -> Pieces | None:
        file = self._project.files[place]
        if file.display in spoken_of or file.path.name in spoken_of or file.path.suffix not in _PLAIN:
            return None
        source = self._source(file)
        if source is None:
            return None
        return pieces_of(source, looked, lines.get(file.display, ()), self._project.bodies_in(file.path))

    def _lines(self, rests: _Rests) -> dict[int, Lines] | None:
        """Where lines are now in files of which no piece that counts was edited; None if anything was that does."""
        found: dict[int, Lines] = {}
        for place, (old, new) in enumerate(zip(rests.contents, self._contents, strict=True)):
            if old == new:
                continue
            if _UNREADABLE in (old, new) or place in rests.wholly or not self._as_before(place, rests):
                return None
            if place in rests.partly:
                lines = self._lines_of(place, rests.partly[place])
                if lines is None:
                    return None
                found[place] = lines
        return found

    def _lines_of(self, place: int, pieces: Pieces) -> Lines | None:
        file = self._project.files[place]
        source = self._source(file)
        return moved(pieces, source, lambda name: self._mentions(name, file)) if source is not None else None

    def _mentions(self, name: str, but: SourceFile) -> bool:
        """Whether an identifier stands in another file than one."""
        project = self._project
        return any(mentions_word(project.bytes_of(file), name) for file in project.files if file is not but)

    def _source(self, file: SourceFile) -> str | None:
        try:
            return decode(self._project.bytes_of(file), file.display)
        except SourceError:
            return None

    def _moved(self, result: CheckResult, lines: dict[int, Lines]) -> CheckResult:
        known = {self._project.files[place].display: moved_to for place, moved_to in lines.items()}

        def move(path: str, line: int) -> int:
            return known[path][line] if path in known else line

        return with_lines_moved(result, move)

    def _as_before(self, place: int, rests: _Rests) -> bool:
        file = self._project.files[place]
        data = self._project.bytes_of(file)
        words = words_of(data)
        for question, said_by in rests.replies:
            if _was_not_asked(question, said_by, place):
                continue
            now = None if replies_nothing(question, words) else reply(question, data) or None
            if now != said_by.get(place):
                return False
        # what is said of a file that cannot be parsed depends on where and why
        return place not in rests.syntax or (rests.syntax[place] and _parses(file, data))


def _was_not_asked(question: Question, said_by: dict[int, Reply], place: int) -> bool:
    """Whether enough files had replied before this one's turn, so that what it says does not matter."""
    if question[0] == SOME:
        return bool(said_by) and place not in said_by
    return question[0] == STORE and len(said_by) > MOST_STORING and place > max(said_by)


def _parses(file: SourceFile, data: bytes) -> bool:
    try:
        parse_source(file, data)
    except SourceError:
        return False
    return True


def _digest_of(project: Project, file: SourceFile) -> bytes:
    data = project.bytes_of(file)
    return content_digest(data) if project.is_readable(file) else _UNREADABLE


def _listed(files: Iterable[SourceFile]) -> Iterator[str]:
    for file in files:
        yield from (str(file.path), file.display, file.problem or "")


def _asked(options: CheckOptions) -> Iterator[str | bytes]:
    """The options, but for those that are known to have no say in what is found: a new one has some at first."""
    yield from (str(Path.cwd()), str(options.root), *(str(path.absolute()) for path in options.paths))
    for each in fields(options):
        if each.name not in _WITHOUT_SAY:
            yield from (each.name, repr(getattr(options, each.name)))
    for name in options.config.presets:
        path = options.root / name
        if path.is_file():
            with contextlib.suppress(OSError):  # then the run itself fails
                yield path.read_bytes()


def _parsed(data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        entry = json.loads(data)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _result(entry: dict[str, Any]) -> CheckResult | None:
    try:
        return decode_result(entry["result"])
    except (KeyError, TypeError, ValueError):
        return None


def _rests(entry: dict[str, Any]) -> _Rests:
    rests = entry["rests"]
    return _Rests(
        contents=[bytes.fromhex(each) for each in rests["contents"]],
        wholly=frozenset(rests["wholly"]),
        partly={place: Pieces(*pieces) for place, pieces in rests["partly"]},
        syntax=dict(rests["syntax"]),
        replies=[(tuple(question), dict(said_by)) for question, said_by in rests["replies"]],
    )
