"""The project: all its files, modules indexed when first needed, imports resolved, names searched for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from capturelint.errors import SourceError
from capturelint.model import Diagnostic
from capturelint.project.bindings import ImportedName
from capturelint.project.definitions import ClassInfo
from capturelint.project.looked import Looked
from capturelint.project.module import Module, parse_module
from capturelint.project.outline import Stretch
from capturelint.project.parsing import parse_source
from capturelint.project.questions import Question, Reply
from capturelint.project.search import NameSearch
from capturelint.project.syntax import last_name
from capturelint.source.files import SourceFile

#: a base class with more subclasses than this says nothing about which one is meant
_MAX_SUBCLASSES = 120


@dataclass(frozen=True, slots=True)
class Learnt:
    """What was asked of a project, and what was wrong with its files: plain data, for another process to take over.

    Files are told by path, in ``asked`` by their place in the project's list.
    """

    wholly: frozenset[Path]
    looked: dict[Path, Looked]
    diagnostics: dict[str, Diagnostic]
    asked: tuple[tuple[Question, dict[int, Reply]], ...]


class Project:
    """Every source file below ``root``, whether checked or only followed into.

    Cost grows with what is asked: a module is parsed when something in it is needed, a reverse question reads bytes.
    """

    def __init__(self, root: Path, files: Sequence[SourceFile]) -> None:
        self.root = root
        self.files = list(files)
        self.diagnostics: dict[str, Diagnostic] = {}
        self._by_path = {file.path: file for file in self.files}
        self._by_text = {str(path): path for path in self._by_path}
        self._directories = _directories_of(self._by_path, root)
        self._names: dict[Path, tuple[str, bool]] = {}
        self._modules: dict[Path, Module | None] = {}
        #: by identity of the file, which ``files`` keeps: a path takes long to hash, and bytes are asked for often
        self._bytes: dict[int, bytes] = {}
        self._unreadable: dict[int, SourceError] = {}
        #: paths of files whose content was asked for as a whole, and of those that were parsed for errors alone
        self.consulted: set[Path] = set()
        self.syntax: dict[Path, bool] = {}
        self._wholly_elsewhere: set[Path] = set()
        self._looked_elsewhere: dict[Path, Looked] = {}
        self._import_roots: list[Path] | None = None
        self._resolved: dict[str, Path | None] = {}
        self._imports: dict[tuple[Module, ImportedName], tuple[Path | None, str | None, str]] = {}
        self._subclasses: dict[str, list[ClassInfo]] = {}
        self.search = NameSearch(self.files, self.bytes_of)

    # -- modules -----------------------------------------------------------------------------------------------------

    def module_at(self, path: Path) -> Module | None:
        """The module in a file, or None when it cannot be read or parsed (then there is a diagnostic)."""
        known = self._modules.get(path)
        if known is not None or path in self._modules:
            return known
        self._modules[path] = None
        file = self._by_path[path]
        name, is_package = self._module_name(path)
        try:
            self._modules[path] = parse_module(file, self._read(file), name, is_package, self.report)
        except SourceError as error:
            self.report(error)
        return self._modules[path]

    def report(self, error: SourceError) -> None:
        """Says what is wrong with a file; what was said of it first stays."""
        self.diagnostics.setdefault(error.path, Diagnostic(error.path, error.line, str(error)))

    def wholly(self) -> frozenset[Path]:
        """The files that count as a whole: read by somebody, or with no outline. Here or where something came from."""
        whole = {path for path, looked in self.looked().items() if looked.wholly}
        return frozenset((*self.consulted, *self._wholly_elsewhere, *whole, *self._not_parsed()))

    def _not_parsed(self) -> Iterable[Path]:
        return (path for path, module in self._modules.items() if module is None)

    def bodies_in(self, path: Path) -> list[Stretch] | None:
        """The bodies in a file, in the order of its text, if it was parsed in this process."""
        module = self._modules.get(path)
        return [each.lines for each in module.bodies.all] if module is not None else None

    def looked(self) -> dict[Path, Looked]:
        """What was looked at within each module of which not all counts."""
        found = {path: module.looked for path, module in self._modules.items() if module is not None}
        for path, looked in self._looked_elsewhere.items():
            known = found.setdefault(path, looked)
            if known is not looked:
                known.add(looked)
        return found

    def learnt(self) -> Learnt:
        places = {id(file): place for place, file in enumerate(self.files)}
        asked = tuple(
            (question, {places[file]: said for file, said in said_by.items()})
            for question, said_by in self.search.asked()
        )
        return Learnt(self.wholly(), self.looked(), dict(self.diagnostics), asked)

    def take_over(self, learnt: Learnt) -> None:
        """Counts what another process asked of the same files as asked here."""
        self._wholly_elsewhere |= learnt.wholly
        self._looked_elsewhere |= learnt.looked
        for display, diagnostic in learnt.diagnostics.items():
            self.diagnostics.setdefault(display, diagnostic)
        self.search.take_over(
            (question, {id(self.files[place]): said for place, said in said_by.items()})
            for question, said_by in learnt.asked
        )

    def check_syntax(self, path: Path) -> None:
        """Leaves a diagnostic for a file that cannot be parsed; nothing of a right one is kept."""
        if path in self.syntax or (path in self._modules and self._is_whole(self._modules[path])):
            return
        file = self._by_path[path]
        try:
            parse_source(file, self._read(file))
            self.syntax[path] = True
        except SourceError as error:
            self.syntax[path] = False
            self.report(error)

    @staticmethod
    def _is_whole(module: Module | None) -> bool:
        """Whether all of a module was parsed, or what is wrong with it was said."""
        return module is None or not module.bodies.all

    def _module_name(self, path: Path) -> tuple[str, bool]:
        if path not in self._names:
            is_package = path.name == "__init__.py"
            parts = [] if is_package else [path.stem]
            directory = path.parent
            while (directory / "__init__.py") in self._by_path and directory != directory.parent:
                parts.append(directory.name)
                directory = directory.parent
            self._names[path] = (".".join(reversed(parts)) or path.stem, is_package)
        return self._names[path]

    def import_roots(self) -> list[Path]:
        """Directories that absolute imports are looked up in: the project's root, ``src``, and parents of packages."""
        if self._import_roots is None:
            roots = {self.root: None, self.root / "src": None}
            for path in self._by_path:
                if path.name == "__init__.py" and (path.parent.parent / "__init__.py") not in self._by_path:
                    roots[path.parent.parent] = None
            self._import_roots = [root for root in roots if root in self._directories]
        return self._import_roots

    def find_module(self, dotted: str, near: Module | None = None) -> Path | None:
        """The file of the module ``dotted``; ``near``'s own directory counts, as for a script."""
        key = f"{near.file.path.parent if near is not None else ''}:{dotted}"
        if key not in self._resolved:
            relative = dotted.split(".") if dotted else []
            roots = list(self.import_roots())
            if near is not None:
                roots = [near.file.path.parent, *roots]
            stems = (_below(str(root), *relative) for root in roots)
            self._resolved[key] = next((file for stem in stems if (file := self._file_for(stem))), None)
        return self._resolved[key]

    def _file_for(self, stem: str) -> Path | None:
        """The file of a package or of a module; paths are texts here, since some thousand of them name nothing."""
        return self._by_text.get(_below(stem, "__init__.py")) or self._by_text.get(f"{stem}.py")

    def resolve_import(self, imported: ImportedName, importer: Module) -> tuple[Path | None, str | None, str]:
        """Where an imported name lives: ``(file, name in it, dotted name)``.

        ``file`` is None when the module is not part of the project (third-party); ``name`` is None for a module.
        """
        key = (importer, imported)
        found = self._imports.get(key)
        if found is None:
            found = self._imports[key] = self._resolve_import(imported, importer)
        return found

    def _resolve_import(self, imported: ImportedName, importer: Module) -> tuple[Path | None, str | None, str]:
        base = imported.module
        if imported.level:
            directory = importer.file.path.parent
            for _ in range(imported.level - 1):
                directory = directory.parent
            stem = _below(str(directory), *base.split(".")) if base else str(directory)
            package = importer.name.split(".")
            package = package[: len(package) - imported.level + (1 if importer.is_package else 0)]
            base = ".".join([*package, *([base] if base else [])])
            found = self._file_for(stem)
            if imported.name is not None:
                submodule = self._file_for(_below(stem, imported.name))
                if found is None or (submodule is not None and not self._defines(found, imported.name)):
                    return submodule, None, f"{base}.{imported.name}"
            return found, imported.name, f"{base}.{imported.name}" if imported.name else base
        found = self.find_module(base, importer)
        if imported.name is None:
            return found, None, base
        if found is None or not self._defines(found, imported.name):
            submodule = self.find_module(f"{base}.{imported.name}", importer)
            if submodule is not None:
                return submodule, None, f"{base}.{imported.name}"
        return found, imported.name, f"{base}.{imported.name}"

    def _defines(self, path: Path, name: str) -> bool:
        module = self.module_at(path)
        return module is not None and name in module.names

    def uses_package(self, names: Sequence[str]) -> bool:
        """Whether the project is one of these packages, or imports one."""
        for name in names:
            if self.find_module(name) is not None:
                return True
            if self.search.any_holds((f"import {name}".encode(), f"from {name}".encode())):
                return True
        return False

    # -- reverse questions -------------------------------------------------------------------------------------------

    def content(self, file: SourceFile) -> bytes:
        """A file's bytes, for whoever goes by all of them; empty when it cannot be read (a diagnostic says so)."""
        self.consulted.add(file.path)
        return self.bytes_of(file)

    def bytes_of(self, file: SourceFile) -> bytes:
        """The same for a question that ``search`` keeps."""
        data = self._bytes.get(id(file))
        if data is None:
            try:
                data = file.read()
            except SourceError as error:
                self.report(error)
                self._unreadable[id(file)] = error
                data = b""
            self._bytes[id(file)] = data
        return data

    def is_readable(self, file: SourceFile) -> bool:
        self.bytes_of(file)
        return id(file) not in self._unreadable

    def _read(self, file: SourceFile) -> bytes:
        """The same bytes, from the same moment; raises SourceError when there are none."""
        data = self.bytes_of(file)
        if id(file) in self._unreadable:
            raise self._unreadable[id(file)]
        return data

    def modules(self, files: Iterable[SourceFile], limit: int | None = None) -> list[Module]:
        """Indexes files; nothing when there are more than ``limit``, since then the name is too common to tell."""
        files = list(files)
        if limit is not None and len(files) > limit:
            return []
        found = (self.module_at(file.path) for file in files)
        return [module for module in found if module is not None]

    def subclasses_named(self, name: str) -> list[ClassInfo]:
        """Classes of the project that write ``name`` among their bases (the last identifier counts)."""
        if name not in self._subclasses:
            found: list[ClassInfo] = []
            derived = self.search.deriving(name)
            few = derived if len(derived) <= _MAX_SUBCLASSES else []
            for file in dict.fromkeys(file for file, _ in few):
                module = self.module_at(file.path)
                if module is None:
                    continue
                wanted = {cls for each, cls in derived if each is file}
                for info in module.all_classes():
                    if info.name in wanted and any(last_name(base) == name for base in info.node.bases):
                        found.append(info)
            self._subclasses[name] = found
        return self._subclasses[name]


def _below(directory: str, *names: str) -> str:
    separator = os.sep
    return separator.join((directory.rstrip(separator), *names))


def _directories_of(paths: Iterable[Path], root: Path) -> set[Path]:
    directories = {root}
    for path in paths:
        parent = path.parent
        while parent not in directories:
            directories.add(parent)
            if parent == parent.parent:
                break
            parent = parent.parent
    return directories
