"""Reads the platform's current records of a resource with the credential and limits of the config."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import Any
from urllib.parse import quote

from crossdock.pacing.token_bucket import BucketState
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.paginated_api_client import ApiClient
from crossdock.reading.sources.pagination import CursorInBody
from crossdock.reading.sources.retried_requests import NotFoundError
from crossdock.reading.sources.run_context import PLATFORM_READS_NAME, SourceContext
from crossdock.resources import ResourceName
from crossdock.runs.platform_source.referenced_record_expansion import naming_missing_access_scope
from crossdock.runs.platform_source.settings import platform_api
from crossdock.values.field_types import is_valid_target_id

PAGE_SIZE = 1_000
"""Records per page; a page that takes too long is requested again with half as many."""


class LiveRecords(AbstractContextManager["LiveRecords"]):
    """Reads the platform's records within the rate limit; *run* has its bucket under `PLATFORM_READS_NAME`.

    It serves one thread.
    """

    def __init__(self, profile: Profile, run: SourceContext) -> None:
        self._profile, self._run = profile, run
        self._client = ApiClient(platform_api(profile), run, PLATFORM_READS_NAME)

    @property
    def request_count(self) -> int:
        return self._client.allowance.usage.requests

    @property
    def bucket_state(self) -> BucketState:
        return self._client.allowance.bucket_state

    def pages(self, resource: ResourceName, since: datetime | None = None) -> Iterator[list[dict[str, Any]]]:
        """Yield all records in the order of their last change. A record that changes meanwhile may be listed twice.

        *since* leaves out what changed earlier, if the platform knows ``updatedSince``.
        """
        paginator = CursorInBody("/nextCursor", size=PAGE_SIZE)
        params = {} if since is None else {"updatedSince": since.isoformat()}
        with naming_missing_access_scope(self._profile, resource):
            path = self._profile.resource_path(resource)
            for page in self._client.pages(path, params, paginator=paginator, records="/data", key="id"):
                yield [each for each in page.items("/data") if isinstance(each, dict)]

    def record(self, resource: ResourceName, record_id: str) -> dict[str, Any] | None:
        """Return the record of this id, or None if it does not exist. Fails as `pages`."""
        found = self._get_record(resource, record_id)
        return found.body if found is not None and isinstance(found.body, dict) else None

    def entity_tag(self, resource: ResourceName, record_id: str) -> str | None:
        """Return the entity tag of the record of this id; None if it has none or does not exist. Fails as `pages`."""
        found = self._get_record(resource, record_id)
        return None if found is None else found.headers.get("etag")

    def _get_record(self, resource: ResourceName, record_id: str) -> ApiAnswer | None:
        if not is_valid_target_id(record_id):
            return None
        with naming_missing_access_scope(self._profile, resource):
            try:
                return self._client.get(f"{self._profile.resource_path(resource)}/{quote(record_id, safe='')}")
            except NotFoundError:
                return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()
        usage, counted = self._client.allowance.usage, self._run.api_usage.get(PLATFORM_READS_NAME)
        if counted is not None:
            usage.requests += counted.requests
            usage.throttled += counted.throttled
            usage.waited_s += counted.waited_s
        self._run.api_usage[PLATFORM_READS_NAME] = usage
