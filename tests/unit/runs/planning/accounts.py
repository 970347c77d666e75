"""A stream of ledger accounts, which refer to each other, for tests of this package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conftest import PIN

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.connector import Context, Settings, Stream
from crossdock.delta.changed_record_reading import KeyedRecord
from crossdock.delta.fingerprint import key_hashes
from crossdock.errors import RecordError
from crossdock.platform.platform_config import Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.resources import Reference
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.state import RecordIdentity, Scope
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.raw_rows_and_records import RawBatch, Record
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.writing.targets.platform_target import PlatformTarget

HERE = Path()


class Accounts(Stream[Any]):
    """Accounts with columns K, NAME and PARENT; the mapping rejects the name ``bad``."""

    name, resource, key = "accounts", "ledger_account", ("K",)

    def pull(self, ctx: Context[Any], since: str | None) -> Iterator[RawBatch]:
        raise AssertionError("the tests pass records")

    def to_resource(self, record: Record) -> dict[str, Any]:
        row = record.row
        if row["NAME"] == "bad":
            raise RecordError("bad_value", "bad name", pointer="NAME")
        parent = Reference("ledger_account", row["PARENT"]) if row["PARENT"] else None
        return {"code": record.key, "name": row["NAME"], "type": "asset", "parentId": parent}


def bound_accounts(namespace: str = "w") -> BoundStream:
    place = SourceContext(ManualClock(), SilentProgress(), EmptyIntakeLog(), HERE, HERE, HERE)
    context: Context[Any] = Context(Settings(kind="none"), namespace, place)
    scope = Scope("platform", "ledger_account", namespace)
    return BoundStream(f"{namespace}.accounts", namespace, Accounts(), scope, context, platform_target())


def account(bound: BoundStream, key: str, parent: str | None = None, name: str = "x") -> KeyedRecord:
    record = Record(key, ({"K": key, "NAME": name, "PARENT": parent},), "a.csv", (2,))
    return KeyedRecord(record, RecordIdentity(bound.name, key, key_hashes([key])[key], 7, None, "a.csv", 2))


def platform_target() -> PlatformTarget:
    auth = {"kind": "api_key", "token": "env:NOBODY"}
    facts = {"base_url": PIN.base_url, "tenant": PIN.tenant, "auth": auth}
    return PlatformTarget(Profile.model_validate(facts, context={"folder": HERE}))
