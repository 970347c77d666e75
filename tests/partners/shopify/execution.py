"""Executes GraphQL over the records of the fake Shopify shop: parse, validate, price, resolve."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLResolveInfo,
    OperationDefinitionNode,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    execute_sync,
    get_named_type,
    get_operation_ast,
    parse,
    validate,
    visit,
)
from graphql.execution.values import get_variable_values
from tests.partners.shopify.access import TYPES, check
from tests.partners.shopify.cost import MAX_COST, Bucket, Costs
from tests.partners.shopify.lists import LISTS, Asked, Cursors, Entry, everything, page, place_of
from tests.partners.shopify.records import Record, Records
from tests.partners.shopify.schema import admin_schema
from tests.partners.shopify.search_terms import Search, parsed

_UPPER = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(slots=True)
class Asking:
    """One request as resolvers see it.

    Attributes:
        in_bulk: Whether a bulk operation asks: connections are whole then.
        failing: Names of fields that fail with an internal error of the shop.
        warnings: Of searches, for ``extensions.search``.
    """

    records: Records
    cursors: Cursors
    scopes: frozenset[str]
    zone: ZoneInfo
    in_bulk: bool = False
    failing: frozenset[str] = frozenset()
    warnings: list[dict[str, Any]] = field(default_factory=list)

    def connection(self, entries: list[Entry], asked: Asked) -> dict[str, Any]:
        if self.in_bulk:
            return everything(entries)
        return page(entries, asked, self.cursors, self.records.now())

    def search(self, info: GraphQLResolveInfo[Asking], query: str, name: str | None = None) -> Search:
        """What *query* finds in the list *name*, by default that of the field; its warnings go into the answer."""
        search = parsed(query, LISTS[name or info.field_name].filters, self.zone)
        if search.warnings:
            self.warnings.append({"path": info.path.as_list(), "query": query, "warnings": search.warnings})
        return search


Info = GraphQLResolveInfo[Asking]


@dataclass(frozen=True, slots=True)
class Result:
    """What a request led to. *body* is the JSON of the answer."""

    body: dict[str, Any]
    deprecated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document that is valid, with its operation and what it uses that is deprecated."""

    document: DocumentNode
    operation: OperationDefinitionNode
    deprecated: tuple[str, ...]

    def costs(self, variables: Mapping[str, Any]) -> Costs:
        """What prices the operation.

        Raises:
            InvalidQueryError: If *variables* are not of the declared types.
        """
        values = get_variable_values(admin_schema(), self.operation.variable_definitions or (), dict(variables))
        if isinstance(values, list):
            raise InvalidQueryError(values)
        fragments = {
            one.name.value: one for one in self.document.definitions if isinstance(one, FragmentDefinitionNode)
        }
        return Costs(admin_schema(), fragments, values)


@lru_cache(maxsize=200)
def prepared(query: str, operation_name: str | None = None) -> Prepared:
    """The parsed and validated query.

    Raises:
        InvalidQueryError: With the errors of its answer.
    """
    try:
        document = parse(query)
    except GraphQLError as error:
        raise InvalidQueryError([error]) from None
    if errors := validate(admin_schema(), document):
        raise InvalidQueryError(errors)
    operation = get_operation_ast(document, operation_name)
    if operation is None:
        raise InvalidQueryError([GraphQLError("An operation name is required")])
    return Prepared(document, operation, _deprecated(document))


class InvalidQueryError(Exception):
    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = errors


class _Deprecated(Visitor):
    def __init__(self, types: TypeInfo) -> None:
        super().__init__()
        self._types, self.found = types, list[str]()

    def enter_field(self, node: Any, *_: Any) -> None:
        definition = self._types.get_field_def()
        if definition is not None and definition.deprecation_reason:
            self.found.append(node.name.value)


def _deprecated(document: DocumentNode) -> tuple[str, ...]:
    types = TypeInfo(admin_schema())
    visitor = _Deprecated(types)
    visit(document, TypeInfoVisitor(types, visitor))
    return tuple(visitor.found)


