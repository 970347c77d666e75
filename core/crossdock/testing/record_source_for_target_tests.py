"""A source of example records for a target under test, and a variant of that target without waits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from crossdock.connector import Connector, Context, Settings, Stream
from crossdock.mapping.stream_declaration import GoneLimits
from crossdock.pacing.rate_limit_and_retry_settings import RateLimit, Retry
from crossdock.reading.sources.api_declaration import Api
from crossdock.resources import Reference
from crossdock.targets import ConnectorTarget
from crossdock.values import exact_json
from crossdock.values.config_base_types import ConfigPath
from crossdock.values.raw_rows_and_records import Proof, RawBatch, Record

_REFERENCE = "crossdock:reference"
_HURRIED = Retry(attempts=20, base_s=0.02, cap_s=0.1)
_UNLIMITED = RateLimit(per_minute=600_000, burst=100_000)
_SETTLE_S = 0.05  # the loopback keeps no request longer


class ExampleSettings(Settings):
    """A JSON file with a list of records for each resource: the parts of the key, and the members of the draft."""

    kind: Literal["example_source"]
    path: ConfigPath
    target: str
    resources: Mapping[str, int]
    """How many parts the keys of each resource have."""
    deletes: tuple[str, ...] = ()
    """The resources of which a record is deleted that is no longer in the file."""


class Examples(Stream[ExampleSettings]):
    """The records of one resource, in one snapshot."""

    mode = "snapshot"

    def __init__(self, target: str, resource: str, parts: int, *, deletes: bool) -> None:
        if deletes:
            self.on_gone, self.gone = "delete", GoneLimits(at_most_percent=100)
        self.name, self.to = resource, f"{target}.{resource}"
        self.key = tuple(map(key_member, range(parts)))
        self._resource = resource

    def pull(self, ctx: Context[ExampleSettings], since: str | None) -> Iterator[RawBatch]:  # noqa: ARG002
        content = ctx.settings.path.read_bytes()
        records = exact_json.loads(content)[self._resource]
        proof = Proof(lambda: hashlib.sha256(content).hexdigest(), counted=True)
        yield replace(RawBatch.json(records, source=f"{ctx.settings.path.name}/{self._resource}"), proof=proof)

    def to_resource(self, record: Record) -> Mapping[str, Any]:
        members: dict[str, Any] = _with_decoded_references(record.json()["members"])
        return members


SOURCE = Connector(
    name="example_source",
    title="Example records",
    settings=ExampleSettings,
    streams=lambda own: tuple(
        Examples(own.target, name, parts, deletes=name in own.deletes) for name, parts in own.resources.items()
    ),
)


def key_member(number: int) -> str:
    return f"key_{number}"


def example_record_as_json(key: Sequence[str], members: Mapping[str, Any]) -> dict[str, Any]:
    return {**{key_member(number): part for number, part in enumerate(key)}, "members": members}


def reference_as_json(reference: Reference) -> dict[str, Any]:
    return {_REFERENCE: [reference.resource, *reference.key_parts]}


def _with_decoded_references(value: Any) -> Any:
    match value:
        case dict() if _REFERENCE in value:
            resource, *key = value[_REFERENCE]
            return Reference(resource, tuple(key))
        case dict():
            return {name: _with_decoded_references(inner) for name, inner in value.items()}
        case list():
            return [_with_decoded_references(inner) for inner in value]
    return value


def connector_whose_target_never_waits(connector: Connector[Any]) -> Connector[Any]:
    """Return *connector* with a target that does not wait before it sends again or looks up, nor for a rate limit that
    the connector sets.
    """
    make = connector.target
    assert make is not None, f"the connector {connector.name!r} declares no target"

    def target(settings: Any) -> ConnectorTarget:
        made = make(settings)
        assert made is not None, f"the connector {connector.name!r} makes no target of these settings"
        made.retry, made.settle_s = _HURRIED, _SETTLE_S
        return made

    def api(settings: Any) -> Api:
        assert connector.api is not None
        made = connector.api(settings)
        is_set = isinstance(made.rate, RateLimit) and made.rate.per_minute is not None
        return replace(made, rate=_UNLIMITED) if is_set else made

    return replace(connector, target=target, api=None if connector.api is None else api)
