"""Operations that an earlier run has planned and never sent, and that the present mapping would make otherwise.

Most of them are sent as they are, and a later version changes the record. What is written once cannot be changed: a run
may have been stopped because the mapping was wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from crossdock.config.project.connections_and_bound_streams import BoundStream, guard_author_code_of_stream
from crossdock.delta.second_pass_for_changed_records import stored_records_prepared_again
from crossdock.errors import RecordError
from crossdock.runs.planning.mapping_to_drafts import draft_of_record
from crossdock.runs.planning.target_ids_of_references import References
from crossdock.state import Intent, RecordIdentity, State, WaitingRecord
from crossdock.values.author_code_errors import AuthorCodeError
from crossdock.values.texts_of_numbers_and_times import count_with_noun
from crossdock.writing.delivery.in_doubt_and_refusal_rules import is_held_back_as_unverifiable
from crossdock.writing.delivery.operations_and_intents import payload_after_intent


def withdraw_unsent_with_changed_mapping(
    state: State, streams: Sequence[BoundStream], left: Sequence[Intent], run_id: int
) -> list[Intent]:
    """Let records wait for a new decision whose create was never sent and is outdated. Return the other operations."""
    outdated = [intent for bound in streams for intent in _outdated(state, bound, _unsent_creates(bound, left))]
    if not outdated:
        return list(left)
    at = streams[0].context.run.clock.now()
    for intent in outdated:
        intent.status = "replaced"
    waits = [WaitingRecord(intent.identity, [], intent.raw) for intent in outdated]
    with state.begin() as tx:
        tx.waiting_records.put(waits, run_id=run_id, at=at)
        tx.intents.write_outcomes(outdated, at=at)
    for name, number in Counter(intent.identity.stream for intent in outdated).items():
        records = f"{count_with_noun(number, 'record')} {'is' if number == 1 else 'are'}"
        text = f"{records} mapped again, which an earlier run has planned otherwise and never sent"
        streams[0].context.run.note(name, text)
    return [intent for intent in left if intent.status != "replaced"]


def _unsent_creates(bound: BoundStream, left: Sequence[Intent]) -> list[Intent]:
    return [
        intent
        for intent in left
        if intent.identity.stream == bound.name
        and intent.scope == bound.scope
        and (intent.operation, intent.step, intent.first_sent_at, intent.place) == ("create", "whole", None, None)
        and intent.raw
        and is_held_back_as_unverifiable(intent, bound.target, state_restored=False)
    ]


def _outdated(state: State, bound: BoundStream, unsent: Sequence[Intent]) -> Iterator[Intent]:
    """Yield those of *unsent* that the stream would map to something else, or to nothing."""
    if not unsent:
        return
    try:
        with guard_author_code_of_stream(bound):
            mapped = dict(_payloads(state, bound, unsent))
    except AuthorCodeError:
        return  # it is reported when the stream is read
    for intent in unsent:
        if mapped.get(intent.identity) != payload_after_intent(intent):
            yield intent


def _payloads(
    state: State, bound: BoundStream, unsent: Sequence[Intent]
) -> Iterator[tuple[RecordIdentity, dict[str, object]]]:
    references = References(bound.target.name)
    for read in stored_records_prepared_again(bound.stream, ((each.identity, each.raw) for each in unsent)):
        try:
            members, named = draft_of_record(bound, read.record)
            keys = references.scoped_keys(named, bound.namespace_and_key_of_reference)
            with state.begin_read_only() as tx:
                references.look_up(keys, tx)
            if not references.missing(keys):
                resolved = references.resolve(members, bound.namespace_and_key_of_reference)
                resource, key = bound.resource_type.name, read.record.key
                yield read.identity, bound.target.payload(resource, bound.namespace, key, resolved)
        except (RecordError, AuthorCodeError):
            continue  # it is rejected when it is decided about
