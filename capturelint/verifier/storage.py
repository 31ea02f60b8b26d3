"""Device memory and names without keeping them alive: what dies in the user's program must be free to die."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch


class Died(Exception):
    """A value that a region reads is gone."""

    def __init__(self, name: str) -> None:
        super().__init__(f"`{name}` is gone")
        self.name = name


class StorageWatch:
    """A storage, and whether anybody but the verifier still holds it.

    It is held, not referred to weakly: then its memory is not handed out again while a graph still uses it, and what
    the graph does with it stays the same from run to run. Once nobody else holds it, it counts as freed.
    """

    __slots__ = ("_storage",)

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self._storage = storage

    def expired(self) -> bool:
        # every tensor counts one, and the Python object, which all watches of a storage share, counts one
        return int(torch._C._storage_Use_Count(self._storage._cdata)) <= 1

    @property
    def device(self) -> torch.device:
        return self._storage.device

    def get(self) -> torch.UntypedStorage | None:
        return None if self.expired() else self._storage


def weak_storage(storage: Any) -> StorageWatch:
    return StorageWatch(storage)


def revive(watch: StorageWatch) -> Any:
    """The storage, or None where nobody else holds it any more."""
    return watch.get()


def address_of(value: Any) -> int:
    """Where a tensor's memory begins; 0 for what has none."""
    try:
        return int(value.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0


@dataclass(slots=True)
class Written:
    """A storage that a run writes, and a copy of it from before where one was made."""

    storage: Any
    device: torch.device
    before: torch.Tensor | None = None
    #: of the tensor through which it was written
    dtype: torch.dtype | None = None

    def copy(self) -> torch.Tensor | None:
        whole = self.whole()
        return None if whole is None else whole.clone()

    def whole(self) -> torch.Tensor | None:
        storage = revive(self.storage)
        if storage is None:
            return None
        return torch.empty(0, dtype=torch.uint8, device=self.device).set_(storage)

    def put(self, value: torch.Tensor | None) -> None:
        whole = self.whole()
        if whole is not None and value is not None and whole.shape == value.shape:
            whole.copy_(value)


def put_back(written: Iterable[Written]) -> None:
    """Gives every storage its contents from before the run."""
    with torch.no_grad():
        for entry in written:
            entry.put(entry.before)


@dataclass(slots=True)
class _WeakTensor:
    """A tensor by reference, or, where that object is gone and its memory is not, made anew over the same memory."""

    tensor: Any
    storage: Any
    layout: tuple[torch.dtype, torch.device, torch.Size, tuple[int, ...], Any] | None

    def get(self, name: str) -> torch.Tensor:
        alive: torch.Tensor | None = self.tensor()
        if alive is not None:
            return alive
        storage = revive(self.storage) if self.layout is not None else None
        if storage is None or self.layout is None:
            raise Died(name)
        dtype, device, shape, stride, offset = self.layout
        return torch.empty(0, dtype=dtype, device=device).set_(storage, offset, shape, stride)


def _weak_tensor(tensor: torch.Tensor) -> _WeakTensor:
    if tensor.requires_grad or tensor.layout is not torch.strided or type(tensor) is not torch.Tensor:
        return _WeakTensor(weakref.ref(tensor), None, None)
    layout = (tensor.dtype, tensor.device, tensor.shape, tensor.stride(), tensor.storage_offset())
    return _WeakTensor(weakref.ref(tensor), weak_storage(tensor.untyped_storage()), layout)


@dataclass(slots=True)
class _WeakObject:
    reference: Any


def hold(value: Any) -> Any:
    """``value`` in a form that does not keep tensors, modules and the user's objects alive."""
    if isinstance(value, torch.Tensor):
        return _weak_tensor(value)
    # weak references to torch's streams crash the interpreter with torch 2.11
    foreign = type(value).__module__.split(".")[0] in ("builtins", "types", "torch")
    if isinstance(value, torch.nn.Module) or not foreign:
        if isinstance(value, type) or (callable(value) and not isinstance(value, torch.nn.Module)):
            return value
        try:
            return _WeakObject(weakref.ref(value))
        except TypeError:
            return value
    return value


def recall(name: str, value: Any) -> Any:
    """The value that ``hold`` was given. Raises Died."""
    if isinstance(value, _WeakTensor):
        return value.get(name)
    if isinstance(value, _WeakObject):
        alive = value.reference()
        if alive is None:
            raise Died(name)
        return alive
    return value


def modes_now() -> Callable[[], AbstractContextManager[None]]:
    """A context manager factory that brings back today's grad mode and autocast."""
    grad = torch.is_grad_enabled()
    cast, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    cache = torch.is_autocast_cache_enabled()

    @contextmanager
    def modes() -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(grad))
            if cast and not torch.is_autocast_enabled("cuda"):
                stack.enter_context(torch.autocast("cuda", dtype=dtype, cache_enabled=cache))
            yield

    return modes
