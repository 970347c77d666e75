"""Settings of a resource whose records an API takes in a file, for a job that it carries out later."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from crossdock import ConfigModel, Filter
from crossdock.sources import NameForm
from crossdock.values.config_base_types import MAX_S, make_pydantic_error_at_key
from crossdock_connectors.declared_target_records import FileRecordConfig
from crossdock_connectors.http_json.pagination_settings import Place
from crossdock_connectors.http_json.request_declarations import DeclaredRequest
from crossdock_connectors.http_json.request_templates import Path, texts_in

NAME = "name"
_KEPT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?:\.[^{}]+)?\}")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]{1,5})?")
_Text = Annotated[str, Field(min_length=1)]
_Kept = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,39}$")]


def _check_host_name_form(text: str) -> str:
    if _HOST.fullmatch(text) is None:
        raise ValueError("must be the name of a host, such as files.example.com or *.example.com")
    return text


def _check_kept_value_reference_form(text: str) -> str:
    if _KEPT.fullmatch(text) is None or "." in text:
        raise ValueError("must be a value that an earlier answer gave, such as {url}")
    return text


def _refuse_reserved_name(keep: Mapping[str, str]) -> Mapping[str, str]:
    if NAME in keep:
        raise ValueError("must not have name, which is the name of the file")
    return keep


_Address = Annotated[str, AfterValidator(_check_kept_value_reference_form)]


class JobRequest(DeclaredRequest):
    """A request about a job. Its texts may have ``{name}``, the name of the file, and values that earlier ones kept."""

    method: Literal["GET", "POST", "PUT", "PATCH"] | None = None
    """The method. Default: POST with a body or a GraphQL query, otherwise GET."""
    keep: Annotated[Mapping[_Kept, Place], AfterValidator(_refuse_reserved_name)] = {}
    """Values of its answer that later requests use, by names of your choice, such as ``job: id``. Members of one are
    ``{NAME.MEMBER}``, and so are the fields of a list of objects with ``name`` and ``value``."""

    @property
    def used_method(self) -> str:
        return self.method or ("POST" if self.is_post else "GET")


class FileAddress(ConfigModel):
    """Where a file is sent, or results are read."""

    path: Path | None = None
    """The path below the base URL, such as ``/jobs/{job}/batches``."""
    url: _Address | None = None
    """In place of ``path``: the address that an answer gave, such as ``{url}``. Another host gets no credentials, and
    must be one of ``hosts``. If that answer had null there, there are no such results."""

    @model_validator(mode="after")
    def _check_one_address(self) -> Self:
        if (self.path is None) == (self.url is None):
            raise make_pydantic_error_at_key(("path",), "give either path or url")
        return self


class JobUpload(FileAddress):
    """The request that sends the file. It has no effect until the job is started."""

    method: Literal["PUT", "POST"] = "PUT"
    """The method of the request."""
    content_type: Annotated[str, Field(pattern=r"^[\w.+-]+/[\w.+-]+(; ?charset=[\w-]+)?$")]
    """The media type of the file, such as ``text/csv``."""
    form: _Address | None = None
    """The list of fields, each with ``name`` and ``value``, that an answer gave: the file is then the last field,
    ``file``, of a form (RFC 7578)."""


class JobState(JobRequest):
    """A request that tells how far the job is."""

    state: Place
    """Where its answer has the state of the job."""
    unstarted: tuple[str, ...] = ()
    """The states before the start: after a lost answer to ``start``, a job in one of them is started again."""
    done: Annotated[tuple[str, ...], Field(min_length=1)]
    """The states after which there are results."""
    failed: tuple[str, ...] = ()
    """The states of a job that has ended before all records were carried out. What no result names is in doubt."""
    message: Place | None = None
    """Where its answer says why the job failed."""

    @model_validator(mode="after")
    def _check_states(self) -> Self:
        all_of_them = [*self.unstarted, *self.done, *self.failed]
        if twice := [state for state in all_of_them if all_of_them.count(state) > 1]:
            raise make_pydantic_error_at_key(("done",), f"has {twice[0]} twice, in one of unstarted, done and failed")
        return self


class JobResults(FileAddress):
    """A list with a result for each of some records."""

    prepare: tuple[JobRequest, ...] = ()
    """Requests before, such as one whose answer has the address of the results."""
    format: Literal["csv", "json", "json_lines"]
    """The format of the results: ``csv`` with the names of the columns in the first line, in UTF-8, ``json`` or
    ``json_lines``; all of them may be compressed with gzip."""
    records: Place = ""
    """Where a document of ``json`` has the list."""
    record: Place | None = None
    """Where a result has the external id of its record."""
    number: Place | None = None
    """In place of ``record``: where a result has the number of the record in the file."""
    first_number: Annotated[int, Field(ge=0)] = 1
    """The number of the first record: 0 for an API that counts from it."""
    when: Filter | None = None
    """Which of its rows count, such as those whose severity is an error; fields are dotted paths."""
    refused: bool = False
    """Whether all of its records were refused, or not carried out."""
    reason: tuple[Place, ...] = ()
    """Where a result says why its record was refused: a record is, if there is anything there but white space,
    ``false``, ``0``, an empty list or an empty object."""

    @model_validator(mode="after")
    def _check_record_or_number(self) -> Self:
        if (self.record is None) == (self.number is None):
            raise make_pydantic_error_at_key(("record",), "give either record or number")
        return self


class BulkJob(ConfigModel):
    """A job: a file is uploaded, the job is started, and its results are fetched when it is done."""

    prepare: tuple[JobRequest, ...] = ()
    """Requests before the upload, without an effect, such as one that makes a job or an address for the upload."""
    upload: JobUpload
    """The request that sends the file."""
    start: JobRequest
    """The request that starts the job."""
    busy: _Text | tuple[_Text, ...] | None = None
    """Part of the answer to ``start`` that says that other jobs must end first, or several such parts: the job is
    started later. It counts in a 429, too, which then says nothing of the rate limit."""
    state: JobState
    """The request for the state of the job."""
    results: Annotated[tuple[JobResults, ...], Field(min_length=1)]
    """The lists of results, such as one of those that were accepted and one of those that were refused."""
    others: Literal["in_doubt", "accepted"] = "in_doubt"
    """What became of records that the results of a job which is done do not name: ``accepted`` for an API that lists
    refusals only."""
    if_lost: Literal["in_doubt", "resend"] = "in_doubt"
    """What is done after a lost answer to ``start`` if ``state`` cannot be asked without it: ``resend`` starts the job
    again, for an API where that changes nothing; otherwise a person decides."""
    hosts: tuple[Annotated[str, AfterValidator(_check_host_name_form)], ...] = ()
    """Other hosts to which files may be sent, or from which results are read, such as ``*.amazonaws.com``."""
    poll_s: Annotated[float, Field(ge=0, le=3_600)] = 10
    """Seconds between requests for the state."""
    wait_s: Annotated[float, Field(ge=0, le=MAX_S)] = 900
    """Seconds in which a run waits for the results of a job, or for others that must end first. Then it fails, and the
    next run asks again. A job that the API does not know in all of that time is in doubt."""

    @model_validator(mode="after")
    def _check_used_values_kept(self) -> Self:
        known = {NAME}
        for number, each in enumerate(self.prepare):
            _check_used_and_add_kept(("prepare", number), each, known)
        _check_used_and_add_kept(("upload",), self.upload, known)
        _check_used_and_add_kept(("start",), self.start, known)
        _check_used_and_add_kept(("state",), self.state, known)
        for number, result in enumerate(self.results):
            own = set(known)
            for place, each in enumerate(result.prepare):
                _check_used_and_add_kept(("results", number, "prepare", place), each, own)
            _check_used_and_add_kept(("results", number), result, own)
        return self


def used_kept_names(request: ConfigModel) -> Iterator[str]:
    """Yield the names of the kept values that *request* uses."""
    parts = (getattr(request, key, None) for key in ("path", "params", "body", "variables", "url", "form"))
    for text in texts_in(list(filter(None, parts))):
        yield from _KEPT.findall(text)


def _check_used_and_add_kept(place: tuple[str | int, ...], request: Any, known: set[str]) -> None:
    """Check the names that *request* uses, and add those that it keeps."""
    if unknown := [name for name in used_kept_names(request) if name not in known]:
        raise make_pydantic_error_at_key(
            place, f"uses {{{unknown[0]}}}, which is neither {{name}} nor a value of an earlier keep"
        )
    known.update(getattr(request, "keep", ()))


class JobResourceConfig(FileRecordConfig):
    """A type of record that is written in files, for jobs that the API carries out later. Records are known by name."""

    name_form: NameForm = "{namespace}:{key}"
    """How it is made of ``{namespace}`` and ``{key}``."""
    records_per_file: Annotated[int, Field(ge=1, le=20_000)] = 5_000
    """The most records of one job, which are in memory together."""
    job: BulkJob
    """How the API takes a file."""
