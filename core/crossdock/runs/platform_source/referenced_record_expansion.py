"""Expansion of references: adds the records that the platform's records name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

from crossdock.connector import Context
from crossdock.errors import UnauthorizedError
from crossdock.platform import needed_and_granted_scopes
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.retried_requests import NotFoundError
from crossdock.resources import ResourceName
from crossdock.runs.platform_source.platform_reference_members import expanded_record_member, reference_members
from crossdock.runs.platform_source.settings import PlatformSourceSettings
from crossdock.values.field_types import is_valid_target_id

KEPT = 10_000
"""The most expanded records that a run keeps in memory. Others are read again when they are needed."""

ReadRecord = Callable[[ResourceName, str], Any]


def cached_record_reader(ctx: Context[PlatformSourceSettings]) -> ReadRecord:
    """Make a function that reads a record by its id, once in a run for all streams of the connection."""
    read: ReadRecord = ctx.shared(KEPT_RECORDS, lambda: lru_cache(maxsize=KEPT)(partial(_read_record_body, ctx)))
    return read


KEPT_RECORDS = "crossdock.runs.platform_source.records"


def _read_record_body(ctx: Context[PlatformSourceSettings], resource: ResourceName, record_id: str) -> Any:
    found = fetch_answer_with_record(ctx, resource, record_id)
    return None if found is None else found.body


def fetch_answer_with_record(
    ctx: Context[PlatformSourceSettings], resource: ResourceName, record_id: str
) -> ApiAnswer | None:
    """Return the answer with the current record of this valid id; None if it does not exist."""
    profile = ctx.settings.profile
    with naming_missing_access_scope(profile, resource):
        try:
            return ctx.api.get(f"{profile.resource_path(resource)}/{quote(record_id, safe='')}")
        except NotFoundError:
            return None


@contextmanager
def naming_missing_access_scope(profile: Profile, resource: ResourceName) -> Iterator[None]:
    """If the platform refuses the request, name the scope that reading *resource* needs."""
    try:
        yield
    except UnauthorizedError as error:
        (scope,) = needed_and_granted_scopes.needed_scopes(profile, (), (resource,))
        plural = f"{resource.replace('_', ' ')}s"
        hint = f"check platform.auth: to read {plural}, its credential needs the scope {scope.name}"
        raise UnauthorizedError(error.message, where=error.where, hint=hint, code=error.code) from None


class Expansion:
    def __init__(self, resource: ResourceName, members: Sequence[str]) -> None:
        kinds = reference_members(resource)
        self._members: Mapping[str, ResourceName] = {member: kinds[member] for member in members}

    @property
    def expanded_resources(self) -> list[ResourceName]:
        return list(dict.fromkeys(self._members.values()))

    def expand(self, record: Any, read: ReadRecord) -> Any:
        """Add the records that *record* names beside their ids; null for one that does not exist."""
        if not self._members or not isinstance(record, dict):
            return record
        made = self._with_referenced_records(record, read)
        if isinstance(items := made.get("items"), list):
            made["items"] = [
                self._with_referenced_records(item, read) if isinstance(item, dict) else item for item in items
            ]
        return made

    def _with_referenced_records(self, holder: Mapping[str, Any], read: ReadRecord) -> dict[str, Any]:
        made = dict(holder)
        for member, resource in self._members.items():
            if member in holder:
                named = holder[member]
                is_id = isinstance(named, str) and is_valid_target_id(named)
                made[expanded_record_member(member)] = read(resource, named) if is_id else None
        return made
