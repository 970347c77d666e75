"""Look-ups of operations in doubt at the platform, for a person who decides about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from msgspec import Struct

from crossdock.config.project.project import Project
from crossdock.errors import ConfigError, RemoteError, UnauthorizedError, UnavailableError
from crossdock.pacing import answer_headers
from crossdock.pacing.answer_headers import server_clock_lag_s, wait_stated_by_answer_s
from crossdock.pacing.request_allowance import RequestAllowance
from crossdock.reading.transport import http_answers_and_errors
from crossdock.reading.transport.http_answers_and_errors import Answer
from crossdock.runs.session_shared_by_runs import open_session
from crossdock.state import Intent, State
from crossdock.values import exact_json
from crossdock.values.clock import Clock
from crossdock.values.field_types import EXACT_DECIMAL_CONTEXT, exact_decimal_sum
from crossdock.values.texts_of_numbers_and_times import json_time_text
from crossdock.writing.delivery.operations_and_intents import payload_after_intent
from crossdock.writing.targets.answer_outcomes import ExpectedRecord, Outcome
from crossdock.writing.targets.payload_comparison import has_wanted_members
from crossdock.writing.targets.platform_target import PlatformTarget
from crossdock.writing.targets.target import GONE, Client, Request, Target, reason_if_gone_is_unproved

ATTEMPTS = 3  # of one request that the rate limit refuses
PAGES = 20
PAGE_SIZE = 1_000
BEFORE = timedelta(minutes=10)  # before the first attempt, whose time is not exact
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
OTHERS = 3  # records that are looked up before a 404 is believed, since one may have been deleted meanwhile
_NO_LOOK_UP = "to record it without a look-up, add --no-lookup"


class CandidateRecord(Struct, frozen=True):
    """A record on the platform that may be the one in doubt.

    Attributes:
        is_same: Whether every member that was sent, and that a look-up shows, has the value that was sent.
        bound_to: The record key that has this id already; None if there is none.
    """

    target_id: str
    created_at: str
    currency: str | None
    total: Decimal | None
    is_same: bool
    bound_to: str | None


class TargetLookUps:
    """The requests of one command, sent in sequence, each with a token of the rate limit."""

    def __init__(self, target: Target, client: Client, allowance: RequestAllowance, clock: Clock, state: State) -> None:
        self._target, self._client, self._allowance = target, client, allowance
        self._clock, self._state = clock, state
        self._found_last = dict[str, str]()  # ids by resource

    def look_up_record(self, resource: str, target_id: str) -> dict[str, Any] | None:
        """Return what the target holds under this id, or None. Raises RemoteError if it cannot be looked up."""
        outcome = self._look_up(resource, target_id)
        return None if outcome.kind == "absent" else outcome.held  # one that is deleted may still be shown

    def _look_up(self, resource: str, target_id: str) -> Outcome:
        """Return the outcome of a look-up, without `Outcome.held` if the target has no such record."""
        answer, outcome = self._answer_and_outcome(resource, target_id)
        reason = outcome.message or f"HTTP {answer.status}" if outcome.held is None else None
        if outcome.kind == "absent":
            reason = self._reason_if_unproved(resource, target_id, answer) if answer.status in GONE else None
        if reason is not None:
            where = self._target.look_up(resource, None, target_id).path
            raise UnavailableError(reason, where=where, code="target_unavailable")
        if outcome.held is not None:
            self._found_last[resource] = target_id
        return outcome

    def _answer_and_outcome(self, resource: str, target_id: str) -> tuple[Answer, Outcome]:
        answer = self._send(resource, self._target.look_up(resource, None, target_id))
        return answer, self._target.found(resource, answer, ExpectedRecord(target_id=target_id))

    def _reason_if_unproved(self, resource: str, target_id: str, gone: Answer) -> str | None:
        """Return why an answer of 404 does not show that a record is gone; None if another one is found."""
        others = [self._found_last[resource]] if resource in self._found_last else []
        with self._state.begin_read_only() as tx:
            bound = tx.bindings.page_of_resource_bindings(self._target.name, resource, after=None, limit=OTHERS + 1)
        others += [binding.target_id for _, binding in bound if binding.target_id != target_id][:OTHERS]
        if any(self._answer_and_outcome(resource, each)[1].held is not None for each in dict.fromkeys(others)):
            return None
        return reason_if_gone_is_unproved(self._target, resource, gone, self._send, is_doubted=bool(others))

    def look_up_candidate_or_refuse(self, intent: Intent, target_id: str) -> CandidateRecord:
        """Return the record of this id. If it is missing, or another one than that of *intent*, raise ConfigError."""
        try:
            outcome = self._look_up(intent.resource, target_id)
        except RemoteError as error:
            raise type(error)(error.message, where=error.where, hint=_NO_LOOK_UP) from error
        if outcome.held is None:
            raise ConfigError(
                f"{self._target.title} has no {_resource_noun(intent)} of this id",
                where=target_id,
                code="decision_impossible",
            )
        if difference := self._describe_difference(intent, outcome.held):
            hint = f"look at the record there; {_NO_LOOK_UP}"
            raise ConfigError(
                f"this {_resource_noun(intent)} is another record: {difference}",
                where=target_id,
                hint=hint,
                code="decision_impossible",
            )
        return self._candidate_from_found_record(intent, outcome)

    def _describe_difference(self, intent: Intent, held: dict[str, Any]) -> str:
        """Describe how *held* differs from the record of *intent*; empty if it may be the same."""
        expected = self._target.name_of(intent.resource, intent.scope.namespace, intent.identity.key)
        if expected is not None:
            resource = intent.resource
            before = self._target.name_in(resource, intent.before or {}) or expected  # another one if it is taken over
            name, member = self._target.name_in(resource, held), self._target.resources[resource].name_pointer[1:]
            return "" if name in {before, expected} else f"its {member} is {name!r}, not {expected!r}"
        if intent.operation != "create":
            return ""
        wanted = self._comparable_payload(intent)
        differing = [
            name for name, value in wanted.items() if name in held and not has_wanted_members(held[name], value)
        ]
        return f"it differs in {', '.join(differing)}" if differing else ""

    def find_possibly_created_records(self, intent: Intent) -> tuple[list[CandidateRecord], bool]:
        """Find records that may be the result of a create, the most similar first, and whether all were examined.

        A record with an external id is looked up by it. For an invoice, those of the same customer, currency and
        amount, as far as the list shows them, that were created since shortly before the first attempt are candidates.
        """
        resource, target = intent.resource, self._target
        if target.resources[resource].endpoint.look_up:
            name = target.name_of(resource, intent.scope.namespace, intent.identity.key)
            answer = self._send(resource, target.look_up(resource, name, None))
            found = target.found(resource, answer, ExpectedRecord(name=name))
            if found.kind not in {"found", "absent", "removed"}:
                raise UnavailableError(
                    found.message or f"HTTP {answer.status}", where=target.address, code="target_unavailable"
                )
            return [] if found.held is None else [self._candidate_from_found_record(intent, found)], True
        if not isinstance(target, PlatformTarget):
            return [], False
        since = self._earliest_creation_time(intent, target)
        cursor, similar = None, list[CandidateRecord]()
        for _ in range(PAGES) if intent.attempts else count():  # it may be as old as any
            text = json_time_text(since)
            listed, cursor = self._list_page(resource, target.list_page_request(resource, text, cursor, PAGE_SIZE))
            similar += [
                self._candidate_from_found_record(intent, Outcome("found", target_id=each["id"], held=each))
                for each in listed
                if _is_similar_invoice(intent, each, since)
            ]
            if cursor is None:
                break
        similar = [each for each in similar if each.total is not None or each.bound_to is None]
        return sorted(
            similar, key=lambda each: (not each.is_same, each.bound_to is not None, each.created_at)
        ), cursor is None

    def _earliest_creation_time(self, intent: Intent, target: PlatformTarget) -> datetime:
        """Return when the platform can have made the record of *intent* at the earliest, by its own clock.

        One that this state has not sent may be of another state, or of this one before it was restored.
        """
        if not intent.attempts:
            with self._state.begin_read_only() as tx:
                remembered = tx.runs.newest_change_in_backup() if tx.runs.is_state_restored() else None
            return EARLIEST if remembered is None else remembered
        ping = self._send(intent.resource, target.ping(intent.resource))
        behind_s = server_clock_lag_s(ping.headers, self._clock.now().timestamp()) or 0
        return (intent.first_sent_at or self._clock.now()) - BEFORE - timedelta(seconds=behind_s)

    def _candidate_from_found_record(self, intent: Intent, found: Outcome) -> CandidateRecord:
        held, target_id = found.held or {}, found.target_id or ""
        with self._state.begin_read_only() as tx:
            owners = tx.bindings.records_of_target_ids(intent.scope.target, intent.resource, [target_id])
            bound = next((f"{namespace}:{key}" for _, namespace, _, key in owners), None)
        created, currency = held.get("createdAt"), held.get("currency")
        return CandidateRecord(
            target_id,
            created if isinstance(created, str) else "",
            currency if isinstance(currency, str) else None,
            _invoice_total(held),
            is_same=has_wanted_members(held, self._comparable_payload(intent)),
            bound_to=bound,
        )

    def _comparable_payload(self, intent: Intent) -> dict[str, Any]:
        return self._target.resources[intent.resource].comparable(payload_after_intent(intent))

    def _list_page(self, resource: str, request: Request) -> tuple[list[dict[str, Any]], str | None]:
        answer = self._send(resource, request)
        try:
            body = exact_json.loads(answer.body) if answer.status == 200 else None
        except ValueError:
            body = None
        listed = body.get("data") if isinstance(body, dict) else None
        if not isinstance(listed, list) or not isinstance(body, dict):
            raise UnavailableError(
                f"answered a list with HTTP {answer.status}", where=request.path, code="target_unavailable"
            )
        cursor = body.get("nextCursor")
        records = [each for each in listed if isinstance(each, dict) and isinstance(each.get("id"), str)]
        return records, cursor if isinstance(cursor, str) and cursor else None

    def _send(self, resource: str, request: Request) -> Answer:
        for _ in range(ATTEMPTS):
            while not (tokens := self._allowance.take_available(1)):
                self._clock.sleep(self._allowance.wait_s())
            answer = self._target.send(self._client, resource, request)
            self._allowance.record_answer(
                tokens[0],
                accepted=answer.status != 429,
                headers=answer_headers.read_rate_limit_headers(answer.headers),
                retry_after_s=wait_stated_by_answer_s(answer.headers, answer.body),
            )
            if answer.status in {401, 403}:
                problem = http_answers_and_errors.parse_error_answer(answer.status, answer.body)
                message = f"may not be read: {problem.message[: http_answers_and_errors.SHOWN]} (HTTP {answer.status})"
                raise UnauthorizedError(message, where=request.path.partition("?")[0], code="target_forbidden")
            if answer.status != 429:
                return answer
        raise UnavailableError("too many requests; try again later", where=request.path, code="target_unavailable")


@contextmanager
def open_look_ups_at_target(project: Project, clock: Clock, target_name: str) -> Iterator[TargetLookUps]:
    """Open look-ups at one target while this process holds the state, which stores the tokens taken."""
    with open_session(project, clock, attempt=None) as session:
        target = session.targets.get(target_name)
        if target is None:
            hint = "add the connection again, or add --no-lookup"
            raise ConfigError(f"the config has no target {target_name!r}", hint=hint, code="target_unknown")
        allowance = RequestAllowance(clock, session.bucket(target), priority="live")
        try:
            with closing(target.client()) as client:
                yield TargetLookUps(target, client, allowance, clock, session.state)
        finally:
            with session.state.begin() as tx:
                tx.buckets.put(target.name, allowance.bucket_state)


def _resource_noun(intent: Intent) -> str:
    return intent.resource.replace("_", " ")


def _is_similar_invoice(intent: Intent, held: dict[str, Any], since: datetime) -> bool:
    """Return whether *held* may have the same customer, currency and amount, and was not created before *since*.

    What a list does not show of its records is no difference.
    """
    wanted, total = payload_after_intent(intent), _invoice_total(held)
    for name in ("customerId", "currency"):
        if isinstance(held.get(name), str) and held[name] != wanted.get(name):
            return False
    try:
        created = datetime.fromisoformat(held["createdAt"])
    except (KeyError, TypeError, ValueError):
        created = since
    return (created.tzinfo is None or created >= since) and total in {None, _invoice_total(wanted)}


def _invoice_total(payload: dict[str, Any]) -> Decimal | None:
    items = payload.get("items")
    if not isinstance(items, list) or not items:
        return None
    try:
        return exact_decimal_sum(
            EXACT_DECIMAL_CONTEXT.multiply(Decimal(item["quantity"]), Decimal(item["unitPrice"])) for item in items
        )
    except (KeyError, TypeError, ArithmeticError):
        return None
