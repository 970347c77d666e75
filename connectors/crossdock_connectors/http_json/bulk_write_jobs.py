"""Jobs of an API: a file is uploaded, a job is started, and its results are fetched when it is done.

The parts are those of a stored batch. The upload has no effect and may be repeated. Before the start, the state has
stored what the answers until then gave, such as the id of the job; so after a lost answer or a kill, the state of the
job shows whether it was started.
"""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import urlencode, urljoin, urlsplit

import httpx

from crossdock import ConfigModel
from crossdock.errors import RecordError, RefusedError, UnauthorizedError
from crossdock.pacing.answer_headers import retry_after_s, wait_stated_by_answer_s
from crossdock.reading.sources.api_requests_and_answers import parameter_pairs
from crossdock.reading.sources.path_filling_and_answered_records import columns_in_braces, fill_path
from crossdock.reading.sources.signs_of_unread_records import collect_signs_beside_empty_list
from crossdock.reading.wrappers.stream_compression import GZIP, GzipSettings, UnpackedStream
from crossdock.reading.wrappers.wrapper import UnpackingMeter
from crossdock.sources import ApiAnswer
from crossdock.targets import (
    AmbiguousError,
    Answer,
    ApiTarget,
    Client,
    ExpectedRecord,
    FileForm,
    Outcome,
    RecordShape,
    Request,
    TooLargeError,
    Update,
    body_of,
)
from crossdock.values import exact_json
from crossdock.values.json_paths import (
    MISSING,
    json_value_as_column_text,
    unescaped_pointer_part,
    value_at_pointer_or_missing,
)
from crossdock.values.web_address_checks import address_within_origin, other_origin_text_and_hint
from crossdock.writing.targets.answer_outcomes import BUSY, MOVED, UNFIT, outcome_of_busy_target, redirect_hint
from crossdock.writing.targets.api_target import outcome_of_write_with_reason
from crossdock.writing.targets.file_hand_over import run_or_raise_not_sent
from crossdock.writing.targets.target import HAND_OVER, HAND_OVER_AGAIN, STAGE, BatchItem
from crossdock_connectors.declared_target_records import file_target_resource
from crossdock_connectors.http_json.recognized_answers import REFUSED, error_members_in
from crossdock_connectors.http_json.request_templates import fill_braced_names_in_template
from crossdock_connectors.http_json.settings import HttpJsonSettings
from crossdock_connectors.http_json.target import HttpJsonTarget
from crossdock_connectors.http_json.target_settings import (
    JOB_FILE_NAME_KEY,
    BulkJob,
    FileAddress,
    JobRequest,
    JobResourceConfig,
    JobResults,
    JobState,
    TargetConfig,
    used_kept_names,
)

_MANY = 12  # digits
_NO_REASONS = frozenset({"", "0", "false", "[]", "{}"})
_HINT = "correct results in the config; the next run fetches them again"
_LIMITS = GzipSettings(kind="gzip", max_ratio=10_000_000)  # their bytes are limited
Result = tuple[str | None, bool, str]
"""The external id, or the place in the file from 0 on, of a record, or None for none; whether it was refused; why."""


def job_results_in_body(content: bytes, each: JobResults, most: int) -> Iterator[Result]:
    """Yield what *content* says, of at most *most* bytes.

    Raises:
        RefusedError: If it is not such a list.
    """
    counts = each.when.json_predicate() if each.when is not None else lambda _: True
    for row in filter(counts, _rows(_unpacked_if_gzip(content, most), each)):
        reason = next(
            filter(None, (_refusal_text(value_at_pointer_or_missing(row, place)) for place in each.reason)), ""
        )
        yield _key_of_result(row, each), each.refused or bool(reason), reason


def sign_of_next_results_page(answer: Answer, each: JobResults) -> str | None:
    """Return what in an *answer* with results tells of a next page of them, or None."""
    body = body_of(answer) if each.format == "json" else None
    read = ApiAnswer("", body, answer.status, answer.headers)
    return collect_signs_beside_empty_list(read, each.records).sign_of_next_page


def _key_of_result(row: Any, each: JobResults) -> str | None:
    found = value_at_pointer_or_missing(row, each.record or each.number or "")
    if not isinstance(found, str | int | Decimal) or found == "" or isinstance(found, bool):
        return None
    if each.number is None:
        return str(found)
    digits = json_value_as_column_text(found) or ""
    is_number = digits.isascii() and digits.isdecimal() and len(digits) < _MANY and int(digits) >= each.first_number
    return str(int(digits) - each.first_number) if is_number else None


