"""Where everything is: a method and a path name one operation on a collection or on one of its resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crossdock.sandbox.collections import COLLECTIONS, Collection
from crossdock.sandbox.problem_answers import ProblemError

_OF_ALL = {"GET": "list", "POST": "create"}
_OF_ONE = {"GET": "get", "PATCH": "update", "DELETE": "delete"}
_BELOW_ONE: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("invoice", "approve"): {"POST": "approve"},
    ("inventory_lot", "movements"): {"POST": "move"},
    ("ledger_account", "entries"): {"GET": "entries"},
}


class Route(NamedTuple):
    """What is to be done, and to which resource; the *target* is "" for the collection itself."""

    operation: str
    collection: Collection
    target: str


def find_route(method: str, path: str) -> Route:
    """What is asked for; 404 where there is nothing, 405 where there is no such method."""
    for depth in range(3):
        above, *below = path.rsplit("/", depth)
        collection = COLLECTIONS.get(above)
        if collection is None or not all(below):
            continue
        below_one = _BELOW_ONE.get((collection.kind.name, below[-1] if below else ""), {})
        if operations := (_OF_ALL, _OF_ONE, below_one)[depth]:
            if method not in operations:
                headers = {"allow": ", ".join(operations)}
                raise ProblemError(405, "This path has no such method.", headers=headers)
            return Route(operations[method], collection, below[0] if below else "")
    raise ProblemError(404, "There is nothing at this path.")
