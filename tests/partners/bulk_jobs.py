"""Fakes of APIs that take many records in a staged upload and answer later: Salesforce, Shopify and Amazon.

Each has a different law: Salesforce starts a job with a state, Shopify uploads a form to another host and runs one
operation at a time, Amazon's report lists problems only. What they have in common is `BulkJobs`. Their documents are
named by each class; what these leave open is said there as well.

    with SalesforceBulk() as api:
        api.faults.append(("start", "lost"))
        send(api.url, api.token)
        assert [effect.key for effect in api.log] == ["A-1", "A-2"]
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from functools import lru_cache
from types import TracebackType
from typing import Any, ClassVar, Literal, NamedTuple, Self
from xml.sax.saxutils import escape

from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    NonNullTypeNode,
    OperationDefinitionNode,
    OperationType,
    build_schema,
    graphql_sync,
    parse,
    value_from_ast_untyped,
)
from tests.partners.partner_server import PartnerAnswer, PartnerRequest, PartnerServer, serving

from crossdock.values import exact_json

Step = Literal["open", "upload", "start", "state", "results"]
FaultKind = Literal["lost", "cut", "500", "429", "403 expired url"]
Fault = tuple[Step, FaultKind]
"""``lost``: carried out, and the connection ends without an answer. ``cut``: the connection ends before it is carried
out. ``500`` and ``429`` (``Retry-After: 0``): nothing is carried out. ``403 expired url``: a signed address of the
second host is over, for this request and for later ones; a request to the first host does not take it."""

Payload = dict[str, Any]
_TOKENS = ("authorization", "x-shopify-access-token", "x-amz-access-token")
_XML = {"content-type": "application/xml"}
_AT_ONCE = {"retry-after": "0"}


class Effect(NamedTuple):
    """One record that a job executed, with what was sent."""

    job: str
    key: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class Row:
    """One record as it was uploaded; *problem* is what the vendor itself has against it."""

    key: str
    payload: Payload
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a row that was processed: *id* is the vendor's, *reason* why it was refused."""

    row: Row
    id: str
    created: bool
    reason: str | None = None


@dataclass(slots=True)
class Job:
    """One job.

    Attributes:
        asked: What it was created with.
        content: What was uploaded.
        outcomes: Of the rows that were processed, in their order.
        unprocessed: The rows after them, of a job that failed.
        failure: Why it failed.
        end_state: The state that it has or will have; empty before the start.
        polls: How often its state was asked for while it was at work.
    """

    id: str
    asked: Payload
    created_at: datetime
    content: bytes | None = None
    columns: list[str] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    unprocessed: Sequence[Row] = ()
    failure: str | None = None
    end_state: str = ""
    ended: bool = False
    polls: int = 0

    def refused(self) -> list[Outcome]:
        return [each for each in self.outcomes if each.reason is not None]


class BulkJobs(ABC):
    """A vendor at work on loopback, as a context manager.

    A job executes its records when it is started, whether or not anybody asks for its state afterwards; what is set
    below holds from then on. It is shown at work for `polls_until_done` requests for its state.

    Attributes:
        url: Of the API; *token* is the access token that it wants.
        records: What the vendor holds, by external key.
        effects: What happened, oldest first: ``opened``, ``uploaded``, ``started`` and ``executed``, the ``kind``.
        requests: Those that arrived at any host, oldest first.
        jobs: By id.
        polls_until_done: How many times a job is shown at work before it is shown as ended.
        refuse: Why a record is refused; None to take it.
        on_fault: Called with the kind when a fault strikes, before the connection ends.
        faults: Those to come. A request takes the first one of its step, once.
        fail_job: Jobs end as failed with this message, and execute nothing.
        execute_partly: Jobs end as failed after so many records; the others are unprocessed.
        failed_state: The state of jobs that fail, if it is not the usual one.
    """

    QUEUED: ClassVar[str]
    RUNNING: ClassVar[str]
    DONE: ClassVar[str]
    FAILED: ClassVar[str]

    def __init__(self) -> None:
        self.url, self.token = "", "access-token-of-ours"
        self.records: dict[str, Payload] = {}
        self.effects = list[dict[str, Any]]()
        self.requests = list[PartnerRequest]()
        self.jobs: dict[str, Job] = {}
        self.polls_until_done = 1
        self.refuse: Callable[[Payload], str | None] = lambda _: None
        self.faults = list[Fault]()
        self.on_fault: Callable[[FaultKind], None] = lambda _: None
        self.fail_job: str | None = None
        self.execute_partly: int | None = None
        self.failed_state = self.FAILED
        self._ids: dict[str, str] = {}
        self._last = 0
        self._lock, self._hosts = threading.RLock(), ExitStack()

    def __enter__(self) -> Self:
        self.url = self._hosts.enter_context(serving(_Host(self, self.respond))).url
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._hosts.close()

    @property
    def log(self) -> list[Effect]:
        """Every record that was executed, oldest first; a record that was executed twice is here twice."""
        with self._lock:
            executed = [each for each in self.effects if each["kind"] == "executed"]
        return [Effect(each["job"], each["key"], each["payload"]) for each in executed]

    def finish_jobs(self) -> None:
        """Let time pass: all jobs that were started end, without requests for their state."""
        with self._lock:
            for job in self.jobs.values():
                job.ended = bool(job.end_state)

    # ---- requests

    def respond(self, request: PartnerRequest) -> PartnerAnswer | None:
        """The answer to a request to the API; None if the connection ends without one."""
        return self._respond(request, self.step, self.answer, {"500": self.broken, "429": self.throttled})

    def _respond(
        self,
        request: PartnerRequest,
        step: Callable[[PartnerRequest], Step | None],
        carry_out: Callable[[PartnerRequest], PartnerAnswer],
        refusals: Mapping[FaultKind, Callable[[], PartnerAnswer]],
    ) -> PartnerAnswer | None:
        with self._lock:
            self.requests.append(request)
            if "transfer-encoding" in request.headers:
                return _xml(411, "MissingContentLength", "You must provide the Content-Length.", connection="close")
            fault = self._next_fault(step(request), {"lost", "cut", *refusals})
            if fault == "cut":
                self.on_fault(fault)
                return None
            refusal = refusals.get(fault) if fault is not None else None
            answer = refusal() if refusal is not None else carry_out(request)
            if fault == "lost":
                self.on_fault(fault)
                return None
            return answer

    def _next_fault(self, step: Step | None, kinds: set[FaultKind]) -> FaultKind | None:
        for at, (name, kind) in enumerate(self.faults):
            if name == step and kind in kinds:
                del self.faults[at]
                return kind
        return None

    @abstractmethod
    def step(self, request: PartnerRequest) -> Step | None:
        """The step of the way of a job that a request to the API is."""

    @abstractmethod
    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        """Carry out a request to the API."""

    @abstractmethod
    def throttled(self) -> PartnerAnswer:
        """The vendor's answer to too many requests."""

    @abstractmethod
    def broken(self) -> PartnerAnswer:
        """The vendor's answer if it has an internal error."""

    # ---- jobs

    def _open(self, job_id: str, asked: Payload) -> Job:
        job = self.jobs[job_id] = Job(job_id, asked, datetime.now(UTC))
        self.effects.append({"kind": "opened", "job": job_id})
        return job

    def _start(self, job: Job, rows: Sequence[Row], problem: str | None = None) -> None:
        """Execute *rows*; none of them if there is a *problem* with the whole upload."""
        self.effects.append({"kind": "started", "job": job.id})
        job.failure, end = problem, 0 if problem else len(rows)
        if problem is None and (self.fail_job is not None or self.execute_partly is not None):
            job.failure, end = self.fail_job or "The job was stopped.", self.execute_partly or 0
        job.outcomes = [self._executed(job, row) for row in rows[:end]]
        job.unprocessed = rows[end:]
        job.end_state = self.DONE if job.failure is None else self.failed_state
        job.ended = self.polls_until_done <= 0

    def _executed(self, job: Job, row: Row) -> Outcome:
        held = self.records.get(row.key)
        reason = row.problem or self.refuse(row.payload)
        if reason is not None:
            return Outcome(row, "" if held is None else self._id(job, row.key), created=False, reason=reason)
        changed = self.changed(held, row.payload)
        row_id = self._id(job, row.key)
        if changed is not None:
            self.records[row.key] = changed
        else:
            self.records.pop(row.key, None)
            del self._ids[row.key]
        self.effects.append({"kind": "executed", "job": job.id, "key": row.key, "payload": row.payload})
        return Outcome(row, row_id, created=held is None)

    def _id(self, job: Job, key: str) -> str:
        if key not in self._ids:
            self._ids[key] = self.new_id(job)
        return self._ids[key]

    @abstractmethod
    def changed(self, held: Payload | None, sent: Payload) -> Payload | None:
        """What is held after *sent* was executed; None if nothing is."""

    @abstractmethod
    def new_id(self, job: Job) -> str:
        """The vendor's id for a new record."""

    def _state(self, job: Job) -> str:
        if job.ended:
            return job.end_state
        return self.QUEUED if job.polls <= 1 else self.RUNNING

    def _poll(self, job: Job) -> None:
        """Count one request for the state of *job*, which may be the first one after its end."""
        if job.end_state and not job.ended:
            job.ended = job.polls >= self.polls_until_done
            job.polls += 1

    def _next(self) -> int:
        self._last += 1
        return self._last