def _unpacked_if_gzip(content: bytes, most: int) -> bytes:
    if not GZIP.magic(content):
        return content
    meter = UnpackingMeter(_LIMITS, name="the results", what="bytes of gzip")
    try:
        found = UnpackedStream(io.BytesIO(content), GZIP, meter, name="the results").read(most + 1)
    except RefusedError as error:
        raise _results_error(f"the results are damaged: {error.message}") from None
    if len(found) > most:
        raise _results_error(f"the results have more than {most:,} bytes: raise max_answer_bytes of the connection")
    return found


def _rows(content: bytes, each: JobResults) -> Iterator[Any]:
    try:
        text = content.decode("utf-8-sig")
        if each.format == "csv":
            csv.field_size_limit(max(csv.field_size_limit(), len(text)))
            rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
            column = unescaped_pointer_part((each.record or each.number or "/").removeprefix("/"))
            if column not in (rows.fieldnames or ()):
                raise _results_error(f"the results have no column {column}")
            yield from rows
        elif each.format == "json_lines":
            yield from (exact_json.loads(line) for line in text.split("\n") if line.strip())
        else:
            found = value_at_pointer_or_missing(exact_json.loads(text), each.records)
            if not isinstance(found, list):
                raise _results_error(f"the results have no list at {each.records or 'the top'}")
            yield from found
    except (csv.Error, ValueError) as error:
        raise _results_error(f"the results are not {each.format}: {error}") from None


def _results_error(message: str) -> RefusedError:
    return RefusedError(message, hint=_HINT, code="job_results_differ")


def _refusal_text(value: Any) -> str:
    """Return what a member says of a refusal; an empty text for what is empty, false or 0, also in a column."""
    text = json_value_as_column_text(value) or ""
    return "" if not value or text.strip().casefold() in _NO_REASONS else text


class JobOutcomes:
    """The results of a job, as the body of an answer has them."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._accepts_others, self._message, self._failure = body["accepts_others"], body["message"], body["failure"]
        self._by_name, self._by_place = (_group_by_key(body[key]) for key in ("by_name", "by_place"))

    def outcomes(self, expected: Sequence[ExpectedRecord]) -> list[Outcome]:
        """Return the outcome of each record of the file, in their order."""
        names = {_expected_id_or_name(each) for each in expected}
        others = [*(self._by_name.keys() - names), *(self._by_place.keys() - {str(n) for n in range(len(expected))})]
        if others:  # it cannot be known which record each of them is about
            self._accepts_others = False
            self._message = f"{self._message}, and some name no record of the file"
        return [self._outcome(place, each) for place, each in enumerate(expected)]

    def _outcome(self, place: int, expected: ExpectedRecord) -> Outcome:
        name = _expected_id_or_name(expected)
        found = [*self._by_name.get(name, ()), *self._by_place.get(str(place), ())]
        refused = [reason for is_refused, reason in found if is_refused]
        if refused and len(refused) == len(found):
            said = "; ".join(dict.fromkeys(filter(None, refused))) or self._failure
            return Outcome("rejected", said or "the job refused it without a reason", reason="rejected", receipt="")
        if refused:
            return Outcome("undecided", "the results of the job both accept and refuse it", 200, receipt="")
        if found or self._accepts_others:
            return Outcome("delivered", status=200, target_id=name, receipt="")
        return Outcome("undecided", self._message, 200, receipt="")


def _expected_id_or_name(expected: ExpectedRecord) -> str:
    return expected.target_id or expected.name or ""


def _group_by_key(results: Sequence[Sequence[Any]]) -> Mapping[str, Sequence[tuple[bool, str]]]:
    found = defaultdict[str, list[tuple[bool, str]]](list)
    for key, is_refused, reason in results:
        found[key or ""].append((is_refused, reason))
    return found


_OK, _PENDING, _DENIED, _UNKNOWN = 200, 202, 404, 409  # statuses of the answers of an exchange
_NO_CONTENT = 204
_THROTTLED = 429
_TOO_EARLY = 425  # RFC 8470, section 5.2
_GONE = frozenset({404, 410})
_OF_CONFIG = frozenset({401, 403, 404, 405, 410, *MOVED})  # refusals that hardly concern the file
_AGAIN = "the next run goes on where this one has stopped, and starts nothing twice"
_ANY = {"accept": "*/*"}


class _ExchangeEndedError(Exception):
    """An answer that is the answer of the whole exchange."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


