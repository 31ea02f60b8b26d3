"""Expected errors, as a typed tree. The command line turns each into one line and an exit status, in one place.

CaptureLintError
├── UsageError          a wrong option, an unknown rule, a path that does not exist      exit 2
├── ConfigError         the configuration is wrong; names the file and the key           exit 2
├── RulebookError       a file under rules/ (or a preset of the user's) is wrong         exit 2
└── SourceError         one file cannot be read, decoded or parsed                       a diagnostic, exit 1
"""

from __future__ import annotations


class CaptureLintError(Exception):
    """Base class of everything that capturelint raises on purpose."""


class UsageError(CaptureLintError):
    """The run was asked for something impossible."""


class ConfigError(CaptureLintError):
    """A configuration file is wrong.

    ``source`` is the file, ``key`` the dotted key within it (empty when the file as a whole is wrong).
    """

    def __init__(self, source: str, key: str, message: str) -> None:
        super().__init__(f"{source}: {key + ': ' if key else ''}{message}")
        self.source = source
        self.key = key


class RulebookError(CaptureLintError):
    """A rule, operator table or preset file is wrong; the message names the file and the key."""


class SourceError(CaptureLintError):
    """One source file cannot be used. ``line`` is 1 where no better line is known."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
