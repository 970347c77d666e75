"""Variables of GraphQL queries: servers ignore one that the query does not name, and answer as if it were not sent."""

from __future__ import annotations

from crossdock.values.graphql_tokens import graphql_variables


def unnamed_variable_text(query: str, name: str) -> str | None:
    """Return what is wrong if *query* does not name the variable *name*, or None."""
    named = graphql_variables(query)
    if name in named:
        return None
    listed = ", ".join(f"${each}" for each in named) or "no variable"
    return f"the query does not name ${name}, and servers ignore a variable that they do not know; it names {listed}"
