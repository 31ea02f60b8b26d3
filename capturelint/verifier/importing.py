"""Importing the user's modules in a worker, with the import path that their project needs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any


class ImportProblem(Exception):
    """The user's code cannot be loaded; the message says why."""


def prepare_path(root: Path, extra: tuple[str, ...]) -> None:
    """Puts the project's root, ``src/`` below it and the harness's directories first on the import path."""
    for directory in (root, root / "src", *(root / item for item in extra)):
        text = str(directory)
        if directory.is_dir():
            while text in sys.path:
                sys.path.remove(text)
            sys.path.insert(0, text)


def forget_users_modules(kept: frozenset[str]) -> None:
    """Drops every module that was loaded since the worker started, so that names do not clash between jobs."""
    for name in [name for name in sys.modules if name not in kept]:
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        if file and "/site-packages/" not in file and "/dist-packages/" not in file and not file.startswith(sys.prefix):
            del sys.modules[name]
    importlib.invalidate_caches()


def load_file(path: Path) -> Any:
    """The module in the file ``path``, under the dotted name that its packages give it. Raises ImportProblem."""
    directory, parts = path.parent, [path.stem] if path.stem != "__init__" else []
    while (directory / "__init__.py").is_file():
        parts.insert(0, directory.name)
        directory = directory.parent
    name = ".".join(parts)
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    loaded = sys.modules.get(name)
    if loaded is not None and _same_file(getattr(loaded, "__file__", None), path):
        return loaded
    if "." in name:
        return load_module(name)
    # a file's own name may be that of a library's module: loaded from its path, it cannot be mixed up
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportProblem(f"{path.name} is no Python module")
    module = importlib.util.module_from_spec(spec)
    shadowed = sys.modules.get(name)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        if shadowed is not None:
            sys.modules[name] = shadowed
        else:
            del sys.modules[name]
        raise _problem(path.name, error) from error
    return module


def load_module(name: str) -> Any:
    """The module called ``name``. Raises ImportProblem."""
    try:
        return importlib.import_module(name)
    except BaseException as error:
        raise _problem(name, error) from error


def resolve(reference: str, root: Path) -> Any:
    """What ``pkg.mod:name.name`` or ``path/file.py:name`` refers to. Raises ImportProblem."""
    module_name, _, qualified = reference.partition(":")
    module = load_file(root / module_name) if module_name.endswith(".py") else load_module(module_name)
    return attribute(module, qualified, reference)


def attribute(module: Any, qualified: str, shown: str) -> Any:
    target = module
    for part in qualified.split("."):
        try:
            target = getattr(target, part)
        except AttributeError as error:
            raise ImportProblem(f"{shown}: there is no `{part}` in it") from error
    return target


def _same_file(one: str | None, other: Path) -> bool:
    return one is not None and Path(one).resolve() == other.resolve()


def _problem(name: str, error: BaseException) -> ImportProblem:
    if isinstance(error, (KeyboardInterrupt, ImportProblem)):
        raise error
    if isinstance(error, SystemExit):
        return ImportProblem(f"importing {name} called sys.exit({error.code!r})")
    lines = str(error).strip().splitlines() or [""]
    return ImportProblem(f"importing {name} raised {type(error).__name__}: {lines[0][:200]}")
