"""Who was shown personal data."""

from __future__ import annotations

import logging

from crossdock.console.visits import PageError, Visit

_log = logging.getLogger(__name__)


def is_shown(visit: Visit, what: str) -> bool:
    """Return whether the page shows the personal data of *what*, as ``show=data`` in its address asks; log it if so.

    Raises PageError if the person may not see it.
    """
    if visit.query.get("show") != "data":
        return False
    if not visit.sees_personal_data:
        raise PageError(403, f"{visit.person.name} may not see personal data: it needs the role operator.")
    _log.info("%s at %s was shown the data of %s of %s", visit.person.name, visit.address, what, visit.of_tenant.name)
    return True
