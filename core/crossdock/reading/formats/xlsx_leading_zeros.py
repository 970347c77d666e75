"""Leading zeros that cells of an xlsx file show but their numbers lack: 17 in the number format ``00000`` is 00017.

Number formats are those of ECMA-376, part 1, 18.8.31.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

from msgspec import Struct

from crossdock.reading.formats.lost_digits_of_doubles import KEPT_DIGITS

_TOKEN = re.compile(
    r"""
      (?P<digit>0) | (?P<optional>[#?]) | (?P<end>;)
    | \\(?P<escaped>.) | "(?P<quoted>[^"]*)" | (?P<plain>[- ()+:!^&'~{}<>=])
    | \[(?P<test>[<>]=?|<>|=)(?P<limit>-?\d+(?:\.\d+)?)\]
    | (?P<silent>\[\$[^]]*\] | \[(?:black|blue|cyan|green|magenta|red|white|yellow|color\ ?\d+)\]
        | [_*]. | ,(?=[0#?]) | \.(?![#?]*0)[#?]*)
    | (?P<other>.)
    """,
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
"""A part of a number format. Silent are languages, colours, widths, what fills a cell, separators of thousands, and the
point behind a whole number."""
_TESTS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "<>": operator.ne,
}
_LEAST_DIGITS = 2
_EXACT = 10**KEPT_DIGITS

Shape = tuple[str, ...]
"""The output of a number format; each empty text is a digit."""


class Section(Struct, frozen=True):
    """A number format for numbers that pass `test`. `shape` is None if it shows more than digits with leading zeros."""

    test: tuple[str, Decimal] | None
    shape: Shape | None

    def holds_for(self, number: Decimal) -> bool:
        return self.test is not None and _TESTS[self.test[0]](number, self.test[1])


Sections = tuple[Section, ...]
"""A number format without its section for texts: for positive and negative numbers and zero, or with tests."""


def parse_number_format(code: str) -> Sections | None:
    sections, test, parts, others, is_open = list[Section](), None, list[str](), "", False
    for token in _TOKEN.finditer(f"{code};"):
        match token.lastgroup:
            case "end":
                is_shape = not others and parts.count("") >= _LEAST_DIGITS
                if "@" not in others:
                    sections.append(Section(test, tuple(parts) if is_shape else None))
                test, parts, others, is_open = None, [], "", False
            case "limit":
                test = token["test"], Decimal(token["limit"])
            case "digit":
                parts.append("")
            case "optional" if "" in parts:  # behind a 0, the others are shown, too
                parts.append("")
            case "optional":
                is_open = True
            case "other":
                others += token[0]
            case "escaped" | "quoted" | "plain" as kind if text := token[kind]:
                others += text if is_open and "" not in parts else ""  # it would stand among digits that are more
                parts.append(text)
    return tuple(sections) if any(section.shape for section in sections) else None


def _shape_of_matching_section(number: Decimal, sections: Sequence[Section]) -> Shape | None:
    tests = sum(section.test is not None for section in sections[:2])
    if not tests:
        return sections[2 if not number and sections[2:] else 0].shape
    if sections[0].test is None:
        return None
    place = next((place for place in range(tests) if sections[place].holds_for(number)), tests)
    return sections[place].shape if place < len(sections) else None


def with_leading_zeros(value: Any, sections: Sequence[Section]) -> Any:
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    number = Decimal(repr(value))
    if not 0 <= number < _EXACT or number != number.to_integral_value():
        return value
    shape = _shape_of_matching_section(number, sections)
    if shape is None:
        return value
    text = str(int(number)).zfill(shape.count(""))
    digits = iter([text[: len(text) - shape.count("") + 1], *text[len(text) - shape.count("") + 1 :]])
    return "".join(part or next(digits) for part in shape)
