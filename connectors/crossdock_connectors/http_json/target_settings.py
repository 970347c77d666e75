"""Settings of a connection that is a target: its resources, requests and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from crossdock import ConfigModel, Filter
from crossdock.pacing.rate_limit_and_retry_settings import InFlight, Retry
from crossdock.sources import NameForm
from crossdock.values.config_base_types import MAX_S, differs_from_default, make_pydantic_error_at_key
from crossdock_connectors.declared_target_records import FileRecordConfig, MemberName, Members, ResourceKey
from crossdock_connectors.http_json.credential_settings import HeaderName
from crossdock_connectors.http_json.pagination_settings import Ignored, Place
from crossdock_connectors.http_json.recognized_answers import FailedAnswer, OutdatedAnswer, RepeatedAnswer
from crossdock_connectors.http_json.request_declarations import DeclaredRequest, PostedRequest
from crossdock_connectors.http_json.request_templates import Path, texts_within_value

JOB_FILE_NAME_KEY = "name"
_KEPT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(?:\.[^{}]+)?\}")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[0-9]{1,5})?")
_Text = Annotated[str, Field(min_length=1)]
_Kept = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,39}$")]


def _checked_host_name(text: str) -> str:
    if _HOST.fullmatch(text) is None:
        raise ValueError("must be the name of a host, such as files.example.com or *.example.com")
    return text


def _checked_name_in_braces(text: str) -> str:
    if _KEPT.fullmatch(text) is None or "." in text:
        raise ValueError("must be a value that an earlier answer gave, such as {url}")
    return text


def _checked_names_without_reserved(keep: Mapping[str, str]) -> Mapping[str, str]:
    if JOB_FILE_NAME_KEY in keep:
        raise ValueError("must not have name, which is the name of the file")
    return keep


_Address = Annotated[str, AfterValidator(_checked_name_in_braces)]


class JobRequest(DeclaredRequest):
    """A request about a job. Its texts may have ``{name}``, the name of the file, and values that earlier ones kept."""

    method: Literal["GET", "POST", "PUT", "PATCH"] | None = None
    """The method. Default: POST with a body or a GraphQL query, otherwise GET."""
    keep: Annotated[Mapping[_Kept, Place], AfterValidator(_checked_names_without_reserved)] = {}
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
    hosts: tuple[Annotated[str, AfterValidator(_checked_host_name)], ...] = ()
    """Other hosts to which files may be sent, or from which results are read, such as ``*.amazonaws.com``."""
    poll_s: Annotated[float, Field(ge=0, le=3_600)] = 10
    """Seconds between requests for the state."""
    wait_s: Annotated[float, Field(ge=0, le=MAX_S)] = 900
    """Seconds in which a run waits for the results of a job, or for others that must end first. Then it fails, and the
    next run asks again. A job that the API does not know in all of that time is in doubt."""

    @model_validator(mode="after")
    def _check_used_values_kept(self) -> Self:
        known = {JOB_FILE_NAME_KEY}
        for number, each in enumerate(self.prepare):
            _raise_if_names_unknown_then_add_kept(("prepare", number), each, known)
        _raise_if_names_unknown_then_add_kept(("upload",), self.upload, known)
        _raise_if_names_unknown_then_add_kept(("start",), self.start, known)
        _raise_if_names_unknown_then_add_kept(("state",), self.state, known)
        for number, result in enumerate(self.results):
            own = set(known)
            for place, each in enumerate(result.prepare):
                _raise_if_names_unknown_then_add_kept(("results", number, "prepare", place), each, own)
            _raise_if_names_unknown_then_add_kept(("results", number), result, own)
        return self


def used_kept_names(request: ConfigModel) -> Iterator[str]:
    """Yield the names of the kept values that *request* uses."""
    parts = (getattr(request, key, None) for key in ("path", "params", "body", "variables", "url", "form"))
    for text in texts_within_value(list(filter(None, parts))):
        yield from _KEPT.findall(text)


def _raise_if_names_unknown_then_add_kept(place: tuple[str | int, ...], request: Any, known: set[str]) -> None:
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


NAME, ID = "{name}", "{id}"
IN_PATH = re.compile(r"\{([A-Za-z0-9_]+)\}")
_Seconds = Annotated[float, Field(ge=0, le=MAX_S)]


def _method_and_path_pattern(methods: str, path: str) -> re.Pattern[str]:
    return re.compile(rf"({methods}) (/{path})")


_ONE = rf"[^\s?#{{}}]*{re.escape(ID)}[^\s?#{{}}]*"
_FORMS = {
    "create": (_method_and_path_pattern("POST|PUT", rf"([^\s?#{{}}]|{IN_PATH.pattern})*"), "POST, PUT", "POST /orders"),
    "update": (_method_and_path_pattern("PATCH|PUT|POST", _ONE), "PATCH, PUT, POST", f"PATCH /orders/{ID}"),
    "delete": (_method_and_path_pattern("DELETE|POST|PUT", _ONE), "DELETE, POST, PUT", f"DELETE /orders/{ID}"),
    "read": (_method_and_path_pattern("GET", _ONE), "GET", f"GET /orders/{ID}"),
}
_TOGETHER = _method_and_path_pattern("POST|PUT|PATCH|DELETE", r"[^\s?#{}]*")
_WHOLE = _method_and_path_pattern("PUT|POST", r"[^\s?#{}]*")  # of an update that names the record in its body
_IN_BODY = {"create": ("record",), "update": ("record", "changes"), "delete": ("id",), "read": ("id",)}
_Request = Annotated[
    Annotated[str, Tag("text")] | Annotated[PostedRequest, Tag("posted")],
    Discriminator(lambda value: "text" if isinstance(value, str) else "posted"),
]


class LookUpByName(DeclaredRequest):
    """A look-up of records by their external ids. ``{name}`` is in ``path`` or ``params``, or in the ``body`` or the
    ``variables`` of a POST.
    """

    records: Place | None = None
    """Where the list is in the answer; an empty text if the answer is the list. An asterisk stands for each element
    of a list, if records are a part of them: ``data.orders.edges.*.node``."""
    total: Place | None = None
    """Where the answer has the number of all records: if it is 0, the list may be missing."""
    ignore: Ignored = ()
    """Members of an answer, as dotted paths or JSON pointers, and names of headers that look like an error, a number of
    records or a next page, and are none. An empty list beside others does not say that there is no such record."""
    absent: str | None = None
    """In place of ``records``, if the answer is about one record, as that of ``read`` is: part of the body of the 404
    for a name that no record has, in upper or lower case. A 404 without it is a wrong path. An empty text takes each
    404, also that of a wrong path."""

    @model_validator(mode="after")
    def _check_look_up(self) -> Self:
        if (self.records is None) == (self.absent is None):
            raise make_pydantic_error_at_key(
                ("records",), "give either records, if it lists records, or absent, if it answers with one"
            )
        if self.total is not None and self.records is None:
            raise make_pydantic_error_at_key(("total",), "needs records")
        if not any(NAME in text for text in texts_within_value([self.path, self.params, self.body, self.variables])):
            raise make_pydantic_error_at_key(("params",), "the query does not use {name}, so it would list any record")
        return self


class BatchConfig(ConfigModel):
    """Requests that take several records, with a result for each in the answer."""

    size: Annotated[int, Field(ge=1, le=10_000)]
    """The most records of one request."""
    items: MemberName | None = None
    """The member of a request's body with the list of records; none if the body is the list."""
    results: Place = ""
    """Where an answer has the list of results; an empty text if the answer is the list."""
    by: Place | None = None
    """Where a result has the external id of its record. None if results are in the order of the records. A result for
    a contribution is found by its id."""
    status: Place | None = None
    """Where a result has an HTTP status of its own. Without it, ``failed`` of the target tells refusals; without both,
    a member ``error`` or ``errors`` of the result does."""
    record: Place | None = None
    """Where a result has what an answer about one record would be. None if the result is that."""
    id: MemberName | None = None
    """The member of a request's record with its id, beside that of ``body``, for an ``update`` or ``delete`` whose path
    has no ``{id}``: these are sent in batches, too. An ``update`` by PUT or POST needs none if the API knows records by
    ``name``."""
    numbers: tuple[Literal["id"], ...] = ()
    """``id``, if the API has it as a number."""
    atomic: bool = False
    """Whether a request that is refused as a whole, or of which each result is a refusal, has changed nothing: its
    records are sent again in smaller batches. Otherwise those of one that is refused as a whole are in doubt: they are
    sent again if the API refuses repeated ones, or looked up."""


