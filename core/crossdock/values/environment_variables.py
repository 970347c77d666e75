"""``${NAME}`` and ``${NAME:-default}`` in texts, replaced by environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_VALUES = 1 << 20
"""Characters that variables may add to one text."""
_FORM = re.compile(r"\$\$|\$\{(?:([A-Za-z_][A-Za-z0-9_]{0,199})(?::-([^{}]*))?\}|)")


def substitute_variables(text: str, environment: Mapping[str, str]) -> str:
    """Replace each ``${NAME}`` in *text* by that variable, and ``$$`` by a dollar.

    ``${NAME:-default}`` is *default* if the variable is unset or empty. Values are not searched for further variables.
    Raises ValueError if a variable is not set, ``${`` begins neither form, or the values have more than `MAX_VALUES`
    characters. It names the variable, never a value.
    """
    parts: list[str] = []
    end = size = 0
    for found in _FORM.finditer(text):
        value = _value(found, environment)
        size += len(value)
        if size > MAX_VALUES:
            raise ValueError(f"has variables of more than {MAX_VALUES:,} characters")
        parts += (text[end : found.start()], value)
        end = found.end()
    return "".join([*parts, text[end:]])


def escape_dollars(text: str) -> str:
    return re.sub(r"\$(?=[${])", "$$", text)


def _value(found: re.Match[str], environment: Mapping[str, str]) -> str:
    name, default = found.groups()
    if found[0] == "$$":
        return "$"
    if name is None:
        raise ValueError("${ must begin ${NAME} or ${NAME:-default}; write $$ for a dollar")
    if default is not None:
        return environment.get(name) or default
    if name not in environment:
        raise ValueError(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
    return environment[name]
