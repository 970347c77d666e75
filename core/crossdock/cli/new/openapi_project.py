"""The files of a project that is proposed from an OpenAPI document, and its address and credentials."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from msgspec import Struct, field

from crossdock.cli.new import (
    openapi_list_proposals,
    openapi_mapping_and_example_proposals,
    openapi_target_proposal,
    target_code,
)
from crossdock.cli.new.openapi_list_proposals import ListProposal, Paging, SkippedOperation, singular
from crossdock.cli.new.openapi_mapping_and_example_proposals import DraftProposal, UsedMember
from crossdock.cli.new.openapi_operations_and_swagger_conversion import convert_to_openapi_3, members, needs_no_escaping
from crossdock.cli.new.python_formatting import Call, Item, Named, format_code, import_lines, literal, quoted
from crossdock.cli.new.target_code import TargetProposal, python_attribute_name
from crossdock.errors import ConfigError
from crossdock.platform import openapi_file
from crossdock.platform.openapi_file import Json, OpenApiDocument, list_or_empty, mapping_or_empty
from crossdock.values.web_address_checks import checked_base_url_without_slash

UNKNOWN_ADDRESS = "https://api.example.com"
_VARIABLE = re.compile(r"\{([^{}]+)\}")


class Credentials(Struct, frozen=True):
    """What a connection is configured with, and the object that sends it.

    Attributes:
        auth: The expression; None without credentials.
        secrets: The settings that are secrets.
        texts: The other settings, with their values in the config.
    """

    auth: Call | None
    imported_names: Sequence[str] = ()
    secrets: Sequence[str] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""


def base_url_and_open_question(document: OpenApiDocument) -> tuple[str, str]:
    """Return the base URL, and what the author must find out about it."""
    for server in map(mapping_or_empty, list_or_empty(document.data.get("servers"))):
        url = server.get("url")
        if not isinstance(url, str):
            continue
        variables = mapping_or_empty(server.get("variables"))
        has_variables = bool(_VARIABLE.search(url))
        filled = url
        for name in _VARIABLE.findall(url):
            filled = filled.replace(f"{{{name}}}", str(mapping_or_empty(variables.get(name)).get("default", "TODO")))
        whole = urljoin(UNKNOWN_ADDRESS, filled).rstrip("/").replace("http://", "https://", 1)
        try:
            checked_base_url_without_slash(whole)
        except ValueError:
            continue
        if not needs_no_escaping(whole):
            continue
        if filled != url or has_variables:
            return whole, "the base URL; the document has variables in it"
        return whole, "" if urlsplit(url).netloc else "the host of the base URL; the document names only a path"
    return UNKNOWN_ADDRESS, "the base URL; the document names no server"


def propose_credentials(document: OpenApiDocument, base_url: str) -> Credentials:
    """Return those of the first scheme that crossdock has, of those that the document requires everywhere."""
    schemes = mapping_or_empty(mapping_or_empty(document.data.get("components")).get("securitySchemes"))
    required = [name for each in list_or_empty(document.data.get("security")) for name in mapping_or_empty(each)]
    named = [*(each for each in required if each in schemes), *(each for each in schemes if each not in required)]
    refused = []
    for name in named:
        scheme = document.resolved(mapping_or_empty(schemes[name]))
        if found := _credentials_of_scheme(scheme, base_url):
            return found
        refused.append(f"{scheme.get('type')} in {scheme['in']}" if "in" in scheme else str(scheme.get("type")))
    if refused:
        return Credentials(None, unknown=f"how requests are authorized; the document says {', '.join(refused)}")
    return Credentials(None, unknown="how requests are authorized; the document says nothing about it")


def _credentials_of_scheme(scheme: Json, base_url: str) -> Credentials | None:
    kind, way = scheme.get("type"), str(scheme.get("scheme")).lower()
    header = scheme.get("name")
    if kind == "apiKey" and scheme.get("in") == "header" and isinstance(header, str) and needs_no_escaping(header):
        return Credentials(Call("HeaderAuth", [quoted(header), "settings.key"]), ["HeaderAuth"], ["key"])
    if kind == "http" and way == "bearer":
        return Credentials(Call("BearerAuth", ["settings.token"]), ["BearerAuth"], ["token"])
    if kind == "http" and way == "basic":
        auth = Call("BasicAuth", ["settings.user", "settings.password"])
        return Credentials(auth, ["BasicAuth"], ["password"], {"user": "TODO"})
    return (
        next(_credentials_of_flows(mapping_or_empty(scheme.get("flows")), base_url), None) if kind == "oauth2" else None
    )


def _credentials_of_flows(flows: Json, base_url: str) -> Iterator[Credentials]:
    ways: Mapping[str, tuple[str, Sequence[str]]] = {
        "clientCredentials": ("ClientCredentialsAuth", ("client_secret",)),
        "authorizationCode": ("RefreshTokenAuth", ("refresh_token", "client_secret")),
    }
    for flow, (name, secrets) in ways.items():
        stated: Any = mapping_or_empty(flows.get(flow)).get("tokenUrl")
        if not isinstance(stated, str):
            continue
        url = urljoin(f"{base_url}/", stated)
        try:
            checked_base_url_without_slash(url)
        except ValueError:
            continue
        others = {"refresh_token": "refresh_token", "client_id": "client_id", "client_secret": "client_secret"}
        arguments: list[Item] = ["settings.token_url"]
        arguments += [f"settings.{each}" for each in others if each in secrets or each == "client_id"]
        texts = {"token_url": url, "client_id": "TODO"}
        yield Credentials(Call(name, arguments), [name], list(secrets), texts)


_TAKEN = {
    "Api", "ApiSettings", "AwareDatetime", "BaseModel", "BaseUrl", "Connector", "Context", "Cursor", "Decimal", "Field",
    "Iterator", "Literal", "Offset", "PageNumber", "Paginator", "RawBatch", "Record", "Reference", "Stream",
}  # fmt: skip
"""Names that streams.py may import."""
_ANNOUNCED = {"cursor", "next_url", "link", "after_id"}  # paginations of which a page says whether there is another
_MOST_SHOWN = 3  # operations that are left out for one reason
_MOST_NAMED = 12  # members that a docstring names


class Proposal(Struct, frozen=True):
    """What was found in a document."""

    document: OpenApiDocument
    base_url: str
    credentials: Credentials
    lists: Sequence[tuple[ListProposal, DraftProposal]]
    target: TargetProposal | None
    unknown: Sequence[str]
    left_out: Sequence[SkippedOperation]

    @property
    def template_features(self) -> set[str]:
        kinds = {f"paged_by_{one.paging.kind}" for one, _ in self.lists}
        has_target = self.target.template_features if self.target else set()
        tokens = {"tokens"} if "token_url" in self.credentials.texts else set()
        announced = {"announced"} if any(one.paging.kind in _ANNOUNCED for one, _ in self.lists) else set()
        return {*kinds, *has_target, *tokens, *announced}


def propose_project(path: Path, *, with_target: bool, chosen: Collection[str]) -> Proposal:
    """Read a document and propose a project. Raises ConfigError if that is not possible."""
    data = openapi_file.parsed_json_or_yaml_file(path)
    if isinstance(data, Mapping) and str(data.get("swagger")) == "2.0":
        data = convert_to_openapi_3(data)
    document = openapi_file.openapi_document_or_raise(data, str(path))
    try:
        return _propose_from_document(document, with_target=with_target, chosen=chosen)
    except RecursionError:
        raise ConfigError(
            "schemas are made of one another too many times", where=document.name, code="openapi_unsuitable"
        ) from None


def _propose_from_document(document: OpenApiDocument, *, with_target: bool, chosen: Collection[str]) -> Proposal:
    lists, left_out = openapi_list_proposals.propose_lists(document, chosen)
    base_url, question = base_url_and_open_question(document)
    found = propose_credentials(document, base_url)
    target, refused = openapi_target_proposal.propose_target(document) if with_target else (None, [])
    drafts = [(one, openapi_mapping_and_example_proposals.propose_draft(document, one)) for one in lists]
    unknown = [each for each in (question, found.unknown) if each]
    return Proposal(document, base_url, found, drafts, target, unknown, [*left_out, *refused])


def report(proposal: Proposal) -> dict[str, list[str]]:
    """Return what was proposed, what the author must find out, and what was left out and why."""
    streams = []
    for one, draft in proposal.lists:
        changes = f"changes by {one.changes.param}" if one.changes else "all of it in each run"
        pages = "one page" if one.paging.kind == "none" else f"pages by {one.paging.kind.replace('_', ' ')}"
        streams.append(f"{one.name}: {one.operation.method_and_path}, {pages}, {changes}; key {one.key}, {draft.draft}")
    target = proposal.target
    questions = [f"{one.name}: {question}" for one, _ in proposal.lists for question in one.unknown]
    questions += [f"{target.resource}: {each}" for each in target.unknown.values()] if target else []
    return {
        "stream": streams,
        "target": [f"{target.resource}: {target.path}"] if target else [],
        "TODO": [*proposal.unknown, *questions],
        "left out": [f"{each.operation}: {each.reason}" for each in proposal.left_out],
    }


def report_lines(proposal: Proposal) -> Iterator[str]:
    """Yield the report. Operations that are left out for the same reason are one line."""
    found = report(proposal)
    for what in ("stream", "target", "TODO"):
        yield from (f"{what}: {each}" for each in found[what])
    by_reason: dict[str, list[str]] = {}
    for one in proposal.left_out:
        by_reason.setdefault(one.reason, []).append(one.operation)
    for reason, operations in by_reason.items():
        more = f" and {len(operations) - _MOST_SHOWN} more" if len(operations) > _MOST_SHOWN else ""
        yield f"left out: {', '.join(operations[:_MOST_SHOWN])}{more}: {reason}"


def example_files(proposal: Proposal) -> dict[str, str]:
    """Return the example records, by the path in the project."""
    found = {}
    for one, draft in proposal.lists:
        records = openapi_mapping_and_example_proposals.example_records(proposal.document, one, draft.used)
        text = json.dumps(records, indent=2, ensure_ascii=False, default=_convert_decimal_to_float)
        found[f"tests/examples/{one.name}.json"] = f"{text}\n"
    return found


def _convert_decimal_to_float(value: Any) -> float:
    assert isinstance(value, Decimal)
    return float(value)


def template_values(proposal: Proposal, package: str) -> dict[str, str]:
    """Return what is filled into the templates."""
    lists = proposal.lists
    first = lists[0][0]
    settings = {"base_url": proposal.base_url, **_credential_setting_values(proposal, package)}
    environment = {
        _environment_variable(package, each): f"{each}-of-the-tests" for each in proposal.credentials.secrets
    }
    found = {
        "stream": f"{package}.{first.name}",
        "base_path": urlsplit(proposal.base_url).path,
        "api_title": _plain_text_for_comment(mapping_or_empty(proposal.document.data.get("info")).get("title"))
        or package,
        "streams_imports": import_lines(_stream_import_names_by_module(proposal), package),
        "stream_names": ", ".join(stream_class_name(one) for one, _ in lists),
        "connector_streams": format_code(
            "streams=lambda _: ", _tuple_code([f"{stream_class_name(one)}()" for one, _ in lists]), 4, ","
        ),
        "init_imports": import_lines(
            {
                f"{package}.streams": ["ApiSettings", *(stream_class_name(one) for one, _ in lists), "api"],
                **({f"{package}.target": ["PartnerTarget"]} if proposal.target else {}),
            },
            package,
        ),
        "api_body": format_code("return settings.api", _auth_argument(proposal), 4),
        "questions": "".join(f"    # TODO: {each}\n" for each in proposal.unknown),
        "streams": "\n\n\n".join(
            text
            for (one, draft), taken in zip(lists, _own_namespace_flags(lists), strict=True)
            for text in (*_model_classes(proposal.document, one, draft), _stream_class(one, draft, taken))
        ),
        "fields": "".join(f"\n{each}" for each in _settings_fields(proposal)),
        "settings_of_tests": f"{format_code('SETTINGS = ', literal(settings))}\n"
        f"{format_code('ENVIRONMENT: dict[str, str] = ', literal(environment))}",
        "config": "\n".join(
            f"    {name}: {json.dumps(value) if name.endswith('url') or value == 'TODO' else value}"
            for name, value in settings.items()
        ),
        "fakes": format_code(
            "LISTS = ",
            Call("", [Named(f"{quoted(one.name)}: ", _fake_list_constructor_call(one)) for one, _ in lists], "{}"),
        ),
        "contracts": "\n\n\n".join(_contract_test_class(one) for one, _ in lists),
        "exports": "".join(f"export {each}=... " for each in environment),
    }
    return found | (target_code.template_values(proposal.target, package) if proposal.target else {})


def _environment_variable(package: str, secret: str) -> str:
    return f"{package.upper()}_{secret.upper()}"


def _credential_setting_values(proposal: Proposal, package: str) -> dict[str, str]:
    secrets = {each: f"env:{_environment_variable(package, each)}" for each in proposal.credentials.secrets}
    return {**proposal.credentials.texts, **secrets}


def _plain_text_for_comment(text: object) -> str:
    """Return a text of the document for a docstring or comment: one line of plain characters."""
    kept = "".join(each if each.isalnum() or each in " .,:;()/-_" else " " for each in str(text or ""))
    return " ".join(kept.split())[:80].strip()


def stream_class_name(one: ListProposal) -> str:
    name = "".join(word.capitalize() for word in one.name.split("_"))
    return f"{name}List" if name in _TAKEN else name


def _model_name(one: ListProposal) -> str:
    name = "".join(singular(word).capitalize() for word in one.name.split("_"))
    return f"{name}Record"


def _tuple_code(items: Sequence[str]) -> str | Call:
    return f"({items[0]},)" if len(items) == 1 else Call("", items)


# ---- streams.py


def _stream_import_names_by_module(proposal: Proposal) -> dict[str, list[str]]:
    lists, credentials = proposal.lists, proposal.credentials
    paginators = [call.head for one, _ in lists if isinstance(call := _paginator_call(one.paging, one), Call)]
    cursor = ["Cursor"] if any(one.changes for one, _ in lists) else []
    base_url = ["BaseUrl"] if "token_url" in credentials.texts else []
    secret = ["SecretRef"] if credentials.secrets else []
    mapped = {name for _, draft in lists for name in draft.imported_names}
    names = {
        "collections.abc": ["Iterator"],
        "typing": ["Literal"],
        "decimal": ["Decimal"] if "Decimal" in mapped else [],
        "datetime": ["UTC", "datetime"] if "datetime" in mapped else [],
        "crossdock": ["Context", "RawBatch", "Record", *secret, "Stream", *(mapped - {"Decimal", "datetime"})],
        "crossdock.sources": ["Api", *base_url, *credentials.imported_names, *cursor, "HttpSettings", *paginators],
    }
    for module, needed in _model_import_names_by_module(lists).items():
        names.setdefault(module, []).extend(needed)
    return names


def _auth_argument(proposal: Proposal) -> Call:
    auth = proposal.credentials.auth
    return Call("", [] if auth is None else [Named("auth=", auth)])


def _own_namespace_flags(lists: Sequence[tuple[ListProposal, DraftProposal]]) -> list[bool]:
    """Return for each list whether an earlier one has its resource: its keys need a namespace of their own."""
    resources = [one.resource for one, _ in lists]
    return [resource in resources[:number] for number, resource in enumerate(resources)]


def _stream_class(one: ListProposal, draft: DraftProposal, needs_namespace: bool) -> str:
    page = Call("RawBatch.json", [f"page.items({quoted(one.records)})", "source=page.address"])
    pages = Call(
        "ctx.api.pages",
        [
            quoted(one.operation.path),
            "params",
            Named("paginator=", _paginator_call(one.paging, one)),
            f"records={quoted(one.records)}",
            f"key={quoted(one.key)}",
        ],
    )
    params = [Named(f"{quoted(name)}: ", literal(value)) for name, value in one.required.items()]
    if one.changes:
        params.append(
            Named(f"{quoted(one.changes.param)}: ", "since and since[:10]" if one.changes.takes_day else "since")
        )
    if one.paging.kind in {"none", "link", "next_url"} and one.paging.size:
        params.append(Named(f"{quoted(one.paging.size_param)}: ", str(one.paging.size)))
    facts = [f"    name, resource, key = {quoted(one.name)}, {quoted(one.resource)}, ({quoted(one.key)},)"]
    facts += [f"    namespace = {quoted(one.name)}  # another stream has records of this resource"] * needs_namespace
    facts += [_cursor_line(one)] if one.changes else ['    mode = "snapshot"']
    return "\n".join(
        [
            f"class {stream_class_name(one)}(Stream[ApiSettings]):",
            f'    """GET {_plain_text_for_comment(one.operation.path)}: {_operation_summary(one)}."""',
            "",
            *(f"    # TODO: {each}" for each in one.unknown),
            *facts,
            "",
            "    def pull(self, ctx: Context[ApiSettings], since: str | None) -> Iterator[RawBatch]:",
            '        """Read page after page."""',
            format_code("params: dict[str, str | int | None] = ", Call("", params, "{}"), 8),
            format_code("pages = ", pages, 8),
            "        for page in pages:",
            format_code("yield ", page, 12),
            "",
            *_mapping_method(one, draft),
        ]
    )


def _operation_summary(one: ListProposal) -> str:
    return _plain_text_for_comment(one.operation.data.get("summary")).rstrip(".") or one.name


def _cursor_line(one: ListProposal) -> str:
    assert one.changes is not None
    items: list[Item] = [f"column={quoted(one.changes.column)}", 'as_="instant"']
    items += [f"format={quoted(one.changes.form)}"] if one.changes.form else []
    items += [] if one.changes.has_offset else ['timezone="UTC"']
    return format_code("cursor = ", Call("Cursor", [*items, "sorted=False"]), 4)


def _paginator_call(paging: Paging, one: ListProposal) -> str | Call:
    records = quoted(one.records)
    sized = [f"size={paging.size}", f"size_param={quoted(paging.size_param)}"] if paging.size else []
    match paging.kind:
        case "link":
            return Call("LinkHeader", [])
        case "next_url":
            return Call("NextUrl", [quoted(paging.place)])
        case "cursor":
            return Call("CursorInBody", [quoted(paging.place), quoted(paging.param), *sized])
        case "after_id":
            found = ["sorted=False"] if "starting" in paging.param else []
            return Call("AfterId", [records, quoted(paging.param), f"id={quoted(one.key)}", *found, *sized])
        case "page" | "offset":
            usual = 1 if paging.kind == "page" else 0
            start = [f"start={paging.start}"] if paging.start not in {None, usual} else []
            stated = [f"{name}={quoted(at)}" for name, at in (("total", paging.total), ("pages", paging.pages)) if at]
            head = "PageNumber" if paging.kind == "page" else "Offset"
            return Call(head, [records, quoted(paging.param), *start, *stated, *sized])
    return Call("Paginator", [])


def _settings_fields(proposal: Proposal) -> Iterator[str]:
    for name in proposal.credentials.secrets:
        yield f"    {name}: SecretRef"
    for name in proposal.credentials.texts:
        yield f"    {name}: {'BaseUrl' if name == 'token_url' else 'str'}"


def _members_declared_in_model(used: Mapping[str, UsedMember]) -> dict[str, UsedMember]:
    return {name: each for name, each in used.items() if each.annotation or each.elements}


def _model_import_names_by_module(lists: Sequence[tuple[ListProposal, DraftProposal]]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {"pydantic": ["BaseModel"]}
    for _, draft in lists:
        for used in (draft.used, *(each.elements for each in draft.used.values())):
            for name, each in _members_declared_in_model(used).items():
                names["pydantic"] += ["Field"] if python_attribute_name(name) != name else []
                names["pydantic"] += ["AwareDatetime"] if each.annotation == "AwareDatetime" else []
                names.setdefault("decimal", []).extend(["Decimal"] if each.annotation == "Decimal" else [])
    return names


def _model_classes(document: OpenApiDocument, one: ListProposal, draft: DraftProposal) -> Iterator[str]:
    model = _model_name(one)
    for each in draft.used.values():
        if each.elements:
            element = document.merged_schema(each.schema.get("items"))
            yield _model_class(f"{model}Line", "A line", each.elements, members(document, element), "")
    yield _model_class(
        model,
        f"A record of {_plain_text_for_comment(one.operation.path)}",
        draft.used,
        members(document, one.record),
        model,
    )


def _model_class(name: str, what: str, used: Mapping[str, UsedMember], schemas: Mapping[str, Any], model: str) -> str:
    others = [_plain_text_for_comment(each) for each in schemas if each not in used]
    more = f"{', '.join(others[:_MOST_NAMED])}{' and more' if len(others) > _MOST_NAMED else ''}"
    said = f"; not used: {more}" if others else ""
    lines = [f"class {name}(BaseModel):", f'    """{what}{said}."""', ""]
    for member, each in _members_declared_in_model(used).items():
        annotation = f"list[{model}Line]" if each.elements else each.annotation
        annotation = annotation if each.is_required else f"{annotation} | None"
        attribute = python_attribute_name(member)
        if attribute == member:
            lines.append(f"    {attribute}: {annotation}{'' if each.is_required else ' = None'}")
        else:
            default = [] if each.is_required else ["default=None"]
            lines.append(
                format_code(f"{attribute}: {annotation} = ", Call("Field", [*default, f"alias={quoted(member)}"]), 4)
            )
    return "\n".join(lines)


def _mapping_method(one: ListProposal, draft: DraftProposal) -> Iterator[str]:
    made = format_code("return ", Call(draft.draft, draft.arguments), 8)
    built: list[str] = []
    if draft.lines is not None and draft.lines_attribute:
        built = [
            "        lines = tuple(",
            format_code("", draft.lines, 12),
            f"            for line in found.{draft.lines_attribute}",
            "        )",
        ]
    elif draft.lines is not None:
        built = [format_code("line = ", draft.lines, 8)]
    yield f"    def to_resource(self, record: Record) -> {draft.draft}:"
    yield f'        """One record of {_plain_text_for_comment(one.operation.path)}."""'
    if "found." in "\n".join([*built, made]):
        yield f"        found = record.parse({_model_name(one)})"
    yield from (*built, made)


# ---- tests


def _fake_list_constructor_call(one: ListProposal) -> Call:
    paging = one.paging
    stated: list[Item] = [quoted(one.operation.path), quoted(one.records), quoted(one.key)]
    facts = {
        "paging": paging.kind,
        "param": paging.param,
        "place": paging.place,
        "total": paging.total,
        "pages": paging.pages,
    }
    stated += [f"{name}={quoted(value)}" for name, value in facts.items() if value]
    stated += [f"start={paging.start}"] if paging.start else []
    return Call("FakeList", stated)


def _contract_test_class(one: ListProposal) -> str:
    return "\n".join(
        [
            f"class Test{stream_class_name(one)}(HttpStreamContract):",
            '    """The tests that crossdock has for every stream; pytest -rs shows what this example cannot show."""',
            "",
            "    # TODO: state in expects what the vendor means by these records",
            "    connector = CONNECTOR",
            "    settings = SETTINGS",
            "    environment = ENVIRONMENT",
            f"    stream = {quoted(one.name)}",
            f"    pages = pages_of({quoted(one.name)})",
            *(["    is_paged = False"] if one.paging.kind == "none" else []),
            *([f"    cursor_param = {quoted(one.changes.param)}"] if one.changes else []),
            "",
            "    def transport(self, pages: Sequence[Any]) -> httpx.MockTransport:",
            '        """The API with variants of the pages."""',
            f"        return vendor({{{quoted(one.name)}: pages}})",
        ]
    )
