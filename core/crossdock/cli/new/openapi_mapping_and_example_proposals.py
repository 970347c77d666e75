"""Proposes how the records of a list become drafts, by the names and types of their members, and makes examples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct, field

from crossdock.cli.new.openapi_list_proposals import RFC_2822, ListProposal, time_format
from crossdock.cli.new.openapi_operations_and_swagger_conversion import (
    json_type_instant_or_day,
    members,
    normalized_name,
    yaml_value_as_json,
)
from crossdock.cli.new.python_formatting import Call, Item, Named, quoted
from crossdock.cli.new.target_code import python_attribute_name
from crossdock.platform.openapi_file import Json, OpenApiDocument
from crossdock.values.field_types import minor_unit_digits_or_value_error

_TEXTS, _NUMBERS = {"string", "integer"}, {"string", "integer", "number"}
_LISTS = ("lineitems", "items", "lines", "orderlines", "orderitems", "products", "rows", "entries")
_NAMES: Mapping[str, Sequence[str]] = {  # the plain names of members, the most telling first
    "sku": ("sku", "itemsku", "variantsku", "code", "itemcode", "productcode", "partnumber"),
    "name": ("name", "title", "fullname", "companyname", "company", "displayname", "label", "description", "firstname"),
    "price": ("price", "unitprice", "unitamount", "listprice", "pricetax", "priceextax", "amount"),
    "currency": ("currency", "currencycode", "defaultcurrencycode"),
    "email": ("email", "emailaddress"),
    "customer": ("customerid", "customer", "buyerid", "clientid", "contactid"),
    "product": ("sku", "productid", "variantid", "itemid", "productsku", "name"),
    "quantity": ("quantity", "qty", "count", "units", "available", "onhand", "stock"),
    "placed": ("createdat", "orderdate", "placedat", "datecreated", "created", "date", "createdate"),
    "lot": ("lot", "lotnumber", "batch", "batchnumber"),
    "code": ("code", "name", "label"),
    "warehouse": ("warehouseid", "warehouse", "warehousename", "facilityid", "locationid"),
}


class UsedMember(Struct):
    """A member that a mapping reads.

    Attributes:
        annotation: Its type in the model; empty for objects and for members that are read without a model.
        type: ``text``, ``currency``, ``number``, ``instant`` or ``list``, for examples.
        elements: For lists, the members of an element.
    """

    annotation: str
    type: str
    schema: Json
    is_required: bool = True
    elements: dict[str, UsedMember] = field(default_factory=dict)


class DraftProposal(Struct):
    """The expression of a draft, the members that it uses, and what it imports."""

    draft: str
    arguments: list[Item]
    used: dict[str, UsedMember]
    imported_names: set[str]
    lines: Call | None = None
    lines_attribute: str = ""


def propose_draft(document: OpenApiDocument, one: ListProposal) -> DraftProposal:
    """Return the mapping of a list to the resource that is proposed for it."""
    return _DraftBuilder(document, one).proposal()


class _Members:
    """The members of an object of which a mapping uses some."""

    def __init__(self, document: OpenApiDocument, schema: Json, variable: str, used: dict[str, UsedMember]) -> None:
        self.variable, self.used = variable, used
        self.schemas = members(document, schema)

    def find(self, what: str, kinds: set[str]) -> str | None:
        by_plain = {normalized_name(name): name for name in reversed([*self.schemas])}
        names = (by_plain[each] for each in _NAMES[what] if each in by_plain)
        return next((name for name in names if json_type_instant_or_day(self.schemas[name]) in kinds), None)

    def use_as_text(self, name: str, kind_of_text: str = "text") -> str:
        is_number = json_type_instant_or_day(self.schemas[name]) == "integer"
        self.used[name] = UsedMember("int" if is_number else "str", kind_of_text, self.schemas[name])
        expression = f"{self.variable}.{python_attribute_name(name)}"
        return f"str({expression})" if is_number else expression

    def use_as_number(self, name: str, *, is_required: bool = True) -> str:
        self.used[name] = UsedMember("Decimal", "number", self.schemas[name], is_required)
        return f"{self.variable}.{python_attribute_name(name)}"

    def use_as_price(self, name: str, *, is_required: bool = True) -> tuple[str, str]:
        """Return the expression, and what is to be found out about it."""
        is_whole = json_type_instant_or_day(self.schemas[name]) == "integer"
        question = "TODO: are these cents? Then use record.decimal with minor_units=2" if is_whole else ""
        return self.use_as_number(name, is_required=is_required), question


class _DraftBuilder:
    def __init__(self, document: OpenApiDocument, one: ListProposal) -> None:
        self.document, self.one = document, one
        self.used: dict[str, UsedMember] = {}
        self.record = _Members(document, one.record, "found", self.used)
        self.imported_names: set[str] = set()
        self.lines: Call | None = None
        self.lines_attribute = ""

    def proposal(self) -> DraftProposal:
        make = getattr(self, f"_{self.one.resource}_arguments")
        draft = "".join(word.capitalize() for word in self.one.resource.split("_")) + "Draft"
        self.key = self.record.use_as_text(self.one.key)
        arguments: list[Item] = list(make())
        return DraftProposal(
            draft, arguments, self.used, {draft, *self.imported_names}, self.lines, self.lines_attribute
        )

    def _product_arguments(self) -> Iterator[Named]:
        yield self._text_argument("sku", "sku", self.key, "which member is the SKU?")
        yield self._text_argument("name", "name", self.key, "which member is the name?")
        if price := self.record.find("price", {"integer", "number", "string"}):
            yield Named("unit_price=", *self.record.use_as_price(price, is_required=False))
            yield self._currency_argument()

    def _customer_arguments(self) -> Iterator[Named]:
        yield self._text_argument("name", "name", self.key, "which member is the name?")
        if email := self.record.find("email", {"string"}):
            expression = self.record.use_as_text(email)
            self.used[email].is_required = False
            yield Named("email=", expression)

    def _order_arguments(self) -> Iterator[Named]:
        yield from self._invoice_arguments()
        yield self._order_time_argument()

    def _invoice_arguments(self) -> Iterator[Named]:
        yield self._reference_argument("customer_id", "customer", self.record)
        yield self._currency_argument()
        yield self._line_items_argument()

    def _inventory_lot_arguments(self) -> Iterator[Named]:
        yield self._reference_argument("product_id", "product", self.record)
        yield self._text_argument("lot_number", "lot", self.key, "which member names the lot?")
        quantity = self.record.find("quantity", _NUMBERS)
        if quantity:
            yield Named("quantity=", self.record.use_as_number(quantity))
        else:
            yield Named("quantity=", self._decimal_constant_expression("0"), "TODO: which member is the quantity?")

    def _warehouse_bin_arguments(self) -> Iterator[Named]:
        yield self._text_argument("code", "code", self.key, "which member is the code of the bin?")
        yield self._text_argument("warehouse", "warehouse", '"main"', "which member names the warehouse?")

    # ---- parts

    def _text_argument(self, attribute: str, what: str, other: str, question: str) -> Named:
        if name := self.record.find(what, _TEXTS):
            return Named(f"{attribute}=", self.record.use_as_text(name))
        return Named(f"{attribute}=", other, f"TODO: {question}")

    def _currency_argument(self) -> Named:
        if name := self.record.find("currency", {"string"}):
            return Named("currency=", f"{self.record.use_as_text(name, 'currency')}.upper()")
        return Named("currency=", '"EUR"', "TODO: which member is the currency?")

    def _reference_argument(self, attribute: str, resource: str, owner: _Members) -> Named:
        self.imported_names.add("Reference")
        name = owner.find(resource, _TEXTS)
        key = owner.use_as_text(name) if name else self.key
        comment = "" if name else f"TODO: which member names the {resource}?"
        return Named(f"{attribute}=", Call("Reference", [quoted(resource), key]), comment)

    def _line_items_argument(self) -> Named:
        self.imported_names.add("LineDraft")
        schemas = self.record.schemas
        by_plain = {
            normalized_name(name): name
            for name in reversed([*schemas])
            if json_type_instant_or_day(schemas[name]) == "array"
        }
        for each in _LISTS:
            name = by_plain.get(each)
            element = self.document.merged_schema(schemas[name].get("items")) if name else {}
            if name and members(self.document, element):
                used: dict[str, UsedMember] = {}
                self.lines = self._line_draft_call(_Members(self.document, element, "line", used))
                self.lines_attribute = python_attribute_name(name)
                self.used[name] = UsedMember("", "list", schemas[name], elements=used)
                return Named("items=", "lines")
        self.lines = Call("LineDraft", [
            Named("product_id=", Call("Reference", ['"product"', self.key])),
            Named("quantity=", self._decimal_constant_expression("1")),
            Named("unit_price=", self._decimal_constant_expression("0")),
        ])  # fmt: skip
        return Named("items=", "(line,)", "TODO: which member has the lines?")

    def _line_draft_call(self, line: _Members) -> Call:
        quantity, price = line.find("quantity", _NUMBERS), line.find("price", _NUMBERS)
        items: list[Item] = [self._reference_argument("product_id", "product", line)]
        if quantity:
            items.append(Named("quantity=", line.use_as_number(quantity)))
        else:
            items.append(
                Named("quantity=", self._decimal_constant_expression("1"), "TODO: which member is the quantity?")
            )
        if price:
            items.append(Named("unit_price=", *line.use_as_price(price)))
        else:
            items.append(
                Named("unit_price=", self._decimal_constant_expression("0"), "TODO: which member is the price?")
            )
        return Call("LineDraft", items)

    def _decimal_constant_expression(self, digits: str) -> str:
        self.imported_names.add("Decimal")
        return f"Decimal({digits})"

    def _order_time_argument(self) -> Named:
        name = self.record.find("placed", {"instant", "string"})
        if name is None:
            self.imported_names.add("datetime")
            question = "TODO: which member is the time of the order?"
            return Named("placed_at=", Call("datetime", ["2026", "1", "1", "tzinfo=UTC"]), question)
        schema = self.record.schemas[name]
        examples = [each[name] for each in self.one.examples if name in each]
        form = time_format(next(iter(examples), yaml_value_as_json(schema.get("example"))))
        if form in {None, ("", True)} and json_type_instant_or_day(schema) == "instant":
            self.used[name] = UsedMember("AwareDatetime", "instant", schema)
            return Named("placed_at=", f"found.{python_attribute_name(name)}")
        layout, has_offset = form or ("", True)
        self.used[name] = UsedMember("", "instant", {**schema, "x-form": layout, "x-offset": has_offset})
        arguments: list[Item] = [quoted(f"/{name}")]
        arguments += [f"layout={quoted(layout)}"] if layout else []
        arguments += [] if has_offset else ['timezone="UTC"']
        comment = "" if has_offset else "TODO: which time zone are these times in?"
        return Named("placed_at=", Call("record.instant", arguments), comment)


RECORDS = 3
_MOST = 15  # members that no mapping uses
_DEPTH = 3
_LONGEST = 60
_AMOUNT = re.compile(r"\d{1,9}(\.\d{1,4})?")


def example_records(
    document: OpenApiDocument, one: ListProposal, used: Mapping[str, UsedMember]
) -> list[dict[str, Any]]:
    """Return `RECORDS` examples, which differ and have every member that the mapping reads."""
    return [_record(document, one, used, number) for number in range(1, RECORDS + 1)]


def _record(
    document: OpenApiDocument, one: ListProposal, used: Mapping[str, UsedMember], number: int
) -> dict[str, Any]:
    given = one.examples[(number - 1) % len(one.examples)] if one.examples else {}
    schemas = members(document, one.record)
    others = [name for name in schemas if name not in used][:_MOST]
    found = {name: _example_for_unmapped_member(document, schemas[name], given.get(name), name, 0) for name in others}
    found |= {
        name: _example_for_mapped_member(document, each, given.get(name), name, number) for name, each in used.items()
    }
    found[one.key] = number if json_type_instant_or_day(schemas[one.key]) == "integer" else f"{one.resource}-{number}"
    if one.changes:
        day = f"2026-03-0{number}"
        found[one.changes.column] = {
            RFC_2822: f"{('Sun', 'Mon', 'Tue')[number - 1]}, 0{number} Mar 2026 12:00:00 +0000"
        }.get(one.changes.form, f"{day}T12:00:00{'Z' if one.changes.has_offset else ''}")
    return {name: found[name] for name in schemas if name in found}


def _example_for_mapped_member(document: OpenApiDocument, used: UsedMember, given: Any, name: str, number: int) -> Any:
    given = yaml_value_as_json(used.schema.get("example")) if given is None else given
    match used.type:
        case "list":
            element = document.merged_schema(used.schema.get("items"))
            inner = given[0] if isinstance(given, list) and given and isinstance(given[0], dict) else {}
            schemas = members(document, element)
            others = [each for each in schemas if each not in used.elements][:_MOST]
            line = {
                each: _example_for_unmapped_member(document, schemas[each], inner.get(each), each, 1) for each in others
            }
            line |= {
                each: _example_for_mapped_member(document, one, inner.get(each), each, number)
                for each, one in used.elements.items()
            }
            return [line]
        case "number":
            return _example_number(given, json_type_instant_or_day(used.schema), number)
        case "instant":
            return _example_instant(used.schema, number)
        case "currency":
            return given if isinstance(given, str) and _is_currency_code(given.upper()) else "EUR"
    if json_type_instant_or_day(used.schema) == "integer":
        return number
    return given if isinstance(given, str) and 0 < len(given) <= _LONGEST else f"{name} {number}"


def _is_currency_code(code: str) -> bool:
    try:
        minor_unit_digits_or_value_error(code)
    except ValueError:
        return False
    return True


def _example_number(given: Any, kind_of_number: str, number: int) -> Any:
    is_amount = not isinstance(given, bool) and _AMOUNT.fullmatch(str(given))
    value = Decimal(str(given)) if is_amount else Decimal("9.55") + number
    if kind_of_number == "integer":
        return int(value)
    return str(value) if kind_of_number == "string" else value


def _example_instant(schema: Json, number: int) -> str:
    if schema.get("x-form"):
        return f"{('Sun', 'Mon', 'Tue')[number - 1]}, 0{number} Mar 2026 12:00:00 +0000"
    return f"2026-03-0{number}T12:00:00{'Z' if schema.get('x-offset', True) else ''}"


def _example_for_unmapped_member(document: OpenApiDocument, schema: Json, given: Any, name: str, depth: int) -> Any:
    """Return an example that no mapping depends on."""
    for stated in (given, yaml_value_as_json(schema.get("example")), yaml_value_as_json(schema.get("default"))):
        if stated is not None and isinstance(stated, str | int | Decimal | bool):
            return stated
    if isinstance(values := schema.get("enum"), list) and values:
        return yaml_value_as_json(values[0])
    match json_type_instant_or_day(schema):
        case "object":
            inner = list(members(document, schema).items())[:_MOST] if depth < _DEPTH else []
            return {each: _example_for_unmapped_member(document, below, None, each, depth + 1) for each, below in inner}
        case "array":
            element = document.merged_schema(schema.get("items"))
            is_shown = depth < _DEPTH - 1 and element
            return [_example_for_unmapped_member(document, element, None, name, depth + 1)] if is_shown else []
    simple = {
        "integer": 1, "number": Decimal("9.55"), "boolean": True, "instant": "2026-03-01T12:00:00Z",
        "day": "2026-03-01", "string": name,
    }  # fmt: skip
    return simple.get(json_type_instant_or_day(schema))