class StagedBulkJobs(BulkJobs):
    """A vendor whose files are at a second host, under signed addresses, which refuses access tokens.

    Attributes:
        storage_url: Of the second host.
    """

    def __init__(self) -> None:
        super().__init__()
        self.storage_url = ""
        self._signatures = set[tuple[str, str]]()

    def __enter__(self) -> Self:
        self.storage_url = self._hosts.enter_context(serving(_Host(self, self.respond_stored))).url
        return super().__enter__()

    def respond_stored(self, request: PartnerRequest) -> PartnerAnswer | None:
        """The answer to a request to the second host; None if the connection ends without one."""

        def over() -> PartnerAnswer:
            self.expire(request)
            return _expired()

        refusals: dict[FaultKind, Callable[[], PartnerAnswer]] = {
            "500": lambda: _xml(500, "InternalError", "We encountered an internal error. Please try again."),
            "429": lambda: _xml(429, "SlowDown", "Please reduce your request rate.", **_AT_ONCE),
            "403 expired url": over,
        }
        return self._respond(
            request, lambda sent: "results" if sent.method == "GET" else "upload", self._stored, refusals
        )

    def _stored(self, request: PartnerRequest) -> PartnerAnswer:
        if any(name in request.headers for name in _TOKENS):
            return _xml(400, "InvalidArgument", "Only one auth mechanism allowed.")
        return self.file(request)

    @abstractmethod
    def file(self, request: PartnerRequest) -> PartnerAnswer:
        """Take or give a file."""

    def _signed(self, path: str) -> str:
        """A new address of a file."""
        signature = f"{self._next():040x}"
        self._signatures.add((path, signature))
        return f"{self.storage_url}{path}?X-Signature={signature}"

    def _valid(self, request: PartnerRequest) -> bool:
        return (request.path, request.param("X-Signature")) in self._signatures

    def expire(self, request: PartnerRequest) -> None:
        """End the signed address that a request is for."""
        self._signatures.discard((request.path, request.param("X-Signature")))


class _Host(PartnerServer):
    """One of a vendor's hosts, with the vendor's own faults in place of random ones."""

    def __init__(self, jobs: BulkJobs, answer: Callable[[PartnerRequest], PartnerAnswer | None]) -> None:
        super().__init__(jobs)
        self._answer = answer

    def respond(self, request: PartnerRequest) -> PartnerAnswer | None:
        return self._answer(request)


def _xml(status: int, code: str, message: str, **headers: str) -> PartnerAnswer:
    body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return PartnerAnswer(status, body.encode(), _XML | headers)


def _expired() -> PartnerAnswer:
    return _xml(403, "AccessDenied", "Request has expired")


def _object(request: PartnerRequest) -> Payload:
    """The body, if it is a JSON object; otherwise an empty one, which lacks what is required."""
    try:
        sent = request.json()
    except ValueError:
        return {}
    return sent if isinstance(sent, dict) else {}


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.000+0000}"


# ---- Salesforce

_INGEST = re.compile(r"/services/data/v(\d+)\.0/jobs/ingest(?:/([^/]+)(?:/(\w+))?)?/?").fullmatch
_SALESFORCE_STEPS: dict[tuple[str, bool, str | None], Step] = {
    ("POST", False, None): "open",
    ("PUT", True, "batches"): "upload",
    ("PATCH", True, None): "start",
    ("GET", True, None): "state",
    ("GET", True, "successfulResults"): "results",
    ("GET", True, "failedResults"): "results",
    ("GET", True, "unprocessedrecords"): "results",
}
_TO_NULL = "#N/A"


