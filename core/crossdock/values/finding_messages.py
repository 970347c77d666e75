"""Pydantic's findings in the terms of a config file."""

from __future__ import annotations

from typing import Any

_SHOWN_CHARACTERS = 500
_A_SECTION = "must be a section of keys"
_MESSAGES = {
    "too_short": "name at least one",
    "tuple_type": "must be a list: [NAME]",
    "missing": "is missing",
    "extra_forbidden": "is not known",
    "string_type": "must be text",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "list_type": "must be a list",
    "decimal_type": "must be a number",
    "decimal_parsing": "must be a number",
    "date_type": "must be a date",
    "date_from_datetime_parsing": "must be a date",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "model_type": _A_SECTION,
    "model_attributes_type": _A_SECTION,
    "dict_type": _A_SECTION,
    "mapping_type": _A_SECTION,
    "union_tag_not_found": "kind is missing",
    "union_tag_invalid": "unknown kind; known: {expected_tags}",
}


def message_of(item: Any) -> str:
    """Return the message for an item of `pydantic.ValidationError.errors`, never with the value."""
    if item["type"] in _MESSAGES:
        return _MESSAGES[item["type"]].format(**item.get("ctx", {}))
    message: str = item["msg"].removeprefix("Value error, ")
    return message if len(message) <= _SHOWN_CHARACTERS else f"{message[:_SHOWN_CHARACTERS]} ..."
