"""What people can do in the console: each action is a command, with a preview of what it will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from crossdock.console.page_request_context import PageError, PageRequest
from crossdock.console.started_commands import PLAN
from crossdock.console.visitors_and_roles import Role
from crossdock.errors import CrossdockError, add_code_to_first_line
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.pacing.token_bucket import forecast_request_duration
from crossdock.runs.undo.undo_plan import runs_of_wave
from crossdock.state import RecordFilter, Transaction
from crossdock.values.raw_rows_and_records import REASONS
from crossdock.values.run_states_and_tally import RecordState
from crossdock.values.texts_of_numbers_and_times import count_with_noun, duration_text, instant_text

Fields = Mapping[str, str]
"""What an action is about, by name; without what was not given."""


class Input(Struct, frozen=True):
    """What a person is asked for. *choices* are values with their labels; none for a text."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...] = ()
    is_required: bool = True

    def is_valid_input(self, text: str) -> bool:
        return text in dict(self.choices) if self.choices else bool(text) or not self.is_required


class Preview(Struct, frozen=True):
    """What an action will do, in sentences. *obstacle* says why nothing can be done now."""

    lines: Sequence[str] = ()
    obstacle: str = ""


class Action(Struct, frozen=True):
    """One action.

    Attributes:
        name: In the address.
        fields: The names of what it may be about, each an argument or an option of the command.
        command: Makes the arguments of ``crossdock`` from the fields and inputs.
        preview: Describes what it will do, from one look at the state.
        needs_state: Whether it is refused while a run uses the state.
    """

    name: str
    title: str
    role: Role
    command: Callable[[Fields], list[str]]
    preview: Callable[[PageRequest, Fields], Preview]
    fields: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    needs_state: bool = True


def _preview_from_line_templates(*lines: str) -> Callable[[PageRequest, Fields], Preview]:
    return lambda _, given: Preview([line.format_map(_EmptyIfMissing(given)) for line in lines])