class SalesforceBulk(BulkJobs):
    """Salesforce, Bulk API 2.0: jobs that upsert records of one object by an external id.

    Made from developer.salesforce.com/docs/platform/api-asynch/guide/ (``walkthrough-upsert``, ``create-job``,
    ``upload-job-data``, ``close-job``, ``get-job-info``, ``bulk-api-2-job-states``, ``datafiles-prepare-csv``) and
    developer.salesforce.com/docs/atlas.en-us.api_asynch.meta/api_asynch/ (``get_job_successful_results.htm``,
    ``get_job_failed_results.htm``, ``get_job_unprocessed_results.htm``: no order of rows is promised, so results are
    in reverse order here; ``datafiles_csv_valid_record_rows.htm``: an empty cell changes nothing, ``#N/A`` empties a
    field). That there is one upload for a job, and no close after a second one, is from
    salesforce.stackexchange.com/questions/231917.

    The documents do not tell the messages of errors, nor the answer to a request for results before the end (400
    here). A row with more or fewer cells, a header without the external id and the other line ending fail the whole
    job here. Records of all objects are held together, by their external id. A body needs a content length.
    """

    QUEUED, RUNNING, DONE, FAILED = "UploadComplete", "InProgress", "JobComplete", "Failed"

    def __init__(self) -> None:
        super().__init__()
        self._uploads: dict[str, int] = {}

    def step(self, request: PartnerRequest) -> Step | None:
        found = _INGEST(request.path)
        return _SALESFORCE_STEPS.get((request.method, found[2] is not None, found[3])) if found else None

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _salesforce(401, "INVALID_SESSION_ID", "Session expired or invalid")
        found, step = _INGEST(request.path), self.step(request)
        if found is not None and step == "open":
            return self._create(found[1], _object(request))
        job = self.jobs.get(found[2] or "") if found else None
        if found is None or step is None or job is None:
            return _salesforce(404, "NOT_FOUND", "The requested resource does not exist")
        return self._about(job, step, found[3], request)

    def _about(self, job: Job, step: Step, part: str, request: PartnerRequest) -> PartnerAnswer:
        match step:
            case "upload":
                return self._upload(job, request)
            case "start":
                return self._change(job, _object(request).get("state"))
            case "state":
                self._poll(job)
                return PartnerAnswer(200, self._info(job) | _counts(job))
        return self._results(job, part)

    def throttled(self) -> PartnerAnswer:
        body = [{"errorCode": "REQUEST_LIMIT_EXCEEDED", "message": "TotalRequests Limit exceeded."}]
        return PartnerAnswer(429, body, _AT_ONCE)

    def broken(self) -> PartnerAnswer:
        return _salesforce(500, "UNKNOWN_EXCEPTION", "An unexpected error occurred.")

    def _create(self, version: str, sent: Payload) -> PartnerAnswer:
        asked = {
            "contentType": "CSV",
            "lineEnding": "LF",
            "columnDelimiter": "COMMA",
            "apiVersion": int(version),
        } | sent
        if not (asked.get("object") and asked.get("externalIdFieldName")) or asked.get("operation") != "upsert":
            return _salesforce(400, "INVALIDJOB", "InvalidJob : upsert needs an object and an externalIdFieldName")
        if (asked["contentType"], asked["columnDelimiter"]) != ("CSV", "COMMA") or asked["lineEnding"] not in _ENDINGS:
            return _salesforce(400, "INVALIDJOB", "InvalidJob : the content is no CSV with commas")
        return PartnerAnswer(200, self._info(self._open(f"7505e{self._next():010d}AAA", asked)))

    def _info(self, job: Job) -> Payload:
        state = self._state(job) if job.end_state else "Open"
        shown = {
            "id": job.id,
            "createdById": "0055e000001hXXXAAA",
            "createdDate": _time(job.created_at),
            "systemModstamp": _time(job.created_at),
            "state": state,
            "concurrencyMode": "Parallel",
            "jobType": "V2Ingest",
        }
        if state == "Open":
            shown["contentUrl"] = f"services/data/v{job.asked['apiVersion']}.0/jobs/ingest/{job.id}/batches"
        if job.ended and job.failure is not None:
            shown["errorMessage"] = job.failure
        return job.asked | shown

    def _upload(self, job: Job, request: PartnerRequest) -> PartnerAnswer:
        if job.end_state:
            return _salesforce(400, "INVALIDJOBSTATE", "InvalidJobState : the job is not open")
        if request.headers.get("content-type", "").partition(";")[0].strip() != "text/csv":
            return _salesforce(415, "UNSUPPORTED_MEDIA_TYPE", "The content type must be text/csv")
        self._uploads[job.id] = self._uploads.get(job.id, 0) + 1
        if self._uploads[job.id] > 1:
            return _twice(job)
        job.content = request.body
        self.effects.append({"kind": "uploaded", "job": job.id})
        return PartnerAnswer(201)

    def _change(self, job: Job, state: Any) -> PartnerAnswer:
        if state == "Aborted" and not job.ended:
            job.end_state, job.ended = "Aborted", True
            return PartnerAnswer(200, self._info(job))
        if state != "UploadComplete" or job.end_state:
            shown = self._state(job) if job.end_state else "Open"
            return _salesforce(400, "INVALIDJOBSTATE", f"InvalidJobState : {state} is not possible, it is {shown}")
        if self._uploads.get(job.id, 0) > 1:
            return _twice(job)
        job.columns, rows, problem = _csv_rows(job)
        self._start(job, rows, problem)
        return PartnerAnswer(200, self._info(job) | {"state": self.QUEUED})

    def _results(self, job: Job, part: str) -> PartnerAnswer:
        if not job.ended:
            return _salesforce(400, "INVALIDJOBSTATE", "InvalidJobState : the job has not ended")
        if part == "unprocessedrecords":
            return _csv(job.columns, ((), [row.payload for row in job.unprocessed], job.columns))
        failed = part == "failedResults"
        shown = [each for each in reversed(job.outcomes) if (each.reason is not None) == failed]
        told = [(each.id, each.reason if failed else str(each.created).lower()) for each in shown]
        heads = ["sf__Id", "sf__Error" if failed else "sf__Created"]
        return _csv(heads + job.columns, (told, [each.row.payload for each in shown], job.columns))

    def changed(self, held: Payload | None, sent: Payload) -> Payload:
        told = {name: None if value == _TO_NULL else value for name, value in sent.items() if value}
        return (held or {}) | told

    def new_id(self, job: Job) -> str:
        return f"0015e{self._next():010d}AAA"


