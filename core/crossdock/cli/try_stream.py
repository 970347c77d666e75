"""``crossdock try``: the first records of a stream beside their drafts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossdock.cli import terminal_output
from crossdock.cli.project_and_state import load_project
from crossdock.cli.shared_options_messages_and_signals import (
    absolute_path,
    common_options,
    help_example,
    print_sentences,
    raise_if_value_not_utf8,
)
from crossdock.errors import CrossdockError
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import error_documents
from crossdock.values.texts_of_numbers_and_times import count_with_noun

if TYPE_CHECKING:
    from crossdock.config.project.project import Project
    from crossdock.runs.stream_trial import Trial
    from crossdock.testing.recording import Recording

_MOST = 1000  # records are held in memory
_GAP = "   "
_SENTENCE = 40  # characters of a line of a problem's message


@click.command(
    "try", epilog=help_example("crossdock try wms.products", "crossdock try shop.orders --record tests/orders")
)
@click.argument("stream", callback=raise_if_value_not_utf8, metavar="CONNECTION.STREAM")
@click.option(
    "-n", "--number", type=click.IntRange(1, _MOST), default=5, show_default=True, help="Records to read at most."
)
@click.option("--raw", is_flag=True, help="Show all values, which may be personal.")
@click.option(
    "--record", "folder", type=click.Path(path_type=Path), metavar="FOLDER", help="Record the API's answers for tests."
)
@click.option("--personal", multiple=True, metavar="NAME", help="With --record: also replace members of this name.")
@common_options
def try_(
    stream: str,
    number: int,
    config: Path,
    folder: Path | None,
    personal: tuple[str, ...],
    *,
    raw: bool,
    as_json: bool,
) -> int:
    """Read the first records of a stream, and show each beside its draft or its problem.

    Only reads the source: needs no state, calls nothing on the platform, and writes nothing. Records that were
    delivered before are shown too. Without --raw, personal members of a draft are masked, and values of a record that
    its draft does not show are given by their length.

    --raw also shows the whole text of an exception of the connector's code, and its lines of code.

    --record writes the answers of an HTTP API to a new folder, without secrets, and with other values in place of
    personal data; tests replay them. Read the files before you share them.

    Exit codes: 0 all were mapped; 1 some were rejected; 2 wrong usage or config; 3 the source cannot be read, or the
    connector failed; 4 the source is refused.
    """
    from crossdock.runs.stream_trial import tried_record_document as shown_trial
    from crossdock.runs.stream_trial import try_stream

    if personal and folder is None:
        raise click.UsageError("--personal needs --record")
    folder = absolute_path(folder)
    loaded = _load_project_or_show_traceback(config, raw=raw)
    recording = _new_recording(loaded, stream, folder, personal) if folder else None
    with terminal_output.show_progress(wanted=not as_json) as progress:
        around = recording.recording_transport if recording else None
        trial = try_stream(loaded, stream, number, clock=SystemClock(), progress=progress, recorded=around)
    bound = trial.bound
    masked = loaded.personal_data_masks.personal_members(bound.name, bound.scope)
    recorded = _write_recording(recording, trial, masked) if recording else {}
    shown = [shown_trial(tried, frozenset() if raw else masked, raw=raw) for tried in trial.records]
    raised = _add_author_exceptions(trial, shown) if raw else []
    if as_json:
        error = None if trial.error is None else str(trial.error)
        errors = {} if trial.error is None else {bound.name: trial.error}
        document = {"stream": bound.name, "records": shown, "filtered": dict(trial.filtered), "deleted": trial.deleted}
        document |= {"empty_columns": trial.empty_columns, "messages": error_documents(errors)}
        document |= {"error": error} | ({"recording": recorded} if recorded else {})
        document |= {"raised": raised} if raw else {}
        terminal_output.print_json(document)
    else:
        _print_trial(trial, shown)
        _print_recording(recorded)
    if trial.error is not None:
        says_stream = trial.error.where == bound.name
        if not as_json:
            print_sentences(*raised, err=True)
        terminal_output.print_errors({"" if says_stream else bound.name: trial.error})
        return trial.error.exit_code
    return 1 if trial.rejected_count else 0


def _load_project_or_show_traceback(config: Path, *, raw: bool) -> Project:
    from crossdock.values.author_code_errors import author_traceback_lines

    try:
        return load_project(config)
    except CrossdockError as error:
        if raw:
            print_sentences(*author_traceback_lines(error), err=True)
        raise


def _add_author_exceptions(trial: Trial, shown: list[dict[str, Any]]) -> list[str]:
    """Add the exceptions of the author's code to the problems in *shown*. Return those of the error."""
    from crossdock.values.author_code_errors import author_traceback_lines

    settings = trial.bound.context.settings
    for item, tried in zip(shown, trial.records, strict=True):
        if tried.problem is not None:
            item["problem"]["raised"] = author_traceback_lines(tried.problem, settings)
    return [] if trial.error is None else author_traceback_lines(trial.error, settings)