class _EmptyIfMissing(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return ""


# ---- records


def _record_filter(given: Fields) -> RecordFilter:
    reason = given.get("reason")
    if reason is not None and reason not in REASONS:
        raise PageError(400, f"There is no reason {reason}.")
    return RecordFilter(given.get("stream"), given.get("key"), reason, source=given.get("file"))


def _replay_preview(visit: PageRequest, given: Fields) -> Preview:
    choice, project = _record_filter(given), visit.project()
    with visit.read_transaction() as tx:
        reasons = [each for each in tx.dead_letters.reason_counts(choice) if each[0] in project.scope_by_stream]
        number = sum(count for _, _, count in reasons)
        takes = _request_count_sentence(tx, number, visit)
    if not number:
        return Preview(obstacle="No rejected record is meant: they were delivered, dropped or replaced since.")
    lines = [f"{count_with_noun(number, 'record')} will be mapped again with the current mapping, and delivered."]
    lines += [f"{stream}: {count:,} rejected as {code}." for stream, code, count in reasons]
    return Preview([*lines, takes])


def _drop_preview(visit: PageRequest, given: Fields) -> Preview:
    choice, state = _record_filter(given), given.get("state")
    with visit.read_transaction() as tx:
        rejected = tx.dead_letters.count(choice, status="rejected") if state in {None, "rejected"} else 0
        others = choice.code is None and state in {None, "waiting"}
        waiting = tx.waiting_records.count(choice) if others else 0
    if not rejected + waiting:
        return Preview(obstacle="No such record is rejected or waiting any more.")
    found = ((rejected, "rejected"), (waiting, "waiting"))
    counts = [f"{count_with_noun(number, 'record')} {words}" for number, words in found if number]
    return Preview(
        [
            f"{' and '.join(counts)} will be given up, and not delivered.",
            "A new version from the source is processed as usual. Dropped records stay visible.",
        ]
    )


def _resolve_preview(visit: PageRequest, given: Fields) -> Preview:
    choice = _record_filter(given)
    with visit.read_transaction() as tx:
        found = tx.intents.page_with_statuses(("in_doubt", "overdue"), limit=5, choice=choice)
        number = tx.intents.count(("in_doubt", "overdue"), choice)
        messages = tx.intents.latest_attempt_messages(found)
    if not number:
        return Preview(obstacle="No such record is in doubt or overdue any more.")
    lines = [f"The decision is about {count_with_noun(number, 'operation')}."]
    for each in found:
        sent = f", first sent {instant_text(each.first_sent_at)}" if each.first_sent_at else ""
        said = f": {messages[each.id]}" if messages.get(each.id) else ""
        lines.append(f"{each.operation} of {each.identity.stream} {each.identity.key}{sent}{said}")
    return Preview([*lines, "Look at the target whether it has the record before you decide."])


def _records_resolve_arguments(given: Fields) -> list[str]:
    decisions = {
        "delivered": ["--delivered"],
        "not_delivered": ["--not-delivered"],
        "delivered_as": [f"--delivered-as={given.get('id', '')}"],
    }
    if given["decision"] == "delivered_as" and not given.get("id"):
        raise PageError(400, "The id of the record at the target is missing.", "Go back and enter it.")
    return [
        "records",
        "resolve",
        *decisions[given["decision"]],
        "--yes",
        *_positional_arguments(given, "stream", "key"),
    ]


def _positional_arguments(given: Fields, *names: str) -> list[str]:
    return _prefix_double_hyphen(given[name] for name in names if name in given)


def _prefix_double_hyphen(texts: Iterable[str]) -> list[str]:
    """Return arguments that may begin with a hyphen and still are no options."""
    found = list(texts)
    return ["--", *found] if found else []


def _option_arguments(given: Fields, *names: str) -> list[str]:
    return [f"--{name}={given[name]}" for name in names if name in given]


def _sync_record_preview(visit: PageRequest, given: Fields) -> Preview:
    stream = given["stream"]
    if stream not in visit.project().streams_fetching_by_key:
        return Preview(obstacle=f"{stream} cannot read single records from its source.")
    return Preview([f"The record {given['key']} of {stream} will be read from its source now, and delivered."])


# ---- runs and jobs


def _sync_preview(visit: PageRequest, given: Fields) -> Preview:
    names = sorted(visit.project().selected_streams(_chosen_streams(given)))
    lines = [f"These streams will be read, and what is new or changed delivered: {', '.join(names)}."]
    return Preview([*lines, "To see first what would be sent, plan it."])


def _fixed_preview_if_streams_exist(*lines: str) -> Callable[[PageRequest, Fields], Preview]:
    def preview(visit: PageRequest, given: Fields) -> Preview:
        visit.project().selected_streams(_chosen_streams(given))
        return Preview(lines)

    return preview


def _chosen_streams(given: Fields) -> list[str]:
    return given.get("streams", "").split()


def _start_job_preview(visit: PageRequest, given: Fields) -> Preview:
    job = given["job"]
    if job not in visit.project().jobs:
        return Preview(obstacle=f"The config has no job {job}.")
    return Preview([f"The latest due run of {job} will be executed, or continued, unless it is done."])


def _pause_or_resume_job_preview(paused: bool) -> Callable[[PageRequest, Fields], Preview]:
    def preview(visit: PageRequest, given: Fields) -> Preview:
        job = given["job"]
        if job not in visit.project().jobs:
            return Preview(obstacle=f"The config has no job {job}.")
        with visit.read_transaction() as tx:
            is_paused = job in tx.scheduled_runs.paused_jobs()
        if is_paused is paused:
            return Preview(obstacle=f"The job {job} is {'paused' if paused else 'not paused'} already.")
        if paused:
            return Preview([f"No run of {job} will start until it is resumed. A run in progress goes on."])
        return Preview([f"Runs of {job} will start again. Its schedule decides which missed ones are caught up with."])

    return preview


def _stop_preview(visit: PageRequest, given: Fields) -> Preview:
    with visit.read_transaction() as tx:
        run = tx.runs.get(_parse_run_number(given["run"]))
    if run is None or run.status != "running":
        return Preview(obstacle=f"Run {given['run']} is not in progress.")
    lines = [f"Run {run.id} will settle what it has sent, and stop. The next run continues."]
    if run.job:
        lines.append(f"A scheduler starts {run.job} again, unless the job is paused before.")
    return Preview(lines)


def _undo_preview(visit: PageRequest, given: Fields) -> Preview:
    with visit.read_transaction() as tx:
        run = tx.runs.get(_parse_run_number(given["run"]))
        if run is None:
            return Preview(obstacle=f"There is no run {given['run']}.")
        return _undo_preview_of_runs(visit, tx, f"run {run.id} of {run.business_date}", [run.id])


def _undo_wave_preview(visit: PageRequest, given: Fields) -> Preview:
    wave = given["wave"]
    with visit.read_transaction() as tx:
        migration = tx.migrations.current()
        runs = [] if migration is None else sorted(runs_of_wave(tx, migration, wave))
        if not runs:
            return Preview(obstacle=f"No open migration has loaded the wave {wave}.")
        return _undo_preview_of_runs(visit, tx, f"wave {wave}", runs)


def _undo_preview_of_runs(visit: PageRequest, tx: Transaction, what: str, runs: Sequence[int]) -> Preview:
    if left := tx.delivered_history.count_unsettled_operations_of_runs(runs):
        return Preview(
            obstacle=f"{count_with_noun(left, 'operation')} of {what} are not settled: sync, or resolve them, first."
        )
    counts, words = (
        tx.delivered_history.delivered_counts_by_stream_and_operation(runs),
        {"create": "created", "update": "changed", "delete": "deleted"},
    )
    if not counts:
        return Preview(obstacle=f"Nothing is known that {what} has delivered.")
    number = sum(each for _, _, each in counts)
    return Preview(
        [
            f"This is about what {what} has delivered:",
            *(f"{stream}: {count_with_noun(each, 'record')} {words[operation]}." for stream, operation, each in counts),
            "What it created is deleted, and what it changed is restored. What it deleted stays deleted.",
            "What others have changed since or refer to, and what is written once, is left alone and listed.",
            _request_count_sentence(tx, number, visit),
        ]
    )


def _request_count_sentence(tx: Transaction, requests: int, visit: PageRequest) -> str:
    bucket = tx.buckets.get(PLATFORM)
    seconds = None if bucket is None else forecast_request_duration(bucket, requests, visit.now.timestamp()).seconds
    takes = "" if seconds is None else f", for which the rate limit asks for {duration_text(round(seconds))}"
    if seconds is not None and seconds < 1:
        takes = ", all of which the rate limit allows at once"
    return f"This takes at most {count_with_noun(requests, 'write request')}{takes}."


def _parse_run_number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise PageError(400, f"{text} is not the number of a run.")
    return int(text)


def _approve_preview(visit: PageRequest, given: Fields) -> Preview:
    with visit.read_transaction() as tx:
        pending = tx.pending_approvals.get(given["stream"])
    if pending is None:
        return Preview(obstacle=f"Nothing of {given['stream']} needs approval.")
    if str(pending.record_count) != given["number"]:
        return Preview(
            obstacle=f"By now {count_with_noun(pending.record_count, 'record')} of {given['stream']} need approval."
        )
    if pending.approved_at is not None:
        return Preview(obstacle=f"They were approved at {instant_text(pending.approved_at)}.")
    return Preview(
        [
            (
                f"{pending.what}: {count_with_noun(pending.record_count, 'record')}, held since "
                f"{instant_text(pending.since)}."
            ),
            "The next sync does exactly these. If one of the records is different by then, it stops again.",
        ]
    )


def _apply_preview(visit: PageRequest, given: Fields) -> Preview:
    commands = visit.started_commands()
    command = commands.get(given["plan"])
    if command is None or not command.has_plan or command.exit_code is None:
        return Preview(obstacle="There is no such plan.")
    return Preview(
        [
            f"The plan that {command.person} made at {command.started_at} will be executed: {command.title}.",
            "It is executed exactly, or not at all if the sources, the state or the target have changed since.",
        ]
    )


def _plan_or_execute_arguments(given: Fields) -> list[str]:
    return ["--execute"] if given["how"] == "execute" else ["-o", PLAN]


# ---- connections and migrations


def _register_webhooks_preview(visit: PageRequest, given: Fields) -> Preview:
    names = {each.name for each in visit.project().connections}
    if given["connection"] not in names:
        return Preview(obstacle=f"The config has no connection {given['connection']}.")
    return Preview([f"The webhooks of {given['connection']} will be subscribed to at its vendor, where they are not."])


def _migration_preview(*lines: str) -> Callable[[PageRequest, Fields], Preview]:
    def preview(visit: PageRequest, given: Fields) -> Preview:
        try:
            migration = visit.project().migration
        except CrossdockError as error:
            return Preview(obstacle=add_code_to_first_line(error.message, error.code))
        if migration is None:
            return Preview(obstacle="The config has no migration.")
        wave = given.get("wave")
        if wave is not None and wave not in migration.waves:
            return Preview(obstacle=f"The migration has no wave {wave}.")
        return Preview([line.format_map(_EmptyIfMissing(given)) for line in lines])

    return preview


_DECISIONS = (
    ("delivered_as", "It was delivered; its id at the target is the one below"),
    ("delivered", "It was delivered, and crossdock knows its id, as that of an update"),
    ("not_delivered", "It was not delivered: send it with the next sync"),
)
_HOW = Input(
    "how",
    "How",
    (
        ("plan", "Plan it: nothing is changed, and the plan is shown, which can be executed then"),
        ("execute", "Undo it now"),
    ),
)
_RECORDS = ("stream", "key", "reason", "file")
_OPERATOR, _ADMINISTRATOR = Role.OPERATOR, Role.ADMINISTRATOR

ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        Action(
            "replay",
            "Replay rejected records",
            _OPERATOR,
            lambda given: [
                "records",
                "replay",
                *_option_arguments(given, "reason", "file"),
                *_positional_arguments(given, "stream", "key"),
            ],
            _replay_preview,
            _RECORDS,
        ),
        Action(
            "drop",
            "Drop records",
            _OPERATOR,
            lambda given: [
                *("records", "drop", "--yes", *_option_arguments(given, "reason", "file", "state")),
                *_positional_arguments(given, "stream", "key"),
            ],
            _drop_preview,
            (*_RECORDS, "state"),
            ("stream",),
        ),
        Action(
            "resolve",
            "Resolve what is in doubt",
            _OPERATOR,
            _records_resolve_arguments,
            _resolve_preview,
            ("stream", "key"),
            ("stream",),
            (Input("decision", "Decision", _DECISIONS), Input("id", "Id at the target", is_required=False)),
        ),
        Action(
            "candidates",
            "Look up what the target has",
            _OPERATOR,
            lambda given: ["records", "resolve", *_positional_arguments(given, "stream", "key")],
            _preview_from_line_templates(
                "The target will be asked for what may be the record {key} of {stream}. Nothing is changed."
            ),
            ("stream", "key"),
            ("stream", "key"),
        ),
        Action(
            "reopen",
            "Reverse a decision",
            _OPERATOR,
            lambda given: ["records", "reopen", *_positional_arguments(given, "stream", "key")],
            _preview_from_line_templates("The record {key} of {stream} will be in doubt again."),
            ("stream", "key"),
            ("stream", "key"),
        ),
        Action(
            "sync-record",
            "Sync a record now",
            _OPERATOR,
            lambda given: ["sync", "--live", *_option_arguments(given, "key"), *_positional_arguments(given, "stream")],
            _sync_record_preview,
            ("stream", "key"),
            ("stream", "key"),
        ),
        Action(
            "approve",
            "Approve removals or updates",
            _ADMINISTRATOR,
            lambda given: ["approve", *_positional_arguments(given, "stream", "number")],
            _approve_preview,
            ("stream", "number"),
            ("stream", "number"),
        ),
        Action(
            "sync",
            "Sync now",
            _OPERATOR,
            lambda given: ["sync", *_prefix_double_hyphen(_chosen_streams(given))],
            _sync_preview,
            ("streams",),
        ),
        Action(
            "plan",
            "Plan a sync",
            _OPERATOR,
            lambda given: ["plan", "--limit", "200", "-o", PLAN, *_prefix_double_hyphen(_chosen_streams(given))],
            _fixed_preview_if_streams_exist(
                "The sources will be read, and what a sync would send is shown. Nothing is sent or changed."
            ),
            ("streams",),
            needs_state=False,
        ),
        Action(
            "apply",
            "Execute a plan",
            _ADMINISTRATOR,
            lambda given: ["apply", *_positional_arguments(given, "plan_file")],
            _apply_preview,
            ("plan",),
            ("plan",),
        ),
        Action(
            "start-job",
            "Start a job",
            _OPERATOR,
            lambda given: ["schedule", "--once", "latest", *_option_arguments(given, "job")],
            _start_job_preview,
            ("job",),
            ("job",),
        ),
        Action(
            "pause-job",
            "Pause a job",
            _OPERATOR,
            lambda given: ["jobs", "pause", *_positional_arguments(given, "job")],
            _pause_or_resume_job_preview(paused=True),
            ("job",),
            ("job",),
            needs_state=False,
        ),
        Action(
            "resume-job",
            "Resume a job",
            _OPERATOR,
            lambda given: ["jobs", "resume", *_positional_arguments(given, "job")],
            _pause_or_resume_job_preview(paused=False),
            ("job",),
            ("job",),
            needs_state=False,
        ),
        Action(
            "stop-run",
            "Stop a run",
            _OPERATOR,
            lambda given: ["stop", *_positional_arguments(given, "run")],
            _stop_preview,
            ("run",),
            ("run",),
            needs_state=False,
        ),
        Action(
            "undo",
            "Undo a run",
            _ADMINISTRATOR,
            lambda given: ["undo", *_plan_or_execute_arguments(given), *_positional_arguments(given, "run")],
            _undo_preview,
            ("run",),
            ("run",),
            (_HOW,),
        ),
        Action(
            "undo-wave",
            "Undo a wave",
            _ADMINISTRATOR,
            lambda given: ["migrate", "undo", *_plan_or_execute_arguments(given), "--", given["wave"]],
            _undo_wave_preview,
            ("wave",),
            ("wave",),
            (_HOW,),
        ),
        Action(
            "reconcile",
            "Compare with the platform",
            _OPERATOR,
            lambda given: ["reconcile", "-o", PLAN, *_prefix_double_hyphen(_chosen_streams(given))],
            _fixed_preview_if_streams_exist(
                "The sources and the platform will be read completely, and differences listed. Nothing is changed.",
                "Its repair can be executed after that.",
            ),
            ("streams",),
        ),
        Action(
            "register-webhooks",
            "Register webhooks",
            _ADMINISTRATOR,
            lambda given: ["listen", "register", *_positional_arguments(given, "connection")],
            _register_webhooks_preview,
            ("connection",),
            ("connection",),
            needs_state=False,
        ),
        Action(
            "load",
            "Load the migration",
            _ADMINISTRATOR,
            lambda _: ["migrate", "load"],
            _migration_preview("The waves will be loaded in order, from where the last load ended."),
        ),
        Action(
            "go",
            "Let a migration go on after a wave",
            _ADMINISTRATOR,
            lambda given: ["migrate", "go", *_positional_arguments(given, "wave")],
            _migration_preview("The migration will go on after the wave {wave}, with what is open of it now."),
            ("wave",),
            ("wave",),
            needs_state=False,
        ),
        Action(
            "pause-migration",
            "Pause the migration",
            _ADMINISTRATOR,
            lambda _: ["migrate", "pause"],
            _migration_preview("The load will wait until it is resumed."),
            needs_state=False,
        ),
        Action(
            "resume-migration",
            "Resume the migration",
            _ADMINISTRATOR,
            lambda _: ["migrate", "resume"],
            _migration_preview("The load that waits will go on."),
            needs_state=False,
        ),
        Action(
            "reconcile-migration",
            "Compare the migration with the platform",
            _OPERATOR,
            lambda _: ["migrate", "reconcile"],
            _migration_preview("All streams of the waves will be compared with the platform, and the result kept."),
        ),
        Action(
            "undo-migration",
            "Plan to undo the migration",
            _ADMINISTRATOR,
            lambda _: ["migrate", "undo", "-o", PLAN],
            _migration_preview("A plan will be made to delete what the migration created and restore what it changed."),
        ),
    )
}