_ENDINGS = {"LF": "\n", "CRLF": "\r\n"}


def _salesforce(status: int, code: str, message: str) -> PartnerAnswer:
    return PartnerAnswer(status, [{"errorCode": code, "message": message}])


def _twice(job: Job) -> PartnerAnswer:
    advice = "please 'Close' / 'Abort' / 'Delete' the current Job then create a new Job"
    message = (
        f"Found multiple contents for job: <{job.id}>, {advice} and make sure you only do 'PUT' once on a given Job."
    )
    return _salesforce(400, "INVALIDJOB", message)


def _counts(job: Job) -> Payload:
    processed, failed = (len(job.outcomes), len(job.refused())) if job.ended else (0, 0)
    return {"numberRecordsProcessed": processed, "numberRecordsFailed": failed, "retries": 0, "totalProcessingTime": 0}


def _csv_rows(job: Job) -> tuple[list[str], list[Row], str | None]:
    """The columns and rows of an upload, and what is wrong with all of it."""
    ending, key = job.asked["lineEnding"], job.asked["externalIdFieldName"]
    try:
        text = (job.content or b"").decode()
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        return [], [], f"InvalidBatch : {error}"
    if not lines:
        return [], [], "InvalidBatch : the CSV file has no header"
    if text.partition("\n")[0].endswith("\r") != (ending == "CRLF"):
        expected = f"Current LineEnding setting is {ending}"
        return lines[0], [], f"ClientInputError : LineEnding is invalid on user data. {expected}"
    columns = lines[0]
    rows = [_csv_row(key, dict(zip(columns, line, strict=False))) for line in lines[1:]]
    if key not in columns:
        return columns, rows, f"InvalidBatch : Field name not found : {key}"
    if any(len(line) != len(columns) for line in lines):
        return columns, rows, "InvalidBatch : the number of cells in a row is not that of the header"
    return columns, rows, None


def _csv_row(key: str, payload: Payload) -> Row:
    if value := payload.get(key, ""):
        return Row(value, payload)
    return Row("", payload, f"MISSING_ARGUMENT:{key} not specified:--")


def _csv(header: list[str], body: tuple[Sequence[Iterable[Any]], Sequence[Payload], list[str]]) -> PartnerAnswer:
    """An answer whose rows are what is told of each record, and then its columns."""
    told, payloads, columns = body
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for at, payload in enumerate(payloads):
        writer.writerow([*(told[at] if told else ()), *(payload.get(name, "") for name in columns)])
    return PartnerAnswer(200, text.getvalue().encode(), {"content-type": "text/csv"})


# ---- Shopify

_GRAPHQL = re.compile(r"/admin/api/(\d{4}-\d{2})/graphql\.json").fullmatch
_FIRST_VERSION, _MORE_AT_A_TIME = "2025-10", "2026-01"
_STEPS: dict[str, Step] = {
    "stagedUploadsCreate": "open",
    "bulkOperationRunMutation": "start",
    "node": "state",
    "bulkOperation": "state",
    "currentBulkOperation": "state",
}
_KEYS = ("handle", "sku", "email", "id")
_ERROR_CODES = ("ACCESS_DENIED", "INTERNAL_SERVER_ERROR", "TIMEOUT")
_NO_FILE = (
    "The JSONL file could not be found. Try uploading the file again, and check that you've entered the URL correctly "
    "for the stagedUploadPath mutation argument."
)
_SDL = """
scalar URL
scalar DateTime
scalar UnsignedInt64
interface Node {{ id: ID! }}
enum BulkOperationType {{ MUTATION QUERY }}
enum BulkOperationStatus {{ CANCELED CANCELING COMPLETED CREATED EXPIRED FAILED RUNNING }}
enum BulkOperationErrorCode {{ ACCESS_DENIED INTERNAL_SERVER_ERROR TIMEOUT }}
enum BulkMutationErrorCode {{
  INTERNAL_FILE_SERVER_ERROR INVALID_MUTATION INVALID_STAGED_UPLOAD_FILE LIMIT_REACHED NO_SUCH_FILE
  OPERATION_IN_PROGRESS
}}
enum StagedUploadTargetGenerateUploadResource {{ BULK_MUTATION_VARIABLES FILE IMAGE PRODUCT_IMAGE VIDEO }}
enum StagedUploadHttpMethodType {{ POST PUT }}
type BulkOperation implements Node {{
  id: ID! type: BulkOperationType! status: BulkOperationStatus! errorCode: BulkOperationErrorCode
  objectCount: UnsignedInt64! rootObjectCount: UnsignedInt64! fileSize: UnsignedInt64 url: URL partialDataUrl: URL
  query: String! createdAt: DateTime! completedAt: DateTime
}}
type BulkMutationUserError {{ code: BulkMutationErrorCode field: [String!] message: String! }}
type UserError {{ field: [String!] message: String! }}
type StagedUploadParameter {{ name: String! value: String! }}
type StagedMediaUploadTarget {{ url: URL resourceUrl: URL parameters: [StagedUploadParameter!]! }}
type StagedUploadsCreatePayload {{ stagedTargets: [StagedMediaUploadTarget!] userErrors: [UserError!]! }}
type BulkOperationRunMutationPayload {{ bulkOperation: BulkOperation userErrors: [BulkMutationUserError!]! }}
input StagedUploadInput {{
  resource: StagedUploadTargetGenerateUploadResource! filename: String! mimeType: String!
  httpMethod: StagedUploadHttpMethodType = PUT fileSize: UnsignedInt64
}}
type Query {{
  node(id: ID!): Node
  currentBulkOperation(type: BulkOperationType = QUERY): BulkOperation
  {recent}
}}
type Mutation {{
  stagedUploadsCreate(input: [StagedUploadInput!]!): StagedUploadsCreatePayload
  bulkOperationRunMutation(
    mutation: String! stagedUploadPath: String! clientIdentifier: String groupObjects: Boolean = true
  ): BulkOperationRunMutationPayload
}}
"""


