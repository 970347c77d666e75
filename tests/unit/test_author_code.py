"""The guard around authors' code: what is said of an exception, what is masked, and what passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import BaseModel, TypeAdapter
from tests.unit.runs.planning.accounts import account, bound_accounts

from crossdock.errors import (
    ConfigError,
    ConnectorError,
    CrossdockError,
    InternalError,
    RecordError,
    RefusedError,
    RemoteError,
    StoppedError,
    UnavailableError,
)
from crossdock.runs.batches_read_from_connector import (
    checked_batches_of_existing_records,
    fetch_checked_batches,
    pull_checked_batches,
)
from crossdock.runs.planning.mapping_to_drafts import map_record_to_draft_members
from crossdock.values.author_code_errors import (
    AuthorCodeError,
    author_code_error_or_none,
    convert_author_errors,
    masked_exception_text_with_place,
    shortened_text,
)
from crossdock.values.config_base_types import ConfigModel, SecretRef
from crossdock.values.raw_rows_and_records import LINE, Proof, RawBatch

HERE = Path(__file__).name


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class OwnEndError(BaseException):
    """An author's own end of everything."""


class BareError(RemoteError):
    """Does not call the constructor of ours, so that it has no message."""

    def __init__(self, status: int) -> None:
        self.status = status


class NamelessError(UnavailableError):
    """Has a code that nothing can compare."""

    code: Any = ["down"]


class HalfError(RefusedError):
    """Has a text that no state stores."""

    def __init__(self) -> None:
        super().__init__("bad page")
        self.message = "\ud800"


class UnreadableText:
    def __str__(self) -> str:
        raise ValueError("no text")


class Price(BaseModel):
    amount: int


class Account(ConfigModel):
    token: SecretRef


def raises(error: BaseException) -> Callable[..., Any]:
    def run(*_: object) -> None:
        raise error

    return run


def deep() -> Any:
    return deep()


def ends_early() -> Iterator[int]:
    yield next(iter(()))


def said(run: Callable[[], Any], **facts: Any) -> str:
    """What the guard makes of what *run* raises."""
    with (
        pytest.raises(AuthorCodeError) as caught,
        convert_author_errors("pull", "w.accounts", code=run, **facts),
    ):
        run()
    error = caught.value
    assert (error.exit_code, error.where, error.method) == (3, "w.accounts", "pull")
    assert error.hint
    return error.message


@pytest.mark.parametrize(
    ("run", "told"),
    [
        pytest.param(raises(ValueError("no total")), "ValueError in line {} of {}: no total", id="plain"),
        pytest.param(raises(KeyError("customer.id")), "KeyError in line {} of {}: 'customer.id'", id="a member"),
        pytest.param(
            raises(RecordError("bad_value", "too heavy")), "RecordError in line {} of {}: too heavy", id="own"
        ),
        pytest.param(raises(SystemExit(3)), "SystemExit in line {} of {}: 3", id="an exit"),
        pytest.param(raises(StopIteration("end")), "StopIteration in line {} of {}: end", id="the wrong end"),
        pytest.param(raises(MemoryError("full")), "MemoryError in line {} of {}: full", id="memory"),
        pytest.param(raises(OwnEndError("over")), "OwnEndError in line {} of {}: over", id="a BaseException"),
        pytest.param(raises(GeneratorExit("ended")), "GeneratorExit in line {} of {}: ended", id="an end"),
        pytest.param(raises(StoppedError("halt")), "StoppedError in line {} of {}: halt", id="a stop that is not ours"),
        pytest.param(raises(InternalError("ours")), "InternalError in line {} of {}: ours", id="a defect not ours"),
        pytest.param(raises(CrossdockError("any")), "CrossdockError in line {} of {}: any", id="of ours"),
        pytest.param(
            raises(ExceptionGroup("two", [ValueError("a")])),
            "ExceptionGroup in line {} of {}: two (1 sub-exception)",
            id="a group",
        ),
        pytest.param(
            raises(UnreadableError()),
            "UnreadableError in line {} of {}: its text cannot be read: ValueError",
            id="no text",
        ),
        pytest.param(raises(BareError(500)), "BareError in line {} of {}: 500", id="without our constructor"),
        pytest.param(
            raises(NamelessError("down")), "NamelessError in line {} of {}: down", id="a code that is no text"
        ),
        pytest.param(raises(HalfError()), "HalfError in line {} of {}: \\ud800", id="a text that is not stored"),
    ],
)
def test_an_exception_is_told_by_class_place_and_text(run: Callable[[], Any], told: str) -> None:
    """Whatever its class, the message has method, class, file and line of the author's code, and its text."""
    line = run.__code__.co_firstlineno + 1
    message = said(run)
    assert message.startswith("pull raised ")
    start, _, end = told.partition(" of {}")
    assert message.removeprefix("pull raised ").startswith(start.format(line))
    assert message.endswith(f"{HERE}{end}")


