"""Layouts of XML files that cannot be meant are refused when the config is loaded."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from tests.unit.formats.layouts import layout

FORM: dict[str, Any] = {"kind": "xml", "record": "/A/R", "columns": {"X": "X"}}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"record": "A/R"}, "a path from the root"),
        ({"record": "//R"}, "a path of elements from the root"),
        ({"record": "/A/@r"}, "a path of elements from the root"),
        ({"record": "/A/R[1]"}, "a path of elements from the root"),
        ({"record": "/A" * 40}, "at most 32 names"),
        ({"columns": {}}, "at least 1 item"),
        ({"columns": {"X": "@a/b"}}, "a path such as"),
        ({"columns": {"X": "../b"}}, "a path such as"),
        ({"columns": {"X": "b/text()"}}, "a path such as"),
        ({"columns": {"_line": "b"}}, "reserved"),
        ({"columns": {"X": "/A/R/b"}}, "inside of the record: begin it there"),
        ({"columns": {"X": "/A"}}, "an element around the records"),
        ({"columns": {"X": "b", "Y": "b"}}, "X and Y have the same path"),
        ({"columns": {"X": "b", "Y": "b/c"}}, "X is the text of an element inside of which"),
        ({"columns": {"X": ".", "Y": "c"}}, "X is the text of an element inside of which"),
        ({"columns": {"X": "L"}, "rows": "L/M"}, "X is the text of an element inside of which"),
        ({"columns": {"X": "w:b"}}, "namespaces lack the prefix 'w'"),
        ({"record": "/w:A/w:R"}, "namespaces lack the prefix 'w'"),
        ({"count": "Count"}, "a path from the root"),
        ({"count": "/A/R/@n"}, "must be outside of the records"),
        ({"rows": "/A/R/L"}, "inside of the record"),
        ({"encoding": "base64"}, "is not a character encoding"),
        ({"namespaces": {"w": "a b"}}, "pattern"),
    ],
)
def test_a_layout_that_cannot_be_meant_is_refused(more: dict[str, Any], says: str) -> None:
    """The error names the key, and says what it can be."""
    with pytest.raises(ValidationError, match=says):
        layout(**FORM | more)


def test_paths_may_share_elements() -> None:
    """An attribute beside the text of the same element is another value."""
    form = layout(**FORM | {"columns": {"X": "b", "Y": "b/@unit", "Z": "@b"}, "rows": "L", "count": "/A/@n"})
    assert form.states_rows
