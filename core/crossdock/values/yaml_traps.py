"""Plain YAML scalars that people mean as text and YAML 1.1 reads differently, with the needed quoting."""

from __future__ import annotations

import re

_TRUE, _FALSE = frozenset({"yes", "on"}), frozenset({"no", "off"})
_NUMBERS = (  # forms that no setting needs as a number, each with how the others are written
    (re.compile(r"[-+]?0[xb].*"), "is a hexadecimal or binary number in YAML", '"0x1F"'),
    (re.compile(r"[-+]?0[0-7_]+"), "is an octal number in YAML", '"0017"'),
    (re.compile(r"[-+]?0[0-9_]+\..*"), "is a number in YAML, without its leading zeros", '"007.50"'),
    (re.compile(r"[-+]?[0-9_]+(:[0-9]+)+(\.[0-9_]*)?"), "is a number to base 60 in YAML", '"12:30"'),
)


def number_trap(text: str) -> str | None:
    """Return what is wrong with a plain scalar that is such a number, or None. The message never quotes *text*."""
    for form, problem, example in _NUMBERS:
        if form.fullmatch(text):
            return f"{problem}: quote it if it is text, as in {example}"
    return None


def boolean_trap(text: str) -> str | None:
    """Return what is wrong with a plain boolean that may be meant as text, such as ``NO``, or None."""
    if text.lower() not in _TRUE | _FALSE:
        return None
    meant = "true" if text.lower() in _TRUE else "false"
    return f'{text} is the boolean {meant} in YAML: quote it for text, "{text}", or write {meant}'


def must_be_text(text: str | None) -> str:
    """Make a message for a value that is not text.

    Args:
        text: The plain scalar as written; None for a section or a list. Only words are repeated in the message.
    """
    if text is None:
        return "must be text"
    if not text:
        return "is empty; an empty text is written as two quotes"
    if text == "~" or text.lower() == "null":
        return f'must be text: {text} means no value in YAML; quote it, "{text}"'
    if text.isalpha():
        return f'must be text: {text} is a boolean in YAML; quote it, "{text}"'
    return "must be text: quote numbers and dates, and words such as yes and no"
