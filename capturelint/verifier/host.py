"""Host state around a region: what its code can reach, what a run changed, and putting it back."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from capturelint.verifier.describe import describe
from capturelint.verifier.sites import UserCode

_DEEPEST = 6
_MOST_CONTAINERS = 4000
_LONGEST_LIST = 2000
_MISSING = object()
#: of a module whose class is a library's, only these are watched
_TENSOR_TABLES = frozenset({"_parameters", "_buffers", "_modules"})
#: marks the saved contents of such a module
_FOREIGN = " foreign"


@dataclass(frozen=True, slots=True)
class Slot:
    """A named place that holds a value: ``owner`` is the container, ``key`` the attribute, key or index."""

    owner: Any
    key: Any
    name: str
    #: ``attribute``, ``item``, ``grad`` of a parameter, or ``contents`` for a set, deque or list as a whole
    kind: str

    def put(self, value: Any) -> None:
        """Gives the slot a value again, where that is possible."""
        if self.kind == "grad":
            self.owner.grad = value
        elif self.kind == "attribute":
            vars(self.owner)[self.key] = value
        elif self.kind == "item" and self.value() is not _MISSING:
            self.owner[self.key] = value

    def value(self) -> Any:
        if self.kind == "grad":
            return self.owner.grad
        if self.kind == "attribute":
            return vars(self.owner).get(self.key, _MISSING)
        if self.kind == "contents":
            return _Sized(self.owner)
        try:
            return self.owner[self.key]
        except (KeyError, IndexError):
            return _MISSING

    @property
    def identity(self) -> tuple[int, Any]:
        return (id(self.owner), self.key if isinstance(self.key, (str, int)) else id(self.key))

    @property
    def word(self) -> str:
        """The last name in the slot's path, as code that reads it would spell it."""
        text = self.name.split("[")[0]
        return text.rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True)
class Change:
    slot: Slot
    before: Any
    after: Any

    @property
    def appeared(self) -> bool:
        """Whether the slot was not there before, as with an appended item."""
        return self.before is _MISSING

    @property
    def tensors(self) -> bool:
        return isinstance(self.before, torch.Tensor) or isinstance(self.after, torch.Tensor)

    def __str__(self) -> str:
        return f"`{self.slot.name}` went from {_show(self.before)} to {_show(self.after)}"


@dataclass
class HostState:
    """The containers that a region can reach, with shallow copies of their contents."""

    entries: list[tuple[Any, str, Any]] = field(default_factory=list)

    def slots(self) -> Iterator[tuple[Slot, Any]]:
        for owner, name, saved in self.entries:
            yield from _slots(owner, name, saved)

    def restore(self) -> None:
        for owner, _, saved in self.entries:
            _put_back(owner, saved)

    def tensor_slots(self) -> list[Slot]:
        return [slot for slot, value in self.slots() if isinstance(value, torch.Tensor)]


def snapshot(roots: Mapping[str, Any], user: UserCode) -> HostState:
    """Everything reachable from ``roots``: containers, instances of the user's classes, modules' globals."""
    state = HostState()
    seen: set[int] = set()
    waiting: deque[tuple[str, Any, int]] = deque((name, value, 0) for name, value in roots.items())
    while waiting and len(state.entries) < _MOST_CONTAINERS:
        name, value, depth = waiting.popleft()
        if id(value) in seen or depth > _DEEPEST:
            continue
        seen.add(id(value))
        saved = _contents(value, user)
        if saved is None:
            waiting.extend((inner, item, depth) for inner, item in _through(name, value, user))
            continue
        state.entries.append((value, name, saved))
        for slot, item in _slots(value, name, saved):
            if slot.kind != "contents" and not isinstance(item, (int, float, str, bytes, bool, type(None))):
                waiting.append((slot.name, item, depth + 1))
        waiting.extend((inner, item, depth) for inner, item in _through(name, value, user))
    return state


def changes(state: HostState) -> list[Change]:
    """What differs now from the snapshot. A container that did not exist then shows as a change of its slot."""
    found = []
    for owner, name, saved in state.entries:
        now = _contents_now(owner, saved)
        if _same_contents(saved, now):
            continue
        before = {slot.identity: (slot, value) for slot, value in _slots(owner, name, saved)}
        after = {slot.identity: (slot, value) for slot, value in _slots(owner, name, now)}
        for identity in {**before, **after}:
            slot, old = before.get(identity, (None, _MISSING))
            other, new = after.get(identity, (None, _MISSING))
            if not _same(old, new):
                chosen = slot or other
                assert chosen is not None
                found.append(Change(chosen, old, new))
    return found


