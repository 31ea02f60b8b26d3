"""Work in a second process: its results, its faults, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from capturelint import aside

pytestmark = pytest.mark.skipif(not aside.can_fork(), reason="forking is for Linux alone")


@pytest.mark.parametrize("at_once", [True, False])
def test_both_results_come_back(at_once: bool) -> None:
    here = os.getpid()
    first, second = aside.both(lambda: (os.getpid(), "first"), lambda: (os.getpid(), "second"), at_once=at_once)
    assert first[1] == "first" and first[0] != here
    assert second == (here, "second")
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("at_once", [True, False])
def test_neither_sees_what_the_other_does(at_once: bool) -> None:
    seen: list[str] = []

    def each(name: str) -> list[str]:
        seen.append(name)
        return list(seen)

    assert aside.both(lambda: each("a"), lambda: each("b"), at_once=at_once) == (["a"], ["b"])


def test_a_process_that_is_killed_is_made_up_for() -> None:
    here = os.getpid()

    def work() -> int:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return 7

    assert aside.both(work, lambda: 8, at_once=True) == (7, 8)


def test_what_fails_there_fails_here() -> None:
    def work() -> int:
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        aside.both(work, lambda: 8, at_once=True)


def test_an_interrupt_leaves_no_process() -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aside.both(lambda: signal.pause(), interrupted, at_once=True)
    assert multiprocessing.active_children() == []


def test_where_no_process_can_be_made_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    assert aside.both(lambda: 7, lambda: 8, at_once=True) == (7, 8)


def test_workers_of_a_pool_make_none() -> None:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(aside.can_fork) is False
    assert aside.can_fork()
