"""The target of a new project: what is known of a partner's resource, and the code that writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from keyword import iskeyword
from typing import Any, Literal

from msgspec import Struct, field, structs

from crossdock.cli.new.python_formatting import Call, Item, Named, format_code, import_lines, literal, quoted
from crossdock.resources import ResourceModel

MemberType = Literal["text", "personal", "number", "integer", "boolean", "instant", "day", "object"]
_ANNOTATIONS: Mapping[MemberType, tuple[str, str]] = {  # the annotation, and where it is imported from
    "text": ("Text", "crossdock.resources"),
    "personal": ("Personal", "crossdock.resources"),
    "number": ("Exact", "crossdock.resources"),
    "integer": ("int", ""),
    "boolean": ("bool", ""),
    "instant": ("Instant", "crossdock.resources"),
    "day": ("date", "datetime"),
}
_AMOUNT, _INSTANT, _DAY = Decimal("9.55"), "2026-03-01T12:00:00Z", "2026-03-01"


class SentMember(Struct, frozen=True):
    """A member of the records that a target sends.

    Attributes:
        model: For objects, the name of their class.
        example: A value, or None for one that is made of the number of the record.
    """

    name: str
    type: MemberType
    is_required: bool = True
    is_list: bool = False
    model: str = ""
    members: Sequence[SentMember] = ()
    example: Any = None


class TargetProposal(Struct, frozen=True):
    """What is known of the resource.

    Attributes:
        path: Of the list, below the base URL.
        name_param: The parameter of the list that finds a record by its external id; empty if there is none.
        key_header: The header of an idempotency key; empty if there is none.
        update_method: PATCH, PUT, or empty for records that are written once.
        sent_in: The member of a request that has the record; empty if the body is the record.
        answered_in: The member of an answer about one record that has it; empty if the body is the record.
        listed_in: The member of a list that has the records; empty if the body is the list.
        null_is_absent: Whether null in place of a record alone says that there is none.
        unknown: What the author must find out, as comments.
    """

    resource: str
    model: str
    path: str
    members: Sequence[SentMember]
    name_member: str = ""
    name_limit: int = 100
    name_param: str = ""
    key_header: str = ""
    update_method: str = ""
    deletes: bool = False
    id_member: str = "id"
    id_is_number: bool = False
    sent_in: str = ""
    answered_in: str = ""
    listed_in: str = ""
    null_is_absent: bool = False
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def can_look_up(self) -> bool:
        return bool(self.name_member and self.name_param)

    @property
    def can_settle_lost_create(self) -> bool:
        """Whether a create whose answer is lost can be repeated or found."""
        return self.can_look_up or bool(self.key_header)

    @property
    def template_features(self) -> set[str]:
        """The parts of the templates that it needs."""
        facts = {"delete": self.deletes, "acceptance": self.can_settle_lost_create}
        return {name for name, is_true in facts.items() if is_true}


EXAMPLE = TargetProposal(
    resource="orders",
    model="PartnerOrder",
    path="/v1/orders",
    members=(
        SentMember("currency", "text", example="EUR"),
        SentMember("recipient", "personal"),
        SentMember(
            "lines",
            "object",
            is_list=True,
            model="PartnerLine",
            members=(
                SentMember("sku", "text"),
                SentMember("quantity", "number"),
                SentMember("price", "number", is_required=False),
            ),
        ),
    ),
    name_member="reference",
    name_param="reference",
    update_method="PATCH",
    deletes=True,
    listed_in="orders",
)


GRAPHQL_EXAMPLE = structs.replace(
    EXAMPLE, path="", answered_in="data/order", listed_in="data/orders/edges/*/node", null_is_absent=True
)
"""The same for a GraphQL API. Its templates have the requests."""


def template_values(target: TargetProposal, package: str) -> dict[str, str]:
    """Return what is filled into the templates."""
    members: Item = _example_object_expression(target.members)
    uses_decimal = any(each.type == "number" for each in _all_members_recursively(target.members))
    return {
        "resource": target.resource,
        "target_imports": import_lines(_import_names_by_module(target), package),
        "models": "\n\n\n".join(_model_classes(target.model, target.members)),
        "target_table": _resources_attribute(target),
        "id_member": target.id_member,
        "stored_id": "int(target_id)" if target.id_is_number else "target_id",
        "answered": _wrapped_in_member(target.answered_in, "record"),
        "listing": _wrapped_in_member(target.listed_in, "records"),
        "expected_requests": _expected_requests(target),
        "example_members": format_code("return ", members if isinstance(members, Call) else str(members), 8),
        "decimal_import": "from decimal import Decimal\n" if uses_decimal else "",
    }


def _wrapped_in_member(member: str, value: str) -> str:
    return f'{{"{member}": {value}}}' if member else value


def _import_names_by_module(target: TargetProposal) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {
        "collections.abc": ["Mapping"],
        "crossdock.resources": ["ResourceModel"],
        "crossdock.targets": ["ApiTarget", "EndpointProfile", "RecordShape", "TargetResource"],
    }
    for each in _all_members_recursively(target.members):
        name, module = _ANNOTATIONS.get(each.type, ("", ""))
        if module:
            names.setdefault(module, []).append(name)
        if python_attribute_name(each.name) != each.name:
            names["pydantic"] = ["Field"]
    return names


def _all_members_recursively(members: Sequence[SentMember]) -> Iterator[SentMember]:
    for each in members:
        yield each
        yield from _all_members_recursively(each.members)


def _model_classes(name: str, members: Sequence[SentMember]) -> Iterator[str]:
    for each in members:
        if each.type == "object":
            yield from _model_classes(each.model, each.members)
    lines = [
        f"class {name}(ResourceModel, alias_generator=None):",
        *(_annotated_attribute(each) for each in members),
    ]
    yield "\n".join(lines)


def _annotated_attribute(member: SentMember) -> str:
    kind = member.model if member.type == "object" else _ANNOTATIONS[member.type][0]
    kind = f"tuple[{kind}, ...]" if member.is_list else kind
    kind = kind if member.is_required else f"{kind} | None"
    attribute = python_attribute_name(member.name)
    default = "" if member.is_required else "None"
    if attribute == member.name:
        return f"    {attribute}: {kind}{' = None' if default else ''}"
    arguments = [*(["default=None"] if default else []), f"alias={quoted(member.name)}"]
    return format_code(f"{attribute}: {kind} = ", Call("Field", arguments), 4)


def python_attribute_name(name: str) -> str:
    """Return a name for an attribute of a model: the member's own, unless Python or pydantic has it already."""
    clean = "".join(each if each.isascii() and (each.isalnum() or each == "_") else "_" for each in name).lstrip("_")
    if not clean or clean[0].isdigit():
        clean = f"member_{clean}"
    is_taken = iskeyword(clean) or hasattr(ResourceModel, clean) or clean.startswith("model_") or clean in _BUILT_IN
    return f"{clean}_" if is_taken else clean


