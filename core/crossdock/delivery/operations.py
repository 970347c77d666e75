"""What is to be done to one resource, and the intent that it becomes (law 2)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

from crossdock import wire
from crossdock.platform.target import PlatformTarget, Request
from crossdock.records import Record
from crossdock.resources import ResourceName
from crossdock.state import Binding, Intent, Scope

Kind = Literal["create", "update"]


@dataclass(frozen=True, slots=True)
class Operation:
    """A create or an update, with the record it comes from.

    Attributes:
        after: The whole payload that the target will hold.
        changes: The members to send; all of them for a create.
        binding: What the target holds now, None for a create.
    """

    kind: Kind
    stream: str
    resource: ResourceName
    scope: Scope
    record: Record
    key_hash: int
    record_fp: int
    fp_algorithm: str
    position: str | None
    after: dict[str, Any]
    changes: dict[str, Any]
    binding: Binding | None


def payload_fp(payload: dict[str, Any]) -> int:
    """128 bits of BLAKE2b over the canonical bytes of a payload."""
    return int.from_bytes(hashlib.blake2b(wire.dumps(payload), digest_size=16).digest(), "big")


def idempotency_key(tenant: str, scope: Scope, key: str, kind: str, counter: int) -> str:
    """40 hex digits of SHA-256 over what the operation is; the counter tells A -> B -> A apart."""
    facts = [tenant, scope.target, scope.resource, scope.namespace, key, kind, counter]
    return hashlib.sha256(wire.dumps(facts)).hexdigest()[:40]


def mint(operation: Operation, target: PlatformTarget, counter: int) -> Intent:
    """The intent of *operation*, with the exact bytes that every attempt will send."""
    request = _request(operation, target)
    scope, record = operation.scope, operation.record
    before = operation.binding.payload if operation.binding else None
    return Intent(
        stream=operation.stream,
        target=scope.target,
        resource=scope.resource,
        namespace=scope.namespace,
        key_hash=operation.key_hash,
        key=record.key,
        operation=operation.kind,
        counter=counter,
        idempotency_key=idempotency_key(target.profile.tenant, scope, record.key, operation.kind, counter),
        method=request.method,
        path=request.path,
        body=request.body,
        before=before,
        after=operation.after if before is not None else None,
        record_fp=operation.record_fp,
        fp_algorithm=operation.fp_algorithm,
        position=operation.position,
        raw=record.raw(),
        source=record.source,
        line=record.lines[0],
        platform_id=operation.binding.platform_id if operation.binding else None,
    )


def _request(operation: Operation, target: PlatformTarget) -> Request:
    if operation.binding is None:
        return target.create(operation.resource, operation.after)
    return target.update(operation.resource, operation.binding.platform_id, operation.changes)


def payload_after(intent: Intent) -> dict[str, Any]:
    """What the target holds once *intent* is delivered."""
    payload: dict[str, Any] = intent.after if intent.after is not None else wire.loads(intent.body or b"{}")
    return payload
