"""The platform as a target of operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from crossdock import exact_json
from crossdock.clock import Clock, SystemClock
from crossdock.platform import request_authorization
from crossdock.platform.platform_config import Profile
from crossdock.resources import RESOURCES, ResourceName
from crossdock.transport.http_answers import Answer

if TYPE_CHECKING:
    from crossdock.transport.httpcore_client import HttpClient


@dataclass(frozen=True, slots=True)
class Request:
    """The exact bytes of an operation, before it has an idempotency key."""

    method: str
    path: str
    body: bytes | None = None


_ABSENT = object()


def external_id(namespace: str, key: str) -> str:
    """The ``externalId`` of a record. A namespace contains no colon and a key is percent-encoded, so it is unique."""
    return f"{namespace}:{key}"


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7396) from *before* to *after*: changed members, and null for removed ones."""
    changes: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name, _ABSENT)
        if old == value:
            continue
        both = isinstance(value, dict) and isinstance(old, dict)
        changes[name] = difference(old, value) if both else value
    return changes


def patched(before: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """*before* with a JSON merge patch (RFC 7396) applied."""
    after = {name: value for name, value in before.items() if changes.get(name, value) is not None}
    for name, value in changes.items():
        if isinstance(value, dict):
            old = before.get(name)
            after[name] = patched(old if isinstance(old, dict) else {}, value)
        elif value is not None:
            after[name] = value
    return after


class PlatformTarget:
    """Builds requests for the platform and opens clients; thread-safe.

    Args:
        clock: Measures the age of access tokens.

    Attributes:
        credential: Shared by all clients.
    """

    name = "platform"

    def __init__(self, profile: Profile, clock: Clock | None = None) -> None:
        self.profile = profile
        self.credential = request_authorization.credential(profile, clock or SystemClock())

    def payload(self, resource: ResourceName, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        """The members to send: those of a draft, with an ``externalId`` where the resource has one."""
        if RESOURCES[resource].has_external_id:
            return {"externalId": external_id(namespace, key), **members}
        return members

    def create(self, resource: ResourceName, payload: dict[str, Any]) -> Request:
        return Request("POST", self.profile.path(resource), exact_json.dumps(payload))

    def update(self, resource: ResourceName, platform_id: str, changes: dict[str, Any]) -> Request:
        return Request("PATCH", self._path(resource, platform_id), exact_json.dumps(changes))

    def delete(self, resource: ResourceName, platform_id: str) -> Request:
        return Request("DELETE", self._path(resource, platform_id))

    def look_up(self, resource: ResourceName, namespace: str, key: str, platform_id: str | None) -> Request:
        """Look a record up by its id, or by its ``externalId`` if that is unknown."""
        if platform_id is not None:
            return Request("GET", self._path(resource, platform_id))
        name = urlencode({self.profile.lookup.parameter: external_id(namespace, key)})
        return Request("GET", f"{self.profile.path(resource)}?{name}")

    def page(self, resource: ResourceName, updated_since: str, cursor: str | None, limit: int) -> Request:
        """A page of a list, in the order of last change, beginning at the time *updated_since* (RFC 3339)."""
        query = {"limit": str(limit), "updatedSince": updated_since} | ({"cursor": cursor} if cursor else {})
        return Request("GET", f"{self.profile.path(resource)}?{urlencode(query)}")

    def ping(self, resource: ResourceName) -> Request:
        """A harmless request that shows whether the platform answers."""
        return Request("GET", f"{self.profile.path(resource)}?limit=1")

    def _path(self, resource: ResourceName, platform_id: str) -> str:
        return f"{self.profile.path(resource)}/{quote(platform_id, safe='')}"

    def client(self) -> HttpClient:
        """A client for one thread; it authorizes each request.

        Raises:
            ConfigError: If the credential cannot be read.
        """
        from crossdock.platform.authorized_client import AuthorizedClient  # noqa: PLC0415  most commands send nothing

        profile = self.profile
        self.credential.prepare()
        return AuthorizedClient(
            self.credential,
            profile.base_url,
            headers={
                profile.tenant_header: profile.tenant,
                "content-type": "application/json",
                "accept": "application/json, application/problem+json",
            },
            max_response_bytes=profile.http.max_response_bytes,
            connection=profile.http,
            **profile.http.timeouts(),
        )

    def send(
        self,
        client: HttpClient,
        request: Request,
        idempotency_key: str | None = None,
        if_match: str | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """Send a request, and again after a 401 if a new token may help, as long as *may_leave* allows it.

        Raises:
            NotSentError, AmbiguousError: See `crossdock.transport.http_answers`.
            UnauthorizedError: If no token is granted; nothing was sent.
        """
        rule, headers = self.profile.idempotency, {}
        if rule.enabled and idempotency_key is not None:
            headers[rule.header] = f'"{idempotency_key}"' if rule.quoted else idempotency_key
        if if_match is not None and self.profile.conditional_updates:
            headers["if-match"] = if_match
        return client.send(request.method, request.path, body=request.body, headers=headers, may_leave=may_leave)
