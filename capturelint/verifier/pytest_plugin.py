"""The pytest fixture ``capture_verify``: verifies a function on the GPU and fails the test with the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from capturelint.verifier.api import Report


@pytest.fixture
def capture_verify() -> Callable[..., Report]:
    """Calls ``capturelint.verify`` with the arguments that it is given; skips the test without a CUDA device."""

    def check(function: Callable[..., Any], **options: Any) -> Report:
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("capture_verify needs a CUDA device")
        from capturelint.verifier.api import verify

        report = verify(function, **options)
        if not report:
            pytest.fail(str(report), pytrace=False)
        return report

    return check
