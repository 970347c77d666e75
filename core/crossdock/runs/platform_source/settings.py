"""Settings of a connection that reads the platform, and the members by which its records refer to others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from crossdock.config.stream_configuration import StreamConfig
from crossdock.connector import Settings
from crossdock.errors import ConfigError
from crossdock.mapping.resource_types import RESOURCES, personal_members
from crossdock.mapping.row_order_and_cursors import OVERLAP_S, OverlapS
from crossdock.mapping.stream_declaration import PLATFORM, Columns
from crossdock.platform.platform_config import ClientCredentials, Profile
from crossdock.reading.sources.api_declaration import Api
from crossdock.reading.transport.http_auth import BearerAuth, ClientCredentialsAuth
from crossdock.resources import Line, ResourceName
from crossdock.values.config_base_types import Name, make_pydantic_error_at_key
from crossdock.values.field_types import Instant
from crossdock.webhooks import WebhookSettings

_NAMED: Mapping[str, ResourceName] = {
    "customerId": "customer",
    "productId": "product",
    "binId": "warehouse_bin",
    "parentId": "ledger_account",
}


def reference_members(resource: ResourceName) -> dict[str, ResourceName]:
    """Map the members of *resource*, or of its items, that name another record to that record's resource."""
    fields = RESOURCES[resource].wire.model_fields
    models = (fields, Line.model_fields) if "items" in fields else (fields,)
    names = {field.alias for model in models for field in model.values()}
    return {name: kind for name, kind in _NAMED.items() if name in names}


def expanded_record_member(member: str) -> str:
    """Return the member that holds the record which *member* names: ``customer`` for ``customerId``."""
    return member.removesuffix("Id")


def personal_members_with_expanded_records(resource: ResourceName, expand: Sequence[str]) -> Iterator[str]:
    """Yield the dotted paths of personal members of *resource* and of the records expanded in it."""
    yield from personal_members(RESOURCES[resource].wire)
    kinds = reference_members(resource)
    for member in expand:
        for name in personal_members(RESOURCES[kinds[member]].wire):
            yield f"{expanded_record_member(member)}.{name}"


_INCREMENTAL_ONLY = "needs mode: incremental"


class PlatformStreamConfig(StreamConfig):
    """The records of one resource of the platform, and what they become."""

    read: ResourceName
    """The resource that is read."""
    mode: Literal["snapshot", "incremental"] = "incremental"
    """``incremental`` reads what changed since the last run, ``snapshot`` lists everything."""
    key: Columns = ("id",)
    """The members that identify a record."""
    expand: tuple[str, ...] = ()
    """Members that name other records, such as ``customerId``: the record is read too, and put beside its id."""
    first: Instant | None = None
    """The first run reads what changed since then; default: everything."""
    overlap_s: OverlapS = OVERLAP_S
    """A change that is younger than this when it is read, is read again by the next run: more than the difference of
    the clocks and the delay with which the platform shows changes."""

    @property
    def lists_existing(self) -> bool:
        return self.mode == "incremental" and self.on_gone != "nothing" and self.deleted is None

    @property
    def fetches(self) -> bool:
        return tuple(self.key) == ("id",)

    @property
    def read_resource(self) -> str | None:
        return f"{PLATFORM}.{self.read}" if tuple(self.key) == ("id",) else None

    @model_validator(mode="after")
    def _check_expand_key_and_mode(self) -> Self:
        kinds = reference_members(self.read)
        for number, name in enumerate(self.expand):
            if name not in kinds:
                known = ", ".join(kinds) or "none"
                message = f"{name!r} names no other record; members of {self.read} that do: {known}"
                raise make_pydantic_error_at_key(("expand", number), message)
        names = {expanded_record_member(member) for member in self.expand}
        for number, column in enumerate(self.key):
            if column.partition(".")[0] in names:
                raise make_pydantic_error_at_key(
                    ("key", number), "must be a member of the record itself, not of an expanded one"
                )
        for name in ("first", "overlap_s"):
            if self.mode == "snapshot" and name in self.model_fields_set:
                raise make_pydantic_error_at_key((name,), _INCREMENTAL_ONLY)
        return self


class PlatformSourceSettings(Settings):
    """The platform of the config, which is read with the credential of ``platform.auth``."""

    kind: Literal["platform"]
    page_size: Annotated[int, Field(ge=1, le=1000)] = 100
    """Records per page, halved after a time-out."""
    sorted: bool = True
    """Whether the platform lists records by ``updatedAt``, ascending. Then a run stores the cursor while it reads;
    otherwise only at the end."""
    streams: Annotated[Mapping[Name, PlatformStreamConfig], Field(min_length=1)]
    """The streams by name."""
    webhooks: WebhookSettings | None = None
    """The webhooks that the platform sends; by default none are accepted."""

    _profile: Profile | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _set_profile_from_context(self, info: ValidationInfo) -> Self:
        self._profile = (info.context or {}).get("platform")
        return self

    @property
    def profile(self) -> Profile:
        """The section ``platform`` of the config. Settings that were made without a config file have none."""
        if self._profile is None:
            raise ConfigError(
                "a connection of kind: platform needs the section platform of a config file", code="config_invalid"
            )
        return self._profile

    def declared_api(self) -> Api:
        return platform_api(self.profile)


def platform_api(profile: Profile) -> Api:
    return Api(
        profile.base_url,
        auth=_auth(profile),
        plain_headers={profile.tenant_header: profile.tenant},
        rate=profile.rate,
        timeout_s=profile.http.read_timeout_s,
        total_timeout_s=profile.http.total_timeout_s,
        max_answer_bytes=profile.http.max_response_bytes,
        connection=profile.http,
    )


def _auth(profile: Profile) -> BearerAuth | ClientCredentialsAuth:
    rule = profile.auth
    if not isinstance(rule, ClientCredentials):
        return BearerAuth(rule.token)
    url = rule.token_address(profile.base_url)
    return ClientCredentialsAuth(
        url, rule.client_id, rule.client_secret, scopes=rule.scopes, client_auth=rule.client_auth
    )