_BUILT_IN = frozenset({"int", "bool", "str", "date", "tuple", "Any", "list"})  # names that annotations use


def _resources_attribute(target: TargetProposal) -> str:
    """Return the attribute ``resources``."""
    profile = [
        *(["look_up=True"] if target.can_look_up else []),
        *([f"header={quoted(target.key_header)}"] if target.key_header else []),
    ]
    shape = [
        *([f"id={quoted(f'/{target.id_member}')}"] if target.id_member != "id" else []),
        *([f"record={quoted(f'/{target.answered_in}')}"] if target.answered_in else []),
        *([f"listed={quoted(f'/{target.listed_in}' if target.listed_in else '')}"] if target.can_look_up else []),
        *(["null_is_absent=True"] if target.null_is_absent else []),
    ]
    notes = {what: f"TODO: {question}" for what, question in target.unknown.items()}
    facts: list[Item] = [
        quoted(target.resource),
        target.model,
        *([] if target.update_method else [Named("write_once=", "True", notes.get("update", ""))]),
        *([] if target.deletes else [Named("deletes=", "False", notes.get("delete", ""))]),
        Named("endpoint=", Call("EndpointProfile", profile), notes.get("endpoint", "")),
        Named("shape=", Call("RecordShape", shape)),
        *([f"path={quoted(target.path)}"] if target.path else []),
        *([f"update_method={quoted(target.update_method)}"] if target.update_method not in {"", "PATCH"} else []),
        *([f"body={quoted(target.sent_in)}"] if target.sent_in else []),
    ]
    if target.name_member:
        facts.append(Named("name_member=", quoted(target.name_member), notes.get("name", "")))
        facts.append(f"name_limit={target.name_limit}")
    if target.can_look_up and target.name_param != target.name_member:
        facts.append(f"look_up_filter={quoted(target.name_param)}")
    table = Call("", [Named(f"{quoted(target.resource)}: ", Call("TargetResource", facts))], "{}")
    return format_code("resources: Mapping[str, TargetResource] = ", table, 4)


