"""Parser of the ``Link`` header field (RFC 8288, appendix B.2)."""

from __future__ import annotations

import re

# The quantifiers are possessive, so the time is linear in the length.
_target = re.compile(r"[\s,]*+<([^>]*+)>").match
_parameter = re.compile(
    r"""
    \s*+ ; \s*+ (?P<name>[^\s=;,]*+) \s*+
    (?: = \s*+ (?: "(?P<quoted>(?:[^"\\]|\\.)*+)"?+ | (?P<plain>[^;,]*+) ) \s*+ )?+
    """,
    re.VERBOSE | re.DOTALL,
).match
_end = re.compile(r"[\s,]*+").fullmatch
_escaped = re.compile(r"\\(.?)", re.DOTALL)


def link_target(field: str, relation: str = "next") -> str | None:
    """The target of the first link in *field* with this *relation*, in lower case; None without one.

    Raises:
        ValueError: If *field* is malformed before such a link.
    """
    at = 0
    while found := _target(field, at):
        relations, at = _relations(field, found.end())
        if relation in relations.lower().split():
            return found[1]
    if not _end(field, at):
        raise ValueError("the Link header field is malformed")
    return None


def _relations(field: str, at: int) -> tuple[str, int]:
    """Return the first parameter ``rel`` of the link whose target ends *at*, and the end of its parameters."""
    relation = None
    while found := _parameter(field, at):
        at = found.end()
        if relation is None and found["name"].lower() == "rel":
            relation = (
                _escaped.sub(r"\1", found["quoted"]) if found["quoted"] is not None else _unquoted(found["plain"] or "")
            )
    return relation or "", at


def _unquoted(text: str) -> str:
    """Remove the single quotes that some servers write in place of double ones."""
    return text.strip().removeprefix("'").removesuffix("'")
