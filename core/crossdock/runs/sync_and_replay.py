"""One run of a project: a sync of streams or named records, a scheduled run, or a replay of dead letters."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from msgspec import structs

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.delta.changed_record_reading import KeyedRecord, stored_records_repaired_and_filtered_again
from crossdock.errors import ConfigError, RefusedError, add_code_to_first_line
from crossdock.pacing.request_allowance import Priority
from crossdock.reading.sources.run_context import WaitingRun
from crossdock.runs import stream_input
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.named_record_delivery import NamedRecordDelivery, raise_unless_streams_can_fetch
from crossdock.runs.planning.mapping_to_drafts import AuthorCodeFailureCounter
from crossdock.runs.planning.removals import Removals
from crossdock.runs.planning.update_limits import UpdateCandidates, WithheldUpdates
from crossdock.runs.planning.waiting_records import IdleWaits
from crossdock.runs.run_report import Report
from crossdock.runs.run_start_and_stop_requests import RunRequest
from crossdock.runs.session_shared_by_runs import Session, open_session
from crossdock.state import DeadLetter, DueRun, Intent, NamedRecord, RecordFilter, ScheduledRun, State, Transaction
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress
from crossdock.values.run_states_and_tally import Tally
from crossdock.values.texts_of_numbers_and_times import count_with_noun

_NAMED = 3  # records that a note names
_MISSING = "missing"  # the reason of records that the target has no longer


class DeadLettersInput:
    """The dead letters of one stream. That of a removal repeats the removal, if the stream still removes records.

    A record that is chosen by its key, or as missing, and that the target turns out not to have once more, is created
    again in a second part.
    """

    finds_changes_without_webhooks, requested_key_hashes = False, None

    def __init__(
        self, bound: BoundStream, state: State, tally: Tally, choice: RecordFilter, note: Callable[[str, str], None]
    ) -> None:
        self._bound, self._state, self._tally, self._note = bound, state, tally, note
        self._choice = structs.replace(choice, stream=bound.name)
        self._dead_letters: list[DeadLetter] = []
        self._missing: set[int] | None = None  # key hashes, from the first part on
        self.removals = Removals()
        self.has_more, self.formerly_waiting_key_hashes, self.idle_waits, self.prepared_operations = (
            False,
            frozenset[int](),
            IdleWaits(),
            (),
        )
        self.postponed_as_unsettled_count = 0

    def close(self) -> None:
        """Do nothing: no source is open."""

    def read_next_part(self, unsettled: list[Intent], advance: Callable[[int], None]) -> None:
        """Take the chosen dead letters, except rows without a key, and unsettled or newly filtered records."""
        skipped = {intent.identity.key_hash for intent in unsettled}
        with self._state.begin_read_only() as tx:
            chosen = tx.dead_letters.rejected_matching(self._choice)
        chosen = [each for each in chosen if each.identity.key and each.identity.key_hash not in skipped]
        if self._missing is None:
            self._missing = {each.identity.key_hash for each in chosen if self._may_be_created_again(each)}
            self.has_more = bool(self._missing)
        else:
            chosen = self._unbind_missing(chosen, self._missing)
            self.has_more = False
        found = [each for each in chosen if each.raw]
        self._note_emptied([each for each in chosen if not each.raw and each.step != "remove"])
        filtered = stream_input.find_and_note_newly_filtered(self._bound, "rejected", found)
        self._dead_letters = [each for each in found if each.identity.key_hash not in filtered]
        if self._bound.stream.on_gone != "nothing":
            refused = [each for each in chosen if each.step == "remove"]
            self.removals = Removals(removed=tuple(each.identity.key_hash for each in refused), source="replay")
        self._tally.count("carried_over", self.expected_record_count + len(filtered))
        self._tally.count("carried_on", len(filtered))
        advance(self.expected_record_count)

    def _may_be_created_again(self, rejected: DeadLetter) -> bool:
        is_meant = self._choice.key is not None or self._choice.code == _MISSING
        is_whole = rejected.step == "whole" and not self._bound.scope.is_contribution
        return is_meant and is_whole and rejected.code == _MISSING

    def _unbind_missing(self, chosen: list[DeadLetter], tried: set[int]) -> list[DeadLetter]:
        """Return those of *tried* that were found to be missing again. The target has them no longer."""
        found = [each for each in chosen if each.identity.key_hash in tried and self._may_be_created_again(each)]
        at = self._bound.context.run.clock.now()
        with self._state.begin() as tx:
            tx.bindings.mark_deleted(self._bound.scope, [each.identity.key_hash for each in found], at=at)
        return found

    def _note_emptied(self, emptied: list[DeadLetter]) -> None:
        if not emptied:
            return
        name, keys = self._bound.name, ", ".join(each.identity.key for each in emptied[:_NAMED])
        more = f" and {len(emptied) - _NAMED:,} more" if len(emptied) > _NAMED else ""
        number = count_with_noun(len(emptied), "record")
        advice = f"have each sent again, or drop it: crossdock records drop {name} KEY"
        self._note(name, f"{number} not replayed, whose data retention has removed ({keys}{more}): {advice}")

    def give_up_after_failed_read(self) -> None:
        self._tally.count("carried_on", self.expected_record_count)

    @property
    def expected_record_count(self) -> int:
        return len(self._dead_letters) + len(self.removals.removed)

    def new_failure_counter(self) -> AuthorCodeFailureCounter:
        """Return no limit: the records are dead letters already."""
        return AuthorCodeFailureCounter(self._bound, None)

    def records(self) -> Iterator[KeyedRecord]:
        return stored_records_repaired_and_filtered_again(
            self._bound.stream, ((each.identity, each.raw) for each in self._dead_letters)
        )

    def updates_for_limit_check(self) -> UpdateCandidates:
        """Return no candidates: an operator chose these records, and the limits apply to what a source brings."""
        return UpdateCandidates(0, 0, self.records, "")

    def withhold_all_records(self, withheld: WithheldUpdates | None) -> None:  # noqa: ARG002  none of its updates needs approval
        self._tally.count("carried_on", self.expected_record_count)

    def store_completion(self) -> None:
        """Do nothing: no source was read."""


def sync(
    project: Project,
    selection: list[str],
    *,
    clock: Clock,
    progress: Progress,
    interrupt: threading.Event,
    priority: Priority = "batch",
    patience: WaitingRun | None = None,
    records: Sequence[NamedRecord] = (),
) -> Report:
    """Deliver the selected streams, or named records, to their targets. What stops a begun run is in the report.

    Args:
        patience: Wait for late files as the streams' ``wait`` says; None to wait for no file.
        records: Fetched in place of the streams, with records that they refer to and that were not delivered yet.
    """
    if records:
        return _sync_named_records(project, records, clock, progress, interrupt, priority)
    attempt = RunRequest(command=" ".join(["sync", *selection]), action="sync")
    with open_session(project, clock, attempt=attempt) as session:
        names = project.selected_streams(selection)
        raise_if_wave_not_loaded_yet(project, session.state, names)
        return ActiveRun(session, progress, interrupt, priority, patience, attempt=attempt).execute(names)


def _sync_named_records(
    project: Project,
    records: Sequence[NamedRecord],
    clock: Clock,
    progress: Progress,
    interrupt: threading.Event,
    priority: Priority,
) -> Report:
    raise_unless_streams_can_fetch(project, records)
    named = " ".join(f"{each.stream} --key {each.key}" for each in records[:_NAMED])
    more = f" and {len(records) - _NAMED:,} more" if len(records) > _NAMED else ""
    attempt = RunRequest(command=f"sync {named}{more}", action="sync")
    with open_session(project, clock, attempt=attempt) as session:
        run = ActiveRun(session, progress, interrupt, priority, attempt=attempt)
        with run.recording_start_and_end(
            project.streams_fetching_by_key, count_open_records_of={record.stream for record in records}
        ):
            delivered = NamedRecordDelivery(session, run).deliver(records)
            for record in sorted(delivered.postponed):
                unsettled = "another operation on it is not settled yet; it stays as it is"
                run.note(record.stream, f"{record.key}: {unsettled}")
        return run.report


def run_scheduled(
    session: Session, due_run: DueRun, *, progress: Progress, interrupt: threading.Event, action: str | None = None
) -> Report | None:
    """Execute a scheduled run once. Return None if it has already finished.

    A person may start it by the command *action*: then it is executed again if it is not ``done``. Raises ConfigError
    if another config has executed it.
    """
    job = session.project.jobs[due_run.job]
    with session.state.begin() as tx:
        known = tx.scheduled_runs.get(due_run.job, due_run.due, due_run.business_date)
        if known is not None and (error := executed_by_other_config_error(tx, session.project, known)) is not None:
            raise error
        recipients = session.project.notification_recipient_kinds
        if not tx.scheduled_runs.begin_unless_finished(
            due_run, at=session.clock.now(), again=action is not None, recipients=recipients
        ):
            return None
    patience = WaitingRun(due_run.due, job.schedule.zone)
    run = ActiveRun(session, progress, interrupt, patience=patience, attempt=RunRequest(due_run, action=action))
    return run.execute(session.project.selected_streams(job.streams))


def executed_by_other_config_error(tx: Transaction, project: Project, known: ScheduledRun) -> ConfigError | None:
    """Return the error of a run that reached its end, and had none of the streams of its job: a config with the same
    state has a job of that name, too.
    """
    run = tx.runs.get(known.run_id) if known.status in COMPLETED and known.run_id is not None else None
    names = project.selected_streams(project.jobs[known.job].streams)
    if run is None or not run.tally or not names.isdisjoint(run.tally):
        return None
    message = f"run {run.id} of the job {known.job} for {known.business_date} was of another config: its streams were"
    hint = "rename the job in one of the two configs; if it has other streams since, its next run reads them"
    return ConfigError(
        f"{message} {', '.join(sorted(run.tally))}; those of this config were not read",
        where=str(project.path),
        hint=hint,
        code="fleet_state_shared",
    )


def replay(
    project: Project, choice: RecordFilter, *, clock: Clock, progress: Progress, interrupt: threading.Event
) -> Report:
    """Map the chosen dead letters again with the current mapping, and deliver them. No source is read."""
    attempt = RunRequest(command=_command_text_of_choice(choice), action="records replay")
    with open_session(project, clock, attempt=attempt) as session:
        known = project.selected_streams([choice.stream] if choice.stream else [])
        with session.state.begin_read_only() as tx:
            identities = (dead_letter.identity for dead_letter in tx.dead_letters.rejected_matching(choice))
            found = {identity.stream for identity in identities if identity.key}
            is_dropped = not found and tx.dead_letters.count(choice, status="dropped") > 0
        for name in sorted(found - known):
            text = f"{name}: not replayed, because the config has no such stream"
            progress.warn(add_code_to_first_line(text, "stream_unknown"))
        names = found & known
        if not names and choice.key is not None:
            hint = "'crossdock records list --state rejected' lists the rejected records"
            if is_dropped:
                hint = "it was dropped, so that only a new version from its source is processed"
            raise ConfigError(f"no rejected record {choice.key!r} of {choice.stream}", hint=hint, code="record_unknown")
        run = ActiveRun(session, progress, interrupt, "live", attempt=attempt)

        def dead_letters(bound: BoundStream, tally: Tally, _: int) -> DeadLettersInput:
            return DeadLettersInput(bound, session.state, tally, choice, run.note)

        remark = None if found else _no_match_text(choice)
        return run.execute(names, dead_letters, reads=False, count_open_records_of=known, remark=remark)


def _no_match_text(choice: RecordFilter) -> str:
    options = _command_text_of_choice(choice).removeprefix("records replay").strip()
    which = f"that {options!r} selects " if options else ""
    return f"nothing to replay: no record with a key {which}is rejected; 'crossdock records list' lists what is open"


def _command_text_of_choice(choice: RecordFilter) -> str:
    given = (choice.stream, choice.key, choice.code and f"--reason {choice.code}")
    since = f"--since {choice.since:%Y-%m-%dT%H:%M:%S}".removesuffix("T00:00:00") if choice.since else None
    file = f"--file {choice.source}" if choice.source else None
    return " ".join(["records replay", *filter(None, (*given, file, since))])


def raise_if_wave_not_loaded_yet(project: Project, state: State, names: AbstractSet[str]) -> None:
    """Refuse streams of waves that the open migration has not begun to load, since they would bypass its gates.

    A wave that was undone has not begun.
    """
    if project.migration is None:
        return
    with state.begin_read_only() as tx:
        current = tx.migrations.current()
        begun = tx.migrations.loads_since_undo(current.id) if current else {}
    if current is None:
        return
    for name, wave in project.migration.waves.items():
        if name not in begun and (streams := sorted(project.selected_streams(wave.streams) & names)):
            message = f"the migration {current.name} has not loaded its wave {name} yet: {', '.join(streams)}"
            hint = "'crossdock migrate load' loads it; name other streams to sync them now"
            raise RefusedError(message, hint=hint, code="wave_not_loaded")
