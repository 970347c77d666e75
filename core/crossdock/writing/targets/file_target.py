"""A target that hands over files: a partner's folder, on a disk or a server. Partners may acknowledge them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from posixpath import normpath
from tempfile import TemporaryDirectory
from typing import Any, Self
from zoneinfo import ZoneInfo

from pydantic import StrictBool, StrictStr, model_validator

from crossdock.errors import CrossdockError, RecordError, UnavailableError
from crossdock.pacing.rate_limit_and_retry_settings import LimitSettings, RateLimit, Retry
from crossdock.reading.transport.file_store import WritableStore
from crossdock.reading.transport.http_answers_and_errors import Answer, NotSentError
from crossdock.reading.wrappers.wrapper import WrapperSettings
from crossdock.reading.wrappers.wrapping_and_unwrapping import wrap_file, wrapped_name_ending
from crossdock.resources import ResourceModel
from crossdock.values import exact_json
from crossdock.writing.files.content_interface import FileContent, FileOperation, FileRecord, WrittenFileFacts
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome
from crossdock.writing.targets.file_hand_over import HandOver
from crossdock.writing.targets.target import (
    HAND_OVER_AGAIN,
    STAGE,
    BatchItem,
    Client,
    ConnectorTarget,
    EndpointProfile,
    Request,
    TargetResource,
    Update,
)

ACKNOWLEDGEMENTS = "acknowledgements"
"""The name of the resource of a target to which streams with acknowledgements write."""


class Acknowledgement(ResourceModel):
    """What a partner says about files that were handed over to it.

    Attributes:
        file: The name of the file.
        number: The number of the file, such as the control number of its interchange; zeros before it do not count.
        control: The control number of one transaction set or message in that file.
        record: The external id of one record. Without *control* and *record* it is about the whole file.
        accepted: Whether the partner has accepted it.
        reason: Why it was refused.
    """

    file: StrictStr | None = None
    number: StrictStr | None = None
    control: StrictStr | None = None
    record: StrictStr | None = None
    accepted: StrictBool
    reason: StrictStr | None = None

    @model_validator(mode="after")
    def _check_subject_is_named(self) -> Self:
        if not (self.file or self.number or self.record):
            raise ValueError("needs the file, its number, or the record that is acknowledged")
        return self


def acknowledgement_target_resource() -> TargetResource:
    """Return the resource of a target to which streams bring acknowledgements."""
    endpoint = EndpointProfile(reads=False)
    return TargetResource(
        ACKNOWLEDGEMENTS, Acknowledgement, write_once=True, deletes=False, endpoint=endpoint, acknowledges=True
    )


_SOME_FACTS = WrittenFileFacts(1, datetime(2026, 1, 1, tzinfo=UTC), "file")
_PLACE = re.compile(r"\{(number|at)(?::([^{}]*))?\}")


@dataclass(frozen=True, slots=True)
class FileForm:
    """A resource whose records are sent in files.

    Attributes:
        name: The name of a file, with ``{number}``, ``{number:6}`` with at least six digits, and ``{at:%Y%m%d}``.
        wrapped: What it is wrapped in, the outermost first; the name gets the endings of these.
    """

    kind: TargetResource
    name: str
    content: FileContent
    wrapped: Sequence[WrapperSettings] = ()

    def request(self, operation: FileOperation, name: str, payload: Mapping[str, Any]) -> Request:
        """Return the request of one operation. Raises RecordError if the content cannot express it, or for its size."""
        self.content.check_record(FileRecord(operation, name, payload))
        most = self.kind.batch.most_bytes if self.kind.batch is not None else None
        if most is not None and (size := self.size_of(BatchItem(operation, name, payload))) > most:
            message = f"takes {size:,} bytes alone in a file, and bytes_per_file is {most:,}"
            raise RecordError("invalid_draft", message, pointer="")
        return Request("PUT", f"/{self.kind.name}", exact_json.dumps(payload), holds_payload=True)

    def file_name(self, number: int, at: datetime) -> str:
        """Return the name of file *number*, made *at* a time in the partner's zone, without endings of wrappers."""

        def filled(place: re.Match[str]) -> str:
            form = place[2] or ""
            return f"{number:0{form or 1}d}" if place[1] == "number" else at.strftime(form)

        return _PLACE.sub(filled, self.name)

    def wrapped_name(self, number: int, at: datetime) -> str:
        return self.file_name(number, at) + wrapped_name_ending(self.wrapped)

    def batch(self, items: Sequence[BatchItem], number: int, at: datetime) -> Request:
        """Return the request with the bytes of file *number*. Raises RefusedError as `FileContent.file_bytes`."""
        name = self.file_name(number, at)
        records = [FileRecord(item.operation, item.name, item.payload) for item in items]
        content = self.content.file_bytes(records, WrittenFileFacts(number, at, name))
        return Request(STAGE, f"/{self.wrapped_name(number, at)}", self._wrapped(content, name))

    def size_of(self, item: BatchItem) -> int:
        """Return the bytes of a file with *item* alone, before it is wrapped. It takes no more in one with others."""
        return len(self.content.file_bytes([FileRecord(item.operation, item.name, item.payload)], _SOME_FACTS))

    def _wrapped(self, content: bytes, name: str) -> bytes:
        if not self.wrapped:
            return content
        with TemporaryDirectory(prefix="wrapped-") as folder:
            return wrap_file(content, self.wrapped, name=name, folder=Path(folder)).read_bytes()