def answer(
    query: str, variables: Mapping[str, Any], operation_name: str | None, root: Any, asking: Asking, bucket: Bucket
) -> Result:
    """Execute a request that the bucket pays for. The requested cost is taken first; what was not used comes back."""
    try:
        ready = prepared(query, operation_name)
        costs = ready.costs(variables)
    except InvalidQueryError as invalid:
        return Result({"errors": [error.formatted for error in invalid.errors]})
    requested = costs.of(ready.operation)
    if requested > MAX_COST:
        return Result({"errors": [_too_expensive(requested)]})
    if not bucket.take(requested):
        return Result(throttled(bucket, requested))
    data, errors = resolved(ready, variables, root, asking)
    actual = costs.of(ready.operation, data)
    bucket.give_back(requested - actual)
    body: dict[str, Any] = {"data": data, **({"errors": errors} if errors else {})}
    extensions: dict[str, Any] = {"cost": bucket.shown(requested, actual)}
    if asking.warnings:
        extensions["search"] = asking.warnings
    return Result({**body, "extensions": extensions}, ready.deprecated)


def resolved(
    ready: Prepared, variables: Mapping[str, Any], root: Any, asking: Asking
) -> tuple[Any, list[dict[str, Any]]]:
    """The data and the errors."""
    result = execute_sync(
        admin_schema(),
        ready.document,
        root,
        asking,
        dict(variables),
        ready.operation.name.value if ready.operation.name else None,
        field_resolver=_resolve,
        type_resolver=_type_of,
    )
    errors = [_as_shown(error) for error in result.errors or []]
    return result.data, errors


def _as_shown(error: GraphQLError) -> dict[str, Any]:
    """The error as JSON; anything but a refusal is a defect of the fake, and is raised."""
    if error.original_error is not None and not isinstance(error.original_error, GraphQLError):
        raise error.original_error
    return dict(error.formatted)


def throttled(bucket: Bucket, requested: int) -> dict[str, Any]:
    """The body of a refusal for want of points, which has the HTTP status 200."""
    code = {"code": "THROTTLED", "documentation": "https://shopify.dev/api/usage/rate-limits"}
    error = {"message": "Throttled", "extensions": code}
    return {"errors": [error], "extensions": {"cost": bucket.shown(requested, None)}}


def _too_expensive(cost: int) -> dict[str, Any]:
    message = (
        f"Query cost is {cost}, which exceeds the single query max cost limit ({MAX_COST}).\n\n"
        "See https://shopify.dev/api/usage/rate-limits for more information on how the\n"
        "cost of a query is calculated.\n"
    )
    code = {"code": "MAX_COST_EXCEEDED", "cost": cost, "maxCost": MAX_COST}
    return {"message": message, "extensions": code}


def _type_of(value: Any, *_: Any) -> str:
    return getattr(value, "type_name", type(value).__name__)


def _resolve(source: Any, info: Info, **arguments: Any) -> Any:
    """The value of a field: a member of a mapping, or the attribute of a record in snake case."""
    asking: Asking = info.context
    named = get_named_type(info.return_type).name
    kind = named.removesuffix("Connection")
    check(info.field_name, TYPES.get(kind, ()), asking.scopes)
    if info.field_name in asking.failing:
        message = "Internal error. Looks like something went wrong on our end."
        raise GraphQLError(message, extensions={"code": "INTERNAL_SERVER_ERROR"})
    value = _value(source, info, arguments)
    if "includeInactive" in arguments and isinstance(value, list):
        search = asking.search(info, arguments.get("query") or "")
        active = (one for one in value if one.is_active or arguments["includeInactive"])
        value = [one for one in active if search.matches(vars(one))]
    if named.endswith("Connection") and isinstance(value, list):
        asked = Asked(
            arguments.get("first"),
            arguments.get("after"),
            f"{getattr(source, 'id', '')} {info.field_name}",
            arguments.get("reverse", False),
        )
        return asking.connection([Entry(one, _place(one)) for one in value], asked)
    if isinstance(value, list) and arguments.get("first") is not None:
        return value[: arguments["first"]]
    return value if not isinstance(value, Record) or _exists(asking.records, value) else None


def _value(source: Any, info: Info, arguments: Mapping[str, Any]) -> Any:
    if isinstance(source, Mapping):
        value = source.get(info.field_name)
        return value(info, **arguments) if callable(value) else value
    value = getattr(source, snake(info.field_name), None)
    return value(**{snake(name): one for name, one in arguments.items()}) if callable(value) else value


def _exists(records: Records, record: Record) -> bool:
    return records.any(record.id) is record


def _place(node: Any) -> tuple[Any, ...]:
    """Nested lists are in the order of creation."""
    return place_of(None, node.id) if isinstance(node, Record) else (node.index,)


@lru_cache(maxsize=1000)
def snake(name: str) -> str:
    """ "totalPriceSet" as "total_price_set"."""
    return _UPPER.sub("_", name).lower()
