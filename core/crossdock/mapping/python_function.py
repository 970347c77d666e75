"""A mapping function in a Python file beside the config: ``map: file.py:function``."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crossdock.records import Record
from crossdock.values.author_code import MODULE_PREFIX, brief, interrupts, text_of
from crossdock.values.config_file import MAX_BYTES
from crossdock.values.local_files import open_regular, read_bounded


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A loaded function.

    Attributes:
        reference: The text in the config.
        digest: SHA-256 of the file and of the modules that it imports, unless they are installed. If it changes, all
            records are mapped again.
    """

    reference: str
    call: Callable[[Record], Any]
    digest: str


def load(reference: str, folder: Path) -> PythonFunction:
    """Load ``FILE.py:FUNCTION``, where the file is relative to *folder*. The file is executed.

    Raises:
        ValueError: If the file or the function does not exist, or the file fails.
    """
    name, _, function = reference.rpartition(":")
    if not name.endswith(".py") or not function.isidentifier():
        raise ValueError("must be a section of members, or FILE.py:FUNCTION")
    path = folder / name
    try:
        with open_regular(path) as file:
            content = read_bounded(file, MAX_BYTES)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    digest = hashlib.sha256(content)
    found = getattr(_module(path, digest.hexdigest()), function, None)
    if not callable(found):
        raise ValueError(f"{path} has no function {function!r}")  # noqa: TRY004  the config is wrong
    imported: dict[str, bytes] = {}
    _find_imported(content, "", imported)
    for name, source in sorted(imported.items()):
        digest.update(f"{name} {len(source)} ".encode() + source)
    return PythonFunction(reference, found, digest.hexdigest())


def _module(path: Path, digest: str) -> Any:
    module_name = f"{MODULE_PREFIX}{path.stem}_{digest[:16]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses and pydantic look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[module_name]
        if interrupts(error):
            raise
        line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else _line(error, path)
        raise ValueError(f"{path}:{line or 1} raised {brief(type(error).__name__)}: {text_of(error)}") from None
    return module


def _line(error: BaseException, path: Path) -> int | None:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _find_imported(content: bytes, package: str, found: dict[str, bytes]) -> None:
    """Add the sources of the modules that *content* imports, directly or not, without those that are installed.

    Imports inside functions do not count: whether they have happened yet differs.
    """
    for name in _imported_names(content, package):
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if module is None or path is None or name in found or _is_installed(path, name):
            continue
        found[name] = _loaded_source(path)
        _find_imported(found[name], module.__package__ or "", found)


def _imported_names(content: bytes, package: str) -> Iterator[str]:
    nodes = list[ast.AST]()
    with suppress(SyntaxError):  # the file was changed since it was imported
        nodes.append(ast.parse(content))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom) and (package or not node.level):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield from _with_parents(base)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += ast.iter_child_nodes(node)


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:number]) for number in range(1, len(parts) + 1))


def _is_installed(path: str, name: str) -> bool:
    package = name.partition(".")[0]
    is_ours = package == "crossdock" or package in sys.stdlib_module_names
    return is_ours or not {"site-packages", "dist-packages"}.isdisjoint(Path(path).parts)


@cache
def _loaded_source(path: str) -> bytes:
    """Return what *path* had when it was first read: a process that goes on has not imported its later changes."""
    try:
        return Path(path).read_bytes() if path.endswith(".py") else b""
    except OSError:  # removed since it was imported; the next process says so
        return b""
