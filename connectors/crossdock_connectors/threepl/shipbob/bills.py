"""ShipBob's bills as invoices."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from crossdock import InvoiceDraft, RawBatch, Record, RefusedError
from crossdock.mapping.incremental_cursors import format_iso_instant_cursor
from crossdock.sources import Checkpoint
from crossdock.values.json_paths import at_path
from crossdock_connectors.json_record_members import with_added_members
from crossdock_connectors.threepl.shipbob import mapping
from crossdock_connectors.threepl.shipbob.stream_base_and_list_pages import (
    ShipBobContext,
    ShipBobStream,
    cursor_pages,
    merchants_of_inventory_items,
)
from crossdock_connectors.unreadable_record_parts import read_as_member_or_reason

LATE = timedelta(days=30)
"""How long after its day a bill may appear, as in ShipBob's own default."""


class Bills(ShipBobStream):
    """Bills of the last thirty days, and of the time since the last run. They do not name their merchant."""

    name, resource, mode, key = "bills", "invoice", "incremental", ("owner", "invoice_id")

    def pull(self, ctx: ShipBobContext, since: str | None) -> Iterator[RawBatch | Checkpoint]:
        self._refuse_token_of_several_merchants(ctx)
        now, first = ctx.run.clock.now(), ctx.settings.first
        begin = (datetime.fromisoformat(since) if since else first or now) - LATE
        params = {"FromDate": begin.date().isoformat(), "SortOrder": "Ascending"}
        for bills, address in cursor_pages(ctx, "/invoices", "invoice_id", **params):
            yield RawBatch.json([self._with_lines(ctx, bill) for bill in bills], source=address)
        yield Checkpoint(format_iso_instant_cursor(now), needs_whole_list=True)

    def _with_lines(self, ctx: ShipBobContext, bill: object) -> object:
        path = f"/invoices/{at_path(bill, 'invoice_id')}/transactions"
        lines = read_as_member_or_reason(
            "transactions", lambda: [line for page, _ in cursor_pages(ctx, path, "transaction_id") for line in page]
        )
        return with_added_members(bill, owner=self.settings.owner, **lines)

    def _refuse_token_of_several_merchants(self, ctx: ShipBobContext) -> None:
        """Refuse an account of several merchants: the others' bills would be mistaken for those of the merchant."""
        others = set(merchants_of_inventory_items(ctx).values()) - {self.settings.owner}
        if others:
            message = f"the token sees other merchants than {self.settings.owner}, and bills do not say whose they are"
            hint = "use a token of one merchant, or leave out the setting bills"
            raise RefusedError(message, where=f"{ctx.connection}.{self.name}", hint=hint, code="credential_too_wide")

    def to_resource(self, record: Record) -> InvoiceDraft:
        assert self.settings.bills is not None  # else there is no such stream
        return mapping.invoice_of_bill(record, self.settings.bills)
