"""JSON that a page shows after commands, compared with what they print."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Normal = Callable[[str], str]


def differences(told: Any, real: Any, normal: Normal, at: str = "") -> list[str]:
    """Return what of *told* is not in *real*: members, types, and values that are the same each time.

    A page may leave out members, and elements of a list. *normal* takes out of a text what differs each time.
    """
    if type(told) is not type(real):
        return [f"{at or 'the document'}: {real!r} in place of {told!r}"]
    if isinstance(told, dict):
        lacking = [f"{at}/{name} is not there" for name in told if name not in real]
        both = [name for name in told if name in real]
        return lacking + [each for name in both for each in differences(told[name], real[name], normal, f"{at}/{name}")]
    if isinstance(told, list):
        return [each for item in told for each in _nearest(item, real, normal, at)]
    is_same = told == real
    if isinstance(told, str):
        is_same = normal(told) == normal(real)
    elif not isinstance(told, bool):
        is_same = True  # numbers differ from run to run
    return [] if is_same else [f"{at}: {real!r} in place of {told!r}"]


def _nearest(told: Any, real: list[Any], normal: Normal, at: str) -> list[str]:
    """The differences from the most similar element of *real*."""
    found = [differences(told, each, normal, f"{at}[]") for each in real]
    return min(found, key=len, default=[f"{at}: the list is empty"])
