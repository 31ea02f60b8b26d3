"""Reverse questions over all files, answered from bytes: who mentions a name, who derives from a class.

Every question that was asked is kept with its answer: "no other file matches" is part of what a result rests on.

The first few questions are substring tests. A project that asks more gets an index of words, made in one pass: a
substring test of 68 MB takes 40 ms and the whole index 1.4 s, and production trees ask some thousand questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from capturelint.project.questions import (
    ANY_CASE,
    BYTES,
    DERIVE,
    SOME,
    STORE,
    TEXT,
    WORD,
    Question,
    Reply,
    binds,
    derivations,
    mentions_word,
    words_of,
)
from capturelint.source.files import SourceFile
from capturelint.source.prefilter import mentions_any

Needles = tuple[bytes, ...]

_SCANS_BEFORE_INDEX = 24
#: an attribute that is bound in more files than these says too little, whoever asks
MOST_STORING = 64


@dataclass(eq=False, repr=False, slots=True)
class NameSearch:
    """``content`` gives a file's bytes; files and answers are in the order of ``files``."""

    files: Sequence[SourceFile]
    content: Callable[[SourceFile], bytes]
    _answers: dict[str, list[SourceFile]] = field(default_factory=dict)
    _texts: dict[tuple[str, str], list[SourceFile]] = field(default_factory=dict)
    _stores: dict[str, list[SourceFile]] = field(default_factory=dict)
    _held: dict[Needles, list[SourceFile]] = field(default_factory=dict)
    _in_any_case: dict[Needles, list[SourceFile]] = field(default_factory=dict)
    _witnesses: dict[Needles, SourceFile | None] = field(default_factory=dict)
    _bases: set[str] = field(default_factory=set)
    _words: dict[bytes, list[int]] | None = None
    _derived: dict[str, list[tuple[SourceFile, str]]] | None = None
    _scans: int = 0
    _elsewhere: dict[Question, dict[int, Reply]] = field(default_factory=dict)

    def mentioning(self, name: str) -> list[SourceFile]:
        """Files in which the identifier ``name`` occurs."""
        known = self._answers.get(name)
        if known is None:
            known = self._answers[name] = self._find(name)
        return known

    def calling(self, name: str) -> list[SourceFile]:
        """Files that hold the text ``name(``."""
        return self.containing(name, name + "(")

    def containing(self, name: str, text: str) -> list[SourceFile]:
        """Files that hold ``text``, in which the identifier ``name`` occurs."""
        known = self._texts.get((name, text))
        if known is None:
            needle = text.encode()
            known = self._texts[name, text] = [file for file in self.mentioning(name) if needle in self.content(file)]
        return known

    def holding(self, needles: Needles) -> list[SourceFile]:
        """Files that hold one of some bytes."""
        known = self._held.get(needles)
        if known is None:
            known = self._held[needles] = [file for file in self.files if mentions_any(self.content(file), needles)]
        return known

    def holding_in_any_case(self, needles: Needles) -> list[SourceFile]:
        """Files that hold one of some lower-case bytes, however they are written."""
        known = self._in_any_case.get(needles)
        if known is None:
            found = [file for file in self.files if mentions_any(self.content(file).lower(), needles)]
            known = self._in_any_case[needles] = found
        return known

    def any_holds(self, needles: Needles) -> bool:
        """Whether some file holds one of some bytes: the first one that does is enough."""
        if needles not in self._witnesses:
            holding = (file for file in self.files if mentions_any(self.content(file), needles))
            self._witnesses[needles] = next(holding, None)
        return self._witnesses[needles] is not None

    def storing(self, attribute: str) -> list[SourceFile]:
        """Files that may bind ``something.attribute``, or an item of it; of very many only the first ones."""
        known = self._stores.get(attribute)
        if known is not None:
            return known
        storing = (file for file in self.mentioning(attribute) if binds(self.content(file), attribute))
        found = self._stores[attribute] = list(islice(storing, MOST_STORING + 1))
        return found

    def defining(self, name: str) -> list[SourceFile]:
        """Files that hold the text ``def name``."""
        return self.containing(name, "def " + name)

    def deriving(self, base: str) -> list[tuple[SourceFile, str]]:
        """Classes that write ``base`` (its last identifier) among their bases: file and class name."""
        if self._derived is None:
            self._derived = {}
            for file in self.files:
                for key, name in derivations(self.content(file)):
                    self._derived.setdefault(key, []).append((file, name))
        self._bases.add(base)
        return self._derived.get(base, [])

    def asked(self) -> Iterator[tuple[Question, dict[int, Reply]]]:
        """Every question so far, with the files that had something to reply, by the identity of each.

        Files beyond the first ones that ``storing`` gives were not asked; they are missing here.
        """
        plain = (
            *(((WORD, name), files) for name, files in self._answers.items()),
            *(((TEXT, *key), files) for key, files in self._texts.items()),
            *(((STORE, name), files) for name, files in self._stores.items()),
            *(((BYTES, *_text(key)), files) for key, files in self._held.items()),
            *(((ANY_CASE, *_text(key)), files) for key, files in self._in_any_case.items()),
            *(((SOME, *_text(key)), [file] if file else []) for key, file in self._witnesses.items()),
        )
        for question, files in plain:
            yield question, {id(file): True for file in files}
        for base in sorted(self._bases):
            names: dict[int, list[str]] = {}
            for file, name in (self._derived or {}).get(base, ()):
                names.setdefault(id(file), []).append(name)
            yield (DERIVE, base), dict(names)
        yield from self._elsewhere.items()

    def take_over(self, asked: Iterable[tuple[Question, dict[int, Reply]]]) -> None:
        """Counts questions that another process asked of the same files as asked here."""
        own = {question for question, _ in self.asked()}
        self._elsewhere.update((question, replies) for question, replies in asked if question not in own)

    def _find(self, name: str) -> list[SourceFile]:
        if self._words is None or not name.isascii():
            self._scans += 1
            if self._scans <= _SCANS_BEFORE_INDEX or not name.isascii():
                return [file for file in self.files if mentions_word(self.content(file), name)]
            self._words = self._index()
        return [self.files[index] for index in self._words.get(name.encode(), ())]

    def _index(self) -> dict[bytes, list[int]]:
        words: dict[bytes, list[int]] = {}
        for index, file in enumerate(self.files):
            for word in words_of(self.content(file)):
                known = words.get(word)
                if known is None:
                    words[word] = [index]
                else:
                    known.append(index)
        return words


def _text(needles: Needles) -> tuple[str, ...]:
    return tuple(needle.decode("latin-1") for needle in needles)
