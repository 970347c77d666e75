"""Open records of one state, page by page, and grouped by what they have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from msgspec import Struct, field, structs

from crossdock.errors import ConfigError
from crossdock.runs import open_record_lists
from crossdock.runs.open_record_lists import STATUSES, Item
from crossdock.runs.waiting_records_by_cause import Parent, WaitingGroup, waiting_groups
from crossdock.state import RecordFilter, Scope, Transaction
from crossdock.state.tables.dead_letters_and_waiting_records import DeadLetterPlace, WaitingPlace
from crossdock.state.tables.webhooks_and_records_to_fetch import InboxPlace
from crossdock.values.record_keys import key_parts_of, key_text
from crossdock.values.run_states_and_tally import RecordState

MOST_GROUPS = 50
_HASH = 1 << 128
_UNVERIFIED, _WAITING, _INBOX = (
    state.option_value for state in (RecordState.UNVERIFIED, RecordState.WAITING, RecordState.INBOX)
)

T = TypeVar("T")


class OpenPage(Struct, frozen=True):
    """Some records in the order of their list. *after* is the place of the last one; empty if no more follow."""

    items: Sequence[Item]
    after: str


class OpenGroup(Struct, frozen=True):
    """Records of one stream that are open for the same reason.

    Attributes:
        since: When the first of them became open; None if that is not known.
        first_run: The run that rejected the first of them first.
        example: Why one of them is open.
        choice: The parameters that choose them, by the names of `narrowed`.
        waits_for: The records that must be delivered first.
    """

    stream: str
    reason: str
    number: int
    since: datetime | None
    example: str
    choice: Mapping[str, str]
    first_run: int | None = None
    waits_for: Sequence[Parent] = field(default=())


def page(
    tx: Transaction,
    kind: str,
    choice: RecordFilter,
    scopes: Mapping[Scope, str],
    *,
    after: str,
    limit: int,
    group: WaitingGroup | None = None,
) -> OpenPage:
    """Return at most *limit* records in the state *kind* that follow *after*, which an earlier page gave.

    Args:
        scopes: Those of unverified records, with their streams.
        group: Only its waiting records.

    Raises:
        ConfigError: If *after* is not a place of such a list.
    """
    if not open_record_lists.may_state_match(choice, kind):
        return OpenPage([], "")
    items, places = _read_items(tx, kind, choice, scopes, after, limit + 1, group)
    return OpenPage(items[:limit], key_text(places[limit - 1]) if len(items) > limit else "")


def _read_items(
    tx: Transaction,
    kind: str,
    choice: RecordFilter,
    scopes: Mapping[Scope, str],
    after: str,
    limit: int,
    group: WaitingGroup | None,
) -> tuple[list[Item], list[list[str]]]:
    """Return items, and the place of each of them as texts."""
    if kind in STATUSES:
        last = _parse_page_position(after, lambda number: int(number[:18])) or 0
        intents = tx.intents.page_with_statuses(STATUSES[kind], limit=limit, choice=choice, after=last)
        return open_record_lists.intent_items(tx, intents, kind), [[str(each.id)] for each in intents]
    if kind == _WAITING:
        start = _parse_page_position(
            after, lambda since, stream, number: WaitingPlace(_parse_instant(since), stream, _parse_hash(number))
        )
        waits_for = None if group is None else group.waits_for
        rows = tx.waiting_records.page(choice, after=start, limit=limit, waits_for=waits_for)
        places = [[row["since"].isoformat(), row["stream"], f"{row['key_hash']:x}"] for row in rows]
        return open_record_lists.waiting_items(rows), places
    if kind == _INBOX:
        first = _parse_page_position(after, lambda at, key, stream: InboxPlace(_parse_instant(at), key, stream))
        hints = tx.inbox.records_to_fetch(limit=limit, choice=choice, after=first)
        return open_record_lists.inbox_items(hints), [
            [each.first_at.isoformat(), each.key, each.stream] for each in hints
        ]
    if kind == _UNVERIFIED:
        return _unverified_items(tx, choice, scopes, after, limit)
    place = _parse_page_position(
        after, lambda stream, code, at, number: DeadLetterPlace(stream, code, _parse_instant(at), _parse_hash(number))
    )
    found = tx.dead_letters.page(kind, choice, after=place, limit=limit)
    places = [[row["stream"], row["code"], row["refused_at"].isoformat(), f"{row['key_hash']:x}"] for row in found]
    return open_record_lists.dead_letter_items(found, kind), places


def _unverified_items(
    tx: Transaction, choice: RecordFilter, scopes: Mapping[Scope, str], after: str, limit: int
) -> tuple[list[Item], list[list[str]]]:
    if choice.key is not None:  # few records, which the command lists as well
        found = tx.unverified.unverified_records(scopes, open_record_lists.chosen_key_hash(choice), limit=limit - 1)
        return open_record_lists.unverified_items(found, scopes), []
    last = _parse_page_position(after, lambda *parts: (Scope(*parts[:3]), _parse_hash(parts[3])))
    records = tx.unverified.page_of_unverified_records(scopes, after=last, limit=limit)
    places = [[*each.scope.columns.values(), f"{key_hash:x}"] for each, key_hash in records]
    return open_record_lists.unverified_items((each for each, _ in records), scopes), places


def _parse_page_position(after: str, read: Callable[..., T]) -> T | None:
    if not after:
        return None
    try:
        return read(*key_parts_of(after))
    except (ValueError, TypeError, IndexError):
        raise ConfigError(
            "the address names no place of this list", hint="begin with the first page", code="option_value_invalid"
        ) from None


def _parse_instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(text)
    return at


def _parse_hash(text: str) -> int:
    number = int(text, 16)
    if not 0 <= number < _HASH:
        raise ValueError(text)
    return number


# ---- groups


def groups(
    tx: Transaction,
    kind: str,
    choice: RecordFilter,
    scopes: Mapping[Scope, str],
    waiting: Sequence[WaitingGroup],
    *,
    by_source: bool = False,
) -> list[OpenGroup]:
    """Return at most `MOST_GROUPS` groups of the records of *choice*, the largest first, or the longest waiting.

    Args:
        scopes: Those of unverified records, with their streams.
        waiting: The groups of waiting records, which `waiting_groups` returns.
        by_source: Also group rejected and dropped records by the file that they were read from.
    """
    if not open_record_lists.may_state_match(choice, kind):
        return []
    found: Iterator[OpenGroup]
    if kind == _WAITING:
        found = (_waiting_group_as_open_group(each) for each in waiting)
    elif kind in STATUSES:
        found = _intent_groups(tx, kind, choice)
    elif kind == _INBOX:
        found = (
            OpenGroup(each.stream, "", each.number, each.since, each.error or "", {"stream": each.stream})
            for each in tx.inbox.groups_by_stream(choice)
        )
    elif kind == _UNVERIFIED:
        found = _unverified_groups(tx, scopes)
    else:
        found = _dead_letter_groups(tx, kind, choice, by_source=by_source)
    return [each for each, _ in zip(found, range(MOST_GROUPS), strict=False)]


def find_waiting_group_by_name(tx: Transaction, scopes: Mapping[str, Scope], name: str) -> WaitingGroup | None:
    """Return the group of waiting records with the *name* that `groups` gave it."""
    return next(
        (each for each in waiting_groups(tx, scopes, RecordFilter()) if _hash_as_group_name(each) == name), None
    )


def _hash_as_group_name(group: WaitingGroup) -> str:
    text = "\n".join([group.stream, *(key_text(root) for root in group.roots)])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _waiting_group_as_open_group(group: WaitingGroup) -> OpenGroup:
    example = f"waits for {open_record_lists.root_causes_text(group)}"
    choice = {"stream": group.stream, "group": _hash_as_group_name(group)}
    return OpenGroup(group.stream, "", group.number, group.since, example, choice, waits_for=group.roots)


def _dead_letter_groups(tx: Transaction, status: str, choice: RecordFilter, *, by_source: bool) -> Iterator[OpenGroup]:
    for each in tx.dead_letters.groups_by_reason(status, choice, by_source=by_source, limit=MOST_GROUPS):
        parameters = {"stream": each.stream, "reason": each.code} | ({"file": each.source} if each.source else {})
        example = (
            "" if by_source else _first_message(tx, status, structs.replace(choice, stream=each.stream, code=each.code))
        )
        yield OpenGroup(each.stream, each.code, each.number, each.first_at, example, parameters, each.first_run_id)


def _first_message(tx: Transaction, status: str, choice: RecordFilter) -> str:
    return "".join(each["message"] for each in tx.dead_letters.page(status, choice, after=None, limit=1))


def _intent_groups(tx: Transaction, kind: str, choice: RecordFilter) -> Iterator[OpenGroup]:
    found = tx.intents.groups_by_stored_batch(STATUSES[kind], choice, limit=MOST_GROUPS)
    files = tx.batches.facts_by_id({each.batch_id for each in found if each.batch_id is not None})
    firsts = open_record_lists.intent_items(tx, tx.intents.intents_with_ids([each.first_id for each in found]), kind)
    for each, item in zip(found, firsts, strict=True):
        file = files.get(each.batch_id or 0)
        parameters = {"stream": each.stream} | ({} if file is None else {"batch": file.name})
        yield OpenGroup(
            each.stream, "" if file is None else file.name, each.number, each.since, item["why"], parameters
        )


def _unverified_groups(tx: Transaction, scopes: Mapping[Scope, str]) -> Iterator[OpenGroup]:
    for scope, number in sorted(tx.unverified.unverified_binding_counts_by_scope(), key=lambda each: -each[1]):
        if scope in scopes:
            parameters = {"stream": scopes[scope]}
            yield OpenGroup(scopes[scope], "", number, None, f"to be compared with {scope.target}", parameters)
