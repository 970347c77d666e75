"""`Client`: the platform's resources as attributes, with the operations on each type, and `ProblemError`.

A request is repeated, with the same bytes and the same idempotency key, until it is answered.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Self, TypeVar
from urllib.parse import quote

import httpx
from msgspec import Struct, field
from pydantic import TypeAdapter, ValidationError

from crossdock.errors import ConfigError, RemoteError, UnavailableError
from crossdock.pacing.answer_headers import retry_after_s
from crossdock.pacing.backoff import jittered_backoff_pause_s
from crossdock.platform.client.response_models import (
    Entry,
    Stored,
    StoredCustomer,
    StoredInventoryLot,
    StoredInvoice,
    StoredLedgerAccount,
    StoredMovement,
    StoredOrder,
    StoredProduct,
    StoredWarehouseBin,
)
from crossdock.platform.platform_config import PATHS
from crossdock.printable import printable
from crossdock.reading.transport import http_answers_and_errors
from crossdock.reading.transport.connector_http_client import (
    AnswerLimits,
    httpx_errors_as_unavailable,
    make_httpx_client_with_limits,
)
from crossdock.reading.transport.http_answers_and_errors import UnreadableError
from crossdock.reading.transport.http_auth import BearerAuth
from crossdock.resources import (
    Customer,
    InventoryLot,
    Invoice,
    LedgerAccount,
    Order,
    Product,
    ResourceModel,
    WarehouseBin,
)
from crossdock.values import exact_json, web_address_checks
from crossdock.values.clock import Clock, SystemClock
from crossdock.values.field_types import is_valid_target_id
from crossdock.values.texts_of_numbers_and_times import json_time_text


@dataclass(frozen=True, slots=True)
class FieldError:
    """One member of a request that the platform refuses. *pointer* has fragment form: ``#/items/0/quantity``."""

    pointer: str
    detail: str


class ProblemError(RemoteError):
    """The platform refused the request, and answered with a problem document (RFC 9457) or with any other error.

    Attributes:
        status: The HTTP status, 300 to 599.
        kind: URI of the problem type, ``about:blank`` by default.
        errors: The members that are wrong, at most 100.
    """

    code = "answer_refused"

    def __init__(self, status: int, body: bytes, *, where: str, hint: str | None = None) -> None:
        problem = http_answers_and_errors.parse_error_answer(status, body)
        super().__init__(f"HTTP {status}: {problem.message}", where=where, hint=hint)
        self.status = status
        self.kind = problem.kind
        self.errors = tuple(_field_errors(body))


