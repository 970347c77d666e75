"""The name that does not exist, by which a filter is tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.testing.target_connector import OrderTarget

from crossdock.reading.sources.api_declaration import Api
from crossdock.targets import Answer
from crossdock.testing import ManualClock
from crossdock.writing.delivery.send_queue_and_threads import SenderThreads


class Asked:
    """A client of a target that has no record; it keeps the names that are asked for."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def send(self, method: str, path: str, **_: Any) -> Answer:
        assert method == "GET"
        self.names += parse_qs(urlsplit(path).query)["reference"]
        return Answer(200, {}, b'{"orders":[]}')

    def close(self) -> None: ...


@pytest.mark.parametrize("limit", [20, 40, 100])
def test_it_is_no_longer_than_the_target_permits(limit: int) -> None:
    """An API that checks the length of names answers it like any other; two are hardly ever the same."""

    class Limited(OrderTarget):
        resources = {"orders": replace(OrderTarget.resources["orders"], name_limit=limit)}

    target, asked = Limited(), Asked()
    target.connect("depot", "acme", lambda: Api("https://depot.example"), ManualClock())
    with SenderThreads(target, 1) as senders:
        for _ in range(2):
            assert senders._outcome_if_look_up_filter_fails(asked, "orders") is None
    assert len({*asked.names}) == 2
    assert all(len(name) <= limit for name in asked.names)