def _new_recording(loaded: Project, stream: str, folder: Path, personal: tuple[str, ...]) -> Recording:
    from crossdock.testing.recording import Recording
    from crossdock.values.config_base_types import secrets_in

    name = stream.partition(".")[0]
    settings = (connection.settings for connection in loaded.connections if connection.name == name)
    return Recording(folder, personal=personal, secrets=[each.reveal() for each in secrets_in(list(settings))])


def _write_recording(recording: Recording, trial: Trial, masked: frozenset[str]) -> dict[str, Any]:
    from crossdock.values.raw_rows_and_records import JSON

    for tried in trial.records:
        if tried.members is not None and JSON in tried.record.row:
            members = {name: value for name, value in tried.members.items() if name in masked}
            recording.learn_personal_paths(tried.record.json(), members)
    recording.clean_and_write()
    return {"folder": str(recording.folder), "requests": recording.request_count, "replaced": recording.replaced}


def _print_recording(recorded: dict[str, Any]) -> None:
    if not recorded:
        return
    if not recorded["requests"]:
        print_sentences("nothing is recorded: the stream sent no HTTP request through ctx.api")
        return
    requests, values = count_with_noun(recorded["requests"], "request"), count_with_noun(recorded["replaced"], "value")
    print_sentences(
        f"{recorded['folder']}: {requests} recorded; {values} replaced",
        "Read the files before you share them: other members may have personal data too; name them with --personal.",
    )


def _print_trial(trial: Trial, shown: list[dict[str, Any]]) -> None:
    console = terminal_output.output_console()
    names_paths = _uses_dotted_paths(trial)
    for number, item in enumerate(shown, 1):
        place = f"{item['source']}:{item['lines'][0]}"
        console.print(f"{number}  {item['key'] or '(no key)'}  {place}", soft_wrap=True)
        record = (
            {_dotted_path(name): value for name, value in item["record"].items()} if names_paths else item["record"]
        )
        for line in _side_by_side(
            ["record", *_name_and_value_lines(record)], _draft_or_problem_lines(item), console.width - 2
        ):
            console.print(f"  {line}".rstrip(), soft_wrap=True)
        for line in (item["problem"] or {}).get("raised", ()):
            console.print(f"  {line}", soft_wrap=True)
        console.print()
    filtered = "".join(f"; {count_with_noun(rows, 'row')} left out by {name}" for name, rows in trial.filtered.items())
    read = count_with_noun(len(shown), "record")
    deleted = f"; {count_with_noun(trial.deleted, 'deleted record')}" if trial.deleted else ""
    console.print(f"{trial.bound.name}: {read} read, {trial.rejected_count:,} rejected{filtered}{deleted}")
    if empty := ", ".join(trial.empty_columns):
        console.print(f"no record has a value for {empty}: check the spelling", soft_wrap=True)


def _uses_dotted_paths(trial: Trial) -> bool:
    """Return whether a config names members of JSON records, by dotted paths; code uses JSON pointers."""
    from crossdock.config.stream_configuration import DeclaredStream
    from crossdock.values.raw_rows_and_records import JSON

    return isinstance(trial.bound.stream, DeclaredStream) and any(JSON in each.record.row for each in trial.records)


def _dotted_path(pointer: str) -> str:
    """Return the dotted path of a JSON pointer, or the pointer if a name in it would split or is reserved."""
    from crossdock.values.raw_rows_and_records import is_reserved_column

    number, *names = pointer.split("/")
    dotted = ".".join(names).replace("~1", "/").replace("~0", "~")
    splits = len(names) > 1 and any(not name or "." in name for name in names)
    return pointer if splits or names[0].startswith("~1") or is_reserved_column(dotted) else number + dotted


def _draft_or_problem_lines(item: dict[str, Any]) -> list[str]:
    from crossdock.cli.safe_terminal_console import wrapped
    from crossdock.runs.stream_trial import leaf_values

    if item["draft"] is not None:
        members = {name.removeprefix("/"): value for name, value in leaf_values(item["draft"])}
        return ["draft", *_name_and_value_lines(members)]
    problem = item["problem"]
    line = f" (line {problem['line']})" if problem["line"] else ""
    return [
        f"problem: {problem['code']}{line}",
        *filter(None, [problem["pointer"]]),
        *wrapped(problem["message"], _SENTENCE),
    ]


def _name_and_value_lines(values: Mapping[str, Any]) -> list[str]:
    from crossdock.printable import printable
    from crossdock.runs.record_history import value_text

    return [printable(f"{name}: {value_text(value)}") for name, value in values.items()]


def _side_by_side(left: list[str], right: list[str], width: int) -> Iterator[str]:
    from rich.cells import cell_len, set_cell_size

    edge = max(map(cell_len, left))
    if edge + len(_GAP) + max(map(cell_len, right)) > width:
        yield from (*left, *right)
        return
    for number in range(max(len(left), len(right))):
        start, end = (part[number] if number < len(part) else "" for part in (left, right))
        yield f"{set_cell_size(start, edge)}{_GAP}{end}"
