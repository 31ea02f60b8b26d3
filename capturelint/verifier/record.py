"""Recording what a region does: every operator with its line in the user's code, its scalars and what it reads.

Knows nothing of CUDA: which tensors live on the device, and whether the current stream is being captured, is asked of
the ``Device`` that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from capturelint.verifier.describe import scalars_of
from capturelint.verifier.device import Device
from capturelint.verifier.shield import Key, Shields, tensor_leaves
from capturelint.verifier.sites import Site, UserCode
from capturelint.verifier.storage import Written


@dataclass(slots=True)
class Read:
    """A device tensor that existed before the region ran, as one operator reads or writes it."""

    address: int
    offset: int
    written: bool
    storage: Any


@dataclass(slots=True)
class Step:
    """One operator call. ``value`` is a copy of its output where copies are kept."""

    op: str
    sites: tuple[Site, ...]
    scalars: tuple[str, ...]
    reads: tuple[Read, ...]
    outside: bool
    random: bool = False
    values: tuple[Any, ...] | None = None
    #: for work outside of the capture: the line that switched streams
    switched: Site | None = None
    #: shapes of the tensors that came out
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def site(self) -> Site | None:
        return self.sites[0] if self.sites else None


@dataclass(slots=True)
class Failure:
    """The first call that raised while a region ran."""

    key: Key | None
    error: BaseException
    sites: tuple[Site, ...]


@dataclass
class Recording:
    """What one run of a region left behind."""

    steps: list[Step] = field(default_factory=list)
    failure: Failure | None = None
    #: results of shielded calls, in the order in which they came
    results: dict[Key, list[Any]] = field(default_factory=dict)
    #: storages from before the run that it writes, by address
    written: dict[int, Written] = field(default_factory=dict)
    #: storages from before the run that it touches at all
    external: dict[int, Any] = field(default_factory=dict)
    kept_bytes: int = 0
    complete: bool = True
    generators: list[Any] = field(default_factory=list)


class Recorder:
    """Runs under a dispatch mode, a function mode and the wrapped host calls, which all report here."""

    def __init__(
        self,
        device: Device,
        user: UserCode,
        shields: Shields,
        *,
        want: frozenset[Key] = frozenset(),
        keep_bytes: int = 0,
        save_written: bool = False,
    ) -> None:
        self.device, self.user, self.shields = device, user, shields
        self.want, self.keep_bytes, self.save_written = want, keep_bytes, save_written
        self.recording = Recording()
        self._own: dict[int, Any] = {}
        self._depth = 0
        self._quiet = False
        self._counts: dict[Key, int] = {}

    def intercepts(self, name: str) -> bool:
        """Whether calls of this name are shielded, or wanted, on any line."""
        return self.shields.names(name) or any(key.name == name for key in self.want)

    # -- calls that may be shielded

    def call(self, name: str, run: Callable[[], Any], target: Any = None) -> Any:
        """Runs one call, or answers with what was recorded. ``target`` is what the call changes in place."""
        if self._depth or self._quiet:
            return run()
        sites = self.user.stack()
        key = Key(name, sites[0].path if sites else "", sites[0].line if sites else 0)
        if self.shields.covers(key):
            return self._answer(key, target)
        self._depth += 1
        try:
            result = run()
        except BaseException as error:
            self._fail(key, error, sites)
            raise
        finally:
            self._depth -= 1
        if key in self.want:
            self._remember(key, result, target)
        return result

    def _answer(self, key: Key, target: Any) -> Any:
        index = self._counts.get(key, 0)
        self._counts[key] = index + 1
        self._quiet = True
        try:
            return self.shields.answer(key, index, target)
        finally:
            self._quiet = False

    def _remember(self, key: Key, result: Any, target: Any) -> None:
        self._quiet = True
        try:
            self.recording.results.setdefault(key, []).append(self.shields.copy(result, target))
        finally:
            self._quiet = False

    def _fail(self, key: Key | None, error: BaseException, sites: tuple[Site, ...]) -> None:
        if self.recording.failure is None:
            self.recording.failure = Failure(key, error, sites or self.user.blame(error))

    # -- operators

    def operator(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._quiet:
            return func(*args, **kwargs)
        sites = self.user.stack()
        name = str(func)
        key = Key(name, sites[0].path if sites else "", sites[0].line if sites else 0)
        inner = self._depth > 0
        if not inner and self.shields.covers(key):
            result = self._answer(key, _targets(func, args, kwargs))
            self._own_outputs(result)
            return result
        step = self._step(func, name, sites, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            # a call on the way that is intercepted as a whole is what can be shielded
            if not inner:
                self._fail(key, error, sites)
            raise
        self._own_outputs(result)
        if key in self.want and not inner:
            self._remember(key, result, _targets(func, args, kwargs))
        if step is not None:
            step.shapes = tuple(tuple(tensor.shape) for tensor in tensor_leaves(result))
            self._keep(step, result, args)
        return result

    def _step(self, func: Any, name: str, sites: tuple[Site, ...], args: Any, kwargs: Any) -> Step | None:
        leaves = tensor_leaves((args, kwargs))
        on_device = [leaf for leaf in leaves if self.device.holds(leaf)]
        readable = [leaf for leaf in leaves if self.device.reads(leaf)] if on_device or kwargs.get("device") else []
        written = {id(tensor) for tensor in tensor_leaves(_targets(func, args, kwargs))}
        reads = tuple(read for leaf in readable if (read := self._read(leaf, id(leaf) in written)) is not None)
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Generator) and leaf not in self.recording.generators:
                self.recording.generators.append(leaf)
        device_work = bool(on_device) or self.device.makes_device_tensor(kwargs)
        step = Step(
            name,
            sites,
            scalars_of(args, kwargs, self.device.holds),
            reads,
            device_work and not _is_view(func) and self.device.outside_capture(),
            torch.Tag.nondeterministic_seeded in func.tags,
        )
        if step.outside:
            step.switched = self.device.switched_at()
        self.recording.steps.append(step)
        return step

    def host_launch(self, name: str, run: Callable[[], Any], tensors: list[Any], scalars: tuple[str, ...]) -> Any:
        """A kernel launch that is no operator, such as Triton's: its tensors may all be written."""
        sites = self.user.stack()
        if self._quiet or self._depth:
            return run()
        reads = tuple(read for leaf in tensors if (read := self._read(leaf, True)) is not None)
        step = Step(name, sites, scalars, reads, self.device.outside_capture())
        self.recording.steps.append(step)
        self._depth += 1
        try:
            return run()
        except BaseException as error:
            self._fail(None, error, sites)
            raise
        finally:
            self._depth -= 1

    def note_host_call(self, name: str, scalars: tuple[str, ...]) -> None:
        """A call that touches no tensor but matters for what follows, such as seeding."""
        if not self._depth and not self._quiet:
            self.recording.steps.append(Step(name, self.user.stack(), scalars, (), False))

    def _read(self, tensor: torch.Tensor, written: bool) -> Read | None:
        try:
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
        except (RuntimeError, NotImplementedError):
            return None
        if address == 0 or address in self._own:
            return None
        first = address not in self.recording.external
        if first:
            self.recording.external[address] = self.device.weak(storage)
        if written and address not in self.recording.written:
            entry = Written(self.recording.external[address], tensor.device, dtype=tensor.dtype)
            if self.save_written:
                entry.before = self._quietly(entry.copy)
            self.recording.written[address] = entry
        return Read(address, int(tensor.storage_offset()), written, self.recording.external[address])

    def _own_outputs(self, result: Any) -> None:
        for tensor in tensor_leaves(result):
            if self.device.holds(tensor):
                try:
                    storage = tensor.untyped_storage()
                    address = storage.data_ptr()
                except (RuntimeError, NotImplementedError):
                    continue
                if address and address not in self.recording.external:
                    # held, so that no later storage of the run gets the same address
                    self._own[address] = storage

    def _keep(self, step: Step, result: Any, args: Any) -> None:
        if not self.keep_bytes:
            return
        kept = []
        for tensor in tensor_leaves(result):
            if self.device.holds(tensor) and tensor.layout is torch.strided:
                self.recording.kept_bytes += tensor.numel() * tensor.element_size()
                if self.recording.kept_bytes > self.keep_bytes:
                    self.recording.complete = False
                    return
                kept.append(self._quietly(tensor.detach().clone))
        step.values = tuple(kept)

    def _quietly(self, run: Callable[[], Any]) -> Any:
        self._quiet = True
        try:
            with torch.no_grad():
                return run()
        finally:
            self._quiet = False

    @contextmanager
    def active(self) -> Iterator[Recorder]:
        with ExitStack() as stack:
            stack.enter_context(_current(self))
            stack.enter_context(_FunctionMode(self))
            stack.enter_context(_DispatchMode(self))
            yield self