def _field_errors(body: bytes) -> list[FieldError]:
    try:
        document: Any = exact_json.loads(body)
    except ValueError:
        return []
    errors = document.get("errors") if isinstance(document, dict) else None
    found = [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return [
        FieldError(
            _shortened_printable_text(each.get("pointer"), http_answers_and_errors.MAX_POINTER),
            _shortened_printable_text(each.get("detail"), http_answers_and_errors.SHOWN),
        )
        for each in found[: http_answers_and_errors.MAX_ERRORS]
    ]


def _shortened_printable_text(value: object, most: int) -> str:
    return printable(value[:most]) if isinstance(value, str) else ""


_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 60.0


class RetryingJsonSender(Struct, frozen=True):
    """An HTTP client with the rules for idempotency keys and retries. *attempts* include the first."""

    http: httpx.Client
    key_header: str | None
    attempts: int
    clock: Clock
    rng: random.Random = field(default_factory=random.Random)

    def read(self, path: str, query: dict[str, str] | None = None) -> Any:
        """Send a GET request and return its JSON. Errors are as in `write`."""
        return self._json_of_response(self._send_with_retries(self.http.build_request("GET", path, params=query), None))

    def write(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        """Send a request under *key*, by default a new one, and return the JSON of the answer; None without a body.

        Raises:
            ProblemError: The platform refused the request, or all attempts.
            UnavailableError: No attempt was answered. The request may have been executed.
            RemoteError: The answer is not JSON. The request was executed.
            ValueError: If *key* is not 1 to 255 printable ASCII characters without quotation marks and backslashes.
            UnauthorizedError: If no access token is granted.
        """
        key = (str(uuid.uuid4()) if key is None else _idempotency_key_or_raise(key)) if self.key_header else None
        patch = "application/merge-patch+json" if method == "PATCH" else "application/json"
        content = None if body is None else exact_json.dumps(body)
        headers = {"content-type": patch} if content is not None else {}
        if self.key_header and key:
            headers[self.key_header] = f'"{key}"'
        return self._json_of_response(
            self._send_with_retries(self.http.build_request(method, path, content=content, headers=headers), key)
        )

    def _send_with_retries(self, request: httpx.Request, key: str | None) -> httpx.Response:
        where = f"{request.method} {request.url.path}"
        repeatable = request.method == "GET" or key is not None
        hint = f"Repeat it with idempotency_key={key!r}: it may have been carried out." if key else None
        for attempt in range(1, self.attempts + 1):
            pause = jittered_backoff_pause_s(attempt, base_s=_FIRST_PAUSE_S, cap_s=_LONGEST_PAUSE_S, rng=self.rng)
            try:
                with httpx_errors_as_unavailable():
                    response = self.http.send(request)
            except UnavailableError as error:
                if attempt == self.attempts or not repeatable or isinstance(error, UnreadableError):
                    raise UnavailableError(error.message, where=where, hint=hint, code=error.code) from None
            else:
                if response.is_success:
                    return response
                asked = retry_after_s({name.lower(): value for name, value in response.headers.items()})
                if attempt == self.attempts or not _may_repeated_request_succeed(
                    response.status_code, asked, repeatable
                ):
                    unknown = hint if response.status_code >= 500 else None
                    raise ProblemError(response.status_code, response.content, where=where, hint=unknown)
                pause += asked or 0.0
            self.clock.sleep(pause)
        raise AssertionError("unreachable: the last attempt returns or raises")

    @staticmethod
    def _json_of_response(response: httpx.Response) -> Any:
        if not response.content:
            return None
        try:
            return exact_json.loads(response.content)
        except ValueError as error:
            where = f"{response.request.method} {response.request.url.path}"
            raise RemoteError(f"the answer is not JSON: {error}", where=where, code="answer_unreadable") from None


def _may_repeated_request_succeed(status: int, asked_s: float | None, repeatable: bool) -> bool:
    """Return whether an answer is a reason to repeat a request.

    429 means that nothing happened. 503 may follow an effect, and 409 with Retry-After says that the first attempt is
    still in progress, so that only the same key makes it safe to repeat them.
    """
    return status == 429 or (repeatable and (status == 503 or (status == 409 and asked_s is not None)))


def _idempotency_key_or_raise(key: str) -> str:
    if not (1 <= len(key) <= 255 and key.isascii() and key.isprintable() and not {'"', "\\"} & set(key)):
        raise ValueError(
            "an idempotency key is 1 to 255 printable ASCII characters without quotation mark and backslash"
        )
    return key


Input = TypeVar("Input", bound=ResourceModel)
Kept = TypeVar("Kept", bound=Stored)
Answered = TypeVar("Answered", bound=ResourceModel)


class ResourceCollection(Generic[Input, Kept]):
    """The resources of one type. `RequestSender.write` lists the errors of all methods.

    An *idempotency_key* names one request. By default each call has a new one, and its own retries use it again. Give
    your own, and repeat the call with it, to be safe after a crash of your program.
    """

    def __init__(self, sender: RetryingJsonSender, path: str, model: type[Input], stored: type[Kept]) -> None:
        self._sender, self._path, self._model, self._stored = sender, path, model, stored

    def create(self, resource: Input, *, idempotency_key: str | None = None) -> Kept:
        answer = self._sender.write("POST", self._path, resource.payload(), idempotency_key)
        return parse_answer_as(self._stored, answer)

    def get(self, resource_id: str) -> Kept:
        """Return the resource with this id. `ProblemError` with status 404 is raised if there is none."""
        return parse_answer_as(self._stored, self._sender.read(self._path_of_resource(resource_id)))

    def list(
        self, *, updated_since: datetime | None = None, external_id: str | None = None, page_size: int = 100
    ) -> Iterator[Kept]:
        """Yield all resources in the order of their last change. One that changes meanwhile appears again.

        Args:
            updated_since: Only those changed after this instant, which needs a time zone.
            external_id: Only the one with this ``externalId``. Invoices have none.
            page_size: Resources of one answer, 1 to 1,000.
        """
        query = {"updatedSince": json_time_text(updated_since)} if updated_since else {}
        query |= {} if external_id is None else {"externalId": external_id}
        return self._items_of_all_pages(self._path, self._stored, query, page_size)

    def update(self, resource_id: str, changes: Mapping[str, Any], *, idempotency_key: str | None = None) -> Kept:
        """Change some members and return the whole resource. A wrong field or value is a ValueError.

        *changes* are values by field name: ``{"unit_price": Decimal("9.50")}``. None removes a member. An address is
        replaced as a whole, and so are the lines.
        """
        body = merge_patch_from_changes(self._model, changes)
        return parse_answer_as(
            self._stored, self._sender.write("PATCH", self._path_of_resource(resource_id), body, idempotency_key)
        )

    def delete(self, resource_id: str, *, idempotency_key: str | None = None) -> None:
        self._sender.write("DELETE", self._path_of_resource(resource_id), key=idempotency_key)

    def _path_of_resource(self, resource_id: str, below: str = "") -> str:
        if not is_valid_target_id(resource_id):
            raise ValueError("an id is 1 to 64 printable characters, and not a dot or two")
        return f"{self._path}/{quote(resource_id, safe='')}{below}"

    def _items_of_all_pages(
        self, path: str, model: type[Answered], query: dict[str, str], page_size: int
    ) -> Iterator[Answered]:
        cursor, asked_for = None, set[str | None]()
        while True:
            asked_for.add(cursor)
            asked = {**query, "limit": str(page_size), **({"cursor": cursor} if cursor else {})}
            page = self._sender.read(path, asked)
            data = page.get("data") if isinstance(page, dict) else None
            if not isinstance(data, list):
                raise RemoteError("the page has no list named data", where=f"GET {path}", code="answer_misplaced")
            yield from (parse_answer_as(model, each) for each in data)
            following = page.get("nextCursor")
            if not following:
                return
            if not isinstance(following, str) or following in asked_for:
                raise RemoteError(
                    "the page names no next page, or one that was read",
                    where=f"GET {path}",
                    code="next_address_refused",
                )
            cursor = following


class Invoices(ResourceCollection[Invoice, StoredInvoice]):
    def approve(self, invoice_id: str, *, idempotency_key: str | None = None) -> StoredInvoice:
        """Approve an invoice. An approved invoice is returned unchanged."""
        answer = self._sender.write("POST", self._path_of_resource(invoice_id, "/approve"), {}, idempotency_key)
        return parse_answer_as(StoredInvoice, answer)


class InventoryLots(ResourceCollection[InventoryLot, StoredInventoryLot]):
    def move(
        self, lot_id: str, *, to_bin_id: str, quantity: Decimal | int, idempotency_key: str | None = None
    ) -> StoredMovement:
        """Move a quantity of a lot to another bin. Only the *idempotency_key* distinguishes two equal movements."""
        body = {"toBinId": to_bin_id, "quantity": quantity}
        return parse_answer_as(
            StoredMovement,
            self._sender.write("POST", self._path_of_resource(lot_id, "/movements"), body, idempotency_key),
        )


class LedgerAccounts(ResourceCollection[LedgerAccount, StoredLedgerAccount]):
    def entries(self, account_id: str, *, page_size: int = 100) -> Iterator[Entry]:
        """Yield the entries of an account, oldest first."""
        return self._items_of_all_pages(self._path_of_resource(account_id, "/entries"), Entry, {}, page_size)


def parse_answer_as(model: type[Answered], answer: Any) -> Answered:
    """Parse an answer. Other members are ignored: a platform may add some. A RemoteError names members, no values."""
    try:
        return model.model_validate(answer, by_alias=True, by_name=False, extra="ignore")
    except ValidationError as error:
        names = [".".join(map(str, each["loc"])) or "the whole" for each in error.errors(include_input=False)]
        raise RemoteError(
            f"the answer is no {model.__name__}; wrong or missing: {', '.join(names[:10])}", code="answer_misplaced"
        ) from None


def merge_patch_from_changes(model: type[ResourceModel], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch (RFC 7396) of *changes*, by wire names, or raise ValueError."""
    patch: dict[str, Any] = {}
    for name, value in changes.items():
        field = model.model_fields.get(name)
        if field is None:
            known = ", ".join(model.model_fields)
            raise ValueError(f"{model.__name__} has no field {name!r}; it has {known}")
        kind: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        valid = TypeAdapter[Any](kind).validate_python(value)
        patch[field.alias or name] = _with_absent_members_null(valid)
    return patch


def _with_absent_members_null(value: Any) -> Any:
    """Make absent members of a value null, so that a merge leaves none of the old ones."""
    if isinstance(value, ResourceModel):
        fields = type(value).model_fields.items()
        return {field.alias or name: _with_absent_members_null(getattr(value, name)) for name, field in fields}
    return [each.payload() for each in value] if isinstance(value, tuple) else value


_TENANT = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class Client:
    """A synchronous client of the platform. Close it, or use it as a context manager.

    It sends one request at a time, on one connection: give each thread its own. It follows no redirects, and ignores
    proxies of the environment. Answers longer than 8 MiB are refused.

    Args:
        base_url: The address of the platform, https, or http on this machine.
        auth: An API key or access token, or an `httpx.Auth` such as `ClientCredentialsAuth`.
        paths: Paths of resources that differ from the defaults.
        idempotency_header: None for a platform without idempotency keys. Then a write is repeated after 429 only.
        attempts: Attempts for one request, the first included. After 429, 503, 409 with Retry-After, and without an
            answer it is repeated, under the same key, after the pause that the platform asks for (at most 15 minutes).
        timeout_s: Longest silence of the platform, in seconds.
        total_timeout_s: Seconds for one attempt, to the last byte of its answer.
        transport: Takes the place of the network in tests, for example an `httpx.MockTransport`.
    """

    def __init__(  # noqa: PLR0913  public keyword arguments
        self,
        base_url: str,
        tenant: str,
        auth: str | httpx.Auth,
        *,
        paths: Mapping[str, str] | None = None,
        tenant_header: str = "x-tenant-slug",
        idempotency_header: str | None = "Idempotency-Key",
        attempts: int = 6,
        timeout_s: float = 30.0,
        total_timeout_s: float = 60.0,
        transport: httpx.BaseTransport | None = None,
        clock: Clock | None = None,
    ) -> None:
        try:
            address = web_address_checks.checked_base_url_without_slash(base_url)
        except ValueError as error:
            raise ConfigError(f"the base_url {error}", code="address_invalid") from None
        if not _TENANT.fullmatch(tenant):
            raise ConfigError(
                "the tenant must be 1 to 63 letters, digits, dots, hyphens and underscores",
                code="client_settings_invalid",
            )
        if attempts < 1:
            raise ConfigError("attempts must be at least 1", code="client_settings_invalid")
        self._http = make_httpx_client_with_limits(
            address,
            headers={tenant_header: tenant, "accept": "application/json, application/problem+json"},
            auth=BearerAuth(auth) if isinstance(auth, str) else auth,
            limits=AnswerLimits(timeout_s, total_timeout_s),
            transport=transport,
        )
        sender = RetryingJsonSender(self._http, idempotency_header, attempts, clock or SystemClock())
        path = {**PATHS, **(paths or {})}
        self.invoices = Invoices(sender, path["invoice"], Invoice, StoredInvoice)
        self.customers = ResourceCollection(sender, path["customer"], Customer, StoredCustomer)
        self.products = ResourceCollection(sender, path["product"], Product, StoredProduct)
        self.orders = ResourceCollection(sender, path["order"], Order, StoredOrder)
        self.inventory_lots = InventoryLots(sender, path["inventory_lot"], InventoryLot, StoredInventoryLot)
        self.warehouse_bins = ResourceCollection(sender, path["warehouse_bin"], WarehouseBin, StoredWarehouseBin)
        self.ledger_accounts = LedgerAccounts(sender, path["ledger_account"], LedgerAccount, StoredLedgerAccount)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
