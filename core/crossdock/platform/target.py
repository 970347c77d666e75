"""The platform as something that operations are sent to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from crossdock import wire
from crossdock.platform.profile import Profile
from crossdock.resources import RESOURCES, ResourceName
from crossdock.transport.http import Answer, HttpClient, trust


@dataclass(frozen=True, slots=True)
class Request:
    """One operation's exact bytes, before it has an idempotency key."""

    method: str
    path: str
    body: bytes


def external_id(namespace: str, key: str) -> str:
    """Our name for a record on the wire. A namespace holds no colon and a key is percent-encoded, so none collide."""
    return f"{namespace}:{key}"


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7396) from *before* to *after*: what changed, and null for what vanished."""
    changes: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        known = before.get(name)
        if isinstance(value, dict) and isinstance(known, dict):
            if inner := difference(known, value):
                changes[name] = inner
        elif name not in before or known != value:
            changes[name] = value
    return changes


class PlatformTarget:
    """Builds the requests of the platform and opens clients for it; used by many threads at once."""

    name = "platform"

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._tls = trust(profile.http.ca_file)

    def payload(self, resource: ResourceName, namespace: str, key: str, members: dict[str, Any]) -> dict[str, Any]:
        """The wire members of a record: a draft's, with our name for it where the resource has one."""
        if RESOURCES[resource].has_external_id:
            return {"externalId": external_id(namespace, key), **members}
        return members

    def create(self, resource: ResourceName, payload: dict[str, Any]) -> Request:
        return Request("POST", self.profile.path(resource), wire.dumps(payload))

    def update(self, resource: ResourceName, platform_id: str, changes: dict[str, Any]) -> Request:
        path = f"{self.profile.path(resource)}/{quote(platform_id, safe='')}"
        return Request("PATCH", path, wire.dumps(changes))

    def client(self) -> HttpClient:
        """A client of its own for one thread.

        Raises:
            ConfigError: If the credential cannot be read.
        """
        profile = self.profile
        return HttpClient(
            profile.base_url,
            headers={
                "authorization": f"Bearer {profile.auth.token.reveal_token()}",
                profile.tenant_header: profile.tenant,
                "content-type": "application/json",
                "accept": "application/json, application/problem+json",
            },
            connect_timeout_s=profile.http.connect_timeout_s,
            read_timeout_s=profile.http.read_timeout_s,
            total_timeout_s=profile.http.total_timeout_s,
            max_response_bytes=profile.http.max_response_bytes,
            tls=self._tls,
        )

    def send(self, client: HttpClient, method: str, path: str, body: bytes | None, idempotency_key: str) -> Answer:
        """Send once.

        Raises:
            NotSentError, AmbiguousError: See `crossdock.transport.http`.
        """
        rule = self.profile.idempotency
        headers = {}
        if rule.enabled:
            headers[rule.header] = f'"{idempotency_key}"' if rule.quoted else idempotency_key
        return client.send(method, path, body=body, headers=headers)
