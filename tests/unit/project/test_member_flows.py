"""No member of a record flows in both directions between two systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PIN

from crossdock.config.project.connections_and_bound_streams import MemberFlow, two_way_member_error
from crossdock.config.project.project import Project, load
from crossdock.errors import ConfigError
from crossdock.values import exact_json

HERE, THERE = "platform.order", "plain.orders"


def flow(
    stream: str, read: str, written: str, members: Mapping[str, Sequence[str]], *, contributes: bool = True
) -> MemberFlow:
    return MemberFlow(stream, read, written, members, contributes)


@pytest.mark.parametrize("contributes", [(True, True), (True, False), (False, True)])
def test_a_member_that_two_streams_write_from_each_other_is_found(contributes: tuple[bool, bool]) -> None:
    """Also by a part of it, and if one of them creates the records."""
    back = flow("plain.back", THERE, HERE, {"status": ("state.name",)}, contributes=contributes[0])
    out = flow("erp.out", HERE, THERE, {"state": ("note", "status"), "city": ("city",)}, contributes=contributes[1])
    reason = "plain.back and erp.out write status of platform.order, and state of plain.orders, from each other"
    assert two_way_member_error([back, flow("other", HERE, "third.orders", {"state": ("status",)}), out]) == reason


@pytest.mark.parametrize(
    "flows",
    [
        [flow("a", THERE, HERE, {"status": ("state",)}), flow("b", HERE, THERE, {"city": ("city",)})],
        [flow("a", THERE, HERE, {"status": ("state",)}), flow("b", HERE, THERE, {"state": ("note",)})],
        [flow("a", THERE, HERE, {"status": ("state",)}), flow("b", "platform.invoice", THERE, {"state": ("status",)})],
        [
            flow("a", THERE, HERE, {"status": ("state",)}, contributes=False),
            flow("b", HERE, THERE, {"state": ("status",)}, contributes=False),
        ],
    ],
    ids=["other members", "made of another member", "other records", "both create records"],
)
def test_other_members_and_whole_records_may_flow_both_ways(flows: list[MemberFlow]) -> None:
    """Each member has one owner then, or each record was created by one side."""
    assert two_way_member_error(flows) is None


ORDERS: dict[str, Any] = {
    "path": "/v1/orders",
    "params": {"since": "{since}"},
    "pagination": {"kind": "single_page"},
    "records": "items",
    "mode": "incremental",
    "cursor": {"column": "updated_at", "as": "instant"},
    "key": ["id"],
    "resource": "order",
    "contributes": ["status"],
    "matches": "origin",
    "reads": "plain.orders",
    "map": {"status": {"from": "state", "table": {"SENT": "shipped"}}},
}
TARGET: dict[str, Any] = {
    "members": {"state": {"type": "text"}, "city": {"type": "text"}},
    "create": "POST /v1/orders",
    "update": "PATCH /v1/orders/{id}",
    "read": "GET /v1/orders/{id}",
}


def loaded(folder: Path, out: dict[str, Any], **target: Any) -> Project:
    """A config in which the status of orders comes from the 3PL, and orders are sent there with the members *out*."""
    config = {
        "platform": {"base_url": PIN.base_url, "tenant": "acme", "auth": {"kind": "api_key", "token": "env:NOBODY"}},
        "connections": {
            "plain": {
                "kind": "http_json",
                "base_url": "http://127.0.0.1:9",
                "target": {"resources": {"orders": TARGET | target}},
                "streams": {"orders": ORDERS},
            },
            "erp": {"kind": "platform", "streams": {"orders": {"read": "order", "to": "plain.orders", "map": out}}},
        },
    }
    path = folder / "crossdock.yaml"
    path.write_bytes(exact_json.dumps(config))
    return load(path)


def test_a_config_with_a_member_in_both_directions_is_refused(tmp_path: Path) -> None:
    """The message has both streams and both members, and says what to do."""
    with pytest.raises(ConfigError) as refused:
        loaded(tmp_path, {"state": "status", "city": "shippingAddress.city"})
    message = "erp.orders and plain.orders write state of plain.orders, and status of platform.order, from each other"
    assert message in str(refused.value)
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("choose the system that owns the member")


def test_a_config_with_one_owner_for_each_member_is_loaded(tmp_path: Path) -> None:
    """Orders go out without the member that comes back."""
    assert len(loaded(tmp_path, {"city": "shippingAddress.city"}).connections) == 2


def test_an_invalid_target_is_reported_as_such(tmp_path: Path) -> None:
    """Its own error is shown, and not that a stream writes to something that is no target."""
    with pytest.raises(ConfigError, match="connections.plain.target.resources.orders.create: "):
        loaded(tmp_path, {"city": "shippingAddress.city"}, create="FETCH /v1/orders")