def _ended_busy(why: str, wait_s: float) -> _ExchangeEndedError:
    return _ExchangeEndedError(Answer(BUSY, {"retry-after": str(math.ceil(wait_s))}, why.encode()))


class _KeptValueMissingError(RefusedError):
    """An answer of success has no value that the config keeps."""


class _JobUnknownError(RefusedError):
    """The API has no such job."""


def upload_or_start_or_continue_job(
    target: ApiTarget, resource: str, config: BulkJob, client: Client, request: Request, may_leave: Callable[[], bool]
) -> Answer:
    """Send a part of a stored batch.

    Returns:
        After `STAGE`, 200 with the receipt. After the others, 202 with the receipt while the job is not done, 200 with
        its results, 404 if the API says that it does not know the job, or 409 if it is unknown whether it was started;
        see `outcomes_of_job_answer`. 422 if the file or the start is refused, perhaps because of a record, 429 if the
        API limits the rate, and 423 if others must end first.

    Raises:
        NotSentError, AmbiguousError, UnauthorizedError, RefusedError: If a request fails or is refused.
    """
    kept = {
        JOB_FILE_NAME_KEY: request.path.removeprefix("/"),
        **(exact_json.loads(request.receipt) if request.receipt else {}),
    }
    exchange = _JobExchange(target, resource, config, client, kept, is_first=request.method != HAND_OVER_AGAIN)
    try:
        if request.method == STAGE:
            return run_or_raise_not_sent(lambda: exchange.send_preparations_and_upload_file(request.body or b""))
        return (
            exchange.start_job(may_leave)
            if request.method == HAND_OVER
            else exchange.start_or_read_results_by_state(may_leave)
        )
    except _ExchangeEndedError as ended:
        return ended.answer


def outcomes_of_job_answer(
    answer: Answer, config: BulkJob, expected: Sequence[ExpectedRecord]
) -> Outcome | list[Outcome]:
    """Return what an answer of `upload_or_start_or_continue_job` to the second part says of each record, or of all."""
    match answer.status:
        case 429:
            return outcome_of_write_with_reason(answer, ExpectedRecord(), RecordShape())
        case 423:  # BUSY
            return outcome_of_busy_target(answer)
        case 202:
            state = answer.headers.get("state", "started")
            message = f"the job has no results after {config.wait_s:g} s, and its last state is {state!r}"
            return Outcome("pending", message, _PENDING, config.poll_s, receipt=answer.body.decode())
        case 404 | 422:
            kind: Literal["pending", "rejected"] = "pending" if answer.status == _DENIED else "rejected"
            return Outcome(kind, body_of(answer), answer.status, config.poll_s)
        case 409:
            return [Outcome("undecided", body_of(answer), _UNKNOWN, receipt="")] * len(expected)
    return JobOutcomes(body_of(answer)).outcomes(expected)


