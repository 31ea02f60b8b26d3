"""Room for deep recursion: frames in one piece of memory."""

from __future__ import annotations

import sys

import pytest

from capturelint.deep import with_large_stack


def test_what_comes_out_is_what_came_out() -> None:
    assert with_large_stack(lambda: [1, 2]) == [1, 2]
    with pytest.raises(KeyError, match="name"):
        with_large_stack(lambda: {}["name"])


def test_it_goes_deep() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + 9_000)
    try:
        assert with_large_stack(lambda: _down(8_000, 1)) == 1
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.skipif(sys.platform != "linux" or sys.version_info < (3, 11), reason="counts pages as Linux does")
def test_calls_at_any_depth_cost_no_new_memory() -> None:
    assert _most_faults(_most) > 150  # that there is something to save
    assert _most_faults(lambda: with_large_stack(_most)) < 50


def _most_faults(work: object) -> int:
    assert callable(work)
    work()
    found: int = work()
    return found


def _most() -> int:
    """The pages that 200 calls of a function take anew, at the depth where they take most."""
    return max(_down(depth, 200) for depth in range(0, 120))


def _down(depth: int, times: int) -> int:
    if depth:
        return _down(depth - 1, times)
    if times == 1:
        return 1
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        _nothing()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def _nothing() -> tuple[int, ...]:
    """A frame with more room than one more of ``_down`` takes, so that it does not fit in at some depth."""
    a = b = c = d = e = f = g = h = i = j = 1
    return (a, b, c, d, e, f, g, h, i, j, a, b, c, d, e, f, g, h, i, j, a, b, c, d, e, f, g, h, i, j)
