"""GraphQL documents are read by their tokens."""

from __future__ import annotations

import pytest

from crossdock.values.graphql_tokens import graphql_variables


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ('query($id: ID!, $after: String = "$x") { a(id: $id, b: $after) }', ["id", "after"]),
        ("{ a }", []),
        ("", []),
        ("{ a } # $b\r\n# $c", []),
        ("{ a(b: $b) } # $c", ["b"]),
        ('{ a(b: "# $c", d: $d) }', ["d"]),
        (r'{ a(b: "\" $c", d: $d) }', ["d"]),
        ('{ a(b: """ "$c" \\""" # $e """, d: $d) }', ["d"]),
        ("{ a(b: $ b, c: $,c) }", ["b", "c"]),
        ("query($a: A){a(a:$a)...F}fragment F on T{b(c:$c)}", ["a", "c"]),
        ("{ a(b: { c: [$c1, $C_2] }) }", ["c1", "C_2"]),
    ],
)
def test_variables_are_named_by_tokens(document: str, names: list[str]) -> None:
    """Comments and texts name none, wherever they are, and a variable that is named twice is one."""
    assert graphql_variables(document) == names
