"""Works on hints, one after the other."""

from __future__ import annotations

from crossdock.runs.session_shared_by_runs import Session
from crossdock.services.inbox.webhook_record_delivery import InboxWorker


def work_on_hints(worker: InboxWorker, session: Session) -> None:
    """Have *worker* deliver what is due, in this thread, and what that leaves to others."""
    for _ in range(5):
        due = session.state.run_read_only(lambda tx: worker.due_streams_by_partners(session.project, tx))
        for partners, streams in due.items():
            worker.deliver_until_idle(session, partners, streams)