def test_what_the_machine_ends_is_told_too() -> None:
    """Endless recursion, and a generator that ends by mistake, are failures of the code."""
    assert "RecursionError in line" in said(deep)
    assert "generator raised StopIteration" in said(lambda: list(ends_early()))


def test_an_exception_without_a_frame_is_told_by_the_first_line_of_the_code() -> None:
    """A library's exception may have no frame of the author: the line of the method is shown."""
    told = masked_exception_text_with_place(TypeError("no list"), deep, "pull")
    assert told == f"TypeError in pull, line {deep.__code__.co_firstlineno} of {__file__}: no list"


def record_error(**members: Any) -> RecordError:
    error = RecordError("bad_value", "too heavy", pointer="W").at(7)
    for name, value in members.items():
        setattr(error, name, value)
    return error


@pytest.mark.parametrize(
    ("members", "code", "line"),
    [
        ({}, "bad_value", 7),
        ({"line": "7"}, "bad_value", None),
        ({"line": 1 << 63}, "bad_value", None),
        ({"code": ["bad_value"]}, "mapping_failed", None),
        ({"code": "odd"}, "mapping_failed", None),
        ({"message": UnreadableText()}, "mapping_failed", None),
        ({"pointer": UnreadableText()}, "mapping_failed", None),
    ],
)
def test_what_a_mapping_raises_on_a_record_can_be_stored(members: dict[str, Any], code: str, line: int | None) -> None:
    """An error whose members are not of their types is the record's dead letter, and ends nothing else."""
    bound = bound_accounts()
    bound.stream.to_resource = raises(record_error(**members))  # type: ignore[method-assign]
    with pytest.raises(RecordError) as caught:
        map_record_to_draft_members(bound, account(bound, "1").record)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert str(caught.value)


@pytest.mark.parametrize("error", [UnavailableError("down"), ConfigError("no file"), KeyboardInterrupt()])
def test_errors_that_are_raised_on_purpose_stay(error: BaseException) -> None:
    """An error that the documentation names, and an interruption, are no failure of the code."""
    with pytest.raises(type(error)) as caught, convert_author_errors("pull", "w.accounts"):
        raise error
    assert caught.value is error


def test_what_our_own_code_raises_below_an_authors_stays() -> None:
    """A stop of the run reaches the run, although an author's code was on the way."""
    namespace: dict[str, Any] = {"__name__": "crossdock.pacing.clock", "StoppedError": StoppedError}
    exec("def wait():\n    raise StoppedError('stopped')", namespace)
    with pytest.raises(StoppedError), convert_author_errors("pull", "w.accounts"):
        namespace["wait"]()


def test_closing_a_generator_is_no_failure() -> None:
    """A reader that stops early closes the source without an error."""

    bound, page = bound_accounts(), RawBatch.json([{"K": "1"}], source="page", key=["K"])
    bound.stream.pull = lambda *_: iter([page, page])  # type: ignore[method-assign]
    read = pull_checked_batches(bound, None)
    next(read)
    read.close()


@pytest.mark.parametrize("method", ["pull", "existing", "fetch"])
def test_none_is_not_the_end_of_a_source(method: str) -> None:
    """A method that yields None is refused with the batch before it: what comes after would be lost unnoticed."""
    bound, page = bound_accounts(), RawBatch.json([{"K": "1"}], source="page 1", key=["K"])
    setattr(bound.stream, method, lambda *_: iter([page, None, page]))
    read: dict[str, Callable[[], Iterator[Any]]] = {
        "pull": lambda: pull_checked_batches(bound, None),
        "existing": lambda: checked_batches_of_existing_records(bound),
        "fetch": lambda: fetch_checked_batches(bound, [("1",)]),
    }
    with pytest.raises(ConnectorError, match=f"{method} yielded a NoneType instead of a RawBatch after page 1"):
        list(read[method]())


ROWS = RawBatch.json([{"K": "1"}, {"K": "2"}], source="page 2", key=["K"]).load()


def with_lines(*lines: int | None) -> pl.DataFrame:
    return ROWS.with_columns(pl.Series(LINE, lines, pl.UInt64))


