"""Reverse questions over all files, answered from bytes: who mentions a name, who derives from a class.

The first few questions are substring tests. A project that asks more gets an index of words, made in one pass: a
substring test of 68 MB takes 40 ms and the whole index 1.4 s, and production trees ask some thousand questions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from capturelint.source.files import SourceFile

#: each byte that no ASCII identifier holds becomes a space: splitting then takes a third of a regex's time
_SPACED = bytes(each if chr(each).isascii() and (chr(each).isalnum() or each == 95) else 32 for each in range(256))
#: found by its first word, as fast as a substring; whether that begins its line is looked at afterwards
_CLASS = re.compile(rb"class[ \t]+(\w+)[ \t]*\(([^()]*)\)")
_SCANS_BEFORE_INDEX = 24
_CLASS_WORD = b"class"
#: an attribute that is bound in more files than these says too little, whoever asks
_MOST_STORING = 64


@dataclass(eq=False, repr=False, slots=True)
class NameSearch:
    """``content`` gives a file's bytes; files and answers are in the order of ``files``."""

    files: Sequence[SourceFile]
    content: Callable[[SourceFile], bytes]
    _answers: dict[str, list[SourceFile]] = field(default_factory=dict)
    _texts: dict[str, list[SourceFile]] = field(default_factory=dict)
    _stores: dict[str, list[SourceFile]] = field(default_factory=dict)
    _words: dict[bytes, list[int]] | None = None
    _derived: dict[str, list[tuple[SourceFile, str]]] | None = None
    _scans: int = 0

    def mentioning(self, name: str) -> list[SourceFile]:
        """Files in which the identifier ``name`` occurs."""
        known = self._answers.get(name)
        if known is None:
            known = self._answers[name] = self._find(name.encode())
        return known

    def calling(self, name: str) -> list[SourceFile]:
        """Files that hold the text ``name(``."""
        return self.containing(name, name + "(")

    def containing(self, name: str, text: str) -> list[SourceFile]:
        """Files that hold ``text``, in which the identifier ``name`` occurs."""
        known = self._texts.get(text)
        if known is None:
            needle = text.encode()
            known = self._texts[text] = [file for file in self.mentioning(name) if needle in self.content(file)]
        return known

    def storing(self, attribute: str) -> list[SourceFile]:
        """Files that may bind ``something.attribute``, or an item of it; of very many only the first ones."""
        known = self._stores.get(attribute)
        if known is not None:
            return known
        pattern = re.compile(
            rb"\." + re.escape(attribute.encode()) + rb"\s*(?:[,:)\]\[]|=(?!=)|[-+*/@|&^%]=|//=|\*\*=|<<=|>>=)"
        )
        storing = (file for file in self.mentioning(attribute) if pattern.search(self.content(file)))
        found = self._stores[attribute] = list(islice(storing, _MOST_STORING + 1))
        return found

    def defining(self, name: str) -> list[SourceFile]:
        """Files that hold the text ``def name``."""
        return self.containing(name, "def " + name)

    def deriving(self, base: str) -> list[tuple[SourceFile, str]]:
        """Classes that write ``base`` (its last identifier) among their bases: file and class name."""
        if self._derived is None:
            self._derived = {}
            for file in self.files:
                data = self.content(file)
                if _CLASS_WORD not in data:
                    continue
                for name, bases in _classes(data):
                    for part in bases.split(b","):
                        last = part.split(b"[")[0].strip().rpartition(b".")[2]
                        if last and b"=" not in part:
                            key = last.decode(errors="replace")
                            self._derived.setdefault(key, []).append((file, name.decode(errors="replace")))
        return self._derived.get(base, [])

    def _find(self, name: bytes) -> list[SourceFile]:
        if self._words is None:
            self._scans += 1
            if self._scans <= _SCANS_BEFORE_INDEX:
                return [file for file in self.files if name in self.content(file)]
            self._words = self._index()
        return [self.files[index] for index in self._words.get(name, ())]

    def _index(self) -> dict[bytes, list[int]]:
        words: dict[bytes, list[int]] = {}
        for index, file in enumerate(self.files):
            for word in set(self.content(file).translate(_SPACED).split()):
                known = words.get(word)
                if known is None:
                    words[word] = [index]
                else:
                    known.append(index)
        return words


def _classes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name and the bases of each class statement; prose about a class (of its own line or more) is passed over."""
    at = 0
    while (match := _CLASS.search(data, at)) is not None:
        start = match.start()
        begins = not data[data.rfind(b"\n", 0, start) + 1 : start].strip(b" \t")
        at = match.end() if begins else start + len(_CLASS_WORD)
        if begins:
            yield match[1], match[2]
