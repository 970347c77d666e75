"""Jobs of an API: a file is uploaded, a job is started, and its results are fetched when it is done.

The parts are those of a stored batch. The upload has no effect and may be repeated. Before the start, the state has
stored what the answers until then gave, such as the id of the job; so after a lost answer or a kill, the state of the
job shows whether it was started.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx

from crossdock import ConfigModel
from crossdock.errors import RefusedError, UnauthorizedError
from crossdock.targets import (
    AmbiguousError,
    Answer,
    ApiTarget,
    Client,
    ExpectedRecord,
    Outcome,
    RecordShape,
    Request,
    body_of,
)
from crossdock.values import exact_json
from crossdock.values.json_paths import MISSING, found_at, text_of
from crossdock.writing.targets.api_target import explained_outcome
from crossdock.writing.targets.file_hand_over import harmless
from crossdock.writing.targets.target import HAND_OVER, STAGE
from crossdock_connectors.http_json.job_results import Result, ToldResults, results_in
from crossdock_connectors.http_json.job_settings import NAME, BulkJob, JobRequest, JobResults, JobState, names_in
from crossdock_connectors.http_json.request_templates import with_key

_PENDING, _UNKNOWN = 202, 409  # statuses of the answers of an exchange
_THROTTLED = 429
_LATER = frozenset({408, 425, 500, 502, 503, 504})
_ANY = {"accept": "*/*"}
_IN_PATH = re.compile(r"\{([^{}]+)\}")


class _EndedError(Exception):
    """An answer that is the answer of the whole exchange."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class _LackingError(RefusedError):
    """An answer of success has no value that the config keeps."""


def exchanged(
    target: ApiTarget, resource: str, config: BulkJob, client: Client, request: Request, may_leave: Callable[[], bool]
) -> Answer:
    """Send a part of a stored batch.

    Returns:
        After `STAGE`, 200 with the receipt. After the others, 202 with the receipt while the job is not done, 200 with
        its results, or 409 if it is unknown whether it was started; see `outcomes_of`. 429 if the rate is limited.

    Raises:
        NotSentError, AmbiguousError, UnauthorizedError, RefusedError: If a request fails or is refused.
    """
    kept = {NAME: request.path.removeprefix("/"), **(exact_json.loads(request.receipt) if request.receipt else {})}
    exchange = _Exchange(target, resource, config, client, kept)
    try:
        if request.method == STAGE:
            return harmless(lambda: exchange.stage(request.body or b""))
        return exchange.hand_over(is_first=request.method == HAND_OVER, may_leave=may_leave)
    except _EndedError as ended:
        return ended.answer


def outcomes_of(answer: Answer, config: BulkJob, expected: Sequence[ExpectedRecord]) -> Outcome | list[Outcome]:
    """Return what an answer of `exchanged` to the second part says of each record, or of all of them."""
    match answer.status:
        case 429:
            return explained_outcome(answer, ExpectedRecord(), RecordShape())
        case 202:
            message = f"the results of the job are not there after {config.wait_s:g} s"
            return Outcome("pending", message, _PENDING, config.poll_s, receipt=answer.body.decode())
        case 409:
            return [Outcome("undecided", body_of(answer), _UNKNOWN) for _ in expected]
    return ToldResults(body_of(answer)).outcomes(expected)


