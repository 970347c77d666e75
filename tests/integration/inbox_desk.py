"""A project whose records come from shelves in memory, with an inbox that a test fills."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.chaos.mappings import Bench
from tests.chaos.shelves import Customers, Orders
from tests.hints import work_on_hints

from crossdock.config.project.project import Project
from crossdock.runs.named_record_delivery import named_records
from crossdock.runs.session_shared_by_runs import Session, open_session
from crossdock.services.inbox.webhook_record_delivery import InboxWorker, InboxWorkResult
from crossdock.state import InboxRecord, PendingApproval, RunRecord
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.webhooks import Webhooks


class InboxDesk:
    """Customers and orders, and a worker that delivers hints.

    Attributes:
        ended: What each work has done.
    """

    def __init__(self, bench: Bench) -> None:
        self.bench, self.customers, self.orders = bench, Customers(), Orders()
        bench.begin([self.customers, self.orders], webhooks=Webhooks([], [], lambda _: ()))
        self.interrupt, self.ended = threading.Event(), list[InboxWorkResult]()
        self.worker = InboxWorker(
            bench.clock, SilentProgress, self.interrupt, lambda _, worked: self.ended.append(worked)
        )

    @property
    def project(self) -> Project:
        found = self.bench._project
        assert found is not None
        return found

    @contextmanager
    def session(self) -> Iterator[Session]:
        with open_session(self.project, self.bench.clock, width=2) as opened:
            yield opened

    def hint(self, session: Session, stream: str, *keys: str) -> None:
        with session.state.begin() as tx:
            tx.inbox.schedule_fetch_of_records(named_records(f"b.{stream}", keys), at=self.bench.clock.now())

    def hints(self, session: Session) -> list[InboxRecord]:
        with session.state.begin_read_only() as tx:
            return tx.inbox.records_to_fetch(limit=1_000)

    def approval(self, session: Session) -> PendingApproval | None:
        with session.state.begin_read_only() as tx:
            return tx.pending_approvals.get("b.customers")

    def work(self, session: Session) -> None:
        """Deliver what is due, and end at once when nothing is: the clock of the bench passes while it waits."""
        with _impatient(self.bench):
            work_on_hints(self.worker, session)

    def runs(self, session: Session) -> list[RunRecord]:
        with session.state.begin_read_only() as tx:
            return tx.runs.listed(limit=100)

    def effects(self) -> list[tuple[str, str]]:
        """Each operation and the record's name on the platform, since the last call."""
        found = [(operation, body.get("externalId", "")) for operation, _, body in self.bench.platform.effects]
        self.bench.platform.effects.clear()
        return found


@contextmanager
def _impatient(bench: Bench) -> Iterator[None]:
    from unittest import mock

    from crossdock.services.inbox import webhook_record_delivery

    with mock.patch.object(webhook_record_delivery, "IDLE_S", 0.0):
        yield
