"""Expansion of references: adds the records that the platform's records name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

from crossdock.connector import Context
from crossdock.errors import UnauthorizedError, UnavailableError
from crossdock.platform import needed_and_granted_scopes
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.api_requests_and_answers import ApiAnswer
from crossdock.reading.sources.retried_requests import NotFoundError
from crossdock.resources import ResourceName
from crossdock.runs.platform_source.settings import PlatformSourceSettings, expanded_record_member, reference_members
from crossdock.values.field_types import is_valid_target_id

KEPT = 10_000
"""The most expanded records that a run keeps in memory. Others are read again when they are needed."""
ASKED_FOR = 3
"""Records of the list, since one may have been deleted meanwhile."""

ReadRecord = Callable[[ResourceName, str], Any]


def cached_record_reader(ctx: Context[PlatformSourceSettings]) -> ReadRecord:
    """Make a function that reads a record by its id, once in a run for all streams of the connection."""
    read: ReadRecord = ctx.shared(KEPT_RECORDS, lambda: lru_cache(maxsize=KEPT)(partial(_read_record_body, ctx)))
    return read


KEPT_RECORDS = "crossdock.runs.platform_source.records"


def _read_record_body(ctx: Context[PlatformSourceSettings], resource: ResourceName, record_id: str) -> Any:
    found = fetch_answer_with_record(ctx, resource, record_id)
    if isinstance(found, NotFoundError):
        refuse_if_none_is_found(ctx, resource, found)
        return None
    return found.body


def fetch_answer_with_record(
    ctx: Context[PlatformSourceSettings], resource: ResourceName, record_id: str
) -> ApiAnswer | NotFoundError:
    """Return the answer with the current record of this valid id, or that there is none."""
    profile = ctx.settings.profile
    with naming_missing_access_scope(profile, resource):
        try:
            found = ctx.api.get(f"{profile.resource_path(resource)}/{quote(record_id, safe='')}")
        except NotFoundError as error:
            return error
    _latest_ids(ctx)[resource] = record_id
    return found


def refuse_if_none_is_found(ctx: Context[PlatformSourceSettings], resource: ResourceName, error: NotFoundError) -> None:
    """Raise UnavailableError if the platform does not find records of *resource* either that are there, as a gateway
    does not that is out of order: the last one that was found, and some that the list has.
    """
    is_any = False
    for each in _ids_of_existing_records(ctx, resource):
        is_any = True
        if not isinstance(fetch_answer_with_record(ctx, resource, each), NotFoundError):
            return
    if is_any:
        message = f"{error.message}, and so it is for records that are there"
        hint = f"nothing counts as missing; check platform.paths for {resource}, and whether the platform is in order"
        raise UnavailableError(message, where=error.where, hint=hint, code="api_unavailable")


def _ids_of_existing_records(ctx: Context[PlatformSourceSettings], resource: ResourceName) -> Iterator[str]:
    if resource in _latest_ids(ctx):
        yield _latest_ids(ctx)[resource]
    profile = ctx.settings.profile
    with naming_missing_access_scope(profile, resource):
        page = ctx.api.get(profile.resource_path(resource), {"limit": ASKED_FOR})
    ids = [item.get("id") for item in page.items("/data") if isinstance(item, dict)]
    yield from [each for each in ids if isinstance(each, str) and is_valid_target_id(each)][:ASKED_FOR]


def _latest_ids(ctx: Context[PlatformSourceSettings]) -> dict[ResourceName, str]:
    """Return the id of the record of each resource that was found last in the run."""
    found: dict[ResourceName, str] = ctx.shared(f"{KEPT_RECORDS} found", dict[ResourceName, str])
    return found


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