class ShopifyBulk(StagedBulkJobs):
    """Shopify, bulk operations that run one mutation for each line of a file.

    Made from shopify.dev/docs/api/usage/bulk-operations/imports (the steps, one at a time before version 2026-01 and
    five as of it), shopify.dev/docs/api/admin-graphql/2025-10/ (``mutations/bulkOperationRunMutation``,
    ``objects/BulkMutationUserError``, ``objects/BulkOperation``), the same of ``latest``
    (``enums/BulkOperationStatus``, ``enums/BulkMutationErrorCode``, ``queries/BulkOperation``: not in 2025-10) and of
    ``2026-07`` (``queries/currentBulkOperation``). ``resourceUrl`` is null for these uploads
    (community.shopify.com/t/70848), and ``stagedUploadPath`` is the parameter ``key`` (t/315109).

    Any mutation is taken: a record is its first argument that is an object, and the key is the first of ``handle``,
    ``sku``, ``email`` and ``id`` in its ``identifier``, its ``handle`` or the record. A record without one is another
    record each time. Lines of a result are as public clients read them, with what the mutation selects, and the last
    one first; a line that lacks a required variable has ``errors`` in place of ``data``. ``errorCode`` is `fail_job`
    if that is one, or else ``INTERNAL_SERVER_ERROR``. A failed operation shows what it did at ``partialDataUrl``; with
    `failed_state` ``EXPIRED`` or ``CANCELED`` there is no result. A file that is no JSONL, or empty, is refused.

    Attributes:
        limit: How many operations run at a time, 0 if those of others leave no room; None for that of the version.
    """

    QUEUED, RUNNING, DONE, FAILED = "CREATED", "RUNNING", "COMPLETED", "FAILED"

    def __init__(self) -> None:
        super().__init__()
        self.limit: int | None = None
        self._targets: dict[str, dict[str, str]] = {}
        self._files: dict[str, bytes] = {}
        self._results: dict[str, bytes] = {}

    def step(self, request: PartnerRequest) -> Step | None:
        try:
            operations = parse(str(_object(request).get("query"))).definitions
        except GraphQLError:
            return None
        roots = [one.selection_set for one in operations if isinstance(one, OperationDefinitionNode)]
        names = [each.name.value for root in roots for each in root.selections if isinstance(each, FieldNode)]
        return next((_STEPS[name] for name in names if name in _STEPS), None)

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        found = _GRAPHQL(request.path)
        if found is None or request.method != "POST" or found[1] < _FIRST_VERSION:
            return PartnerAnswer(404, {"errors": "Not Found"})
        if request.headers.get("x-shopify-access-token") != self.token:
            message = "[API] Invalid API key or access token (unrecognized login or wrong password)"
            return PartnerAnswer(401, {"errors": message})
        sent, recent = _object(request), found[1] >= _MORE_AT_A_TIME
        root = _ShopifyCall(self, self.limit if self.limit is not None else 5 if recent else 1)
        done = graphql_sync(
            _admin_schema(recent=recent),
            str(sent.get("query")),
            root,
            variable_values=sent.get("variables") or {},
            operation_name=sent.get("operationName"),
        )
        errors = {"errors": [each.formatted for each in done.errors]} if done.errors else {}
        return PartnerAnswer(200, errors | ({} if done.data is None else {"data": done.data}))

    def throttled(self) -> PartnerAnswer:
        return PartnerAnswer(429, {"errors": "Exceeded 2 calls per second for api client."}, _AT_ONCE)

    def broken(self) -> PartnerAnswer:
        return PartnerAnswer(500, {"errors": "Internal Server Error"})

    def stage(self, filename: str) -> Payload:
        """A target for one upload."""
        key = f"tmp/21759409/bulk/{self._next():08x}-719d-4e96-9735-ced94128389c/{filename}"
        self._targets[key] = parameters = {
            "Content-Type": "text/jsonl",
            "success_action_status": "201",
            "acl": "private",
            "key": key,
            "x-goog-algorithm": "GOOG4-RSA-SHA256",
            "x-goog-signature": f"{self._next():040x}",
            "policy": "eyJjb25kaXRpb25zIjpbXX0=",
        }
        named = [{"name": name, "value": value} for name, value in parameters.items()]
        return {"url": f"{self.storage_url}/", "resourceUrl": None, "parameters": named}

    def run(self, asked: Payload, limit: int) -> Payload:
        """``bulkOperationRunMutation``"""
        called = _root_of(asked["mutation"])
        if called is None:
            return _not_run("INVALID_MUTATION", "The mutation is invalid: it must be one mutation with one field.")
        if (content := self._files.get(asked["stagedUploadPath"])) is None:
            return _not_run("NO_SUCH_FILE", _NO_FILE)
        lines = _json_lines(content)
        if not lines:
            return _not_run("INVALID_STAGED_UPLOAD_FILE", "Unexpected file structure - expected JSONL")
        running = [job for job in self.jobs.values() if not job.ended]
        if len(running) >= limit:
            return _busy(running[-1].id if running else "gid://shopify/BulkOperation/0", limit)
        job = self._open(f"gid://shopify/BulkOperation/{self._next()}", asked)
        job.content = content
        self._start(job, [_shopify_row(called, line, self._next) for line in lines])
        shown = [_result_line(called, outcome, number) for number, outcome in enumerate(job.outcomes)]
        self._results[job.id] = b"".join(exact_json.dumps(line) + b"\n" for line in reversed(shown))
        return {"bulkOperation": self.shown(job) | {"status": self.QUEUED}, "userErrors": []}

    def asked_for(self, job_id: str | None) -> Payload | None:
        """The operation of that id, with its state counted as asked for; None if there is none."""
        job = self.jobs.get(job_id or "")
        if job is None:
            return None
        self._poll(job)
        return self.shown(job)

    def shown(self, job: Job) -> Payload:
        state, result = self._state(job), self._results.get(job.id, b"")
        processed = str(len(job.outcomes) if job.ended else 0)
        address = self._signed(f"/{job.id.rpartition('/')[2]}.jsonl") if job.ended and result else None
        code = job.failure if job.failure in _ERROR_CODES else "INTERNAL_SERVER_ERROR"
        return {
            "__typename": "BulkOperation",
            "id": job.id,
            "type": "MUTATION",
            "status": state,
            "errorCode": code if state == self.FAILED else None,
            "objectCount": processed,
            "rootObjectCount": processed,
            "fileSize": str(len(result)) if address else None,
            "url": address if state == self.DONE else None,
            "partialDataUrl": address if state == self.FAILED else None,
            "query": job.asked["mutation"],
            "createdAt": f"{job.created_at:%Y-%m-%dT%H:%M:%SZ}",
            "completedAt": f"{job.created_at:%Y-%m-%dT%H:%M:%SZ}" if state == self.DONE else None,
        }

    def file(self, request: PartnerRequest) -> PartnerAnswer:
        match request.method, request.path:
            case "POST", "/":
                return self._take(request)
            case "GET", path:
                content = self._results.get(f"gid://shopify/BulkOperation/{path[1:].removesuffix('.jsonl')}")
                if content is None:
                    return _xml(404, "NoSuchKey", "The specified key does not exist.")
                return (
                    PartnerAnswer(200, content, {"content-type": "text/jsonl"}) if self._valid(request) else _expired()
                )
        return _xml(405, "MethodNotAllowed", "The specified method is not allowed.")

    def _take(self, request: PartnerRequest) -> PartnerAnswer:
        parts = _form_parts(request)
        fields = {name: value.decode() for name, value in parts[:-1]}
        if not parts or parts[-1][0] != "file" or "file" in fields:
            return _xml(400, "InvalidArgument", "POST requires exactly one file upload, and as its last field.")
        key = fields.get("key", "")
        if self._targets.get(key) != fields:
            over = ": Policy expired." if self._targets.get(key) == {} else "."
            return _xml(403, "AccessDenied", f"Invalid according to Policy{over}")
        self._files[key] = parts[-1][1]
        self.effects.append({"kind": "uploaded", "job": key})
        place = f"<Location>{escape(f'{self.storage_url}/{key}')}</Location><Bucket>shopify</Bucket>"
        made = f"<?xml version='1.0'?><PostResponse>{place}<Key>{escape(key)}</Key></PostResponse>"
        return PartnerAnswer(201, made.encode(), _XML)

    def expire(self, request: PartnerRequest) -> None:
        super().expire(request)
        if request.method == "POST":
            key = dict(_form_parts(request)).get("key", b"").decode()
            self._targets[key] = {}

    def changed(self, held: Payload | None, sent: Payload) -> Payload:
        return (held or {}) | sent

    def new_id(self, job: Job) -> str:
        called = _root_of(job.asked["mutation"])
        assert called is not None
        shown = next((name.name.value for name in called.fields if name.name.value != "userErrors"), "record")
        return f"gid://shopify/{shown[:1].upper()}{shown[1:]}/{self._next()}"


