"""Which characters a text may hold: none that prints nothing, since two texts that look equal should be equal."""

from __future__ import annotations

import re
from functools import cache

_CONTROLS = r"\u0000-\u001f\u007f-\u009f"
_CONTROLS_IN_LINES = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"  # without tab, line feed, carriage return
_UNSEEN = r"\u200b\u2028-\u202e\u2060-\u206f\ufeff"  # zero-width, separators, changes of direction
_JOINERS = r"\u200c-\u200f"  # names in Persian or Hindi are misspelt without them; codes never need them

_LINES = frozenset({"description"})
_PROSE = frozenset({"name", "line1", "line2", "city", "region"})
_SPECIAL = _LINES | _PROSE


def pattern(member: str) -> str:
    """The regular expression, the same in JSON Schema and in Python, that every text of a *member* matches."""
    if member in _LINES:
        return f"^[^{_CONTROLS_IN_LINES}{_UNSEEN}]*$"
    return f"^[^{_CONTROLS}{_UNSEEN}{'' if member in _PROSE else _JOINERS}]*$"


def is_clean(member: str, text: str) -> bool:
    return _compiled(member if member in _SPECIAL else "").fullmatch(text) is not None


@cache
def _compiled(member: str) -> re.Pattern[str]:
    return re.compile(pattern(member))