_FOREVER_S = 10.0**11


@dataclass(frozen=True, slots=True)
class FileResource(FileForm):
    """A resource whose records are handed over in files."""

    hand_over: HandOver = field(kw_only=True)


class FileTarget(ConnectorTarget):
    """Hands over files with the records of its resources.

    Args:
        open_store: Opens the store of the files.
        address: For messages.
    """

    in_flight = 1  # files come in the order of their numbers
    kept_s = _FOREVER_S  # a file is never handed over under another name
    settle_s = 0.0

    def __init__(
        self,
        resources: Mapping[str, FileResource],
        open_store: Callable[[], WritableStore],
        address: str,
        zone: ZoneInfo,
        retry: Retry,
        first_number: int = 1,
    ) -> None:
        self.first_number = first_number
        self._files, self._open, self._address, self._zone, self.retry = resources, open_store, address, zone, retry
        own = {name: each.kind for name, each in resources.items()}
        self.resources = {
            ACKNOWLEDGEMENTS: acknowledgement_target_resource(),
            **own,
        }  # they come first: changes wait for them

    @property
    def address(self) -> str:
        return self._address

    def folder_at_address(self, resource: str) -> str:
        return "" if resource == ACKNOWLEDGEMENTS else normpath(self._files[resource].hand_over.folder)

    @property
    def rate(self) -> LimitSettings:
        return RateLimit(per_minute=60_000, burst=1_000)

    # ---- requests

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        return self._operation_request(resource, "create", payload)

    def update(self, resource: str, target_id: str, update: Update) -> Request:  # noqa: ARG002  a file has whole records
        return self._operation_request(resource, "update", update.after)

    def delete(self, resource: str, target_id: str) -> Request:  # noqa: ARG002  it is the name in the file
        return Request("DELETE", f"/{resource}")

    def _operation_request(self, resource: str, operation: Any, payload: dict[str, Any]) -> Request:
        if resource == ACKNOWLEDGEMENTS:
            return Request("PUT", f"/{resource}", exact_json.dumps(payload), holds_payload=True)
        return self._files[resource].request(operation, self.name_in(resource, payload) or "", payload)

    def stored_batch(self, resource: str, items: Sequence[BatchItem], number: int, at: datetime) -> Request:
        named = [self._item_with_known_name(resource, item) for item in items]
        return self._files[resource].batch(named, number, at.astimezone(self._zone))

    def stored_size(self, resource: str, item: BatchItem) -> int:
        return self._files[resource].size_of(self._item_with_known_name(resource, item))

    def _item_with_known_name(self, resource: str, item: BatchItem) -> BatchItem:
        """Return an operation under the name that the partner has it by: `name_form` may be another one since."""
        return BatchItem(item.operation, item.name, {**item.payload, **self.members_of_name(resource, item.name)})

    def batch_name(self, resource: str, number: int, at: datetime) -> str:
        return self._files[resource].wrapped_name(number, at.astimezone(self._zone))

    def destination(self, resource: str) -> str:
        hand_over = self._files[resource].hand_over
        return f"{self._address} {hand_over.folder or '.'} as {hand_over.temporary}"

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:  # noqa: ARG002  never sent
        raise RecordError("target_failed", "a partner that takes files cannot be asked for a record")

    def ping(self, resource: str) -> Request:
        return Request("PING", f"/{resource}")

    def headers(self, resource: str, idempotency_key: str | None, if_match: str | None) -> dict[str, str]:  # noqa: ARG002
        return {"resource": resource}

    # ---- answers

    def outcome(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:  # noqa: ARG002  all alike
        return _outcome_of_hand_over(answer, expected)

    def batch_outcomes(
        self,
        resource: str,  # noqa: ARG002  all alike
        answer: Answer,
        expected: Sequence[ExpectedRecord],
    ) -> Outcome | Sequence[Outcome]:
        return [_outcome_of_hand_over(answer, each) for each in expected]

    def found(self, resource: str, answer: Answer, expected: ExpectedRecord) -> Outcome:  # noqa: ARG002  never asked
        return Outcome("unavailable", "a partner that takes files cannot be asked for a record")

    # ---- sending

    def client(self) -> Client:
        return _FileHandOverClient(self._files, self._open)

    def reach(self) -> str:
        with self._open() as store:
            for form in self._files.values():
                for folder in (form.hand_over.folder, *form.hand_over.taken):
                    store.list(folder, "")
        written = ", ".join(f"{name} to '{each.hand_over.folder or '.'}'" for name, each in self._files.items())
        return f"{self._address} can be listed; files are handed over: {written}"


def _outcome_of_hand_over(answer: Answer, expected: ExpectedRecord) -> Outcome:
    if answer.status == 200:
        return Outcome("delivered", status=200, target_id=expected.target_id or expected.name)
    message = "the file was written and may have been renamed, and is not there: the partner may have taken it"
    return Outcome("undecided", message, answer.status)


class _FileHandOverClient:
    """Hands over files in one session, which is opened when it is needed, and again after a failure."""

    def __init__(self, files: Mapping[str, FileResource], open_store: Callable[[], WritableStore]) -> None:
        self._files, self._open = files, open_store
        self._store: WritableStore | None = None

    def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        try:
            resource = (headers or {}).get("resource", "")
            return self._stage_hand_over_or_ping(method, path.removeprefix("/"), body or b"", resource, may_leave)
        except CrossdockError:
            self.close()
            raise

    def _stage_hand_over_or_ping(
        self, method: str, name: str, body: bytes, resource: str, may_leave: Callable[[], bool]
    ) -> Answer:
        store, hand_over = self._open_store(), self._files[resource].hand_over
        if method == STAGE:
            hand_over.stage(store, name, body)
            return Answer(200, {}, b"")
        if method == "PING":
            store.list(hand_over.folder, "")
            return Answer(200, {}, b"")
        again = method == HAND_OVER_AGAIN
        found = hand_over.complete(store, name, body, again=again, may_leave=may_leave)
        return Answer(200 if found == "handed_over" else 404, {}, b"")

    def _open_store(self) -> WritableStore:
        if self._store is None:
            try:
                self._store = self._open()
            except UnavailableError as error:
                raise NotSentError(error.message, where=error.where, hint=error.hint, code=error.code) from error
        return self._store

    def close(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            with suppress(CrossdockError):
                store.__exit__(None, None, None)