class _ShopifyCall:
    """The root of one request: a method for each field of ``Query`` and ``Mutation``."""

    def __init__(self, shop: ShopifyBulk, limit: int) -> None:
        self._shop, self._limit = shop, limit

    def node(self, _: Any, id: str) -> Payload | None:  # noqa: A002  as the schema has it
        return self._shop.asked_for(id)

    bulkOperation = node  # noqa: N815  as the schema has it

    def currentBulkOperation(self, _: Any, type: str) -> Payload | None:  # noqa: A002, N802  as the schema has it
        latest = next(reversed(self._shop.jobs), None)
        return self._shop.asked_for(latest) if type == "MUTATION" else None

    def stagedUploadsCreate(self, _: Any, input: list[Payload]) -> Payload:  # noqa: A002, N802  as the schema has it
        wanted = {"resource": "BULK_MUTATION_VARIABLES", "mimeType": "text/jsonl", "httpMethod": "POST"}
        for at, each in enumerate(input):
            if wrong := [name for name, value in wanted.items() if each.get(name) != value]:
                problem = {"field": ["input", str(at), wrong[0]], "message": f"{wrong[0]} must be {wanted[wrong[0]]}"}
                return {"stagedTargets": None, "userErrors": [problem]}
        return {"stagedTargets": [self._shop.stage(each["filename"]) for each in input], "userErrors": []}

    def bulkOperationRunMutation(self, _: Any, **asked: Any) -> Payload:  # noqa: N802  as the schema has it
        return self._shop.run(asked, self._limit)


@dataclass(frozen=True, slots=True)
class _Called:
    """The one field that a mutation calls, and the variables that each line must have."""

    node: FieldNode
    required: tuple[str, ...]
    fields: tuple[FieldNode, ...]


@lru_cache(maxsize=2)
def _admin_schema(*, recent: bool) -> GraphQLSchema:
    return build_schema(_SDL.format(recent="bulkOperation(id: ID!): BulkOperation" if recent else ""))


def _root_of(mutation: str) -> _Called | None:
    try:
        definitions = parse(mutation).definitions
    except GraphQLError:
        return None
    operations = [one for one in definitions if isinstance(one, OperationDefinitionNode)]
    if len(operations) != 1 or operations[0].operation != OperationType.MUTATION:
        return None
    roots = operations[0].selection_set.selections
    if len(roots) != 1 or not isinstance(root := roots[0], FieldNode) or root.selection_set is None:
        return None
    variables = operations[0].variable_definitions or ()
    required = [
        each.variable.name.value
        for each in variables
        if isinstance(each.type, NonNullTypeNode) and each.default_value is None
    ]
    fields = [each for each in root.selection_set.selections if isinstance(each, FieldNode)]
    return _Called(root, tuple(required), tuple(fields))


def _json_lines(content: bytes) -> list[Payload]:
    """The lines, which are JSON objects; none if one of them is not."""
    try:
        lines = [exact_json.loads(line) for line in content.split(b"\n") if line.strip()]
    except ValueError:
        return []
    return lines if all(isinstance(line, dict) for line in lines) else []


_INVALID_VARIABLE = "Variable $"


def _shopify_row(called: _Called, variables: Payload, new_key: Callable[[], int]) -> Row:
    if missing := [name for name in called.required if variables.get(name) is None]:
        return Row("", variables, f"{_INVALID_VARIABLE}{missing[0]} of required type was not provided")
    given = {each.name.value: value_from_ast_untyped(each.value, variables) for each in called.node.arguments or ()}
    objects = [
        value for name, value in given.items() if isinstance(value, dict) and name not in {"identifier", "handle"}
    ]
    record = objects[0] if objects else given
    for place in (given.get("identifier"), given.get("handle"), record):
        for name in _KEYS if isinstance(place, dict) else ():
            if isinstance(place, dict) and isinstance(place.get(name), str) and place[name]:
                return Row(place[name], record)
    return Row(f"without a key, {new_key()}", record)


