"""Decides whether a page shows personal data, and logs who has seen it."""

from __future__ import annotations

from contextlib import closing

from crossdock.console.page_request_context import PageError, PageRequest, page_address
from crossdock.errors import CrossdockError
from crossdock.state import AuditEntry
from crossdock.state.tables.audit_log import VIEWED
from crossdock.values.acting_person_and_process import Actor, acting_as

_ASKED = "show"
_WAITS_S = 1.0  # for other writers: the person waits for the page


def address_without_personal_data_if_cross_site(visit: PageRequest) -> str | None:
    """Return where the page is without personal data, if another site asks for it: the log would name the person."""
    if not (_asks_for_personal_data(visit) and visit.by_other_site):
        return None
    others = {name: text for name, text in visit.query.items() if name != _ASKED}
    return page_address(*visit.path.lstrip("/").split("/"), **others)


def log_and_permit_personal_data_if_asked(visit: PageRequest, subject: str) -> bool:
    """Return whether the page shows the personal data of *subject*, as ``show=data`` in its address asks; log it if so.

    *subject* is as in the audit log, such as ``record STREAM KEY``. Raises PageError if the person may not see it, or
    if it cannot be logged at once.
    """
    if not _asks_for_personal_data(visit):
        return False
    if not visit.may_see_personal_data:
        raise PageError(403, f"{visit.person.name} may not see personal data: it needs the role operator.")
    with acting_as(Actor(visit.person.name, visit.address)):
        entry = AuditEntry.new_by_current_actor(VIEWED, subject, at=visit.now)
    try:
        with closing(visit.required_tenant.open_state(write_waits_s=_WAITS_S)) as state, state.begin() as tx:
            tx.audit_log.put(entry)
    except CrossdockError as error:
        message = "The personal data is not shown, because the audit log could not be written."
        raise PageError(503, message, f"Load the page again. {error.message}") from error
    return True


def _asks_for_personal_data(visit: PageRequest) -> bool:
    return visit.query.get(_ASKED) == "data"
