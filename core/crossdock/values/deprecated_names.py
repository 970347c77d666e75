"""Public names that were renamed, which work for one minor release with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def resolve_deprecated_name(module: str, name: str, new_names: Mapping[str, str]) -> Any:
    """Return what *name* stands for, with a DeprecationWarning; for ``__getattr__`` of a module.

    Args:
        new_names: Former names in the module, with what to use instead, such as ``crossdock.sources.Api``.

    Raises:
        AttributeError: If the module never had the name.
    """
    if name not in new_names:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    home, _, new = new_names[name].rpartition(".")
    message = f"{module}.{name} is deprecated and will be removed in the next minor release; use {home}.{new}"
    warnings.warn(message, DeprecationWarning, stacklevel=3)
    return getattr(import_module(home), new)
