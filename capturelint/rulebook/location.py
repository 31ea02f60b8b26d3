"""Where the rule files are: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from capturelint.errors import RulebookError

#: what the wheel calls the folder that the checkout calls ``rules``
_PACKED = "_rules"


def rules_directory(package: Path | None = None) -> Path:
    """Returns the folder that holds ``CG*.yaml``, ``ops/`` and ``presets/``.

    package: the folder of the ``capturelint`` package; this one's when left out.
    Raises RulebookError when neither place holds a rule file.
    """
    package = package or Path(__file__).resolve().parent.parent
    # The packed folder first: a folder named "rules" beside an installed package belongs to somebody else.
    candidates = (package / _PACKED, package.parent / "rules")
    for candidate in candidates:
        if next(candidate.glob("CG*.yaml"), None) is not None:
            return candidate
    raise RulebookError(
        f"no rule files (CG*.yaml) in {' or '.join(map(str, candidates))}; the installation is incomplete"
    )
