"""What connectors that map records in code have in common: versions of mappings, members of JSON records, and parts of
records that could not be read. A record with such a part is set aside, or marked, and the others are delivered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from crossdock import RecordError, RefusedError, Settings
from crossdock.errors import RemoteError, UnauthorizedError
from crossdock.reading.sources.list_completeness_evidence import DoubtfulListError
from crossdock.reading.sources.retried_requests import ThrottledError
from crossdock.sources import UnavailableError
from crossdock.targets import Outcome
from crossdock.values import exact_json
from crossdock.values.json_access import JsonAccess, JsonElement
from crossdock.values.json_paths import MISSING


def with_added_members(item: Any, **members: Any) -> Any:
    """Return a record with more *members*. What is no object stays, so that its row is rejected."""
    return {**item, **members} if isinstance(item, dict) else item


def objects_in_list(record: JsonAccess, pointer: str) -> list[JsonElement]:
    """Return the objects of a list. Raises RecordError if the list is missing or null, or has anything else in it."""
    return [each.part("") for each in record.each(pointer)]


def objects_in_optional_list(record: JsonAccess, name: str) -> list[JsonElement]:
    """Do the same as `objects_in_list` for the member *name*, but return nothing if it is missing, as it is in old
    versions.
    """
    return objects_in_list(record, f"/{name}") if name in record.at("", dict) else []


def required_text_or_null(record: JsonAccess, name: str) -> str | None:
    """Return the text of the member *name*, and None for null. Raises RecordError if it is missing."""
    return None if record.at("", dict).get(name, MISSING) is None else record.at(f"/{name}", str)


def version_of_mapping_and_settings(settings: Settings, mapped: set[str], mapping: int) -> str:
    """Return the version of a mapping: the number *mapping* of its code, and a hash of the *mapped* settings."""
    facts = settings.model_dump(mode="json", include=mapped)
    return f"{mapping}:{hashlib.sha256(exact_json.dumps(facts)).hexdigest()[:32]}"


MOST_IN_A_ROW = 3
"""As many failures in a row are those of the vendor, and no longer those of single records."""
_UNREAD = "\x1dunread"
"""The member of a record that says why a part of it is not there; no API has such a name."""
_OTHERS = "all others are delivered, and the next run reads these again"
_ASK = "if this persists, contact the vendor"


# ---- in one record


def unreadable_look_up_outcome(error: RecordError) -> Outcome:
    """Return the outcome of a look-up whose answer lacks something: the record may be there, or not."""
    return Outcome("in_doubt", f"answered a look-up that cannot be read: {error}", 200)


def read_as_member_or_reason(name: str, read: Callable[[], Any]) -> dict[str, Any]:
    """Return the member *name* of a record as *read* requests it, or the reason for `raise_if_part_was_not_read` if it
    cannot be read.

    Raises:
        UnauthorizedError, UnavailableError: They concern all records.
    """
    try:
        return {name: read()}
    except (UnauthorizedError, UnavailableError):
        raise
    except (RefusedError, RemoteError) as error:
        return {_UNREAD: f"{error.where}: {error.message}" if error.where else error.message}


def raise_if_part_was_not_read(record: JsonAccess, pointer: str) -> None:
    """Raise RecordError if what `read_as_member_or_reason` was to read at *pointer* could not be read."""
    reason = record.at(f"/{_UNREAD}", str, default=None)
    if reason is not None:
        raise RecordError("unmatched", f"could not be read: {reason}", pointer=pointer)


# ---- in a list of records


class UnreadParts:
    """Records of a list that could not be read whole. Those of which a key is known may be delivered without a part.

    They make the list doubtful: nothing counts as gone, and its cursor does not move, so that the next run reads them
    again.
    """

    def __init__(self) -> None:
        self._first: DoubtfulListError | None = None
        self._number = self._in_a_row = 0

    def add(self, name: str, reason: str) -> None:
        """Note that the record *name* was set aside."""
        message, hint = f"could not be read in part: {name}: {reason}", f"{_OTHERS}; {_ASK}"
        self._count_and_keep_first_doubt(DoubtfulListError(message, hint=hint, code="list_incomplete"))

    @contextmanager
    def setting_aside_unreadable(self, name: str) -> Iterator[None]:
        """Set the record *name* aside if a part of it is not what the vendor documents."""
        try:
            yield
        except RecordError as error:
            self.add(name, str(error))

    @contextmanager
    def keeping_error_of_failed_request(self) -> Iterator[None]:
        """Keep the error of one record's own list, unless it comes for each of `MOST_IN_A_ROW` records."""
        try:
            yield
        except DoubtfulListError as doubt:
            self._count_and_keep_first_doubt(doubt)
        except ThrottledError:
            raise  # the next request would be refused as well
        except (RefusedError, RemoteError) as error:
            self._in_a_row += 1
            if self._in_a_row == MOST_IN_A_ROW:
                raise
            hint = "; ".join(filter(None, (error.hint, _OTHERS)))
            self._count_and_keep_first_doubt(
                DoubtfulListError(error.message, where=error.where, hint=hint, code=error.code)
            )
            return
        self._in_a_row = 0

    def _count_and_keep_first_doubt(self, doubt: DoubtfulListError) -> None:
        self._first = self._first or doubt
        self._number += 1

    def raise_first_doubt(self, where: str | None = None) -> None:
        """Raise the first doubt, with the number of the others. *where* is the place of one that names none."""
        if self._first is not None:
            more = f", and {self._number - 1:,} more" if self._number > 1 else ""
            place = self._first.where or where
            raise DoubtfulListError(
                f"{self._first.message}{more}", where=place, hint=self._first.hint, code=self._first.code
            )
