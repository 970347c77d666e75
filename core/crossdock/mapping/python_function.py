"""A mapping function in a Python file beside the config: ``map: file.py:function``."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from msgspec import Struct

from crossdock.values.author_code_errors import (
    MODULE_PREFIX,
    is_interruption_or_engine_error,
    masked_error_text,
    shortened_text,
)
from crossdock.values.config_file import MAX_BYTES
from crossdock.values.raw_rows_and_records import Record
from crossdock.values.safe_local_files import open_regular_file, read_rest_within_limit


class PythonFunction(Struct, frozen=True):
    """A function, with the SHA-256 of its file and of the modules that it imports, except installed ones.

    If the digest changes, all records are mapped again.
    """

    reference: str
    call: Callable[[Record], Any]
    digest: str


def load_python_function(reference: str, folder: Path) -> PythonFunction:
    """Load and execute ``FILE.py:FUNCTION``, relative to *folder*. Raises ValueError if that fails."""
    name, _, function = reference.rpartition(":")
    if not name.endswith(".py") or not function.isidentifier():
        raise ValueError("must be a section of members, or FILE.py:FUNCTION")
    path = folder / name
    try:
        with open_regular_file(path) as file:
            content = read_rest_within_limit(file, MAX_BYTES)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    digest = hashlib.sha256(content)
    found = getattr(_import_module(path, content, digest.hexdigest()), function, None)
    if not callable(found):
        raise ValueError(f"{path} has no function {function!r}")  # noqa: TRY004  the config is wrong
    imported: dict[str, bytes] = {}
    _collect_imported_sources(content, "", imported)
    for name, source in sorted(imported.items()):
        digest.update(f"{name} {len(source)} ".encode() + source)
    return PythonFunction(reference, found, digest.hexdigest())


def _import_module(path: Path, content: bytes, digest: str) -> Any:
    place = hashlib.sha256(bytes(path.absolute())).hexdigest()  # it may read files beside it, which other copies lack
    module_name = f"{MODULE_PREFIX}{path.stem}_{place[:8]}_{digest[:16]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    loader = _UncachedSourceLoader(module_name, str(path), content)
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pydantic look their module up
    try:
        with _compiling_imports_from_source():
            loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(module_name, None)  # its code may have removed it
        if is_interruption_or_engine_error(error):
            raise
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else _error_line(error, path)
        raise ValueError(
            f"{path}:{line or 1} raised {shortened_text(type(error).__name__)}: {masked_error_text(error)}"
        ) from None
    return module


def _error_line(error: BaseException, path: Path) -> int | None:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


_SOURCES: dict[str, bytes] = {}
"""What each imported file had when it was read first: a process that goes on has not imported its later changes."""


class _UncachedSourceLoader(SourceFileLoader):
    """Compiles the source itself: stored bytecode counts for any file with the same size and second of change."""

    def __init__(self, fullname: str, path: str, content: bytes | None = None) -> None:
        super().__init__(fullname, path)
        self._content = content

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  of the interface
        if self._content is None:
            _SOURCES[self.path] = self._content = self.get_data(self.path)
        code: CodeType = self.source_to_code(self._content, self.path)
        return code


class _SourceFinder(MetaPathFinder):
    """Finds modules as other finders do, and compiles from source those that are not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        others = [each for each in sys.meta_path if not isinstance(each, _SourceFinder)]
        found = (each.find_spec(fullname, path, target) for each in others)
        spec = next((each for each in found if each is not None), None)
        if spec is not None and type(spec.loader) is SourceFileLoader and not _is_installed(spec.loader.path, fullname):
            spec.loader = _UncachedSourceLoader(spec.loader.name, spec.loader.path)
        return spec


@contextmanager
def _compiling_imports_from_source() -> Iterator[None]:
    finder = _SourceFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _collect_imported_sources(content: bytes, package: str, found: dict[str, bytes]) -> None:
    """Find imported modules. Imports inside functions do not count: whether they have happened yet differs."""
    for name in _imported_names(content, package):
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if module is None or not isinstance(path, str) or name in found or _is_installed(path, name):
            continue
        found[name] = _source_when_first_read(path)
        _collect_imported_sources(found[name], module.__package__ or "", found)


def _imported_names(content: bytes, package: str) -> Iterator[str]:
    nodes = list[ast.AST]()
    with suppress(SyntaxError, ValueError):  # the file was changed since it was imported
        nodes.append(ast.parse(content))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_and_parents(alias.name)
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            with suppress(ImportError):  # above the topmost package: nothing was imported
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                yield from _module_and_parents(base)
                yield from (f"{base}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += ast.iter_child_nodes(node)


def _module_and_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:number]) for number in range(1, len(parts) + 1))


def _is_installed(path: str, name: str) -> bool:
    package = name.partition(".")[0]
    is_added = package == "crossdock" or package in sys.stdlib_module_names
    return is_added or not {"site-packages", "dist-packages"}.isdisjoint(Path(path).parts)


def _source_when_first_read(path: str) -> bytes:
    if path not in _SOURCES:  # not imported by a mapping
        try:
            _SOURCES[path] = Path(path).read_bytes() if path.endswith(".py") else b""
        except OSError:  # removed since it was imported; the next process says so
            _SOURCES[path] = b""
    return _SOURCES[path]