class _JobExchange:
    """The requests of one part.

    Args:
        kept: The values that answers gave.
        is_first: Whether the job was not started before, so that a refusal shows that nothing was carried out.
    """

    def __init__(
        self,
        target: ApiTarget,
        resource: str,
        config: BulkJob,
        client: Client,
        kept: dict[str, Any],
        *,
        is_first: bool,
    ) -> None:
        self._target, self._resource, self._config, self._client = target, resource, config, client
        self._kept, self._is_first = kept, is_first
        self._place = f"{target.place}.target.resources.{resource}.job"

    def send_preparations_and_upload_file(self, content: bytes) -> Answer:
        for number, request in enumerate(self._config.prepare):
            self._send_and_store_values(request, f"prepare.{number}")
        upload = self._config.upload
        headers = {"content-type": upload.content_type}
        if upload.form is not None:
            headers["content-type"], content = self._multipart_form(self._kept_value(upload.form), content)
        self._send_or_fetch_file(upload, upload.method, "upload", content, headers)
        return self._answer_with_receipt(200)

    def start_or_read_results_by_state(self, may_leave: Callable[[], bool]) -> Answer:
        state = self._config.state
        if self._lacks_value_used_by(state):
            lost = "the answer to the start of the job was lost, so that the API cannot be asked for it"
            return self.start_job(may_leave) if self._config.if_lost == "resend" else _answer_of_undecided_job(lost)
        try:
            found, message = run_or_raise_not_sent(lambda: self._request_state(state))
        except _JobUnknownError as error:
            return Answer(
                _DENIED, {}, exact_json.dumps(f"the API does not know the job: {error.where} {error.message}")
            )
        if found in state.unstarted:
            return self.start_job(may_leave)
        if found in state.done or found in state.failed:
            return run_or_raise_not_sent(lambda: self._read_results(message, has_failed=found in state.failed))
        return self._answer_with_receipt(_PENDING, found)

    def start_job(self, may_leave: Callable[[], bool]) -> Answer:
        try:
            self._send_and_store_values(self._config.start, "start", may_leave)
        except _KeptValueMissingError as error:  # it was started
            return _answer_of_undecided_job(error.message)
        return self._answer_with_receipt(_PENDING)

    def _request_state(self, request: JobState) -> tuple[str | None, str]:
        body = body_of(self._send_and_store_values(request, "state"))
        said = None if request.message is None else value_at_pointer_or_missing(body, request.message)
        state, around = value_at_pointer_or_missing(body, request.state), request.state
        while around and not isinstance(state, str):
            around = around.rpartition("/")[0]
            if value_at_pointer_or_missing(body, around) is None:  # as GraphQL tells of a node that does not exist
                raise _JobUnknownError(f"has null at {around}", where=request.path)
        if not isinstance(state, str):
            hint = f"correct {self._place}.state in the config"
            raise RefusedError(
                f"the answer has no text at {request.state}", where=request.path, hint=hint, code="answer_misplaced"
            )
        return state, said if isinstance(said, str) and said else "without a reason"

    def _read_results(self, message: str, *, has_failed: bool) -> Answer:
        results, is_whole, unread = dict[str, list[Result]](by_name=[], by_place=[]), True, ""
        for number, each in enumerate(self._config.results):
            answer = self._fetch_results(each, f"results.{number}")
            if answer is None:
                is_whole = False
                continue
            try:
                listed = job_results_in_body(answer.body, each, self._target.api.max_answer_bytes)
                found = [] if answer.status == _NO_CONTENT else list(listed)
            except RefusedError as error:
                where, hint = f"{self._place}.results.{number}", error.hint or _AGAIN
                raise RefusedError(error.message, where=where, hint=hint, code=error.code) from None
            results["by_name" if each.record is not None else "by_place"] += found
            if (sign := sign_of_next_results_page(answer, each)) is not None:
                unread = f"; in the answer with results, {sign}, which is not read"
        failure = f"the job failed: {message}" if has_failed else ""
        facts = {
            "accepts_others": self._config.others == "accepted" and is_whole and not has_failed and not unread,
            "message": failure or f"the results of the job do not name it{unread}",
            "failure": failure,
        }
        return Answer(200, {}, exact_json.dumps({**results, **facts}))

    def _fetch_results(self, each: JobResults, what: str) -> Answer | None:
        """Return a list of results, or None if an answer has null in place of what leads to it."""
        for place, request in enumerate(each.prepare):
            if self._lacks_value_used_by(request):
                return None
            self._send_and_store_values(request, f"{what}.prepare.{place}")
        if self._lacks_value_used_by(each):
            return None
        answer = self._send_or_fetch_file(each, "GET", what)
        if answer.status not in {_OK, _NO_CONTENT}:
            raise AmbiguousError(f"{what}: HTTP {answer.status}, and no results yet", where=self._place)
        return answer

    def _lacks_value_used_by(self, request: ConfigModel) -> bool:
        """Return whether no answer gave a value that *request* uses."""
        return any(self._kept.get(name) is None for name in used_kept_names(request))

    # ---- requests

    def _send_and_store_values(
        self, request: JobRequest, what: str, may_leave: Callable[[], bool] = lambda: True
    ) -> Answer:
        """Send *request*, and keep the values of its answer that it names."""
        texts = self._template_values()
        body = request.filled_body(texts) if request.is_post else None
        params = fill_braced_names_in_template(request.params, texts)
        path = self._filled_path(request.path) + (f"?{urlencode(parameter_pairs(params))}" if params else "")
        answer = self._client.send(request.used_method, path, body=body, may_leave=may_leave)
        if isinstance(request, JobState) and answer.status in _GONE:
            raise _JobUnknownError(f"answers HTTP {answer.status}", where=request.path)
        answer = self._successful_answer_or_raise(answer, what, request.path)
        document = body_of(answer)
        if document is None and (what == "state" or (what == "start" and request.keep)):  # such as a page of a gateway
            raise AmbiguousError(f"{what}: the answer is not a JSON document", where=request.path)
        for name, place in request.keep.items():
            value = value_at_pointer_or_missing(document, place)
            if value in (None, MISSING) and isinstance(request, JobState):  # it may come later
                value = None
            elif value in (None, MISSING):
                hint = f"correct {self._place}.{what}.keep.{name} in the config"
                raise _KeptValueMissingError(f"the answer has nothing at {place}", where=request.path, hint=hint)
            self._kept[name] = value
        return answer

    def _send_or_fetch_file(
        self, place: FileAddress, method: str, what: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> Answer:
        """Send or request a file."""
        sent: Any = {"body": body, "headers": {**_ANY, **headers}}
        try:
            if place.url is None:
                path = self._filled_path(place.path)
                return self._successful_answer_or_raise(self._client.send(method, path, **sent), what, path)
            host, path, is_own = self._split_address_or_raise_if_other_host(str(self._kept_value(place.url)), what)
            with closing(self._target.client_of(host, authorized=is_own)) as client:
                answer = client.send(method, path, **sent)
                return self._successful_answer_or_raise(answer, what, host, is_own_host=is_own)
        except TooLargeError as error:
            hint = f"raise {self._target.place}.max_answer_bytes, or lower records_per_file for later files; {_AGAIN}"
            raise RefusedError(f"{what}: {error.message}", where=self._place, hint=hint, code=error.code) from None

    def _kept_value(self, name_in_braces: str) -> Any:
        return self._kept[name_in_braces[1:-1]]

    def _split_address_or_raise_if_other_host(self, url: str, what: str) -> tuple[str, str, bool]:
        """Return the host and the path of an address that an answer gave, and whether the host is that of the API."""
        try:
            address = urljoin(f"{self._target.address}/", url)
            own = address_within_origin(address, self._target.address)
        except ValueError:
            raise RefusedError(
                f"{what}: the API gave an address that cannot be read", where=self._place, code="next_address_refused"
            ) from None
        parts, is_own = urlsplit(own or address), own is not None
        host, is_named = (
            f"{parts.scheme}://{parts.netloc}",
            any(_is_allowed_host(parts.netloc, each) for each in self._config.hosts),
        )
        schemes = {"https", urlsplit(self._target.address).scheme}
        if not is_own and (not is_named or "@" in parts.netloc or parts.scheme not in schemes):
            hint = f"if the API means this host, name it in {self._place}.hosts; it must be https, without a user"
            text, hint = other_origin_text_and_hint(address, self._target.address, hint)
            raise RefusedError(f"{what} {text}", where=host.rpartition("@")[2], hint=hint, code="next_address_refused")
        return host, parts._replace(scheme="", netloc="", fragment="").geturl() or "/", is_own

    def _successful_answer_or_raise(self, answer: Answer, what: str, where: str, *, is_own_host: bool = True) -> Answer:
        """Return an answer of success. Raises errors for others, `_ExchangeEndedError` if it is sent again later."""
        if what == "start":
            self._raise_if_other_jobs_must_end(answer)
        if is_own_host and (throttled := self._target.throttled(answer)):
            raise _ExchangeEndedError(Answer(_THROTTLED, {"retry-after": str(throttled.retry_after_s or 0)}, b""))
        if is_own_host and answer.status == _THROTTLED:
            raise _ExchangeEndedError(answer)
        if answer.status == _THROTTLED:  # another host tells nothing of the rate limit of the API
            wait_s = wait_stated_by_answer_s(answer.headers, answer.body)
            raise _ended_busy(f"{what}: too many requests", self._config.poll_s if wait_s is None else wait_s)
        answer = self._target.with_status(self._resource, answer)
        if answer.status < 300:
            return answer
        judged = outcome_of_write_with_reason(answer, ExpectedRecord(), RecordShape())
        is_stated = str(answer.status) in judged.message
        message = f"{what}: {judged.message}" if is_stated else f"{what}: {judged.message} (HTTP {answer.status})"
        if judged.kind in {"in_doubt", "unavailable"} or answer.status == _TOO_EARLY:
            raise AmbiguousError(message, where=where)
        if judged.kind == "unauthorized":
            raise UnauthorizedError(
                message, where=where, hint=self._target.advice(self._resource, 401), code="credential_refused"
            )
        if what in {"upload", "start"} and self._is_first and answer.status not in _OF_CONFIG:
            raise _ExchangeEndedError(Answer(UNFIT, {}, exact_json.dumps(message)))
        advice = f"correct {self._place} in the config, or ask what the API lacks"
        if is_own_host and answer.status in MOVED:
            advice = redirect_hint(self._target.place)
        raise RefusedError(message, where=where, hint=f"{advice}; {_AGAIN}", code="job_failed")

    def _raise_if_other_jobs_must_end(self, answer: Answer) -> None:
        """Raise `_ExchangeEndedError` if the start was refused because of other jobs, whatever its status."""
        busy, text = self._config.busy or (), answer.body.decode(errors="replace").casefold()
        is_told = any(each.casefold() in text for each in ((busy,) if isinstance(busy, str) else busy))
        if is_told and self._target.with_status(self._resource, answer).status >= 300:
            wait_s = max(self._config.poll_s, retry_after_s(answer.headers) or 0.0)
            raise _ended_busy("other jobs of the API must end first", wait_s)

    def _template_values(self) -> dict[str, Any]:
        """Return what requests have of the kept values, those of members by dotted names as well."""
        texts = {name: _template_value(value) for name, value in self._kept.items()}
        parts = [(name, value) for name, value in texts.items() if isinstance(value, Mapping)]
        inner = {
            f"{name}.{key}": json_value_as_column_text(each) or ""
            for name, value in parts
            for key, each in value.items()
        }
        return texts | inner

    def _filled_path(self, path: str | None) -> str:
        named = {name: text for name, text in self._template_values().items() if isinstance(text, str)}
        values = {name: named.get(name, "") for name in columns_in_braces(path or "")}
        filled = fill_path(path or "", values)
        if filled is None:
            message = f"one of {', '.join(values)}, which an answer gave, cannot be a part of the path {path}"
            raise RefusedError(message, where=self._place, code="next_address_refused")
        return filled

    def _multipart_form(self, fields: Any, content: bytes) -> tuple[str, bytes]:
        """Return the media type and the body of a form with *fields* and the file."""
        data = _template_value(fields)
        if not isinstance(data, Mapping):
            hint = f"correct {self._place}.upload.form in the config"
            raise RefusedError(
                "the fields of the form are not a list of objects with name and value",
                hint=hint,
                code="answer_misplaced",
            )
        file = (self._kept[JOB_FILE_NAME_KEY], content, self._config.upload.content_type)
        made = httpx.Request("POST", "https://form.invalid", data=data, files={"file": file})
        return made.headers["content-type"], made.read()

    def _answer_with_receipt(self, status: int, state: str | None = None) -> Answer:
        receipt = exact_json.dumps({name: value for name, value in self._kept.items() if name != JOB_FILE_NAME_KEY})
        return Answer(status, {} if state is None else {"state": state}, receipt)


def _template_value(value: Any) -> Any:
    """Return what requests have of a kept value: a text, or an object, as which a list of fields counts."""
    if isinstance(value, list) and all(isinstance(each, dict) and each.keys() >= {"name", "value"} for each in value):
        return {str(each["name"]): json_value_as_column_text(each["value"]) or "" for each in value}
    return value if isinstance(value, dict) else json_value_as_column_text(value) or ""


def _answer_of_undecided_job(message: str) -> Answer:
    return Answer(_UNKNOWN, {}, exact_json.dumps(message))


def _is_allowed_host(found: str, named: str) -> bool:
    """Return whether the host *found* is *named*, or below it for one such as ``*.example.com``."""
    own, wanted = found.lower().removesuffix(":443"), named.lower()
    return own.endswith(wanted[1:]) if wanted.startswith("*.") else own == wanted


_PARTS = frozenset({STAGE, HAND_OVER, HAND_OVER_AGAIN})


class HttpJsonJobTarget(HttpJsonTarget):
    """Resources of jobs have stored batches; all others are those of `HttpJsonTarget`."""

    def __init__(self, config: TargetConfig, declared: Mapping[str, JobResourceConfig]) -> None:
        super().__init__(config)
        self._jobs = {name: each.job for name, each in declared.items()}
        self._forms = {name: _file_form_of_resource(name, each) for name, each in declared.items()}
        kinds = {**self.resources, **{name: form.kind for name, form in self._forms.items()}}
        self.resources = {name: kinds[name] for name in config.resources}

    # ---- requests

    def create(self, resource: str, payload: dict[str, Any]) -> Request:
        if resource not in self._forms:
            return super().create(resource, payload)
        return self._request_for_one_file_record(resource, "create", payload)

    def update(self, resource: str, target_id: str, update: Update) -> Request:
        if resource not in self._forms:
            return super().update(resource, target_id, update)
        return self._request_for_one_file_record(resource, "update", update.after)

    def delete(self, resource: str, target_id: str) -> Request:
        if resource not in self._forms:
            return super().delete(resource, target_id)
        return Request("DELETE", f"/{resource}")

    def _request_for_one_file_record(
        self, resource: str, operation: Literal["create", "update"], payload: dict[str, Any]
    ) -> Request:
        return self._forms[resource].request(operation, self.name_in(resource, payload) or "", payload)

    def stored_batch(self, resource: str, items: Sequence[BatchItem], number: int, at: datetime) -> Request:
        return self._forms[resource].batch(items, number, at.astimezone(UTC))

    def stored_size(self, resource: str, item: BatchItem) -> int:
        return self._forms[resource].size_of(item)

    def batch_name(self, resource: str, number: int, at: datetime) -> str:
        return self._forms[resource].wrapped_name(number, at.astimezone(UTC))

    def destination(self, resource: str) -> str:
        return f"{self.address} by {self._jobs[resource].start.path}"

    def look_up(self, resource: str, name: str | None, target_id: str | None) -> Request:
        if resource in self._forms:
            raise RecordError("target_failed", "a record that was written by a job cannot be looked up")
        return super().look_up(resource, name, target_id)

    def ping(self, resource: str) -> Request:
        if resource not in self._forms:
            return super().ping(resource)
        job = self._jobs[resource]
        return Request("GET", (job.prepare[0] if job.prepare else job.start).path.partition("{")[0].rstrip("/") or "/")

    # ---- answers

    def batch_outcomes(
        self, resource: str, answer: Answer, expected: Sequence[ExpectedRecord]
    ) -> Outcome | Sequence[Outcome]:
        if resource not in self._forms:
            return super().batch_outcomes(resource, answer, expected)
        return outcomes_of_job_answer(answer, self._jobs[resource], expected)

    def failed(self, resource: str, answer: ApiAnswer) -> int | None:
        if resource not in self._forms:
            return super().failed(resource, answer)
        if status := self._status_of_declared_failure(answer.body):
            return status
        return REFUSED if error_members_in(answer.body) or _has_user_errors(answer.body) else None

    # ---- sending

    def send(
        self,
        client: Client,
        resource: str,
        request: Request,
        idempotency_key: str | None = None,
        if_match: str | None = None,
        may_leave: Callable[[], bool] = lambda: True,
    ) -> Answer:
        if request.method not in _PARTS:
            return super().send(client, resource, request, idempotency_key, if_match, may_leave)
        return upload_or_start_or_continue_job(self, resource, self._jobs[resource], client, request, may_leave)


def target(settings: HttpJsonSettings) -> HttpJsonTarget | None:
    """Return the target of a connection with these settings, or None if it has none."""
    config = settings.target
    if config is None:
        return None
    declared = {name: each for name, each in config.resources.items() if isinstance(each, JobResourceConfig)}
    return HttpJsonJobTarget(config, declared) if declared else HttpJsonTarget(config)


def _file_form_of_resource(name: str, config: JobResourceConfig) -> FileForm:
    waits = config.job.wait_s
    kind = file_target_resource(name, config, config.name_form, config.records_per_file, results_within_s=waits)
    return FileForm(kind, f"{name}_{{number:6}}", config.content)


def _has_user_errors(body: Any) -> bool:
    """Return whether a mutation of GraphQL was refused, as Shopify says it."""
    data = body.get("data") if isinstance(body, dict) else None
    found = data.values() if isinstance(data, dict) else ()
    return any(isinstance(each, dict) and bool(each.get("userErrors")) for each in found)