def _example_object_expression(members: Sequence[SentMember]) -> Call:
    return Call("", [Named(f"{quoted(each.name)}: ", _example_expression(each)) for each in members], "{}")


def _example_expression(member: SentMember) -> str | Call:
    value = (
        _example_object_expression(member.members) if member.type == "object" else _simple_example_expression(member)
    )
    return Call("", [value], "[]") if member.is_list else value


def _simple_example_expression(member: SentMember) -> str | Call:
    """Return an expression that differs from record to record where a record can."""
    if member.example is not None:
        return literal(member.example)
    texts: Mapping[str, str] = {
        "number": f'Decimal("{_AMOUNT}") + number',
        "integer": "number + 1",
        "boolean": "number % 2 == 0",
        "instant": quoted(_INSTANT),
        "day": quoted(_DAY),
    }
    return texts.get(member.type, f'f"{_braceless(member.name)} {{number}}"')


def _example_payload(members: Sequence[SentMember], number: int) -> dict[str, Any]:
    """Return what `_example_expression` gives for *number*."""
    found: dict[str, Any] = {}
    for each in members:
        value = _example_payload(each.members, number) if each.type == "object" else _example_value(each, number)
        found[each.name] = [value] if each.is_list else value
    return found


def _example_value(member: SentMember, number: int) -> Any:
    if member.example is not None:
        return member.example
    values: Mapping[str, Any] = {
        "number": _AMOUNT + number,
        "integer": number + 1,
        "boolean": number % 2 == 0,
        "instant": _INSTANT,
        "day": _DAY,
    }
    return values.get(member.type, f"{_braceless(member.name)} {number}")


def _braceless(name: str) -> str:
    return name.replace("{", "").replace("}", "")


def _expected_requests(target: TargetProposal) -> str:
    """Return what the tests state of the requests of the first record."""
    first, second = (_example_payload(target.members, number) for number in (0, 1))
    changed = {name: value for name, value in second.items() if value != first[name]}
    after = changed if target.update_method == "PATCH" else second
    one = f"{target.path}/4711"
    requests: dict[str, tuple[str, str, Any]] = {
        "create": ("POST", target.path, _payload_in_member(target.sent_in, first))
    }
    if target.update_method:
        requests["update"] = (target.update_method, one, _payload_in_member(target.sent_in, after))
    if target.deletes:
        requests["delete"] = ("DELETE", one, None)
    stated: list[Item] = [
        Named(f"({quoted(target.resource)}, {quoted(operation)}): ", Call("", list(map(literal, request))))
        for operation, request in requests.items()
    ]
    return format_code("EXPECTED = ", Call("", stated, "{}"))


def _payload_in_member(member: str, value: Any) -> Any:
    return {member: value} if member else value