def garbage() -> Path:
    return Path(__file__)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"rows": Path("missing.arrow")}, "rows cannot be read: .*No such file"),
        ({"rows": garbage()}, "rows cannot be read: "),
        ({"rows": None}, "rows are a NoneType"),
        ({"rows": ROWS.lazy()}, "rows are a LazyFrame"),
        ({"rows": with_lines(1, None)}, "_line is null or above 4,294,967,295"),
        ({"rows": with_lines(1, 2**64 - 1)}, "_line is null or above 4,294,967,295"),
        ({"rows": with_lines(7, 7)}, "with several rows of the same _line"),
        ({"again": 5}, "again cannot be called"),
        ({"proof": "whole"}, "proof is not a Proof"),
        ({"proof": Proof("whole")}, "proof is not a Proof"),  # type: ignore[arg-type]
        ({"proof": Proof(str, export=5)}, "proof is not a Proof"),  # type: ignore[arg-type]
        ({"proof": Proof(str, unread=5)}, "proof is not a Proof"),  # type: ignore[arg-type]
        ({"deleted": ("1",)}, "deleted keys are not tuples of texts"),
        ({"deleted": ((1,),)}, "deleted keys are not tuples of texts"),
    ],
)
def test_a_batch_that_no_run_can_use_ends_its_stream(made: dict[str, Any], told: str) -> None:
    """The message has the batch before it, and the file and line of the method."""
    bound, page = bound_accounts(), RawBatch("page 1", ROWS)
    wrong = RawBatch(**{"source": "page 2", "rows": ROWS, **made})

    bound.stream.pull = lambda *_: iter([page, wrong])  # type: ignore[method-assign]
    with pytest.raises(ConnectorError, match=told) as caught:
        list(pull_checked_batches(bound, None))
    assert caught.value.where == bound.name
    assert all(each in caught.value.message for each in ("after page 1", "line ", "accounts.py"))


@pytest.mark.parametrize("rows", [None, ROWS.drop("K"), ROWS.lazy()])
def test_rows_that_are_read_again_have_the_columns_of_before(rows: Any) -> None:
    """Anything else ends the stream, as an exception of the source does; so does a proof without a name."""
    bound = bound_accounts()
    wrong = RawBatch("page 1", ROWS, again=lambda _: iter([rows]), proof=Proof(lambda: rows))
    bound.stream.pull = lambda *_: iter([wrong])  # type: ignore[method-assign]
    (batch,) = pull_checked_batches(bound, None)
    assert isinstance(batch, RawBatch)
    assert batch.again is not None
    assert batch.proof is not None
    with pytest.raises(ConnectorError, match=r"other columns, or no rows, when it is read again after page 1"):
        list(batch.again(None))
    with pytest.raises(ConnectorError, match="content is not storable text after page 1"):
        batch.proof.content()


def test_data_is_masked(tmp_path: Path) -> None:
    """Secrets, values of the record, quoted values, mail and telephone numbers are masked; other words are not."""
    (tmp_path / "token").touch(mode=0o600)
    (tmp_path / "token").write_text("s3cret-of-the-shop")
    settings = TypeAdapter(Account).validate_python({"token": "file:token"}, context={"folder": tmp_path})
    person, quoted = "Erika Mustermann", "Max Vogelsang"
    rows = [{"name": person, "city": "missing"}]

    def run() -> None:
        raise ValueError(f"name missing: {person} {quoted!r} a.b@example.com +49 30 1234567 {settings.token.reveal()}")

    text = said(run, settings=settings, data=rows)
    assert text.endswith(": name missing: (data) (data) '(data)' (data) (data) (secret)")


def test_findings_of_an_authors_model_are_told_without_the_values() -> None:
    """Pydantic's own text quotes what it was given."""
    text = said(lambda: Price.model_validate({"amount": "Erika"}))
    assert text.endswith(": amount: must be a whole number")


def test_a_message_is_short_and_printable() -> None:
    """At most 500 characters, with escapes for control characters."""
    assert shortened_text("a\x1b") == "a\\x1b"
    assert len(shortened_text("a" * 1_000)) == 500
    assert len(said(raises(ValueError("x" * 1_000_000)))) < 1_000


def test_an_exception_that_no_guard_met_is_an_authors_if_its_code_is_on_the_way() -> None:
    """Only what a frame of an author has raised is told as such: anything else is a defect of ours."""
    with pytest.raises(ValueError, match="bad") as caught:
        raises(ValueError("bad"))()
    found = author_code_error_or_none(caught.value)
    assert found is not None
    assert found.exit_code == 3
    assert author_code_error_or_none(ValueError("bad")) is None


def test_the_most_frequent_mistake_is_told() -> None:
    """The types that Python names in the texts of its errors are no data."""
    missing: Any = None
    assert said(lambda: missing[0]).endswith("'NoneType' object is not subscriptable")


def test_a_misspelt_member_is_told_and_not_the_one_that_is_lacking() -> None:
    """The author looks for the name that is written."""
    bound = bound_accounts()
    vars(bound.stream)["to_resource"] = lambda _: {"nmae": "x"}
    with pytest.raises(RecordError) as refused:
        map_record_to_draft_members(bound, account(bound, "1").record)
    assert (refused.value.pointer, refused.value.message) == ("/nmae", "is not known")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Can't instantiate abstract class T with abstract methods a, b", "class T lacks methods a, b"),
        (
            "Can't instantiate abstract class T without an implementation for abstract method 'a'",
            "class T lacks method 'a'",
        ),
        ("'Page' object is not iterable", "'Page' object is not iterable"),
        ("'Page' is not iterable", "'(data)' is not iterable"),
    ],
)
def test_sentences_of_python_are_plain_and_name_types(text: str, told: str) -> None:
    """Of each version of Python; a quoted value of another kind may be data."""
    assert said(raises(TypeError(text))).endswith(f": {told}")
