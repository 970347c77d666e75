"""Personal data is shown on request, and the audit log tells who has seen it."""

from __future__ import annotations

from contextlib import closing

from crossdock.console.visits import PageError, Visit
from crossdock.errors import CrossdockError
from crossdock.state import AuditEntry
from crossdock.state.tables.audit_log import VIEWED
from crossdock.values.actor import Actor, acting_as

_WAITS_S = 1.0  # for other writers: the person waits for the page


def is_shown(visit: Visit, subject: str) -> bool:
    """Return whether the page shows the personal data of *subject*, as ``show=data`` in its address asks; log it if so.

    Another site, whose link a person follows, asks in vain. *subject* is as in the audit log, such as ``record STREAM
    KEY``. Raises PageError if the person may not see it, or if it cannot be logged at once.
    """
    if visit.query.get("show") != "data" or visit.by_other_site:  # the log would say that the person asked
        return False
    if not visit.sees_personal_data:
        raise PageError(403, f"{visit.person.name} may not see personal data: it needs the role operator.")
    with acting_as(Actor(visit.person.name, visit.address)):
        entry = AuditEntry.new(VIEWED, subject, at=visit.now)
    try:
        with closing(visit.of_tenant.open_state(waits_s=_WAITS_S)) as state, state.begin() as tx:
            tx.audit_log.put(entry)
    except CrossdockError as error:
        message = "The personal data is not shown, because the audit log could not be written."
        raise PageError(503, message, f"Load the page again. {error.message}") from error
    return True
