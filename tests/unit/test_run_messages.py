"""What a run has to say: each error, warning and note once, and the same in all forms."""

from __future__ import annotations

import weakref

from crossdock.errors import FindingsError, RefusedError, UnavailableError
from crossdock.values.run_progress_and_messages import (
    MOST,
    RunMessage,
    RunMessages,
    error_texts,
    streams_and_messages_document,
    warning_and_note_texts,
)

SHORT = RefusedError("has 10 rows", where="f.csv:12", hint="ask for it anew")
DOWN = UnavailableError("no answer", where="sftp://wms")


class Content:
    """Of a file."""


def test_a_stream_may_have_several_errors() -> None:
    """The first does not hide the others, and the exit code is that of the most severe."""
    said = RunMessages()
    said.add_error("wms.products", SHORT)
    said.add_error("wms.products", DOWN)
    said.add_error("wms.products", RefusedError("has 10 rows", where="f.csv:12", hint="ask for it anew"))
    assert [(each.stream, each.code, each.place, each.advice) for each in said] == [
        ("wms.products", "refused", "f.csv:12", "ask for it anew"),
        ("wms.products", "unavailable", "sftp://wms", None),
    ]
    assert (said.first_exception_by_stream, said.exit_code) == ({"wms.products": SHORT}, 3)
    assert streams_and_messages_document({}, said)["errors"] == {
        "wms.products": "f.csv:12: has 10 rows\n  ask for it anew\nsftp://wms: no answer"
    }


def test_one_error_of_many_streams_is_one_sentence() -> None:
    """With the names of all of them."""
    said = RunMessages()
    for stream in ("wms.products", "wms.customers"):
        said.add_error(stream, DOWN)
    said.add_error("", SHORT)
    assert error_texts(said) == [
        "wms.products, wms.customers: sftp://wms: no answer [unavailable]",
        "f.csv:12: has 10 rows [refused]\n  ask for it anew",
    ]


def test_findings_keep_their_lines() -> None:
    """Each finding of a config file is a line."""
    said = RunMessages()
    said.add_error("", FindingsError(["a.yaml:1: no", "a.yaml:2: no"]))
    assert error_texts(said) == ["a.yaml:1: no [config_invalid]\na.yaml:2: no"]


def test_remarks_are_bounded_and_errors_are_not() -> None:
    """After `MOST` warnings and notes only their number is kept."""
    said = RunMessages([RunMessage("note", "wms.lots", "of the run that is continued")])
    for number in range(MOST + 5):
        said.add_note("wms.lots", f"file {number} is passed over")
        said.add_note("wms.lots", "file 0 is passed over")
    said.add_error("wms.lots", SHORT)
    found = warning_and_note_texts(said)
    assert len(found) == MOST + 1
    assert found[-1] == "6 more warnings and notes of this run are not kept"
    assert len(error_texts(said)) == 1


def test_a_kept_error_holds_nothing_that_was_read() -> None:
    """Neither a refused file stays, nor what its functions and the one that keeps the error have, nor that of its
    cause.
    """
    held = list[weakref.ref[Content]]()

    def content() -> Content:
        made = Content()
        held.append(weakref.ref(made))
        return made

    def read(file: Content) -> None:
        kept = content()

        def parse(row: Content) -> None:
            assert kept is not row  # a closure, which clearing its frame does not release
            raise ValueError("no number")

        try:
            parse(content())
        except ValueError as error:
            assert isinstance(file, Content)
            raise RefusedError("is damaged") from error

    def run(said: RunMessages) -> None:
        stream = content()
        try:
            read(content())
        except RefusedError as error:
            said.add_error("wms.rows", error)
        assert isinstance(stream, Content)

    said = RunMessages()
    run(said)
    assert [each() for each in held] == [None] * 4