_stack: list[Recorder] = []


@contextmanager
def _current(recorder: Recorder) -> Iterator[None]:
    _stack.append(recorder)
    try:
        yield
    finally:
        _stack.pop()


def current() -> Recorder | None:
    """The recorder that is running, for the wrapped host calls."""
    return _stack[-1] if _stack else None


#: constructors that copy host data to the device below the dispatcher
_CONSTRUCTORS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor})


class _FunctionMode(TorchFunctionMode):
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        recorder = self.recorder
        name = getattr(func, "__name__", str(func))
        if func in _CONSTRUCTORS:
            return recorder.call(f"torch.{name}", lambda: func(*args, **kwargs))
        name = f"{FUNCTION}{name}"
        if recorder.intercepts(name):
            return recorder.call(name, lambda: func(*args, **kwargs), _changed_in_place(name, args))
        try:
            return func(*args, **kwargs)
        except BaseException as error:
            # what fails below the dispatcher (indexing, formatting) fails in no operator that the other mode sees
            if recorder.recording.failure is None and recorder._depth == 0 and not recorder._quiet:
                sites = recorder.user.stack()
                key = Key(name, sites[0].path, sites[0].line) if sites else None
                recorder._fail(key, error, sites)
            raise


#: marks the names of Python functions of torch's, as against operators
FUNCTION = "torch function "


def _changed_in_place(name: str, args: Any) -> Any:
    word = name[len(FUNCTION) :]
    in_place = word == "__setitem__" or word.endswith("_") != word.endswith("__") or word.startswith("__i")
    return args[0] if args and in_place and word != "__int__" and word != "__index__" and word != "__invert__" else None


class _DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.recorder.operator(func, args, kwargs or {})


def _is_view(func: Any) -> bool:
    try:
        return bool(func.is_view) or func.namespace == "prim"
    except AttributeError:
        return False


def _targets(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The arguments that an operator's schema says it writes."""
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    found = []
    for index, argument in enumerate(schema.arguments):
        info = argument.alias_info
        if info is not None and info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            if value is not None:
                found.append(value)
    return found


__all__ = ["FUNCTION", "Failure", "Read", "Recorder", "Recording", "Step", "current"]
