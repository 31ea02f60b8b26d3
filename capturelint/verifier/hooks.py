"""Host calls that are no operators (synchronizing, queries, seeding, Triton), wrapped so that a recorder sees them.

The wraps are put in place once in a worker, and let every call through while nothing records.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from capturelint.verifier.describe import describe
from capturelint.verifier.record import current

#: (module or class, attribute, the name in evidence)
_HOST_CALLS: tuple[tuple[str, str, str], ...] = (
    ("torch.cuda", "synchronize", "torch.cuda.synchronize"),
    ("torch.accelerator", "synchronize", "torch.accelerator.synchronize"),
    ("torch.cuda.Stream", "synchronize", "Stream.synchronize"),
    ("torch.cuda.Stream", "query", "Stream.query"),
    ("torch.cuda.Event", "synchronize", "Event.synchronize"),
    ("torch.cuda.Event", "query", "Event.query"),
    ("torch.cuda.Event", "elapsed_time", "Event.elapsed_time"),
    ("torch.cuda.Stream", "wait_event", "Stream.wait_event"),
    ("torch.cuda.Stream", "wait_stream", "Stream.wait_stream"),
    ("torch.cuda.CUDAGraph", "replay", "CUDAGraph.replay"),
    ("torch.optim.Optimizer", "_cuda_graph_capture_health_check", "Optimizer.step"),
)


def _resolve(dotted: str) -> Any:
    target: Any = torch
    for part in dotted.split(".")[1:]:
        target = getattr(target, part, None)
    return target


@contextmanager
def host_calls() -> Iterator[None]:
    """Wraps the host calls, and Triton's launcher where Triton is there."""
    undo: list[Callable[[], None]] = []
    for dotted, attribute, name in _HOST_CALLS:
        owner = _resolve(dotted)
        if owner is not None and hasattr(owner, attribute):
            undo.append(_wrap(owner, attribute, _observed(getattr(owner, attribute), name)))
    for dotted, attribute in _SEEDING:
        owner = _resolve(dotted)
        undo.append(_wrap(owner, attribute, _noted(getattr(owner, attribute), f"{dotted}.{attribute}")))
    undo.extend(_wrap_triton())
    undo.extend(_wrap_autocast())
    undo.append(_wrap(torch, "compile", _counted(torch.compile)))
    try:
        yield
    finally:
        for restore in reversed(undo):
            restore()


def _wrap(owner: Any, attribute: str, replacement: Any) -> Callable[[], None]:
    own = attribute in vars(owner)
    before = vars(owner).get(attribute)
    setattr(owner, attribute, replacement)

    def restore() -> None:
        if own:
            setattr(owner, attribute, before)
        else:
            delattr(owner, attribute)

    return restore


def _observed(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*args, **kwargs)
        return recorder.call(name, lambda: original(*args, **kwargs))

    return call


#: where autocast was entered, innermost last
_autocast: list[tuple[str, int]] = []


def cached_autocast() -> tuple[str, int] | None:
    """The line that entered the autocast that is on, where it caches weights."""
    if not (_autocast and torch.is_autocast_enabled("cuda") and torch.is_autocast_cache_enabled()):
        return None
    return _autocast[0]


def _wrap_autocast() -> list[Callable[[], None]]:
    enter, leave = torch.autocast.__enter__, torch.autocast.__exit__

    def entering(self: Any) -> Any:
        frame = sys._getframe(1)
        _autocast.append((frame.f_code.co_filename, frame.f_lineno))
        return enter(self)  # type: ignore[no-untyped-call]

    def leaving(self: Any, *details: Any) -> Any:
        if _autocast:
            _autocast.pop()
        return leave(self, *details)

    return [_wrap(torch.autocast, "__enter__", entering), _wrap(torch.autocast, "__exit__", leaving)]


_SEEDING = (("torch", "manual_seed"), ("torch.cuda", "manual_seed"), ("torch.cuda", "manual_seed_all"))


def _noted(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is not None:
            recorder.note_host_call(name, tuple(describe(value) for value in args))
        return original(*args, **kwargs)

    return call


#: file and line of every call of torch.compile
_compiled: list[tuple[str, int]] = []


def compiled_calls() -> list[tuple[str, int]]:
    """Where ``torch.compile`` has been called under ``host_calls``, in order."""
    return list(_compiled)


def _counted(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe(1)
        _compiled.append((frame.f_code.co_filename, frame.f_lineno))
        return original(*args, **kwargs)

    return compile


def _wrap_triton() -> list[Callable[[], None]]:
    try:
        from triton.runtime.jit import JITFunction  # type: ignore[import-not-found,unused-ignore]
    except Exception:
        return []
    original = JITFunction.run

    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or kwargs.get("warmup"):
            return original(self, *args, **kwargs)
        values = [*args, *(value for key, value in sorted(kwargs.items()) if key not in ("warmup", "grid"))]
        tensors = [value for value in values if isinstance(value, torch.Tensor)]
        scalars = [describe(value) for value in values if isinstance(value, (bool, int, float, str))]
        grid = kwargs.get("grid")
        scalars.append("grid " + (describe(grid) if isinstance(grid, (tuple, list, int)) else "computed"))
        name = "triton:" + getattr(getattr(self, "fn", None), "__name__", "kernel")
        return recorder.host_launch(name, lambda: original(self, *args, **kwargs), tensors, tuple(scalars))

    return [_wrap(JITFunction, "run", run)]
