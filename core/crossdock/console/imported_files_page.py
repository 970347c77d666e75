"""The page of the files that streams have imported, which tells whether one was imported twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from starlette.responses import Response

from crossdock.console.page_request_context import PageError, PageRequest
from crossdock.console.page_tables import Cell, Link, table
from crossdock.state.tables.inputs_of_streams import TakenFile, TakenFilePlace
from crossdock.values.record_keys import key_parts_of, key_text
from crossdock.values.texts_of_numbers_and_times import count_with_noun, instant_text

_LISTED = 50
_COLUMNS = ("file", "stream", "imported", "status", "size", "modified", "last listed", "content", "same content")
_SHOWN = 16  # digits of a SHA-256


def show_imported_files(visit: PageRequest) -> Response:
    """Show the files whose name or content is searched, or all, the last one first."""
    name, before = visit.parameter("name"), _parse_list_position(visit.parameter("before"))
    with visit.read_transaction() as tx:
        found = tx.intake.search(name, before=before, limit=_LISTED + 1)
        same = tx.intake.files_with_content_hashes({each.content_hash for each in found[:_LISTED]})
    copies = defaultdict[str, list[TakenFile]](list)
    for each in same:
        copies[each.content_hash].append(each)
    older = ""
    if len(found) > _LISTED:
        at, *names = found[_LISTED - 1].place_in_search_order
        older = visit.link("files", name=name, before=key_text([at.isoformat(), *names]))
    return visit.render_page(
        "imported_files.html",
        f"Files of {visit.required_tenant.name}",
        name=name,
        answer=_times_imported_sentence(name, found) if name and before is None and len(found) <= _LISTED else "",
        files=table(_COLUMNS, (_row(visit, each, copies) for each in found[:_LISTED]), kind="files"),
        open_records=visit.link("records", q=name, **{"in": "messages"}) if name else "",
        older=older,
    )


def _times_imported_sentence(name: str, found: Sequence[TakenFile]) -> str:
    """Say how often a file was imported, and with how many contents."""
    of_name = [each for each in found if each.name == name or each.name.rpartition("/")[2] == name]
    of_content = [each for each in found if each.content_hash.startswith(name.lower())]
    files = of_name or of_content
    if not files:
        return ""
    what = name if of_name else "This content"
    contents = {each.content_hash for each in files}
    times = "once" if len(files) == 1 else f"{len(files):,} times"
    how = (
        f", with {count_with_noun(len(contents), 'different content')}" if len(files) > 1 and len(contents) > 1 else ""
    )
    if len(files) > 1 and len(contents) == 1:
        how = ", with the same content each time"
    return f"{what} was imported {times}{how}."


def _row(visit: PageRequest, file: TakenFile, copies: Mapping[str, Sequence[TakenFile]]) -> Iterator[Cell]:
    others = [each for each in copies[file.content_hash] if each.place_in_search_order != file.place_in_search_order]
    by_content = visit.link("files", name=file.content_hash)
    yield Link(file.name, visit.link("files", name=file.name))
    yield file.stream
    yield instant_text(file.accepted_at)
    yield _STATUSES.get(file.status, file.status)
    yield f"{file.size:,}"
    yield instant_text(file.modified_at)
    yield "" if file.seen_at is None else instant_text(file.seen_at)[:10]
    yield Link(file.content_hash[:_SHOWN], by_content)
    yield Link(_same_content_imports_text(file, others), by_content) if others else "no"


_STATUSES = {"accepted": "not finished", "done": "imported", "undone": "undone", "again": "to be read again"}


def _same_content_imports_text(file: TakenFile, others: Sequence[TakenFile]) -> str:
    again = [each for each in others if each.stream == file.stream]
    text = count_with_noun(len(others), "other import")
    return f"{text}, under another mapping" if len(again) == len(others) else text


def _parse_list_position(text: str) -> TakenFilePlace | None:
    if not text:
        return None
    try:
        at, *names = key_parts_of(text)
        place = TakenFilePlace(datetime.fromisoformat(at), *names)
    except (ValueError, TypeError):
        place = None
    if place is None or place.accepted_at.tzinfo is None:
        raise PageError(400, "The address names no place of this list.", "Begin with the first page.")
    return place
