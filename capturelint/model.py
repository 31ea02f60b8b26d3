"""The ground floor: what a finding, a region and a report are. Imports nothing of ours and nothing heavy.

Lines and columns count from 1, columns in characters. Paths are relative to the working directory, with ``/``. In a
notebook ``cell`` is the cell, from 1, that the line counts in; else it is None.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace


class _Ordered(enum.Enum):
    """An enum whose members are ordered as written, weakest first. Millions of them are compared and hashed."""

    rank: int
    __hash__ = object.__hash__  # members are what they are: their names need not be hashed

    def __init__(self, *_: object) -> None:
        self.rank = len(type(self).__members__)

    def __ge__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.rank >= other.rank

    def __gt__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.rank > other.rank

    def __le__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.rank <= other.rank

    def __lt__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.rank < other.rank


class Severity(_Ordered):
    WARNING = "warning"
    ERROR = "error"


class Confidence(_Ordered):
    """How sure the static analysis is. ``POSSIBLE`` is hidden unless asked for."""

    POSSIBLE = "possible"
    LIKELY = "likely"
    CERTAIN = "certain"


class Hardware(enum.Enum):
    """What captured code runs on. Code for other hardware isn't entered where a preset tells it apart."""

    CUDA = "cuda"
    ROCM = "rocm"
    XPU = "xpu"
    NPU = "npu"
    HPU = "hpu"
    MUSA = "musa"
    TPU = "tpu"
    CPU = "cpu"


class Consequence(enum.Enum):
    """What the user of a captured graph sees when the hazard strikes."""

    CAPTURE_ERROR = "capture-error"
    STALE_REPLAY = "stale-replay"
    CORRUPTION = "corruption"
    COST = "cost"
    #: the tool's own findings (CG0xx): nothing happens to a graph
    NONE = "none"

    @property
    def severity(self) -> Severity:
        return Severity.WARNING if self in (Consequence.COST, Consequence.NONE) else Severity.ERROR


class VerdictStatus(enum.Enum):
    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    UNREACHED = "unreached"
    INCONCLUSIVE = "inconclusive"
    UNVERIFIED = "unverified"


class Applicability(enum.Enum):
    SAFE = "safe"
    UNSAFE = "unsafe"


def within(path: str, cell: int | None) -> str:
    """Where lines count, as people read it: in a file, or in a cell of a notebook."""
    return path if cell is None else f"{path}:cell {cell}"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A range in one file; the end column is that of the first character after it."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on the way from a region to a finding: where the call stands, and in which function."""

    path: str
    line: int
    function: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Related:
    path: str
    line: int
    message: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class RegionRef:
    """A region as one finding sees it: ``trace`` holds the calls from the region's body to the finding's function."""

    kind: str
    path: str
    line: int
    name: str
    trace: tuple[Frame, ...] = ()
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    applicability: Applicability
    message: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    status: VerdictStatus
    evidence: str
    how: str = "gpu"


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why a finding does not count: an inline comment, or the baseline."""

    kind: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One hazard at one span, with everything a report needs. ``label`` is the short text beside the underline."""

    rule: str
    name: str
    path: str
    span: Span
    message: str
    label: str
    help: str
    severity: Severity
    confidence: Confidence
    consequence: Consequence
    regions: tuple[RegionRef, ...] = ()
    related: tuple[Related, ...] = ()
    why: tuple[str, ...] = ()
    fix: Fix | None = None
    suppressed: Suppression | None = None
    verdict: Verdict | None = None
    fingerprint: str = ""
    cell: int | None = None
    #: the enclosing function's dotted name, and the source of the span, for fingerprints and baselines
    scope: str = ""
    text: str = ""

    @property
    def sort_key(self) -> tuple[str, int, Span, str]:
        return (self.path, self.cell or 0, self.span, self.rule)

    @property
    def place(self) -> tuple[str, str, Span]:
        """There is one finding for each."""
        return (self.rule, self.path, self.span)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that kept a file from being checked."""

    path: str
    line: int
    message: str
    rule: str = "CG000"
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class StaleEntry:
    """An entry of the baseline that nothing matches any more; ``count`` is how many copies of the code are gone."""

    path: str
    description: str
    count: int


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run as a whole went wrong, so that its reports for tools can say it.

    ``kind`` is ``usage-error``, ``config-error``, ``rulebook-error`` or ``internal-error``; ``path`` and ``key`` are
    those of the file that is to blame, where there is one.
    """

    kind: str
    message: str
    path: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ReachedFunction:
    """A function that a region's code enters, and the call that enters it first."""

    path: str
    line: int
    name: str
    called_from: Frame
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class UnresolvedCall:
    """A call inside a region that could not be followed. What was not looked at is said."""

    path: str
    line: int
    column: int
    text: str
    reason: str
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of code that a graph records.

    ``kind`` names how it is declared (``torch.cuda.graph``, ``capture_begin``, ``make_graphed_callables``,
    ``torch.compile``, ``capture_region``, ``comment``, ``config``, or a preset's name); ``name`` is the function that
    holds it or that it consists of.
    """

    kind: str
    path: str
    line: int
    name: str
    reached: tuple[ReachedFunction, ...] = ()
    unresolved: tuple[UnresolvedCall, ...] = ()
    #: calls that hand the region what it captures: a callable given to a capturing API or to a wrapper's constructor
    given_by: tuple[Frame, ...] = ()
    cell: int | None = None

    def reaches_into(self, displays: frozenset[str]) -> bool:
        """Whether the region is declared in one of some files, or enters a function there."""
        return self.path in displays or any(each.path in displays for each in self.reached)

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        return (self.path, self.cell or 0, self.line, self.kind, self.name)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a run found. ``findings`` holds suppressed ones too; ``files`` counts the files that were read."""

    findings: tuple[Finding, ...] = ()
    regions: tuple[Region, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    files: int = 0
    #: files with findings below the wanted confidence, which are not in ``findings``, and how many each has
    hidden_in: tuple[tuple[str, int], ...] = ()
    #: findings that were there before the change that was asked about, which are not in ``findings`` either
    unchanged: int = 0
    #: findings that `--fix` took away before the check that this is the result of
    fixed: int = 0
    #: set when the run went wrong: then nothing else is
    failure: Failure | None = None
    #: what the baseline holds and the run did not find
    stale: tuple[StaleEntry, ...] = ()
    #: the baseline as this run would have it (a ``baseline.Update``)
    update: object = field(default=None, repr=False, compare=False)
    #: what the user should know about the run itself, one line each
    notes: tuple[str, ...] = ()
    #: seconds by stage, for ``--timings``
    timings: dict[str, float] = field(default_factory=dict)
    #: the index and the facts behind the result, which live as long as it does
    behind: object = field(default=None, repr=False, compare=False)

    @property
    def hidden(self) -> int:
        return sum(count for _, count in self.hidden_in)

    def about(self, displays: frozenset[str]) -> CheckResult:
        """What of it is about some files, by their names: findings in them, and regions that reach into them."""
        return replace(
            self,
            findings=tuple(each for each in self.findings if each.path in displays),
            regions=tuple(each for each in self.regions if each.reaches_into(displays)),
            diagnostics=tuple(each for each in self.diagnostics if each.path in displays),
            hidden_in=tuple(each for each in self.hidden_in if each[0] in displays),
            files=len(displays),
        )