def _contents(value: Any, user: UserCode) -> Any:
    """A shallow copy of a container that is watched, else None."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, deque)):
        return list(value) if len(value) <= _LONGEST_LIST else None
    if isinstance(value, set):
        return set(value)
    if isinstance(value, torch.nn.Parameter):
        return [value.grad]
    if isinstance(value, torch.nn.Module):
        if _users_class(type(value), user):
            return {key: item for key, item in vars(value).items() if _own_attribute(key)}
        return {key: item for key, item in vars(value).items() if key in _TENSOR_TABLES} | {_FOREIGN: True}
    if isinstance(value, types.ModuleType):
        owned = user.owns(getattr(value, "__file__", None) or "<none>")
        return {key: item for key, item in vars(value).items() if not key.startswith("__")} if owned else None
    if isinstance(value, (type, types.FunctionType, types.MethodType, torch.Tensor, torch.Generator)):
        return None
    if hasattr(value, "__dict__") and _users_class(type(value), user):
        return dict(vars(value))
    return None


def _own_attribute(key: str) -> bool:
    return not key.startswith("_backward") and not key.endswith("_hooks")


def _users_class(kind: type, user: UserCode) -> bool:
    import sys

    for base in kind.__mro__:
        module = sys.modules.get(base.__module__)
        if module is not None and user.owns(getattr(module, "__file__", None) or "<none>"):
            return True
        if base.__module__ == "types" and base is types.SimpleNamespace:
            return True
    return False


def _through(name: str, value: Any, user: UserCode) -> Iterable[tuple[str, Any]]:
    """What lies behind a value that is no container itself: closures, bound objects, tuples, gradients."""
    if isinstance(value, types.MethodType):
        yield f"{name}.__self__", value.__self__
        value = value.__func__
    if isinstance(value, types.FunctionType) and user.owns(value.__code__.co_filename):
        for free, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False):
            try:
                yield free, cell.cell_contents
            except ValueError:
                continue
    elif isinstance(value, tuple):
        for index, item in enumerate(value[:_LONGEST_LIST]):
            if not isinstance(item, (int, float, str, bool)):
                yield f"{name}[{index}]", item
    elif isinstance(value, torch.nn.Module):
        for hooks in (value._forward_hooks, value._forward_pre_hooks):
            for hook in hooks.values():
                yield f"{name}.hook", hook
    elif isinstance(value, torch.optim.Optimizer):
        yield f"{name}.param_groups", value.param_groups


def _slots(owner: Any, name: str, contents: Any) -> Iterator[tuple[Slot, Any]]:
    if isinstance(owner, torch.nn.Parameter):
        yield Slot(owner, "grad", f"{name}.grad", "grad"), contents[0]
    elif isinstance(owner, dict):
        for key, value in contents.items():
            yield Slot(owner, key, f"{name}[{describe(key)}]", "item"), value
    elif isinstance(owner, (list, deque)):
        yield Slot(owner, len, f"{name}", "contents"), _Sized(contents)
        for index, value in enumerate(contents):
            yield Slot(owner, index, f"{name}[{index}]", "item"), value
    elif isinstance(owner, set):
        yield Slot(owner, len, name, "contents"), _Sized(contents)
    else:
        for key, value in contents.items():
            if key == _FOREIGN:
                continue
            yield Slot(owner, key, key if isinstance(owner, types.ModuleType) else f"{name}.{key}", "attribute"), value


class _Sized:
    """The length of a list or set, as a value to compare and show."""

    def __init__(self, contents: Any) -> None:
        self.length = len(contents)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sized) and other.length == self.length

    def __hash__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"{self.length} items"


def _contents_now(owner: Any, saved: Any) -> Any:
    if isinstance(owner, torch.nn.Parameter):
        return [owner.grad]
    if isinstance(owner, dict):
        return dict(owner)
    if isinstance(owner, (list, deque)):
        return list(owner)
    if isinstance(owner, set):
        return set(owner)
    now = vars(owner)
    if isinstance(owner, torch.nn.Module) and _FOREIGN in saved:
        return {key: item for key, item in now.items() if key in saved} | {_FOREIGN: True}
    if isinstance(owner, torch.nn.Module):
        return {key: item for key, item in now.items() if _own_attribute(key)}
    if isinstance(owner, types.ModuleType):
        return {key: item for key, item in now.items() if not key.startswith("__")}
    return dict(now)


def _same_contents(saved: Any, now: Any) -> bool:
    if isinstance(saved, set):
        return bool(saved == now)
    if len(saved) != len(now):
        return False
    if isinstance(saved, dict):
        return all(key in now and _same(value, now[key]) for key, value in saved.items())
    return all(_same(one, other) for one, other in zip(saved, now, strict=True))


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, (bool, int, float, str, bytes, tuple, _Sized)) and type(one) is type(other):
        try:
            return bool(one == other)
        except Exception:
            return False
    return False


def _put_back(owner: Any, saved: Any) -> None:
    try:
        if isinstance(owner, torch.nn.Parameter):
            if owner.grad is not saved[0]:
                owner.grad = saved[0]
        elif isinstance(owner, dict):
            if not _same_contents(saved, dict(owner)):
                owner.clear()
                owner.update(saved)
        elif isinstance(owner, list):
            owner[:] = saved
        elif isinstance(owner, (deque, set)):
            owner.clear()
            (owner.extend if isinstance(owner, deque) else owner.update)(saved)
        else:
            _put_back_attributes(owner, saved)
    except (TypeError, AttributeError):
        return


def _put_back_attributes(owner: Any, saved: dict[str, Any]) -> None:
    now = vars(owner)
    for key in [key for key in _contents_now(owner, saved) if key not in saved]:
        del now[key]
    for key, value in saved.items():
        if key != _FOREIGN and now.get(key, _MISSING) is not value:
            now[key] = value


def _show(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    if isinstance(value, torch.Tensor):
        return f"a tensor {tuple(value.shape)}"
    return describe(value)


def watcher(slots: Iterable[Slot], report: Callable[[Slot, str, str], None]) -> Callable[[], None]:
    """A check to call now and then: reports every slot whose value is another than at the last call."""
    known = list(slots)
    marks = [mark(slot.value()) for slot in known]
    # shown text, not the values: a watched tensor must be free to die
    texts = [_show(slot.value()) for slot in known]

    def check() -> None:
        for index, slot in enumerate(known):
            value = slot.value()
            current = mark(value)
            if current != marks[index]:
                before, texts[index], marks[index] = texts[index], _show(value), current
                report(slot, before, texts[index])

    return check


def mark(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        try:
            return (id(value), value.data_ptr())
        except (RuntimeError, NotImplementedError):
            return id(value)
    if isinstance(value, (bool, int, float, str, bytes, type(None), _Sized)):
        return (type(value), value)
    if isinstance(value, tuple):
        return tuple(id(item) for item in value)
    return id(value)