class TargetResourceConfig(ConfigModel):
    """A type of record that can be written."""

    members: Members
    """The members of a record, by their names in the API."""
    name: Annotated[str, Field(min_length=1)] | None = None
    """The member with the external id of the record; none if the API has no such member."""
    name_form: NameForm = "{namespace}:{key}"
    """How it is made of ``{namespace}`` and ``{key}``, such as ``{key}`` where the account has no records of others."""
    name_max_length: Annotated[int, Field(ge=1, le=500)] = 100
    """The most characters of a name; a record with a longer one is a dead letter."""
    id: Literal["{name}"] | Place = "/id"
    """Where a record has the id that the API assigned: a text or a whole number. ``{name}`` if the external id is the
    id, as that of an adjustment, and answers show something else."""
    id_form: Annotated[str, Field(pattern=r"^[^{}]*\{id\}[^{}]*$")] = ID
    """How a text there ends: ``/orders/{id}/`` if it is the address of the record, on any host."""
    record: Place = ""
    """Where an answer about one record has it; an empty text if the answer is the record."""
    body: MemberName | None = None
    """The member of a request's body that has the record, such as ``order``; none if the body is the record."""
    create: _Request | None = None
    """Method and path of the request that creates a record, such as ``POST /orders``. A member in braces is sent in the
    path in place of the body: ``POST /stock/{stock_id}/adjustments``, or that of ``name``, as for an API that creates
    what does not exist: ``PUT /customers/eid:{externalId}``. Without it, records can only be completed, by streams with
    ``contributes``. A GraphQL mutation, a JSON-RPC call, or any request whose body is not the record alone is an object
    with ``path``, and ``graphql`` with ``variables`` or ``body``; so are those of the next keys."""
    update: _Request | None = None
    """Method and path of the request that changes a record, such as ``PATCH /orders/{id}``: PATCH sends the changed
    members (RFC 7396), PUT and POST all. A PUT or POST needs no ``{id}`` if the API knows records by ``name``: ``POST
    /orders/createorder``. Without it, a record is written once, and one that changes later is a dead letter."""
    delete: _Request | None = None
    """Method and path of the request that deletes or cancels a record, without a body, such as ``POST
    /orders/{id}/cancel``; ``on_gone: delete`` needs it."""
    deleted: Filter | None = None
    """How a deleted record looks where the API still shows it, such as a cancelled order; fields are dotted paths."""
    read: _Request | None = None
    """Method and path of the request that reads a record, such as ``GET /orders/{id}``; ``update`` and ``delete`` need
    it."""
    look_up: LookUpByName | Literal[False] = False
    """How a record is found by its external id; false if it cannot be."""
    idempotency_header: HeaderName | None = None
    """The header by which the API carries out a repeated request once, such as Idempotency-Key; none if it has none."""
    idempotency_member: Place | None = None
    """The member of a body by which it does so, such as idempotency_key, in place of a header."""
    accepted: bool = False
    """Whether 202 Accepted counts as delivered, because the API refuses nothing after it. Otherwise the record is
    looked up after ``settle_s`` seconds, and in doubt until it is seen."""
    shown: tuple[MemberName, ...] | None = None
    """The members that ``read`` and ``look_up`` show as they were sent; none if they show all so. Others are not
    compared, such as the code of a country where the API shows an object."""
    repeated: RepeatedAnswer | Literal["ignored"] | None = None
    """The answer by which the API refuses a second record with the same name; ``ignored`` if it answers with success
    and changes nothing, or writes the same members once more; none if it accepts one."""
    conditional: bool = False
    """Whether changes are sent with ``If-Match``, which the API honours (RFC 9110 section 13.1.1)."""
    batch: BatchConfig | None = None
    """How several records are sent in one request; none if each has its own. ``create`` is then the request for
    several."""
    compare: Mapping[str, MemberName] = {}
    """Compare-and-set: by member, the member of an update that has the value which the API should hold, such as
    ``quantity: expected_quantity``."""
    outdated: OutdatedAnswer | None = None
    """The answer by which the API refuses an update because the record has changed; 412 always says so."""

    @model_validator(mode="after")
    def _check_requests(self) -> Self:
        for key, (single, methods, example) in _FORMS.items():
            request = getattr(self, key)
            form = _TOGETHER if key != "create" and self.is_sent_in_batches(key) else single
            is_whole = key == "update" and self.name is not None and _WHOLE.fullmatch(str(request)) is not None
            if isinstance(request, str) and not is_whole and form.fullmatch(request) is None:
                raise make_pydantic_error_at_key((key,), f"must be a method ({methods}) and a path, such as {example}")
            if not isinstance(request, PostedRequest):
                continue
            needed = [_IN_BODY[key], ("id",)] if key == "update" else [_IN_BODY[key]]
            if missing := [names[0] for names in needed if not request.uses_any_placeholder(*names)]:
                places = "path, params, body or variables" if missing[0] == "id" else "body or variables"
                raise make_pydantic_error_at_key((key,), f"has no {{{missing[0]}}} in its {places}")
            if unknown := [name for name in request.record_members if name not in {*self.members, self.name}]:
                raise make_pydantic_error_at_key((key,), f"{{record.{unknown[0]}}} is none of members")
            if request.id is not None and key != "create":
                raise make_pydantic_error_at_key((key, "id"), "is for create: other requests are about a known id")
        return self

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        changed = self.update is not None or self.delete is not None
        named, is_refused = self.name is not None, isinstance(self.repeated, RepeatedAnswer)
        sure = {name for name, member in self.members.items() if member.required} | {self.name}
        missing = [name for name in self.members_in_path if name not in sure]
        has_two_keys = self.idempotency_header is not None and self.idempotency_member is not None
        for key, is_set, problem in (
            ("create", self.create is None and self.update is None, "is missing: without it, update is needed"),
            ("create", bool(missing), f"has {', '.join(missing)} in the path, which must be a required member"),
            ("read", changed and self.read is None, "is missing: an update or delete in doubt is looked up by its id"),
            ("look_up", bool(self.look_up) and not named, "needs name: the member that is asked for"),
            ("shown", not self.members.keys() >= {*(self.shown or ())}, "has a name that is not one of members"),
            ("repeated", self.repeated == "ignored" and not named, "needs name: what the API knows a record by"),
            ("repeated", is_refused and not self.look_up, "needs look_up, which finds the id"),
            ("id", self.id == NAME and not named, "needs name: the member that is the id"),
            ("id_form", self.id == NAME and differs_from_default(self, "id_form"), "needs id: the place of an address"),
            ("compare", bool(self.compare) and self.update is None, "needs update"),
            ("compare", not self.members.keys() >= self.compare.keys(), "has a key that is not one of members"),
            ("outdated", self.outdated is not None and self.update is None, "needs update"),
            ("deleted", self.deleted is not None and self.delete is None, "needs delete"),
            ("conditional", self.conditional and not changed, "needs update or delete"),
            ("idempotency_member", has_two_keys, "cannot be used with idempotency_header"),
            ("name", self.name in self.members, "holds the external id of the record: leave it out of members"),
            ("name_max_length", differs_from_default(self, "name_max_length") and not named, "needs name"),
            ("name_form", differs_from_default(self, "name_form") and not named, "needs name"),
        ):
            if is_set:
                raise make_pydantic_error_at_key((key,), problem)
        return self

    @model_validator(mode="after")
    def _check_batch(self) -> Self:
        batch, is_named = self.batch, self.name is not None
        together = [key for key in ("create", "update", "delete") if self.is_sent_in_batches(key)]
        posted = [key for key in ("create", "update", "delete") if isinstance(getattr(self, key), PostedRequest)]
        key = "idempotency_header" if self.idempotency_header is not None else "idempotency_member"
        for is_set, place, problem in (
            (bool(self.members_in_path), "create", "has a member in the path, which a batch has in its body"),
            (
                bool(posted),
                "batch",
                f"is for requests that are a method and a path, and {', '.join(posted)} is another one",
            ),
            (not together, "batch", "needs a create, or an update or delete whose path has no {id}"),
            (getattr(self, key) is not None, key, "is the key of one record, and a batch has many: declare repeated"),
            (self.conditional and together not in ([], ["create"]), "conditional", "is for changes of one record"),
            (batch is not None and batch.by is not None and not is_named, "batch", "needs name, for its key by"),
        ):
            if batch is not None and is_set:
                raise make_pydantic_error_at_key((place,), problem)
        return self

    def is_sent_in_batches(self, operation: str) -> bool:
        """Return whether requests of this kind take several records."""
        request = getattr(self, operation)
        if self.batch is None or not isinstance(request, str):
            return False
        is_named = self.batch.id is not None or (
            operation == "update" and self.name is not None and not request.startswith("PATCH ")
        )
        return operation == "create" or (operation in {"update", "delete"} and is_named and ID not in request)

    @property
    def has_graphql_or_call_requests(self) -> bool:
        """Whether requests are GraphQL mutations or calls, whose refusals are answers of success."""
        return any(isinstance(each, PostedRequest) for each in (self.create, self.update, self.delete, self.read))

    @property
    def creates_by_put(self) -> bool:
        return isinstance(self.create, str) and self.create.startswith("PUT ")

    @property
    def members_in_path(self) -> list[str]:
        return IN_PATH.findall(self.create) if isinstance(self.create, str) else []


_Resource = Annotated[
    Annotated[TargetResourceConfig, Tag("requests")] | Annotated[JobResourceConfig, Tag("job")],
    Discriminator(
        lambda value: "job" if ("job" in value if isinstance(value, Mapping) else hasattr(value, "job")) else "requests"
    ),
]


class TargetConfig(ConfigModel):
    """What makes a connection a target of streams, ``to: CONNECTION.RESOURCE``."""

    resources: Annotated[Mapping[ResourceKey, _Resource], Field(min_length=1)]
    """The types of records by name, those that others depend on first. One with ``job`` is written in files, for jobs
    of the API."""
    failed: FailedAnswer | None = None
    """How an answer of success says that a request was refused; none if refusals have a status of their own."""
    retry: Retry = Retry()
    """Retries of requests that failed in transit or with a temporary error."""
    in_flight: InFlight = 8
    """Most requests in flight, and thus most that can be in doubt after a crash."""
    kept_s: _Seconds = 86_400
    """Seconds for which the API remembers an idempotency key."""
    settle_s: _Seconds = 60
    """Seconds after which an unanswered request has either taken effect or never will."""
