"""Settings of the kind ``platform``: what is refused, and what the section ``platform`` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from crossdock.config.project import connections_and_bound_streams, project
from crossdock.config.project.config_schema import config_schema
from crossdock.config.project.masked_effective_config import effective_config
from crossdock.errors import ConfigError, FindingsError
from crossdock.runs.platform_source import CONNECTOR
from crossdock.runs.platform_source.settings import PlatformSourceSettings
from crossdock.testing import context
from crossdock.values import exact_json

CONFIG = """
platform:
  base_url: http://127.0.0.1:9
  tenant: acme-logistics
  tenant_header: x-tenant
  auth: {kind: api_key, token: env:CROSSDOCK_API_KEY}
  rate: {per_minute: 600, burst: 20}
  http: {read_timeout_s: 3, total_timeout_s: 7, max_response_bytes: 1000, trust_env: true}
connections:
  erp:
    kind: platform
    streams:
      orders:
        read: order
        resource: product
        map: {sku: id, name: externalId}
"""
WRONG = """
- {change: {read: orders}, says: "streams.orders.read: must be"}
- {change: {read: null}, says: "streams.orders.read"}
- {change: {mode: append}, says: "streams.orders.mode: must be"}
- change: {expand: [currency]}
  says: "expand.0: 'currency' names no other record; members of order that do: customerId, productId"
- {change: {read: customer, expand: [customerId]}, says: "members of customer that do: none"}
- {change: {key: [customer.externalId], expand: [customerId]}, says: "key.0: must be a member of the record itself"}
- {change: {first: "2026-01-01"}, says: "streams.orders.first"}
- {change: {mode: snapshot, first: "2026-01-01T00:00:00Z"}, says: "first: needs mode: incremental"}
- {change: {mode: snapshot, overlap_s: 5}, says: "overlap_s: needs mode: incremental"}
- {change: {overlap_s: -1}, says: "overlap_s"}
- {change: {gone: {every: 1d}}, says: "gone.every: needs existing"}
- {change: {path: /orders}, says: "unknown key"}
"""


def loaded(folder: Path, change: dict[str, Any] | None = None, **connection: Any) -> project.Project:
    document = yaml.safe_load(CONFIG)
    document["connections"]["erp"] |= connection
    stream = document["connections"]["erp"]["streams"]["orders"]
    stream |= change or {}
    document["connections"]["erp"]["streams"]["orders"] = {k: v for k, v in stream.items() if v is not None}
    (folder / "c.yaml").write_bytes(exact_json.dumps(document))
    return project.load(folder / "c.yaml")


@pytest.mark.parametrize("case", yaml.safe_load(WRONG), ids=lambda case: case["says"])
def test_what_is_refused(tmp_path: Path, case: dict[str, Any]) -> None:
    """The finding names the key and what to do."""
    with pytest.raises(FindingsError) as refused:
        loaded(tmp_path, case["change"])
    assert case["says"] in str(refused.value)


@pytest.mark.parametrize("size", [0, 1001])
def test_page_sizes(tmp_path: Path, size: int) -> None:
    """A page has 1 to 1,000 records."""
    with pytest.raises(FindingsError, match="page_size"):
        loaded(tmp_path, page_size=size)


def test_nothing_is_written_twice(tmp_path: Path) -> None:
    """Address, tenant, rate limit, time-outs and connection are those of the section ``platform``."""
    (connection,) = loaded(tmp_path).connections
    assert isinstance(connection.settings, PlatformSourceSettings)
    api = connection.settings.declared_api()
    profile = loaded(tmp_path).platform
    assert (api.base_url, api.plain_headers) == (profile.base_url, {"x-tenant": "acme-logistics"})
    assert (api.timeout_s, api.total_timeout_s, api.max_answer_bytes) == (3, 7, 1000)
    assert api.connection.trust_env
    assert api.rate.estimate().rate_per_s == 10


def test_defaults_of_a_stream(tmp_path: Path) -> None:
    """Changes since the last run, by id; of two versions of a record the newer one counts."""
    (stream,) = loaded(tmp_path).connections[0].streams
    assert (stream.mode, stream.key) == ("incremental", ("id",))
    assert stream.cursor is not None
    assert (stream.cursor.column, stream.cursor.as_, stream.cursor.sorted) == ("updatedAt", "instant", True)
    assert [getattr(each, "column", each) for each in stream.order_by or ()] == ["updatedAt"]
    assert not stream.lists_existing
    assert loaded(tmp_path, {"on_gone": "delete"}).connections[0].streams[0].lists_existing


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"expand": ["customerId"]}, False),
        ({"read": "invoice"}, False),
        ({"overlap_s": 5}, True),
        ({"first": "2026-01-01T00:00:00Z"}, True),
    ],
)
def test_what_reads_everything_again(tmp_path: Path, change: dict[str, Any], same: bool) -> None:
    """Another resource, or other expanded records, make other records of the same ids."""
    before = loaded(tmp_path).connections[0].streams[0].cursor_version
    assert (loaded(tmp_path, change).connections[0].streams[0].cursor_version == before) is same


@pytest.mark.parametrize(
    ("form", "personal"),
    [
        ("shippingAddress.city", {"name"}),
        ("shippingAddress", {"name"}),
        ({"template": "{customer.email}!"}, {"name"}),
        ({"from": "customer.currency"}, set()),
        ("customerId", set()),
        ({"when": {"field": "customer.phone", "empty": True}, "then": "id"}, {"name"}),
    ],
)
def test_personal_members_follow_what_is_read(tmp_path: Path, form: Any, personal: set[str]) -> None:
    """A member is personal if its form uses a personal member of the record or of an expanded one."""
    change = {"expand": ["customerId"], "map": {"sku": "id", "name": form}}
    assert set(loaded(tmp_path, change).connections[0].streams[0].personal) == personal


def test_settings_without_a_config_have_no_platform() -> None:
    """A test that makes them by hand is told what is missing."""
    section = yaml.safe_load(CONFIG)["connections"]["erp"]
    with pytest.raises(ConfigError, match="needs the section platform"):
        _ = context(CONNECTOR, section).settings.profile


@pytest.mark.nightly
def test_editors_and_config_show_know_the_kind(tmp_path: Path) -> None:
    """The schema accepts the config, and the effective config names no address or credential twice."""
    loaded(tmp_path, {"expand": ["customerId"], "first": "2026-01-01T00:00:00+01:00"})
    schema = config_schema(
        {
            name: connections_and_bound_streams.load_connector(name).settings
            for name in connections_and_bound_streams.installed_connectors()
        }
    )
    jsonschema_rs.validator_for(schema).validate(exact_json.loads((tmp_path / "c.yaml").read_bytes()))
    shown = effective_config(tmp_path / "c.yaml")["connections"]["erp"]
    assert shown.keys() == {"kind", "page_size", "sorted", "streams"}
    assert shown["streams"]["orders"]["expand"] == ["customerId"]
    (tmp_path / "shown.yaml").write_bytes(exact_json.dumps(effective_config(tmp_path / "c.yaml")))
    assert project.load(tmp_path / "shown.yaml").connections
