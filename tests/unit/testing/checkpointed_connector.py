"""The reference connector with checkpoints, and bugs that only whole syncs show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.unit.testing.reference_connector import Orders, OrdersContract, ShopSettings, connector

from crossdock import Context, RawBatch, Record
from crossdock.sources import Checkpoint

READ: set[tuple[str, str]] = set()


class CheckpointedOrders(Orders):
    def pull(  # type: ignore[override]  # it also yields checkpoints
        self, ctx: Context[ShopSettings], since: str | None
    ) -> Iterator[RawBatch | Checkpoint]:
        pages = list(ctx.api.pages("/orders", self.params(since)))
        for number, page in enumerate(pages):
            orders = page.body["orders"]
            yield from self.part(page.address, orders, since, ctx, is_last=number == len(pages) - 1)

    def part(
        self,
        address: str,
        orders: list[dict[str, Any]],
        since: str | None,
        ctx: Context[ShopSettings],
        *,
        is_last: bool,
    ) -> Iterator[RawBatch | Checkpoint]:
        yield RawBatch.json(self.items(orders, since), source=address, key=["id"])
        if (newest := self.newest(orders)) is not None:
            yield Checkpoint(newest)


class CheckpointBeforeItsBatch(CheckpointedOrders):
    def part(self, *args: Any, **named: Any) -> Iterator[RawBatch | Checkpoint]:
        batch, *checkpoint = super().part(*args, **named)
        yield from checkpoint
        yield batch


class CheckpointOfTheWholeRead(CheckpointedOrders):
    def newest(self, orders: list[dict[str, Any]]) -> str | None:
        return "2026-11-22T10:00:00Z" if super().newest(orders) else None


class LastPageSkippedOnResume(CheckpointedOrders):
    def part(self, *args: Any, is_last: bool) -> Iterator[RawBatch | Checkpoint]:
        if not (is_last and args[2]):
            yield from super().part(*args, is_last=is_last)


class FirstRecordSkippedOnResume(CheckpointedOrders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return orders[1:] if since else orders


class OtherKeysOnResume(CheckpointedOrders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return [{**order, "id": f"{order['id']}-again"} for order in orders] if since else orders


class OtherRowsOnResume(CheckpointedOrders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return [{**order, "since": since} for order in orders]

    def to_resource(self, record: Record) -> Any:
        draft = super().to_resource(record)
        return draft.model_copy(update={"status": str(record.json().get("since"))})


class RememberedInTheModule(CheckpointedOrders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        fresh = [order for order in orders if (str(since), str(order)) not in READ]
        READ.update((str(since), str(order)) for order in orders)
        return fresh


class TimeOfTheRunInTheRows(CheckpointedOrders):
    def part(self, *args: Any, **named: Any) -> Iterator[RawBatch | Checkpoint]:
        address, orders, since, ctx = args
        read_at = ctx.run.clock.now().isoformat()
        yield from super().part(address, [{**order, "read_at": read_at} for order in orders], since, ctx, **named)

    def to_resource(self, record: Record) -> Any:
        draft = super().to_resource(record)
        return draft.model_copy(update={"status": str(record.json().get("read_at"))})


class TokenInTheDraft(CheckpointedOrders):
    token = ""

    def part(self, *args: Any, **named: Any) -> Iterator[RawBatch | Checkpoint]:
        TokenInTheDraft.token = args[3].settings.token.reveal()
        yield from super().part(*args, **named)

    def to_resource(self, record: Record) -> Any:
        return super().to_resource(record).model_copy(update={"status": self.token})


class KeyFromHash(Orders):
    def items(self, orders: list[dict[str, Any]], since: str | None) -> list[dict[str, Any]]:
        return [{**order, "id": hash(str(order.get("id")))} for order in orders]


class DraftFromASet(Orders):
    def to_resource(self, record: Record) -> Any:
        draft = super().to_resource(record)
        return draft.model_copy(update={"status": "".join({*"abcdefgh"})})


class CheckpointedContract(OrdersContract):
    connector = connector(CheckpointedOrders)


class KeyFromHashContract(OrdersContract):
    connector = connector(KeyFromHash)


class DraftFromASetContract(OrdersContract):
    connector = connector(DraftFromASet)
