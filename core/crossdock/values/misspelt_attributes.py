"""Attributes of authors' classes whose names are nearly those of the base class, and so would have no effect."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from types import FunctionType
from typing import Any

from crossdock.values.author_code_errors import is_module_of_author

_NEAR = 0.8  # ``exsisting`` is as near to ``existing``; ``fetch_all`` is not to ``fetch``
_NONE = object()


def misspelt_attribute_class_and_message(made: object, fits: Callable[[str, Any], bool]) -> tuple[type, str] | None:
    """Return the class that has an attribute which must be meant for one of the base class, and the message, or None.

    Other names are the author's own: private ones, those of a class that also has the right name, functions with
    other parameters, and values that do not fit.

    Args:
        made: An object of an author's class, which extends one of crossdock's.
        fits: Whether a value can be that of the attribute of the base class with this name.
    """
    kinds = type(made).__mro__
    bases = [vars(each) for each in kinds if _is_crossdock_class(each)]
    known = {name: _NONE for each in kinds if _is_crossdock_class(each) for name in inspect.get_annotations(each)}
    known |= {name: value for members in reversed(bases) for name, value in members.items()}
    known = {name: value for name, value in known.items() if not name.startswith("_")}
    meant = {name: value for name, value in known.items() if not isinstance(value, property)}
    for owner, members in _author_classes_with_members(made):
        for name, value in members.items():
            right = None if name.startswith("_") or name in known else _nearest(name, meant)
            if (
                right is not None
                and right not in members
                and _is_meant_for_base_attribute(made, name, value, right, meant[right], fits)
            ):
                return owner, f"{name}: did you mean {right!r}?"
    return None


def _is_crossdock_class(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "crossdock"


def _author_classes_with_members(made: object) -> Iterator[tuple[type, Mapping[str, Any]]]:
    yield type(made), getattr(made, "__dict__", {})
    for kind in type(made).__mro__:
        if is_module_of_author(kind.__module__):
            yield kind, vars(kind)


def _nearest(name: str, known: Mapping[str, Any]) -> str | None:
    spelled = {each.lower(): each for each in known if abs(len(each) - len(name)) <= 3}
    return next((spelled[each] for each in get_close_matches(name.lower(), spelled, n=1, cutoff=_NEAR)), None)


def _is_meant_for_base_attribute(
    made: object, name: str, value: Any, right: str, theirs: Any, fits: Callable[[str, Any], bool]
) -> bool:
    if isinstance(value, FunctionType) or isinstance(theirs, FunctionType):
        both = isinstance(value, FunctionType) and isinstance(theirs, FunctionType)
        return both and _parameter_count(value) == _parameter_count(theirs)
    given = getattr(made, name) if hasattr(type(value), "__get__") else value
    return given is not None and fits(right, given) and given != theirs  # its default has no effect either


def _parameter_count(function: FunctionType) -> int:
    return function.__code__.co_argcount
