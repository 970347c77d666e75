"""The tokens of GraphQL documents."""

from __future__ import annotations

import re
from itertools import pairwise

_TOKEN = re.compile(
    r"""
    (?: [\s,\ufeff] | \#[^\n\r]* )*+
    ( \"{3} (?:[^\"\\] | \\. | \"{1,2}(?!\"))*+ \"{3} | " (?:[^"\\\n] | \\.)*+ " | \.\.\. | -?[\w.]+[+-]?\w* | \S | \Z )
    """,
    re.VERBOSE | re.DOTALL,
)  # https://spec.graphql.org/October2021/#sec-Appendix-Grammar-Summary.Lexical-Tokens


def graphql_tokens(document: str) -> list[str]:
    """Return the tokens of *document*, without comments. The last one is empty."""
    return [found[1] for found in _TOKEN.finditer(document)]


def graphql_variables(document: str) -> list[str]:
    """Return the variables that *document* names, without the dollar, each once."""
    tokens = graphql_tokens(document)
    return list(dict.fromkeys(name for mark, name in pairwise(tokens) if mark == "$"))
