"""Bodies of orders that a fake 3PL accepts."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tests.partners.plain_3pl_habits import RefusedError
from tests.partners.plain_3pl_warehouse import Warehouse

_NEEDED = {"owner", "reference", "lines"}
_MEMBERS = _NEEDED | {"placed_at", "currency", "customer", "ship_to"}
_LINE_NEEDED = {"sku", "quantity"}
_LINE_MEMBERS = _LINE_NEEDED | {"unit_price"}
_READ_ONLY = {"id", "status", "created_at", "updated_at"}
_LINE_READ_ONLY = {"line", "shipped", "short"}


def accepted(body: Mapping[str, Any], warehouse: Warehouse) -> dict[str, Any]:
    """The members of an order that a client may set; those that only the 3PL sets are ignored, as in a read order.

    Raises:
        RefusedError: 422 for a member that is unknown, missing or bad, or a product that the owner does not have.
    """
    order = _known(body, _MEMBERS, _NEEDED, _READ_ONLY, "the order")
    for name in ("owner", "reference"):
        if not isinstance(order[name], str) or not order[name]:
            raise RefusedError(422, "bad_value", f"{name} must be a text")
    if not isinstance(order["lines"], list) or not order["lines"]:
        raise RefusedError(422, "bad_value", "lines must be a list of at least one line")
    order["lines"] = [_accepted_line(line, order["owner"], warehouse) for line in order["lines"]]
    return order


def _accepted_line(body: Any, owner: str, warehouse: Warehouse) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise RefusedError(422, "bad_value", "a line must be an object")
    line = _known(body, _LINE_MEMBERS, _LINE_NEEDED, _LINE_READ_ONLY, "a line")
    if not is_number(line["quantity"]) or line["quantity"] <= 0:
        raise RefusedError(422, "bad_value", "the quantity of a line must be a number above zero")
    if not is_number(line.get("unit_price", 0)):
        raise RefusedError(422, "bad_value", "the unit_price of a line must be a number")
    if not warehouse.has_product(owner, line["sku"]):
        raise RefusedError(422, "unknown_product", f"{owner} has no product {line['sku']!r}")
    return line


def _known(
    body: Mapping[str, Any], members: set[str], needed: set[str], read_only: set[str], what: str
) -> dict[str, Any]:
    kept = {name: value for name, value in body.items() if name not in read_only}
    if unknown := sorted(kept.keys() - members):
        raise RefusedError(422, "unknown_member", f"{what} has the unknown member {unknown[0]!r}")
    if missing := sorted(needed - kept.keys()):
        raise RefusedError(422, "missing_member", f"{what} lacks {missing[0]!r}")
    return kept


def is_number(value: object) -> bool:
    """Whether a value of exact JSON is a number."""
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def merged(target: Any, patch: Any) -> Any:
    """*target* with a merge patch applied (RFC 7396): null removes a member, a list replaces the whole list."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result
