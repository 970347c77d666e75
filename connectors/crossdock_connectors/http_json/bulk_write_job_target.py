"""A connection as a target, of which some resources are written by jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from crossdock.errors import RecordError
from crossdock.sources import ApiAnswer
from crossdock.targets import (
    Answer,
    Client,
    ExpectedRecord,
    FileForm,
    Outcome,
    Request,
    Update,
)
from crossdock.writing.targets.target import HAND_OVER, HAND_OVER_AGAIN, STAGE, BatchItem
from crossdock_connectors.declared_target_records import file_target_resource
from crossdock_connectors.http_json.bulk_write_job_settings import JobResourceConfig
from crossdock_connectors.http_json.bulk_write_jobs import outcomes_of_job_answer, upload_or_start_or_continue_job
from crossdock_connectors.http_json.recognized_answers import REFUSED, error_members_in
from crossdock_connectors.http_json.settings import HttpJsonSettings
from crossdock_connectors.http_json.target import HttpJsonTarget
from crossdock_connectors.http_json.target_settings import TargetConfig

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
