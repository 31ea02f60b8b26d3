"""The keys of the configuration, in the order in which the documentation shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capturelint.config.model import Config, Override, Vocabulary
from capturelint.config.values import (
    DOTTED_NAMES,
    FLAGS_BY_DOTTED_NAME,
    REGION_PATTERNS,
    RULE_URL,
    VERSION,
    Choice,
    FileName,
    Flag,
    Key,
    Kind,
    Mapped,
    Names,
    Number,
    Schema,
    Table,
    Tables,
    Where,
)
from capturelint.model import Confidence, Hardware, Severity

_SELECTED = Names(empty="should not be empty; without this key all rules are checked")


@dataclass(frozen=True)
class _HarnessEntry(Kind):
    """How the verifier calls a region; what that is, the verifier knows."""

    def read(self, where: Where, value: Any) -> Any:
        from capturelint.verifier.harness import read_entry

        return read_entry(value, where.source, ".".join(where.path))

    def schema(self) -> Schema:
        from capturelint.verifier.harness import entry_schema

        return entry_schema()


VOCABULARY = Table(
    Vocabulary,
    {
        "synchronizes": Key(DOTTED_NAMES, "Functions that make the CPU wait for the GPU.", []),
        "reads-device": Key(DOTTED_NAMES, "Functions that read a device value into a Python one.", []),
        "capture-safe": Key(DOTTED_NAMES, "Functions that are known to capture fine.", []),
        "allows-sync": Key(DOTTED_NAMES, "Context managers whose body is meant to synchronize.", []),
        "starts-capture": Key(DOTTED_NAMES, "Context managers and wrapper classes that record.", []),
        "predicates": Key(FLAGS_BY_DOTTED_NAME, "Functions, and what they return during capture.", {}),
    },
)

OVERRIDE = Table(
    Override,
    {
        "paths": Key(
            Names(empty="should not be empty"),
            "The files that this is about: gitignore patterns relative to the project's top directory.",
        ),
        "select": Key(_SELECTED, "The rules to run there, in the place of those that run elsewhere."),
        "ignore": Key(Names(), "Rules to leave out there, beside those left out everywhere."),
        "min-confidence": Key(Choice(Confidence), "Report findings there that are at least this sure."),
        "fail-on": Key(Choice(Severity), "Fail for findings there that are at least this severe."),
    },
    required=("paths",),
    bare="changes nothing: it needs select, ignore, min-confidence or fail-on",
)

CONFIG = Table(
    Config,
    {
        "select": Key(_SELECTED, "The rules to run: codes, prefixes, names; all when left out."),
        "ignore": Key(Names(), "Rules to leave out.", []),
        "exclude": Key(Names(), "Files and directories to leave out: gitignore patterns.", []),
        "regions": Key(REGION_PATTERNS, "Functions that are captured, such as pkg.module:Class.method.", []),
        "presets": Key(Names(), "Presets to switch on: by name, or files of your own.", []),
        "min-confidence": Key(
            Choice(Confidence), "Report findings that are at least this sure.", Confidence.LIKELY.value
        ),
        "fail-on": Key(Choice(Severity), "Fail for findings that are at least this severe.", Severity.ERROR.value),
        "require-regions": Key(Flag(), "Fail when no captured region is found.", False),
        "baseline": Key(FileName(), "The baseline: findings in it do not count. From this file's own directory."),
        "torch-version": Key(VERSION, "The version that the project runs on; leaves out what does not hold there."),
        "hardware": Key(
            Choice(Hardware), "What captured code runs on; code for other hardware isn't entered.", Hardware.CUDA.value
        ),
        "max-graphs": Key(Number(), "How many graphs a loop may capture before CG805 speaks of it.", 256),
        "cache-dir": Key(
            FileName(), "Where results are kept, from the project's top; the user's cache folder when left out."
        ),
        "rule-url": Key(RULE_URL, "The address of a rule's page, for links in reports, with {code} or {name} in it."),
        "per-file-ignores": Key(Mapped(Names()), "Rules to leave out, by gitignore pattern.", {}),
        "overrides": Key(Tables(OVERRIDE), "Settings for some of the files; of two that match, the later counts.", []),
        "vocabulary": Key(VOCABULARY, "What your own functions do to host and device.", {}),
        "harness": Key(Tables(_HarnessEntry()), "How the verifier calls regions.", []),
    },
)
