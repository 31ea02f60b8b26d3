"""The questions that are asked about all files at once, and what one file's bytes reply to each.

A result rests on the replies of all files, on those of the ones that have nothing to say too: a file that is edited
leaves a result as it was where it replies as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from capturelint.source.prefilter import mentions_any

#: what is asked, and the words that it is asked about
Question = tuple[str, ...]
#: whether a file is meant, or what it has to say; empty when it has nothing
Reply = bool | list[str]

WORD, TEXT, STORE, BYTES, ANY_CASE, SOME, DERIVE = "word", "text", "store", "bytes", "any case", "some", "derive"

#: found by its first word, as fast as a substring; whether that begins its line is looked at afterwards
_CLASS = re.compile(rb"class[ \t]+(\w+)[ \t]*\(([^()]*)\)")
CLASS_WORD = b"class"
#: what follows a target, or an item's
_BOUND = re.compile(rb"\s*(?:[,:)\]\[]|=(?!=)|[-+*/@|&^%]=|//=|\*\*=|<<=|>>=)")
#: what a word goes on with
_INSIDE = frozenset(bytes((each,)) for each in range(128) if chr(each).isalnum() or each == 95)
#: each byte that no ASCII identifier holds becomes a space: splitting then takes a third of a regex's time
_SPACED = bytes(each if chr(each).isascii() and (chr(each).isalnum() or each == 95) else 32 for each in range(256))
#: questions that a file without the word that they are about has nothing to reply to
_ABOUT_A_WORD = (WORD, TEXT, STORE)


def reply(question: Question, data: bytes) -> Reply:
    """What a file with these bytes replies."""
    return _REPLIES[question[0]](data, *question[1:])


def replies_nothing(question: Question, words: set[bytes]) -> bool:
    """Whether a file with these words replies nothing for sure, which takes a fraction of the time to tell."""
    return question[0] in _ABOUT_A_WORD and question[1].isascii() and question[1].encode() not in words


def words_of(data: bytes) -> set[bytes]:
    """The identifiers, numbers and keywords in a file's bytes."""
    return set(data.translate(_SPACED).split())


def mentions_word(data: bytes, name: str) -> bool:
    """Whether an identifier occurs; within a longer one it does not."""
    word = name.encode()
    at = data.find(word)
    while at >= 0:
        end = at + len(word)
        if data[at - 1 : at] not in _INSIDE and data[end : end + 1] not in _INSIDE:
            return True
        at = data.find(word, at + 1)
    return False


def mentions_text(data: bytes, name: str, text: str) -> bool:
    return text.encode() in data and mentions_word(data, name)


def stores(data: bytes, attribute: str) -> bool:
    """Whether the text may bind ``something.attribute``, or an item of it."""
    return mentions_word(data, attribute) and binds(data, attribute)


def binds(data: bytes, attribute: str) -> bool:
    """The same of a text that is known to mention the word: each ``.attribute`` is found as fast as a substring."""
    word = b"." + attribute.encode()
    at = data.find(word)
    while at >= 0:
        if _BOUND.match(data, at + len(word)) is not None:
            return True
        at = data.find(word, at + 1)
    return False


def holds(data: bytes, *needles: str) -> bool:
    return mentions_any(data, [needle.encode("latin-1") for needle in needles])


def derivations(data: bytes) -> Iterator[tuple[str, str]]:
    """Each base (its last identifier) that a class names, with the class."""
    if CLASS_WORD not in data:
        return
    for name, bases in _classes(data):
        for part in bases.split(b","):
            last = part.split(b"[")[0].strip().rpartition(b".")[2]
            if last and b"=" not in part:
                yield last.decode(errors="replace"), name.decode(errors="replace")


def _classes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The name and the bases of each class statement; prose about a class (of its own line or more) is passed over."""
    at = 0
    while (match := _CLASS.search(data, at)) is not None:
        start = match.start()
        begins = not data[data.rfind(b"\n", 0, start) + 1 : start].strip(b" \t")
        at = match.end() if begins else start + len(CLASS_WORD)
        if begins:
            yield match[1], match[2]


_REPLIES: dict[str, Callable[..., Reply]] = {
    WORD: mentions_word,
    TEXT: mentions_text,
    STORE: stores,
    BYTES: holds,
    ANY_CASE: lambda data, *needles: holds(data.lower(), *needles),
    SOME: holds,
    DERIVE: lambda data, base: [name for each, name in derivations(data) if each == base],
}