def _result_line(called: _Called, outcome: Outcome, number: int) -> Payload:
    if (outcome.reason or "").startswith(_INVALID_VARIABLE):
        return {"errors": [{"message": outcome.reason}], "__lineNumber": number}
    error = {"field": ["input"], "message": outcome.reason, "code": "INVALID"}
    record = None if outcome.reason else outcome.row.payload | {"id": outcome.id}
    shown: Payload = {}
    for each in called.fields:
        if each.name.value == "userErrors":
            shown[_alias(each)] = [_selected(each, error)] if outcome.reason else []
        else:
            shown[_alias(each)] = None if record is None else _selected(each, record)
    return {"data": {_alias(called.node): shown}, "__lineNumber": number}


def _alias(node: FieldNode) -> str:
    return node.alias.value if node.alias else node.name.value


def _selected(node: FieldNode, members: Mapping[str, Any]) -> Payload:
    chosen = node.selection_set.selections if node.selection_set else ()
    return {_alias(each): members.get(each.name.value) for each in chosen if isinstance(each, FieldNode)}


def _not_run(code: str, message: str) -> Payload:
    return {"bulkOperation": None, "userErrors": [{"field": None, "message": message, "code": code}]}


def _busy(running: str, limit: int) -> Payload:
    if limit > 1:
        return _not_run("LIMIT_REACHED", "Bulk operations limit reached. Please try again later.")
    message = f"A bulk mutation operation for this app and shop is already in progress: {running}."
    return _not_run("OPERATION_IN_PROGRESS", message)


def _form_parts(request: PartnerRequest) -> list[tuple[str, bytes]]:
    """The names and values of ``multipart/form-data``, in their order."""
    boundary = _parameter("content-type", request.headers.get("content-type", ""), "boundary")
    parts = list[tuple[str, bytes]]()
    for part in (b"\r\n" + request.body).split(b"\r\n--" + boundary.encode())[1:-1] if boundary else ():
        head, _, value = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        lines = [line.partition(":")[::2] for line in head.decode().split("\r\n")]
        disposition = next((text for name, text in lines if name.lower() == "content-disposition"), "")
        parts.append((_parameter("content-disposition", disposition, "name"), value))
    return parts


def _parameter(header: str, value: str, name: str) -> str:
    message = Message()
    message[header] = value.strip()
    return str(message.get_param(name, "", header))


# ---- Amazon

_FEEDS = "/feeds/2021-06-30/feeds"
_DOCUMENTS = "/feeds/2021-06-30/documents"
_FILES = "/files/"
_INVALID_MESSAGE = "The provided message did not meet the schema validation requirements for a feed message."
_NEEDED = {"UPDATE": "attributes", "PARTIAL_UPDATE": "attributes", "PATCH": "patches", "DELETE": "sku"}


@dataclass(slots=True)
class _Document:
    """A document of Amazon, uploaded or made."""

    content_type: str
    content: bytes | None = None
    compressed: bool = False