ACTIONS_ON_ALL_STREAMS = ("sync", "plan", "reconcile")
"""The actions that are about all streams."""


def permitted_action_links(visit: PageRequest, *wanted: tuple[str, Mapping[str, str | None]]) -> list[tuple[str, str]]:
    """Return the title and address of each of the *wanted* actions that the person may do, by name and fields."""
    return [
        (ACTIONS[name].title, visit.link("do", name, **fields))
        for name, fields in wanted
        if visit.has_role(ACTIONS[name].role)
    ]


_UNCLEAR = {RecordState.IN_DOUBT.option_value, RecordState.OVERDUE.option_value}


def record_action_links(
    visit: PageRequest,
    state: str,
    stream: str | None = None,
    reason: str | None = None,
    key: str | None = None,
    file: str | None = None,
) -> Sequence[tuple[str, str]]:
    """Return the title and address of each action on the records in *state* of this stream, reason, key and file."""
    given = {"stream": stream, "reason": reason, "key": key, "file": file}
    return permitted_action_links(visit, *((name, given | more) for name, more in _action_names(state, stream, key)))


def _action_names(state: str, stream: str | None, key: str | None) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the names of actions, with the fields in which they differ from what was given."""
    if state == RecordState.REJECTED.option_value:
        yield "replay", {}
    if stream is None:
        return
    if state in {RecordState.REJECTED.option_value, RecordState.WAITING.option_value}:
        yield "drop", {"state": state}
    if state in _UNCLEAR:
        yield "resolve", {"reason": None, "file": None}
    if state == RecordState.IN_DOUBT.option_value and key is not None:
        yield "candidates", {"reason": None, "file": None}