class _Exchange:
    """The requests of one part. *kept* are the values that answers gave."""

    def __init__(self, target: ApiTarget, resource: str, config: BulkJob, client: Client, kept: dict[str, Any]) -> None:
        self._target, self._resource, self._config, self._client = target, resource, config, client
        self._kept = kept
        self._place = f"{target.place}.target.resources.{resource}.job"

    def stage(self, content: bytes) -> Answer:
        for number, request in enumerate(self._config.prepare):
            self._asked(request, f"prepare.{number}")
        upload = self._config.upload
        headers = {"content-type": upload.content_type}
        if upload.form is not None:
            headers["content-type"], content = self._form(self._kept[upload.form[1:-1]], content)
        if upload.url is not None:
            self._at(self._kept[upload.url[1:-1]], upload.method, "upload", content, headers)
        else:
            self._sent(upload.method, _path(upload.path, self._kept), "upload", content, headers)
        return self._receipt(200)

    def hand_over(self, *, is_first: bool, may_leave: Callable[[], bool]) -> Answer:
        state = self._config.state
        if is_first:
            return self._start(may_leave)
        if not self._has(state):
            if self._config.if_lost == "resend":
                return self._start(may_leave)
            return _unknown("the answer to the start of the job was lost, so that the API cannot be asked for it")
        found, message = harmless(lambda: self._state(state))
        if found in state.unstarted:
            return self._start(may_leave)
        if found in state.done or found in state.failed:
            return harmless(lambda: self._results(message, has_failed=found in state.failed))
        return self._receipt(_PENDING)

    def _start(self, may_leave: Callable[[], bool]) -> Answer:
        try:
            self._asked(self._config.start, "start", may_leave)
        except _LackingError as error:  # it was started
            return _unknown(error.message)
        return self._receipt(_PENDING)

    def _state(self, request: JobState) -> tuple[str | None, str]:
        body = body_of(self._asked(request, "state"))
        said = None if request.message is None else found_at(body, request.message)
        state = found_at(body, request.state)
        if not isinstance(state, str):
            hint = f"correct {self._place}.state in the config"
            raise RefusedError(f"the answer has no text at {request.state}", where=request.path, hint=hint)
        return state, text_of(said) or "without a reason" if isinstance(said, str) else "without a reason"

    def _results(self, message: str, *, has_failed: bool) -> Answer:
        told, others = dict[str, list[Result]](by_name=[], by_place=[]), list[Result]()
        is_whole = True
        for number, each in enumerate(self._config.results):
            content = self._fetched(each, f"results.{number}")
            is_whole = is_whole and content is not None
            found = list(results_in(content or b"", each, self._target.api.max_answer_bytes))
            told["by_name" if each.record is not None else "by_place"] += [one for one in found if one[0]]
            others += [one for one in found if not one[0]]
        failure = f"the job failed: {message}" if has_failed else ""
        said = [failure or "the results of the job do not name it", *(reason for _, _, reason in others if reason)]
        facts = {
            "accepts_others": self._config.others == "accepted" and is_whole and not has_failed and not others,
            "message": "; ".join(dict.fromkeys(said)),
            "failure": failure,
        }
        return Answer(200, {}, exact_json.dumps({**told, **facts}))

    def _fetched(self, each: JobResults, what: str) -> bytes | None:
        """Return a list of results, or None if an answer has null in place of what leads to it."""
        for place, request in enumerate(each.prepare):
            if not self._has(request):
                return None
            self._asked(request, f"{what}.prepare.{place}")
        if not self._has(each):
            return None
        if each.url is None:
            return self._sent("GET", _path(each.path, self._kept), what, None, {}).body
        return self._at(self._kept[each.url[1:-1]], "GET", what, None, {}).body

    def _has(self, request: ConfigModel) -> bool:
        return all(self._kept.get(name) is not None for name in names_in(request))

    # ---- requests

    def _asked(self, request: JobRequest, what: str, may_leave: Callable[[], bool] = lambda: True) -> Answer:
        """Send *request*, and keep the values of its answer that it names."""
        texts = {name: _part(value) for name, value in self._kept.items()}
        body = request.content(texts) if request.is_post else None
        params = with_key(request.params, texts)
        pairs = [(key, text) for key, each in params.items() for text in ((each,) if isinstance(each, str) else each)]
        path = _path(request.path, self._kept) + (f"?{urlencode(pairs)}" if pairs else "")
        answer = self._judged(self._client.send(request.used_method, path, body=body, may_leave=may_leave), what)
        document = body_of(answer)
        for name, place in request.keep.items():
            value = found_at(document, place)
            if value in (None, MISSING) and isinstance(request, JobState):  # it may come later
                value = None
            elif value in (None, MISSING):
                hint = f"correct {self._place}.{what}.keep.{name} in the config"
                raise _LackingError(f"the answer has nothing at {place}", where=request.path, hint=hint)
            self._kept[name] = value
        return answer

    def _sent(self, method: str, path: str, what: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        return self._judged(self._client.send(method, path, body=body, headers={**_ANY, **headers}), what)

    def _at(self, url: Any, method: str, what: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """Send a request to an address that an answer gave; credentials only to the host of the API."""
        own, parts = urlsplit(self._target.address), urlsplit(str(url))
        host, path = f"{parts.scheme}://{parts.netloc}", parts._replace(scheme="", netloc="").geturl() or "/"
        if parts[:2] == own[:2] and path.startswith(own.path):
            return self._sent(method, path.removeprefix(own.path), what, body, headers)
        is_named = any(_is_host(parts.netloc, each) for each in self._config.hosts)
        if not is_named or parts.scheme not in {"https", own.scheme}:
            hint = f"if the API means this host, name it in {self._place}.hosts; it must be https"
            raise RefusedError(f"{what} is on another host", where=host, hint=hint)
        with closing(self._target.client_of(host)) as client:
            return self._judged(client.send(method, path, body=body, headers={**_ANY, **headers}), what)

    def _judged(self, answer: Answer, what: str) -> Answer:
        """Return an answer of success. Raises errors for others, and `_EndedError` if the rate is limited."""
        if throttled := self._target.throttled(answer):
            raise _EndedError(Answer(_THROTTLED, {"retry-after": str(throttled.retry_after_s or 0)}, b""))
        if answer.status == _THROTTLED:
            raise _EndedError(answer)
        text = answer.body.decode(errors="replace").casefold()
        if what == "start" and self._config.busy is not None and self._config.busy.casefold() in text:
            raise _EndedError(Answer(_THROTTLED, {"retry-after": str(self._config.poll_s)}, b""))
        answer = self._target.with_status(self._resource, answer)
        if answer.status < 300:
            return answer
        said = explained_outcome(answer, ExpectedRecord(), RecordShape()).message
        message = f"{what}: {said}" if str(answer.status) in said else f"{what}: {said} (HTTP {answer.status})"
        if answer.status in _LATER:
            raise AmbiguousError(message)
        if answer.status == 401:
            raise UnauthorizedError(message, where=self._target.address, hint=self._target.advice(self._resource, 401))
        hint = f"correct {self._place} in the config, or ask what the API lacks; what was not started is tried again"
        raise RefusedError(message, where=self._target.address, hint=hint)

    def _form(self, fields: Any, content: bytes) -> tuple[str, bytes]:
        """Return the media type and the body of a form with *fields* and the file."""
        data = _part(fields)
        if not isinstance(data, Mapping):
            hint = f"correct {self._place}.upload.form in the config"
            raise RefusedError("the fields of the form are no list of objects with name and value", hint=hint)
        file = (self._kept[NAME], content, self._config.upload.content_type)
        made = httpx.Request("POST", "https://form.invalid", data=data, files={"file": file})
        return made.headers["content-type"], made.read()

    def _receipt(self, status: int) -> Answer:
        return Answer(status, {}, exact_json.dumps({name: value for name, value in self._kept.items() if name != NAME}))


def _part(value: Any) -> Any:
    """Return what requests have of a kept value: a text, or an object, as which a list of fields counts."""
    if isinstance(value, list) and all(isinstance(each, dict) and each.keys() >= {"name", "value"} for each in value):
        return {str(each["name"]): text_of(each["value"]) or "" for each in value}
    return value if isinstance(value, dict) else text_of(value) or ""


def _unknown(message: str) -> Answer:
    return Answer(_UNKNOWN, {}, exact_json.dumps(message))


def _path(path: str | None, kept: Mapping[str, Any]) -> str:
    return _IN_PATH.sub(lambda place: quote(str(kept.get(place[1], place[0])), safe=""), path or "")


def _is_host(found: str, named: str) -> bool:
    """Return whether the host *found* is *named*, or below it for one such as ``*.example.com``."""
    own, wanted = found.lower(), named.lower()
    return own.endswith(wanted[1:]) if wanted.startswith("*.") else own == wanted