class AmazonFeeds(StagedBulkJobs):
    """Amazon, Selling Partner API: feeds of the type ``JSON_LISTINGS_FEED``.

    Made from developer-docs.amazon.com/sp-api/docs/ (``feeds-api-v2021-06-30-model``, ``listings-feed-type-values``)
    and, of github.com/amzn/selling-partner-api-models, ``models/feeds-api-model/feeds_2021-06-30.json`` and
    ``schemas/feeds/``: ``listings-feed-message-schema-v2.json``, ``listings-feed-processing-report-schema-v2.json`` and
    its example.

    A report lists problems only, so nothing tells which messages of a feed with ``FATAL`` were executed ("some, none,
    or all"); that is one issue without a ``messageId``, with the message of the failure. A feed that is no JSON, or has
    no messages, ends so as well. What these documents leave open: here an upload must have the content type that its
    document was created with, and a second feed of one document executes it again. The list of feeds has the latest
    first, in one page, and does not count as a request for the state.

    Attributes:
        gzip_results: Whether reports are compressed.
        warn: A warning about a message that is accepted; None for none.
    """

    QUEUED, RUNNING, DONE, FAILED = "IN_QUEUE", "IN_PROGRESS", "DONE", "FATAL"

    def __init__(self) -> None:
        super().__init__()
        self.gzip_results = False
        self.warn: Callable[[Payload], str | None] = lambda _: None
        self._documents: dict[str, _Document] = {}
        self._reports: dict[str, str] = {}

    def step(self, request: PartnerRequest) -> Step | None:
        match request.method, request.path:
            case "POST", path if path == _DOCUMENTS:
                return "open"
            case "POST", path if path == _FEEDS:
                return "start"
            case "GET", path if path == _FEEDS or path.startswith(f"{_FEEDS}/"):
                return "state"
            case "GET", path if path.startswith(f"{_DOCUMENTS}/"):
                return "results"
        return None

    def answer(self, request: PartnerRequest) -> PartnerAnswer:
        if request.headers.get("x-amz-access-token") != self.token:
            return _amazon(403, "Unauthorized", "Access to requested resource is denied.")
        match self.step(request):
            case "open":
                return self._create_document(_object(request))
            case "start":
                return self._create_feed(_object(request))
        return self._found(request) or _amazon(404, "NotFound", "The specified resource does not exist.")

    def _found(self, request: PartnerRequest) -> PartnerAnswer | None:
        name, step = request.path.rpartition("/")[2], self.step(request)
        if request.path == _FEEDS:
            types = [one for each in request.params.get("feedTypes", []) for one in each.split(",")]
            listed = [self._feed(job) for job in reversed(self.jobs.values()) if job.asked["feedType"] in types]
            return PartnerAnswer(200, {"feeds": listed})
        if step == "state" and name in self.jobs:
            self._poll(self.jobs[name])
            return PartnerAnswer(200, self._feed(self.jobs[name]))
        if step == "results" and name in self._documents:
            compressed = {"compressionAlgorithm": "GZIP"} if self._documents[name].compressed else {}
            return PartnerAnswer(200, {"feedDocumentId": name, "url": self._signed(_FILES + name)} | compressed)
        return None

    def throttled(self) -> PartnerAnswer:
        error = {"code": "QuotaExceeded", "message": "You exceeded your quota for the requested resource."}
        return PartnerAnswer(429, {"errors": [error]}, _AT_ONCE)

    def broken(self) -> PartnerAnswer:
        return _amazon(500, "InternalFailure", "We encountered an internal error. Please try again.")

    def _document(self, document: _Document) -> str:
        name = f"amzn1.tortuga.4.eu.{self._next():08x}-3434-8222-ac12-1212121abcde.T3YUVYPGKE9BMY"
        self._documents[name] = document
        return name

    def _create_document(self, sent: Payload) -> PartnerAnswer:
        if not isinstance(sent.get("contentType"), str):
            return _amazon(400, "InvalidInput", "contentType is required")
        name = self._document(_Document(sent["contentType"]))
        self.effects.append({"kind": "opened", "job": name})
        return PartnerAnswer(201, {"feedDocumentId": name, "url": self._signed(_FILES + name)})

    def _create_feed(self, sent: Payload) -> PartnerAnswer:
        document = self._documents.get(str(sent.get("inputFeedDocumentId")))
        if sent.get("feedType") != "JSON_LISTINGS_FEED" or not sent.get("marketplaceIds"):
            return _amazon(400, "InvalidInput", "feedType or marketplaceIds is invalid")
        if document is None or document.content is None:
            return _amazon(400, "InvalidInput", "There is no content of inputFeedDocumentId")
        job = self._open(str(50_021_000_000 + self._next()), sent)
        job.content = document.content
        seller, rows, problem = _feed_rows(document.content)
        self._start(job, rows, problem)
        if job.end_state in {self.DONE, self.FAILED}:
            report = exact_json.dumps(self._report(job, seller))
            content = gzip.compress(report, mtime=0) if self.gzip_results else report
            self._reports[job.id] = self._document(_Document("application/json", content, self.gzip_results))
        return PartnerAnswer(202, {"feedId": job.id})

    def _feed(self, job: Job) -> Payload:
        created, state = f"{job.created_at:%Y-%m-%dT%H:%M:%S+00:00}", self._state(job)
        shown = {
            "feedId": job.id,
            "feedType": job.asked["feedType"],
            "marketplaceIds": job.asked["marketplaceIds"],
            "createdTime": created,
            "processingStatus": state,
        }
        if state != self.QUEUED:
            shown["processingStartTime"] = created
        if job.ended:
            shown["processingEndTime"] = created
            if job.id in self._reports:
                shown["resultFeedDocumentId"] = self._reports[job.id]
        return shown

    def _report(self, job: Job, seller: str) -> Payload:
        issues = [_issue("ERROR", "8541", str(job.failure))] if job.failure is not None else []
        refused = job.refused()
        for outcome in refused:
            code = "4002008" if outcome.row.problem else "90220"
            issues.append(_issue("ERROR", code, str(outcome.reason), outcome.row.payload))
        errors = len(issues)
        for outcome in job.outcomes:
            warning = self.warn(outcome.row.payload) if outcome.reason is None else None
            if warning is not None:
                issues.append(_issue("WARNING", "18448", warning, outcome.row.payload))
        summary = {
            "errors": errors,
            "warnings": len(issues) - errors,
            "messagesProcessed": len(job.outcomes),
            "messagesAccepted": len(job.outcomes) - len(refused),
            "messagesInvalid": len(refused),
        }
        header = {"sellerId": seller, "version": "2.0", "feedId": job.id}
        return {"header": header, "issues": issues, "summary": summary}

    def file(self, request: PartnerRequest) -> PartnerAnswer:
        name = request.path.removeprefix(_FILES)
        document = self._documents.get(name)
        if document is None:
            return _xml(404, "NoSuchKey", "The specified key does not exist.")
        if not self._valid(request):
            return _expired()
        match request.method:
            case "GET" if document.content is not None:
                return PartnerAnswer(200, document.content, {"content-type": document.content_type})
            case "PUT" if name not in self._reports.values():
                if request.headers.get("content-type") != document.content_type:
                    return _xml(403, "SignatureDoesNotMatch", "The content type is not the one that was signed.")
                document.content = request.body
                self.effects.append({"kind": "uploaded", "job": name})
                return PartnerAnswer(200)
        return _xml(405, "MethodNotAllowed", "The specified method is not allowed against this resource.")

    def changed(self, held: Payload | None, sent: Payload) -> Payload | None:
        before: Payload = dict((held or {}).get("attributes", {}))
        match sent["operationType"]:
            case "DELETE":
                return None
            case "UPDATE":
                after = sent["attributes"]
            case "PARTIAL_UPDATE":
                after = before | sent["attributes"]
            case _:
                after = before
                for patch in sent["patches"]:
                    name = patch["path"].removeprefix("/attributes/")
                    after = {key: value for key, value in after.items() if key != name}
                    if patch["op"] != "delete":
                        after[name] = patch["value"]
        return {"sku": sent["sku"], "productType": sent["productType"], "attributes": after}

    def new_id(self, job: Job) -> str:
        return f"B{self._next():09d}"


def _amazon(status: int, code: str, message: str) -> PartnerAnswer:
    return PartnerAnswer(status, {"errors": [{"code": code, "message": message, "details": ""}]})


def _issue(severity: str, code: str, message: str, about: Payload | None = None) -> Payload:
    place = {name: about[name] for name in ("messageId", "sku") if about and about.get(name)}
    return place | {"code": code, "severity": severity, "message": message}


def _feed_rows(content: bytes) -> tuple[str, list[Row], str | None]:
    """The seller and the messages of a feed, and what is wrong with all of it."""
    try:
        sent = exact_json.loads(content)
        header, messages = sent["header"], sent["messages"]
        seller, ids = header["sellerId"], [each["messageId"] for each in messages]
    except (ValueError, KeyError, TypeError):
        return "", [], "The feed is not in the format of the schema of JSON_LISTINGS_FEED."
    if header.get("version") != "2.0" or not ids or len(set(ids)) != len(ids):
        return seller, [], "The feed has another version, no messages, or a messageId that is not unique."
    return seller, [_feed_row(each) for each in messages], None


def _feed_row(message: Payload) -> Row:
    number, sku, kind = (message.get(name) for name in ("messageId", "sku", "operationType"))
    right = isinstance(number, int) and number >= 1 and isinstance(sku, str) and sku and kind in _NEEDED
    if right and message.get(_NEEDED[str(kind)]) and (kind == "DELETE" or message.get("productType")):
        return Row(str(sku), message)
    return Row(str(sku or ""), message, _INVALID_MESSAGE)
