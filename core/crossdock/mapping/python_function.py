"""A mapping function in a Python file beside the config: ``map: file.py:function``."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
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
        digest: SHA-256 of the file. If it changes, all records are mapped again.
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
    digest = hashlib.sha256(content).hexdigest()
    found = getattr(_module(path, digest), function, None)
    if not callable(found):
        raise ValueError(f"{path} has no function {function!r}")  # noqa: TRY004  the config is wrong
    return PythonFunction(reference, found, digest)


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
