"""The access scopes that a config needs, those that the platform has granted (RFC 7662), and their comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from urllib.parse import urlencode

from msgspec import Struct

from crossdock.errors import UnauthorizedError, UnavailableError
from crossdock.mapping.resource_types import RESOURCES
from crossdock.platform.credentials import MAX_ANSWER_BYTES, Credential
from crossdock.platform.platform_config import SCOPE_NAMES, ClientCredentials, Profile
from crossdock.reading.transport import oauth_messages


class NeededScope(Struct, frozen=True):
    """A scope that is needed, such as ``products:write``.

    Attributes:
        sufficient: The scopes that include it: itself, writing if it is reading, and both for every resource (``*``).
        narrow: The prefix and suffix of scopes that grant it for single records, as ``accounts:4000:write`` does.
    """

    name: str
    sufficient: frozenset[str]
    narrow: tuple[tuple[str, str], ...]
    is_assumed: bool

    def is_granted_for_single_records(self, granted: str) -> bool:
        return any(
            granted.startswith(begin) and granted.endswith(end) and len(granted) > len(begin) + len(end)
            for begin, end in self.narrow
        )


class ScopeComparison(Struct, frozen=True):
    """The needed scopes and the granted ones. *narrowed* are needed, and granted for single records only."""

    text: str
    missing: tuple[str, ...] = ()
    narrowed: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()


def needed_scopes(profile: Profile, written: Collection[str], read: Collection[str]) -> tuple[NeededScope, ...]:
    """Return the scopes to write the resources *written* and to read the others of *read*. Writing includes reading."""
    chosen = [(name, "write" if name in written else "read") for name in RESOURCES if name in {*written, *read}]
    return tuple(_needed_scope_of_resource(profile, name, access) for name, access in chosen)


def compare_scopes(wanted: Sequence[NeededScope], granted: Sequence[str] | None) -> ScopeComparison:
    """Compare scopes; *granted* is None if unknown. If none of them has a default name, none is reported as missing."""
    needs = f"the streams need the scopes {' '.join(scope.name for scope in wanted) or 'of no resource'}"
    if granted is None:
        return ScopeComparison(f"{needs}; which are granted is not reported")
    narrowed = tuple(name for name in granted if any(scope.is_granted_for_single_records(name) for scope in wanted))
    missing = tuple(
        scope.name
        for scope in wanted
        if scope.sufficient.isdisjoint(granted) and not any(map(scope.is_granted_for_single_records, granted))
    )
    if granted and all(scope.is_assumed for scope in wanted) and not any(map(_has_default_scope_name, granted)):
        return ScopeComparison(
            f"{needs}; granted: {' '.join(granted)}; set platform.scope_names to compare these names"
        )
    extra = tuple(name for name in granted if name not in {*narrowed, *(scope.name for scope in wanted)})
    groups = (("missing", missing), ("for single records only", narrowed), ("more than needed", extra))
    said = [f"{label}: {' '.join(names)}" for label, names in groups if names]
    return ScopeComparison("; ".join([needs, *(said or ["exactly these are granted"])]), missing, narrowed, extra)


def _needed_scope_of_resource(profile: Profile, resource: str, access: str) -> NeededScope:
    including = ("read", "write") if access == "read" else ("write",)
    template = profile.oauth_scope_template(resource)
    begin, _, end = template.partition("{access}")
    narrow = tuple((begin, f":{each}{end}") for each in including) if "{access}" in template else ()
    sufficient = {template.replace("{access}", each) for each in including} | {f"*:{each}" for each in including}
    return NeededScope(
        template.replace("{access}", access), frozenset(sufficient), narrow, resource not in profile.scope_names
    )


def _has_default_scope_name(name: str) -> bool:
    begin, _, access = name.partition(":")
    known = {template.partition(":")[0] for template in SCOPE_NAMES.values()} | {"*"}
    return begin in known and access.rpartition(":")[2] in {"read", "write"}


def introspect_granted_scopes(profile: Profile, url: str, credential: Credential) -> tuple[str, ...] | None:
    """Request the scopes of *credential* by token introspection, and return None if the answer does not state them.

    Read the secret of *credential* before. A client authenticates as at the token endpoint, an API key by itself.
    """
    from crossdock.reading.transport.httpcore_client import HttpClient  # noqa: PLC0415  most commands do not ask

    rule, authorization = profile.auth, credential.authorization()
    form, headers = {"token": authorization.removeprefix("Bearer ")}, {"authorization": authorization}
    if isinstance(rule, ClientCredentials):
        fields, headers = oauth_messages.client_authentication_fields_and_headers(
            rule.client_id, rule.client_secret.reveal(), rule.client_auth
        )
        form |= fields
    headers |= {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    http = profile.http
    client = HttpClient(url, headers=headers, connection=http, max_response_bytes=MAX_ANSWER_BYTES, **http.timeouts())
    with closing(client):
        answer = client.send("POST", "", body=urlencode(form).encode())
    if answer.status in {401, 403}:
        hint = "see platform.auth, or remove platform.introspection_url"
        raise UnauthorizedError(
            f"refused the introspection (HTTP {answer.status})", where=url, hint=hint, code="introspection_failed"
        )
    found = oauth_messages.json_object_or_empty(answer.body)
    active, scope = found.get("active"), found.get("scope", "")
    if answer.status != 200 or not isinstance(active, bool) or not isinstance(scope, str):
        hint = "platform.introspection_url is the address of an RFC 7662 endpoint"
        raise UnavailableError(
            f"gave no introspection answer (HTTP {answer.status})", where=url, hint=hint, code="introspection_failed"
        )
    if not active:
        raise UnauthorizedError(
            "the credential is not active", where=url, hint="see platform.auth", code="credential_refused"
        )
    return tuple(scope.split()) if "scope" in found else None
