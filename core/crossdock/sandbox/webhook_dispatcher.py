"""Sends webhooks: takes new events from the change log and attempts what is due, on the event loop of the sandbox.

An attempt is stored when it has ended, so that one which a kill interrupts is made again: each event is delivered at
least once. Each subscription has a limit of its own for attempts in progress, so that a slow receiver delays no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections import defaultdict
from functools import partial

from crossdock.sandbox import webhook_deliveries, webhook_subscriptions
from crossdock.sandbox.api_routes import SUBSCRIPTIONS
from crossdock.sandbox.database import GroupCommitWriter
from crossdock.sandbox.fault_and_clock_controls import FaultAndClockControls
from crossdock.sandbox.webhook_deliveries import PendingDelivery
from crossdock.sandbox.webhook_subscriptions import StoredSubscription, signed_headers
from crossdock.sandbox.webhook_transport import WebhookTransport

logger = logging.getLogger(__name__)

_MAX_WAIT_S = 60.0
_AFTER_FAILURE_S = 1.0
_NEW_EVENTS = (
    "SELECT 1 FROM subscriptions WHERE status = 'enabled'"
    " AND EXISTS (SELECT 1 FROM events WHERE tenant = subscriptions.tenant AND seq > cursor)"
)


class WebhookDispatcher:
    """The deliveries of one sandbox. Due times follow the clock of *controls*."""

    def __init__(
        self,
        reader: sqlite3.Connection,
        writer: GroupCommitWriter,
        controls: FaultAndClockControls,
        transport: WebhookTransport,
    ) -> None:
        self._reader, self._writer, self._controls, self.transport = reader, writer, controls, transport
        self._awake = asyncio.Event()
        self._in_progress: defaultdict[str, dict[str, asyncio.Task[None]]] = defaultdict(
            dict
        )  # by subscription, delivery

    def wake(self) -> None:
        self._awake.set()

    async def run(self) -> None:
        """Deliver until cancelled. Attempts in progress are then abandoned, and made again after the next start."""
        try:
            while True:
                self._awake.clear()
                wait_s = await self._start_due_attempts_or_log_database_error()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):  # `wait_for` of Python 3.11 can lose a cancellation (gh-86296)
                        await self._awake.wait()
        finally:
            tasks = self._attempts_in_progress()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def deliver_due(self) -> None:
        """Deliver everything that is due now, and what becomes due by that; then return."""
        while True:
            await self._start_due_attempts_and_return_wait_s()
            if not (tasks := self._attempts_in_progress()):
                return
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    def _attempts_in_progress(self) -> list[asyncio.Task[None]]:
        return [task for tasks in self._in_progress.values() for task in tasks.values()]

    async def _start_due_attempts_or_log_database_error(self) -> float:
        try:
            return await self._start_due_attempts_and_return_wait_s()
        except sqlite3.Error:
            logger.exception("webhooks cannot be read or written")
            return _AFTER_FAILURE_S

    async def _start_due_attempts_and_return_wait_s(self) -> float:
        while self._reader.execute(_NEW_EVENTS).fetchone():
            now, faults = self._controls.clock(), self._controls.faults
            await self._writer.run_in_transaction(
                partial(webhook_deliveries.add_deliveries_of_new_events, now=now, faults=faults)
            )
        waits_s = [
            self._start_due_attempts_of_subscription(each)
            for each in webhook_subscriptions.load_enabled_subscriptions(self._reader)
        ]
        return min(waits_s, default=_MAX_WAIT_S)

    def _start_due_attempts_of_subscription(self, subscription: StoredSubscription) -> float:
        tasks, now = self._in_progress[subscription.id], self._controls.clock()
        for each in webhook_deliveries.pending_deliveries_by_due_time(
            self._reader, subscription.id, subscription.concurrency + 1
        ):
            if each.due > now:
                return min(each.due - now, _MAX_WAIT_S)
            if each.id not in tasks and len(tasks) < subscription.concurrency:
                task = asyncio.create_task(self._attempt_delivery(subscription, each))
                tasks[each.id] = task
                task.add_done_callback(partial(self._remove_ended_attempt, subscription.id, each.id))
        return _MAX_WAIT_S

    def _remove_ended_attempt(self, subscription_id: str, delivery_id: str, _: asyncio.Task[None]) -> None:
        tasks = self._in_progress[subscription_id]
        del tasks[delivery_id]
        if not tasks:
            del self._in_progress[subscription_id]
        self.wake()

    async def _attempt_delivery(self, subscription: StoredSubscription, delivery: PendingDelivery) -> None:
        try:
            if await self._send_and_record_attempt(subscription, delivery):
                faults = self._controls.faults.faults_for_request("POST", f"{SUBSCRIPTIONS}/{subscription.id}")
                if faults.duplicates_delivery():
                    await self._send_and_record_attempt(subscription, delivery)
        except Exception:
            logger.exception("an attempt of %s could not be made or stored", delivery.id)
            await asyncio.sleep(_AFTER_FAILURE_S)  # it is still due

    async def _send_and_record_attempt(self, subscription: StoredSubscription, delivery: PendingDelivery) -> bool:
        """Attempt and store a delivery. Return whether it succeeded. Receivers compare its timestamp with real time."""
        body, clock = delivery.body.encode(), self._controls.clock
        signing_secrets = subscription.valid_secrets(clock())
        headers = signed_headers(delivery.event_id, int(clock.unadjusted_time()), body, signing_secrets)
        headers |= {"content-type": "application/json", "user-agent": "crossdock-sandbox"}
        began = time.monotonic()
        answer = await self.transport.post(subscription.url, headers, body)
        took_s = time.monotonic() - began
        store = partial(
            webhook_deliveries.record_attempt_and_reschedule_delivery,
            delivery_id=delivery.id,
            now=clock(),
            took_s=took_s,
            answer=answer,
        )
        await self._writer.run_in_transaction(store)
        return answer.problem is None
