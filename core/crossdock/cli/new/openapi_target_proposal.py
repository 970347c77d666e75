"""Proposes a target from an OpenAPI document: a resource that can be created, read by its id, changed and deleted."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from crossdock.cli.new.openapi_list_proposals import (
    SkippedOperation,
    nothing_proposed_error,
    singular,
    telling_path_segments,
)
from crossdock.cli.new.openapi_operations_and_swagger_conversion import (
    Operation,
    json_schema_and_example,
    json_type_instant_or_day,
    members,
    needs_no_escaping,
    normalized_name,
    operations_of_path,
    success_response,
    words_of_name,
)
from crossdock.cli.new.target_code import MemberType, SentMember, TargetProposal
from crossdock.errors import ConfigError
from crossdock.platform.openapi_file import Json, OpenApiDocument, list_or_empty, mapping_or_empty

_ITEM = re.compile(r"(.*)/\{([^{}/]+)\}(\.[a-z]+)?")
_PREFERRED = ("order", "shipment", "fulfillment", "invoice", "product", "customer")
_REFERENCES = {
    "externalid", "externalreference", "externalref", "externalnumber", "externalorderid", "externalshipmentid",
    "reference", "referencenumber", "referenceid", "referencenum", "clientreference", "merchantorderid",
    "merchantreference", "partnerorderid", "ordernumber", "ponumber", "merchantorderno", "clientorderid",
}  # fmt: skip
_MOST_OPTIONAL = 8
_DEPTH = 3
_PERSONAL = {"email", "phone", "name", "street", "address", "city", "recipient", "company"}
_LONGEST_PATH = 50


class _Resource(Struct, frozen=True):
    path: str
    path_end: str
    of_list: Mapping[str, Operation]
    of_item: Mapping[str, Operation]


def propose_target(document: OpenApiDocument) -> tuple[TargetProposal, list[SkippedOperation]]:
    """Return the target and the resources that are left out. Raises ConfigError if no resource can be one."""
    left_out: list[SkippedOperation] = []
    found: list[TargetProposal] = []
    for one in _writable_resources(document, left_out):
        made = _proposed_target(document, one)
        if isinstance(made, SkippedOperation):
            left_out.append(made)
        else:
            found.append(made)
    if not found:
        hint = "a target needs a POST that creates a record, and a GET of one record by its id"
        raise nothing_proposed_error(document, "nothing to write", left_out, hint)
    found.sort(key=_rank)
    left_out += [
        SkippedOperation(f"POST {each.path}", f"one resource is proposed, {found[0].path}") for each in found[1:]
    ]
    return found[0], left_out


def _rank(target: TargetProposal) -> tuple[bool, bool, int]:
    stems = [singular(word) for word in words_of_name(target.resource)]
    preferred = next((number for number, each in enumerate(_PREFERRED) if each in stems), len(_PREFERRED))
    return not target.can_settle_lost_create, not target.name_member, preferred


def _writable_resources(document: OpenApiDocument, left_out: list[SkippedOperation]) -> Iterator[_Resource]:
    """Yield the paths with a POST, each with that of one record."""
    paths = {str(path): mapping_or_empty(item) for path, item in mapping_or_empty(document.data.get("paths")).items()}
    below: dict[str, tuple[str, str]] = {}
    for path in paths:
        if (match := _ITEM.fullmatch(path)) and "{" not in match[1]:
            below.setdefault(match[1] + (match[3] or ""), (path, match[3] or ""))
    for path, item in paths.items():
        if "post" not in item or "{" in path:
            continue
        try:
            of_list = {each.method: each for each in operations_of_path(document, path, item)}
            one, end = below.get(path, ("", ""))
            of_item = {each.method: each for each in operations_of_path(document, one, paths[one])} if one else {}
        except ConfigError as error:
            left_out.append(SkippedOperation(f"POST {path}", f"{error.message} ({error.where})"))
            continue
        if "POST" in of_list:
            yield _Resource(path.removesuffix(end) if end else path, end, of_list, of_item)


def _proposed_target(document: OpenApiDocument, one: _Resource) -> TargetProposal | SkippedOperation:
    post = one.of_list["POST"]

    def refused(reason: str) -> SkippedOperation:
        return SkippedOperation(post.method_and_path, reason)

    if "GET" not in one.of_item:
        return refused("no GET reads one record by its id")
    if one.path_end or not needs_no_escaping(one.path) or len(one.path) > _LONGEST_PATH:
        return refused("its path is too long, or has a form that is not proposed")
    body, _ = json_schema_and_example(document, document.resolved(mapping_or_empty(post.data.get("requestBody"))))
    sent_in, record = _wrapping_member_and_record(document, body)
    if not members(document, record):
        return refused("its body is not an object with members")
    answered, _ = json_schema_and_example(document, success_response(document, one.of_item["GET"]))
    answered_in, shown = _wrapping_member_and_record(document, answered)
    id_member = _id_member(document, shown, one.path)
    if not id_member:
        return refused("its answer names no member with the id")
    name_member = next((each for each in members(document, record) if normalized_name(each) in _REFERENCES), "")
    change = one.of_item.get("PATCH") or one.of_item.get("PUT")
    resource = "_".join(words_of_name(telling_path_segments(one.path)[-1]))[:32] or "records"
    model = "".join(singular(word).capitalize() for word in resource.split("_")) + "Sent"
    made = _sent_members(document, record, model, {name_member, id_member}, 0)
    if not made:
        return refused("its body has no member of a simple type")
    target = TargetProposal(
        resource=resource,
        model=model,
        path=one.path,
        members=made,
        name_member=name_member,
        name_limit=_external_id_length_limit(members(document, record).get(name_member, {})),
        name_param=_external_id_parameter(one.of_list.get("GET"), name_member),
        key_header=_idempotency_key_header(post),
        update_method=change.method if change else "",
        deletes="DELETE" in one.of_item,
        id_member=id_member,
        id_is_number=json_type_instant_or_day(members(document, shown)[id_member]) == "integer",
        sent_in=sent_in,
        answered_in=answered_in,
        listed_in=_answer_member_listing_records(document, one.of_list.get("GET")),
    )
    return structs.replace(target, unknown=_open_questions(target))


def _wrapping_member_and_record(document: OpenApiDocument, body: Json) -> tuple[str, Json]:
    """Return the member that has the record, and the record; the body itself if it has other members."""
    found = members(document, body)
    if len(found) == 1:
        ((name, inner),) = found.items()
        if json_type_instant_or_day(inner) == "object" and members(document, inner):
            return name, inner
    return "", body


def _id_member(document: OpenApiDocument, record: Json, path: str) -> str:
    able = {
        normalized_name(name): name
        for name, each in members(document, record).items()
        if json_type_instant_or_day(each) in {"string", "integer"}
    }
    stem = singular("".join(words_of_name(telling_path_segments(path)[-1])))
    return able.get("id") or able.get(f"{stem}id") or able.get("uuid") or ""


def _external_id_length_limit(schema: Json) -> int:
    stated = schema.get("maxLength")
    return stated if isinstance(stated, int) and 20 <= stated <= 500 else 50


def _external_id_parameter(listing: Operation | None, name_member: str) -> str:
    if listing is None or not name_member:
        return ""
    return next(
        (
            name
            for name, _ in listing.query_parameters()
            if normalized_name(name) == normalized_name(name_member) and needs_no_escaping(name)
        ),
        "",
    )


def _idempotency_key_header(post: Operation) -> str:
    names = [str(each.get("name")) for each in post.parameters if each.get("in") == "header"]
    return next((name for name in names if "idempotency" in name.lower() and needs_no_escaping(name)), "")


def _answer_member_listing_records(document: OpenApiDocument, listing: Operation | None) -> str:
    if listing is None:
        return "data"
    body, _ = json_schema_and_example(document, success_response(document, listing))
    if json_type_instant_or_day(body) == "array":
        return ""
    return next(
        (name for name, each in members(document, body).items() if json_type_instant_or_day(each) == "array"), "data"
    )


def _sent_members(
    document: OpenApiDocument, record: Json, model: str, taken: Collection[str], depth: int
) -> Sequence[SentMember]:
    """Return the required members, and some others of simple types."""
    required = {str(each) for each in list_or_empty(record.get("required"))}
    found: list[SentMember] = []
    optional = 0
    for name, schema in members(document, record).items():
        if name in taken or schema.get("readOnly") is True:
            continue
        is_required = name in required
        if not is_required and (optional >= _MOST_OPTIONAL or json_type_instant_or_day(schema) in {"object", ""}):
            continue
        member = _sent_member(document, name, schema, model, depth, is_required=is_required)
        if member is not None:
            found.append(member)
            optional += not is_required
    return found


def _sent_member(
    document: OpenApiDocument, name: str, schema: Json, model: str, depth: int, *, is_required: bool
) -> SentMember | None:
    is_list = json_type_instant_or_day(schema) == "array"
    inner = document.merged_schema(schema.get("items")) if is_list else schema
    if json_type_instant_or_day(inner) == "object":
        inner_model = (
            model.removesuffix("Sent") + "".join(word.capitalize() for word in words_of_name(singular(name))) + "Sent"
        )
        below = _sent_members(document, inner, inner_model, (), depth + 1) if depth < _DEPTH else ()
        return SentMember(name, "object", is_required, is_list, inner_model, below) if below else None
    types: Mapping[str, MemberType] = {
        "string": "personal" if set(words_of_name(name)) & _PERSONAL else "text",
        "number": "number", "integer": "integer", "boolean": "boolean", "instant": "instant", "day": "day",
    }  # fmt: skip
    if json_type_instant_or_day(inner) not in types:
        return None
    values = inner.get("enum")
    example = next((each for each in list_or_empty(values) if isinstance(each, str)), None)
    return SentMember(name, types[json_type_instant_or_day(inner)], is_required, is_list, example=example)


def _open_questions(target: TargetProposal) -> dict[str, str]:
    notes = {}
    if not target.update_method:
        notes["update"] = "the document has no PATCH or PUT of one record"
    if not target.deletes:
        notes["delete"] = "the document has no DELETE of one record"
    if not target.name_member:
        notes["endpoint"] = "which member holds our reference? Set name_member and look_up"
        if not target.can_settle_lost_create:
            notes["endpoint"] += "; until then a lost answer is left to a person, and there is no test of whole syncs"
    elif not target.can_look_up:
        notes["endpoint"] = f"how is a record found by {target.name_member}? Else doubt is left to a person"
    if target.name_member:
        notes["name"] = "is this the member for our reference, and how long may it be?"
    return notes
