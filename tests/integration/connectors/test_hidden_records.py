"""A record that WooCommerce counts and does not list keeps no others from delivery, and moves no cursor."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.integration.connectors.shop.woocommerce.test_contract import _OfWooCommerce, filled_shop
from tests.partners.partner_server import Partner, PartnerAnswer, PartnerRequest
from tests.partners.partner_transport import transport

from crossdock.config.project.connections_and_bound_streams import load_connector
from crossdock.runs.batches_read_from_connector import pull_checked_batches
from crossdock.runs.parts_between_checkpoints import CheckpointedReading
from crossdock.testing import ManualClock, context
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.values import exact_json

SINCE = "2020-01-01T00:00:00Z"


@dataclass
class Hiding:
    """A partner that leaves the first record out of lists whose path *path* matches, but not out of their totals."""

    partner: Partner
    path: str
    hidden: str = ""

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        given = self.partner.answer(request)
        if not re.search(f"{self.path}$", request.path):
            return given
        listed = exact_json.loads(given.content())
        self.hidden = self.hidden or str(listed[0]["id"])
        return replace(given, body=[item for item in listed if str(item["id"]) != self.hidden])


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _OfWooCommerce.environment.items():
        monkeypatch.setenv(name, value)


def rows(partner: Any, stream: str) -> tuple[int, str | None, str]:
    """The number of rows that a run reads, the cursor that it stores, and its doubt."""
    connector = load_connector("woocommerce")
    ctx = context(connector, _OfWooCommerce.settings, transport=transport(partner), clock=ManualClock())
    bound = bind_checked_stream(connector, ctx, stream)
    parts = CheckpointedReading(pull_checked_batches(bound, SINCE), bound.stream.cursor, ctx.run.clock, whole=True)
    return sum(batch.load().height for batch in parts.batches_of_next_part()), parts.cursor, str(parts.doubt or "")


@pytest.mark.parametrize(
    ("stream", "path", "fewer"),
    [
        ("orders", "/orders", 1),
        ("invoices", "/orders", 1),
        ("products", "/products", 1),
        ("products", "/variations", 1),
    ],
)
def test_a_record_that_is_counted_and_not_listed_keeps_no_others(stream: str, path: str, fewer: int) -> None:
    """The others are read, and the next run begins where this one did."""
    number, cursor, doubt = rows(filled_shop(), stream)
    assert (cursor is None, doubt) == (stream == "stock", "")
    less, cursor, doubt = rows(Hiding(filled_shop(), path), stream)
    assert (less, cursor) == (number - fewer, None)
    assert "the list ended" in doubt
