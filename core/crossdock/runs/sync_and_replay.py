"""One run of a project: settle operations of earlier runs, run the streams, and check that the tally balances."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.config.project.project import Project
from crossdock.errors import ConfigError, RefusedError, add_code_to_first_line
from crossdock.pacing.request_allowance import Priority
from crossdock.reading.sources.run_context import WaitingRun
from crossdock.runs.active_run import ActiveRun
from crossdock.runs.dead_letters_as_stream_input import ReplayInput
from crossdock.runs.named_record_delivery import NamedRecordDelivery, check_streams_can_fetch
from crossdock.runs.run_report import Report
from crossdock.runs.run_requests_and_failed_starts import RunRequest
from crossdock.runs.session_shared_by_runs import Session, open_session
from crossdock.state import DueRun, NamedRecord, RecordFilter, ScheduledRun, State, Transaction
from crossdock.state.tables.run_history import COMPLETED
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import Progress
from crossdock.values.run_states_and_tally import Tally

_NAMED = 3  # records that the command of a run names


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
        check_waves_begun(project, session.state, names)
        return ActiveRun(session, progress, interrupt, priority, patience, attempt=attempt).execute(names)


def _sync_named_records(
    project: Project,
    records: Sequence[NamedRecord],
    clock: Clock,
    progress: Progress,
    interrupt: threading.Event,
    priority: Priority,
) -> Report:
    check_streams_can_fetch(project, records)
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

        def dead_letters(bound: BoundStream, tally: Tally, _: int) -> ReplayInput:
            return ReplayInput(bound, session.state, tally, choice, run.note)

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


def check_waves_begun(project: Project, state: State, names: AbstractSet[str]) -> None:
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
