"""What the configuration holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from capturelint.model import Confidence, Hardware, Severity

if TYPE_CHECKING:
    from capturelint.verifier.harness import Harness


@dataclass(frozen=True)
class Vocabulary:
    """What the project's own functions do to host and device, by dotted name.

    ``predicates`` maps a function to what it returns during capture.
    """

    synchronizes: tuple[str, ...] = ()
    reads_device: tuple[str, ...] = ()
    capture_safe: tuple[str, ...] = ()
    allows_sync: tuple[str, ...] = ()
    starts_capture: tuple[str, ...] = ()
    predicates: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Override:
    """Settings for some of the files. What is None, or empty, stays as it is elsewhere; ``ignore`` adds to the rest."""

    #: gitignore patterns relative to the project's root
    paths: tuple[str, ...]
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    min_confidence: Confidence | None = None
    fail_on: Severity | None = None


@dataclass(frozen=True)
class Config:
    """The keys of the configuration, with ``_`` for ``-``. ``source`` is the file it came from, as reports show it."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    #: ``pkg.mod:Class.method`` with ``*`` (within a name) and ``**`` (any dotted names)
    regions: tuple[str, ...] = ()
    presets: tuple[str, ...] = ()
    min_confidence: Confidence = Confidence.LIKELY
    fail_on: Severity = Severity.ERROR
    require_regions: bool = False
    #: the file of the baseline, from the directory of the configuration's own file
    baseline: str | None = None
    #: the version that the project runs on, such as ``2.11``; None for every supported one
    torch_version: str | None = None
    hardware: Hardware = Hardware.CUDA
    #: how many graphs one loop may capture before CG805 speaks of it
    max_graphs: int = 256
    #: where results are kept, relative to the project's root; None for the user's cache folder
    cache_dir: str | None = None
    #: a rule's page on the web, with ``{code}`` or ``{name}`` for the rule
    rule_url: str | None = None
    #: gitignore patterns relative to the project's root, and the selectors that they switch off
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: of two that match a file, the later one counts
    overrides: tuple[Override, ...] = ()
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    #: how the verifier calls regions
    harness: tuple[Harness, ...] = ()
    source: str | None = None
    #: what the user should know about where the configuration came from, one line each
    notes: tuple[str, ...] = ()
    #: ``source``, to be read again, and the table in it
    file: Path | None = field(default=None, compare=False)
    table: tuple[str, ...] = field(default=(), compare=False)
