"""What a query costs, and the bucket that pays for it.

Rules, from shopify.dev/docs/apps/build/apis/graphql-admin/rate-limits: scalars and enums are free, an object costs 1,
an interface or union the most expensive of its selections, a mutation 10 whatever it returns. The size of a connection
counts logarithmically: 2 + floor(2 ln n) times what one node costs, and some value objects are free, as Shopify's staff
told at community.shopify.dev/t/how-to-calculate-graphql-cost-estimates/24364. It agrees with two costs that Shopify
itself answered: 3 for ``products(first: 1) {edges {node {title}}}``, and 25 for 250 variants with their inventory items
(community.shopify.dev/t/23101). Left open: a list that is no connection counts here as one object.

The actual cost is that of what was found, with connections as long as they are; it is never above the requested one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from math import floor, log
from typing import Any

from graphql import (
    FieldNode,
    FragmentSpreadNode,
    GraphQLNamedType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_named_type,
    is_composite_type,
    is_interface_type,
    is_object_type,
    is_union_type,
)
from graphql.execution.values import VariableValues, get_argument_values

MAX_COST = 1000
"""Of one query, whatever the bucket holds."""
_MUTATION = 10
_FREE = frozenset({"address", "billingAddress", "currencyFormats", "measurement", "unitCost", "pageInfo", "edges"})
_ASKED = object()  # stands for data that is not known yet


class Costs:
    """Costs of one operation."""

    def __init__(self, schema: GraphQLSchema, fragments: Mapping[str, Any], variables: VariableValues) -> None:
        self._schema, self._fragments, self._variables = schema, fragments, variables

    def of(self, operation: OperationDefinitionNode, data: Any = _ASKED) -> int:
        """The requested cost, or with *data*, the result, the actual one."""
        if operation.operation.value == "mutation":
            return _MUTATION * len(operation.selection_set.selections)
        root = self._schema.query_type
        assert root is not None
        return self._selections(operation.selection_set, root, data)

    def _selections(self, selected: SelectionSetNode, parent: GraphQLNamedType, data: Any) -> int:
        if data is None:
            return 0
        own, by_type = 0, [0]
        for node in selected.selections:
            match node:
                case FieldNode():
                    own += self._field(node, parent, data)
                case InlineFragmentNode() | FragmentSpreadNode():
                    fragment = node if isinstance(node, InlineFragmentNode) else self._fragments[node.name.value]
                    condition = fragment.type_condition
                    kind = self._schema.type_map[condition.name.value] if condition else parent
                    cost = self._selections(fragment.selection_set, kind, data)
                    if kind is parent or not (is_interface_type(parent) or is_union_type(parent)):
                        own += cost
                    else:
                        by_type.append(cost)
        return own + max(by_type)

    def _field(self, node: FieldNode, parent: GraphQLNamedType, data: Any) -> int:
        name = node.name.value
        definition = parent.fields.get(name) if is_object_type(parent) or is_interface_type(parent) else None
        if definition is None or node.selection_set is None:
            return 0
        kind = get_named_type(definition.type)
        if not is_composite_type(kind):
            return 0
        value = _ASKED if data is _ASKED else data.get(node.alias.value if node.alias else name)
        if kind.name.endswith("Connection"):
            arguments = get_argument_values(definition, node, self._variables)
            return self._connection(node.selection_set, kind, value, arguments.get("first"))
        inside = max((self._selections(node.selection_set, kind, one) for one in _each(value)), default=0)
        return inside if name in _FREE else 1 + inside

    def _connection(self, selected: SelectionSetNode, kind: GraphQLNamedType, value: Any, first: int | None) -> int:
        if value is _ASKED:
            size, found = first or 0, _ASKED
        else:
            lists = [one for one in (value or {}).values() if isinstance(one, list)]
            size, found = max((len(one) for one in lists), default=0), value
        if not size:
            return 2
        return 2 + floor(2 * log(max(2, size))) * self._selections(selected, kind, found)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True, slots=True)
class Plan:
    """Points that come back each second, and the most that the bucket holds."""

    restore_rate: int
    maximum: int


STANDARD = Plan(100, 2000)
"""The rate is in the documentation, the size is what shops of this plan answer (community.shopify.dev/t/23101)."""


class Bucket:
    """A leaky bucket for one app and one shop, full at first."""

    def __init__(self, plan: Plan, now: Callable[[], datetime]) -> None:
        self.plan, self._now = plan, now
        self._points, self._filled = Decimal(plan.maximum), now()

    def available(self) -> Decimal:
        now = self._now()
        passed = Decimal(str((now - self._filled).total_seconds()))
        self._points = min(Decimal(self.plan.maximum), self._points + passed * self.plan.restore_rate)
        self._filled = now
        return self._points

    def take(self, cost: int) -> bool:
        """Take *cost* points; False, and nothing is taken, if there are not as many."""
        if self.available() < cost:
            return False
        self._points -= cost
        return True

    def give_back(self, cost: int) -> None:
        self._points = min(Decimal(self.plan.maximum), self.available() + cost)

    def empty(self) -> None:
        """Let other requests of the app have used all of it."""
        self._points = min(self.available(), Decimal(0))

    def shown(self, requested: int, actual: int | None) -> dict[str, Any]:
        """``extensions.cost``; two of its numbers have a decimal point, as shops answer."""
        status = {
            "maximumAvailable": float(self.plan.maximum),
            "currentlyAvailable": int(self.available()),
            "restoreRate": float(self.plan.restore_rate),
        }
        return {"requestedQueryCost": requested, "actualQueryCost": actual, "throttleStatus": status}
