"""Proposes the address of an API and its credentials from the servers and the ``securitySchemes`` of its document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from msgspec import Struct, field

from crossdock.cli.new.openapi_operations_and_members import needs_no_escaping
from crossdock.cli.new.python_formatting import Call, Item, quoted
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
