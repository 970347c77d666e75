"""The records that the platform has of a resource now, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crossdock.errors import RefusedError
from crossdock.platform.platform_config import Profile
from crossdock.platform_source.expansion import naming_scope
from crossdock.platform_source.settings import CHANGED, platform_api
from crossdock.resources import ResourceName
from crossdock.sources.api_client import ApiClient
from crossdock.sources.api_request import ApiAnswer
from crossdock.sources.pagination import CursorInBody
from crossdock.sources.source_context import SourceContext
from crossdock.targets.outcomes import STANDARD

PAGE_SIZE = 1000  # the most that the platform serves at once
READS = "the platform"
"""What a run counts these requests under, as those of a connection; no connection can be called so. Their tokens are
those of delivery in a session; elsewhere `SourceContext.limits` may have the bucket to begin with."""


@dataclass(frozen=True, slots=True)
class LiveRecord:
    """A record as the platform lists it.

    Attributes:
        members: All of them, with exact numbers, by their names on the wire.
        updated_at: With a time zone; None if the platform does not state it.
    """

    id: str
    members: dict[str, Any]
    updated_at: datetime | None


def live_records(
    profile: Profile, run: SourceContext, resource: ResourceName, since: datetime | None = None
) -> Iterator[list[LiveRecord]]:
    """Read the list of *resource* to its end; one page of up to `PAGE_SIZE` records at a time.

    A record that changes while the list is read may come again, as it is then. The number of requests is in
    ``run.api_usage`` once the list was read.

    Args:
        since: Only what changed since then, if the platform knows the parameter ``updatedSince``.

    Raises:
        UnauthorizedError: If the credential may not read *resource*; it names the scope.
        RemoteError: If the platform cannot be read.
        RefusedError: If an answer is no page of a list, or a record has no id.
    """
    params = {} if since is None else {"updatedSince": since.isoformat()}
    paginator = CursorInBody("/nextCursor", size=PAGE_SIZE)
    with ApiClient(platform_api(profile), run, READS) as api, naming_scope(profile, resource):
        try:
            for page in api.pages(profile.path(resource), params, paginator=paginator):
                yield [_record(item, page) for item in page.items("/data")]
        finally:
            _count(run, api)


def _record(item: Any, page: ApiAnswer) -> LiveRecord:
    record_id = STANDARD.id_of(item)
    if record_id is None:
        raise RefusedError("lists a record without a valid id", where=page.address)
    return LiveRecord(record_id, item, _instant(item.get(CHANGED)))


def _instant(text: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return None if at is None or at.tzinfo is None else at


def _count(run: SourceContext, api: ApiClient) -> None:
    """Add the requests of *api* to those that *run* has counted."""
    usage, counted = api.allowance.usage, run.api_usage.get(READS)
    if counted is not None:
        usage.requests += counted.requests
        usage.throttled += counted.throttled
        usage.waited_s += counted.waited_s
    run.api_usage[READS] = usage
