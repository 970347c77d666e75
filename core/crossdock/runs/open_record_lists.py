"""Records that are not delivered, or not known to be, with the reasons, as commands and pages show them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from crossdock.config.project.project import Project
from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import ConfigError
from crossdock.runs.record_history_search import RecordHistory
from crossdock.runs.waiting_records_by_cause import WaitingGroup, waiting_groups
from crossdock.state import BatchFacts, InboxRecord, Intent, RecordFilter, Scope, Transaction
from crossdock.state.tables.intents_and_stored_batches import UNSETTLED, Status
from crossdock.state.tables.record_bindings import UnverifiedRecord
from crossdock.values.raw_rows_and_records import REASONS
from crossdock.values.record_keys import key_text_of_input
from crossdock.values.run_states_and_tally import BY_URGENCY, RecordState
from crossdock.values.texts_of_numbers_and_times import awaited_records_text, instant_text, place_text
from crossdock.writing.delivery.in_doubt_and_refusal_rules import MAY_BE_OF_LOST_STATE
from crossdock.writing.targets.payload_comparison import member_differences

Item = dict[str, Any]
"""An open record by the names of `without_data`, and its data."""

_REFUSED = frozenset({RecordState.REJECTED.option_value, RecordState.DROPPED.option_value})
_AWAITED = frozenset({RecordState.HANDED_OVER.option_value, RecordState.OVERDUE.option_value})
STATUSES: Mapping[str, tuple[Status, ...]] = {
    RecordState.IN_DOUBT.option_value: ("in_doubt",),
    RecordState.PENDING.option_value: ("pending", "sending"),
    RecordState.HANDED_OVER.option_value: ("handed_over",),
    RecordState.OVERDUE.option_value: ("overdue",),
}
"""The statuses of intents by the state of their records."""
_WITHOUT_SOURCE = frozenset({RecordState.UNVERIFIED.option_value, RecordState.INBOX.option_value})
_SHOWN_ROOTS = 3  # of a group that waits for many records


def filter_of_options(
    stream: str | None, key: str | None, reason: str | None, since: datetime | None, file: str | None = None
) -> RecordFilter:
    """Return the choice of the options. *key* is as in the source or as listed."""
    if reason is not None and reason not in REASONS:
        raise ConfigError(
            f"unknown reason {reason!r}; known: {', '.join(sorted(REASONS))}", code="option_value_invalid"
        )
    known = None if key is None else key_text_of_input(key)
    return RecordFilter(stream, known, reason, since.replace(tzinfo=UTC) if since else None, file)


def chosen_key_hash(choice: RecordFilter) -> int | None:
    return None if choice.key is None else key_hashes([choice.key])[choice.key]


def may_state_match(choice: RecordFilter, kind: str) -> bool:
    """Return whether records in the state *kind* have what *choice* restricts."""
    return (
        ((choice.code, choice.since) == (None, None) or kind in _REFUSED)
        and (choice.source is None or kind not in _WITHOUT_SOURCE)
        and (choice.text is None or kind != RecordState.UNVERIFIED.option_value)
        and (choice.handed_over_in is None or kind in _AWAITED)
    )


def stream_by_unverified_scope(loaded: Project, choice: RecordFilter) -> dict[Scope, str]:
    """Return the scopes whose unverified records are of *choice*, with their streams."""
    if not may_state_match(choice, RecordState.UNVERIFIED.option_value):
        return {}
    return {scope: name for name, scope in loaded.scope_by_stream.items() if choice.includes_stream(name)}


def count_records_in_state(tx: Transaction, kind: str, choice: RecordFilter, scopes: Collection[Scope]) -> int:
    """Count the records of *choice* in the state *kind*; the unverified ones among those of *scopes*."""
    if not may_state_match(choice, kind):
        return 0
    if kind == RecordState.UNVERIFIED.option_value:
        return tx.unverified.count_unverified_records(scopes, chosen_key_hash(choice))
    if kind in _REFUSED:
        return tx.dead_letters.count(choice, status=kind)
    if kind == RecordState.WAITING.option_value:
        return tx.waiting_records.count(choice)
    if kind == RecordState.INBOX.option_value:
        return tx.inbox.count_records_to_fetch(choice)
    return tx.intents.count(STATUSES[kind], choice)


def counts_by_state(tx: Transaction, choice: RecordFilter, scopes: Collection[Scope]) -> dict[str, int]:
    """Count the records of *choice* in each state, in the order of lists; see `count_records_in_state`."""
    kinds = [state.option_value for state in BY_URGENCY]
    applied = {kind for kind in kinds if may_state_match(choice, kind)}
    refused = tx.dead_letters.counts_by_status(choice) if applied & _REFUSED else {}
    unsettled = tx.intents.unsettled_counts_by_status(choice) if applied & STATUSES.keys() else {}
    found = {kind: refused.get(kind, 0) for kind in _REFUSED}
    found |= {kind: sum(unsettled.get(each, 0) for each in statuses) for kind, statuses in STATUSES.items()}
    return {kind: found[kind] if kind in found else count_records_in_state(tx, kind, choice, scopes) for kind in kinds}


def matching_items(tx: Transaction, choice: RecordFilter, kinds: Iterable[str], limit: int) -> list[Item]:
    """Return at most *limit* records of *choice* in each of the states *kinds*, with their data; no unverified ones."""
    listed = [kind for kind in kinds if kind in _LISTS and may_state_match(choice, kind)]
    return [item for kind in listed for item in _LISTS[kind](tx, choice, limit)]


def without_data(item: Item) -> Item:
    """Return what is shown of a record without its data."""
    shown = {"state": item["state"], "stream": item["stream"], "key": item["key"], "why": item["why"]}
    shown |= {"at": place_text(item), "since": item["since"]}
    return shown | {name: item[name] for name in ("stage", "pointer", "attempts") if item.get(name) is not None}


def difference_from_delivered(loaded: Project, tx: Transaction, item: Item, *, raw: bool) -> list[dict[str, Any]]:
    """Return the members in which a record differs that changed after it was delivered; personal ones only if *raw*."""
    scope = loaded.scope_by_stream.get(item["stream"])
    binding = tx.bindings.get(scope, [item["key_hash"]]).get(item["key_hash"]) if scope else None
    if scope is None or binding is None or not item["mapped"] or not binding.payload:
        return []  # not configured any more, or emptied by retention
    personal = frozenset() if raw else loaded.personal_data_masks.personal_members(item["stream"], scope)
    return [each._asdict() for each in member_differences(binding.payload, item["mapped"], personal)]


def open_states_of_record(tx: Transaction, history: RecordHistory) -> list[Item]:
    """Return each state in which one record is open, in the order of lists, without its data."""
    found = [item for row in history.dead_letters for item in dead_letter_items([row], row["status"])]
    found += waiting_items(history.waits)
    if history.scope is not None and any(row["status"] in UNSETTLED for row in history.operations):
        intents = [
            each for each in tx.intents.intents_of_record(history.scope, history.key_hash) if each.status in UNSETTLED
        ]
        for state, statuses in STATUSES.items():
            found += intent_items(tx, [each for each in intents if each.status in statuses], state)
    if history.scope is not None:
        scopes = {history.scope: history.streams[0] if history.streams else ""}
        found += unverified_items(tx.unverified.unverified_records(scopes, history.key_hash, limit=1), scopes)
    for stream in history.streams:
        found += inbox_items(tx.inbox.records_to_fetch(limit=1, choice=RecordFilter(stream, history.key)))
    order = [state.option_value for state in BY_URGENCY]
    return sorted(found, key=lambda item: order.index(item["state"]))


# ---- records of each state


def dead_letter_items(rows: Iterable[Mapping[str, Any]], state: str) -> list[Item]:
    return [
        {**row, "state": state, "why": f"{row['code']}: {row['message']}", "since": row["refused_at"]} for row in rows
    ]


def waiting_items(rows: Iterable[Mapping[str, Any]]) -> list[Item]:
    return [
        {**row, "state": RecordState.WAITING.option_value, "why": f"waits for {awaited_records_text(row['waits_for'])}"}
        for row in rows
    ]


def intent_items(tx: Transaction, intents: Sequence[Intent], state: str) -> list[Item]:
    if state in _AWAITED:
        files = tx.batches.facts_by_id({intent.batch_id for intent in intents if intent.batch_id is not None})
        whys = [_awaited_acknowledgement_reason(intent, files.get(intent.batch_id or 0)) for intent in intents]
    elif state == RecordState.PENDING.option_value:
        loaded = _streams_sent_by_migration(tx)
        whys = [
            _pending_operation_reason(each, "load" if each.identity.stream in loaded else "sync") for each in intents
        ]
    else:
        messages = tx.intents.latest_attempt_messages(intents)
        restored = tx.runs.is_state_restored()
        whys = [_doubt_reason(intent, messages.get(intent.id), restored=restored) for intent in intents]
    return [_intent_item(intent, state, why) for intent, why in zip(intents, whys, strict=True)]


def unverified_items(records: Iterable[UnverifiedRecord], scopes: Mapping[Scope, str]) -> list[Item]:
    return [
        {
            "state": RecordState.UNVERIFIED.option_value,
            "stream": scopes[each.scope],
            "key": each.key,
            "why": _why_unverified(each),
            "source": each.scope.target,
            "since": None,
        }
        for each in records
    ]


def _why_unverified(record: UnverifiedRecord) -> str:
    target_id, target = record.target_id, record.scope.target
    if not record.is_unused_import:
        return f"the next sync compares it with {target_id} at {target}"
    return f"no sync has found the imported id {target_id} at {target} yet: import the right one, or sync to look again"


def inbox_items(hints: Iterable[InboxRecord]) -> list[Item]:
    return [
        {
            "state": RecordState.INBOX.option_value,
            "stream": hint.stream,
            "key": hint.key,
            "why": "is to be fetched" if hint.error is None else f"tried again after: {hint.error}",
            "source": "webhook",
            "since": hint.first_at,
            "attempts": hint.attempts or None,
            "raw": None,
        }
        for hint in hints
    ]


def unreadable_webhook_items(tx: Transaction, limit: int) -> list[Item]:
    """Return webhooks that cannot be read, the newest first."""
    return [
        {
            "state": RecordState.INBOX.option_value,
            "stream": f"{webhook.connection}.",
            "key": "",
            "why": f"a webhook{f' {webhook.topic}' if webhook.topic else ''} cannot be read: {webhook.problem}",
            "source": "webhook",
            "since": webhook.received_at,
            "raw": None,
        }
        for webhook in tx.inbox.unreadable_webhooks(limit=limit)
    ]


def list_unverified_records(loaded: Project, tx: Transaction, choice: RecordFilter, limit: int) -> list[Item]:
    """Return at most *limit* unverified records of *choice*, by scope and key."""
    scopes = stream_by_unverified_scope(loaded, choice)
    return unverified_items(tx.unverified.unverified_records(scopes, chosen_key_hash(choice), limit=limit), scopes)


def waiting_groups_as_items(loaded: Project, tx: Transaction, choice: RecordFilter, limit: int) -> list[Item]:
    """Return items of ``crossdock records list``. ``records`` is the number of records of a line."""
    return [_group_item(each) for each in waiting_groups(tx, loaded.scope_by_stream, choice)[:limit]]


def _group_item(group: WaitingGroup) -> Item:
    key = group.first_key if group.number == 1 else f"{group.first_key} and {group.number - 1:,} more"
    facts = {"state": "waiting", "stream": group.stream, "key": key, "why": f"waits for {root_causes_text(group)}"}
    return facts | {"since": group.since, "records": group.number}


def root_causes_text(group: WaitingGroup) -> str:
    """Name the first of the records that a group waits for, and why they are not delivered."""
    roots = [
        f"{resource} {namespace}:{key}" + (f", which is rejected ({code})" if code else "")
        for resource, namespace, key in group.roots[:_SHOWN_ROOTS]
        for code in [group.rejected.get((resource, namespace, key))]
    ]
    more = len(group.roots) - len(roots)
    return "; ".join(roots) + (f" and {more:,} more" if more else "")


def _list_dead_letters(tx: Transaction, choice: RecordFilter, limit: int, state: str) -> list[Item]:
    return dead_letter_items(tx.dead_letters.listed(limit=limit, status=state, choice=choice), state)


def _list_waiting(tx: Transaction, choice: RecordFilter, limit: int) -> list[Item]:
    return waiting_items(tx.waiting_records.listed(limit=limit, choice=choice))


def _list_intents(tx: Transaction, choice: RecordFilter, limit: int, state: str) -> list[Item]:
    return intent_items(tx, tx.intents.page_with_statuses(STATUSES[state], limit=limit, choice=choice), state)


def _list_inbox(tx: Transaction, choice: RecordFilter, limit: int) -> list[Item]:
    unreadable = unreadable_webhook_items(tx, limit) if choice == RecordFilter() else []
    return inbox_items(tx.inbox.records_to_fetch(limit=limit, choice=choice)) + unreadable


_LISTS: Mapping[str, Callable[[Transaction, RecordFilter, int], list[Item]]] = {
    **{state: partial(_list_dead_letters, state=state) for state in _REFUSED},
    **{state: partial(_list_intents, state=state) for state in STATUSES},
    RecordState.WAITING.option_value: _list_waiting,
    RecordState.INBOX.option_value: _list_inbox,
}


def _intent_item(intent: Intent, state: str, why: str) -> Item:
    identity = intent.identity
    return {
        "state": state,
        "stream": identity.stream,
        "key": identity.key,
        "why": why,
        "source": identity.source,
        "line": identity.line,
        "since": intent.first_sent_at,
        "raw": intent.raw,
        "intent": intent,
    }


def _awaited_acknowledgement_reason(intent: Intent, file: BatchFacts | None) -> str:
    if file is None:
        return f"{intent.operation} was handed over"
    due = f", not acknowledged by {instant_text(file.due_at)}" if file.due_at and intent.status == "overdue" else ""
    return f"{intent.operation} was handed over in {file.name}{due}"


def _streams_sent_by_migration(tx: Transaction) -> set[str]:
    """Return the streams for which the open migration has sent something. Its next load continues with them."""
    current = tx.migrations.current()
    if current is None:
        return set()
    waves = tx.migrations.loads_since_undo(current.id)
    return set().union(*(tx.migrations.streams_sent_since_undo(current.id, wave) for wave in waves))


def _pending_operation_reason(intent: Intent, run: str) -> str:
    again = " again, or looks it up" if intent.status == "sending" else ""
    return f"the next {run} sends the {intent.operation}{again}"


def _doubt_reason(intent: Intent, message: str | None, *, restored: bool) -> str:
    if not intent.attempts:
        return (
            f"{intent.operation} may have been carried out before the state was restored"
            if restored
            else MAY_BE_OF_LOST_STATE
        )
    times = "once" if intent.attempts == 1 else f"{intent.attempts} times"
    sent = f"{intent.operation} was sent {times} without a clear answer"
    return f"{sent}: {message}" if message else sent
