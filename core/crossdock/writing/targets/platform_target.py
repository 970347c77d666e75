"""The platform as a target of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from crossdock.mapping.resource_types import ACTIONS, WRITABLE_RESOURCE_TYPES, PlatformResource, ResourceType
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.platform import credentials
from crossdock.platform.platform_config import Profile, Rate
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.values import exact_json
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.field_types import MAX_EXTERNAL_ID
from crossdock.writing.targets import answer_outcomes
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome
from crossdock.writing.targets.target import EndpointProfile, Request, Target, TargetResource, Update

if TYPE_CHECKING:
    from crossdock.reading.transport.httpcore_client import HttpClient


class PlatformTarget(Target):
    name = place = PLATFORM
    title = "the platform"
    is_of_author = False

    def __init__(self, profile: Profile, clock: Clock | None = None) -> None:
        self.profile = profile
        self.resources = {name: _as_target_resource(kind, profile) for name, kind in WRITABLE_RESOURCE_TYPES.items()}
        self.account, self.retry, self.in_flight = profile.tenant, profile.retry, profile.in_flight
        self.kept_s, self.settle_s = profile.idempotency.kept_s, profile.lookup.settle_s
        self.credential = credentials.make_credential_of_profile(profile, clock or SystemClock())

    @property
    def address(self) -> str:
        return self.profile.base_url

    @property
    def rate(self) -> Rate:
        return self.profile.rate

    # ---- requests

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        match resource:
            case "lot_movement":
                body = {name: value for name, value in payload.items() if name != "lotId"}
                return Request.json(
                    "POST", f"{self._path_of_resource_or_record('inventory_lot', payload['lotId'])}/movements", body
                )
            case "invoice_approval":
                return Request.json(
                    "POST", f"{self._path_of_resource_or_record('invoice', payload['invoiceId'])}/approve", {}
                )
        return Request(
            "POST", self._path_of_resource_or_record(resource), exact_json.dumps(payload), holds_payload=True
        )

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        return Request("PATCH", self._path_of_resource_or_record(resource, target_id), exact_json.dumps(update.changes))

    def delete(self, resource: str, target_id: str) -> Request:
        return Request("DELETE", self._path_of_resource_or_record(resource, target_id))

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if target_id is not None:
            return Request("GET", self._path_of_resource_or_record(resource, target_id))
        return Request(
            "GET", f"{self._path_of_resource_or_record(resource)}?{urlencode({self.profile.lookup.parameter: name})}"
        )

    def list_page_request(self, resource: str, updated_since: str, cursor: str | None, limit: int) -> Request:
        """Return the request for a page of a list, in the order of last change, from *updated_since* (RFC 3339) on."""
        query = {"limit": str(limit), "updatedSince": updated_since} | ({"cursor": cursor} if cursor else {})
        return Request("GET", f"{self._path_of_resource_or_record(resource)}?{urlencode(query)}")

    def ping(self, resource: str) -> Request:
        return Request("GET", f"{self._path_of_resource_or_record(resource)}?limit=1")

    def _path_of_resource_or_record(self, resource: str, target_id: str | None = None) -> str:
        path = self.profile.resource_path(ACTIONS[resource].acts_on if resource in ACTIONS else resource)
        return path if target_id is None else f"{path}/{quote(target_id, safe='')}"

    # ---- answers

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:  # noqa: ARG002  all alike
        return answer_outcomes.outcome_of_write(answer, expected)

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:  # noqa: ARG002  all alike
        return answer_outcomes.outcome_of_look_up(answer, expected)

    def advice(self, resource: str, status: int | None) -> str:
        match status:
            case 401:
                return "check platform.auth"
            case 403:
                return "check platform.tenant and the scopes of the key"
            case 404 | 405:
                return f"check platform.base_url and platform.paths.{resource}"
            case _:
                return "check platform.rate"

    # ---- sending

    def client(self) -> HttpClient:
        from crossdock.platform.authorized_client import AuthorizedClient  # noqa: PLC0415  most commands send nothing

        profile = self.profile
        self.credential.read_secret()
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

    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:  # noqa: ARG002
        rule, headers = self.profile.idempotency, {}
        if rule.enabled and idempotency_key is not None:
            headers[rule.header] = f'"{idempotency_key}"' if rule.quoted else idempotency_key
        if if_match is not None and self.profile.conditional_updates:
            headers["if-match"] = if_match
        return headers


def _as_target_resource(kind: ResourceType, profile: Profile) -> TargetResource:
    has_name = isinstance(kind, PlatformResource) and kind.has_external_id
    return TargetResource(
        kind.name,
        kind.draft,
        kind.write_once,
        kind.parents,
        EndpointProfile(
            look_up=profile.can_look_up(kind.name),
            conditional=profile.conditional_updates,
            rules={
                operation: profile.rule_after_ambiguous_answer(kind.name, operation)
                for operation in ("create", "update", "delete")
            },
        ),
        name_member="externalId" if has_name else None,
        name_limit=MAX_EXTERNAL_ID,
        holds_records=isinstance(kind, PlatformResource),
        look_up_setting="lookup.enabled",
        look_up_filter=profile.lookup.parameter,
        creates=kind.creates,
        deletes=kind.deletes,
    )
