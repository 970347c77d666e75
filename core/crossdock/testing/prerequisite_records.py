"""Records that a test needs and does not create itself: they are created in the sandbox before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import SkipTest

from crossdock.config.project.project import Project
from crossdock.mapping.resource_types import make_platform_external_id
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.platform.platform_config import Profile
from crossdock.runs.planning.binding_csv import COLUMNS, import_bindings
from crossdock.runs.planning.references import collect_references_in_value
from crossdock.runs.stream_trial import Trial
from crossdock.sandbox.write_operations import GIVEN_ID_HEADER
from crossdock.values import exact_json
from crossdock.values.clock import SystemClock
from crossdock.values.formula_guarded_csv import write_csv_rows_guarding_formulas
from crossdock.writing.targets.platform_target import PlatformTarget

_PLENTY = 1_000_000  # units of a lot, from which movements may take some

RecordName = tuple[str, str, str]
"""Resource, namespace and key of a record."""


def referenced_records_no_trial_creates(trials: Iterable[Trial]) -> dict[RecordName, str | None]:
    """Return the records that drafts of *trials* refer or contribute to, and that none of *trials* creates.

    The value is the id that a record must have, if a stream names it by its id.
    """
    names: dict[RecordName, str | None] = {}
    created: set[RecordName] = set()
    for trial in trials:
        bound = trial.bound
        for tried in trial.records:
            own = bound.resource_type.name, bound.namespace, tried.record.key
            if not bound.stream.contributes:
                created.add(own)
            elif bound.stream.matches == "id":
                names[own] = tried.record.key_parts[0]
            else:
                names.setdefault(own)
            for each in collect_references_in_value(tried.members or {}):
                names.setdefault((each.resource, *bound.namespace_and_key_of_reference(each)))
    return {name: target_id for name, target_id in names.items() if name not in created}


def create_and_bind_prerequisites(
    project: Project, names: Mapping[RecordName, str | None], file: Path, *, at: datetime
) -> None:
    """Create a record for each of *names* at the platform, and import its binding unless it is named by its id.

    Args:
        names: Each with the id that it must have, or None for any.
        file: Where the bindings are written, as ``crossdock bindings export`` does.
    """
    given = PrerequisiteRecords(project.platform)
    ids = {name: given.create(name, target_id) for name, target_id in names.items()}
    rows = [(PLATFORM, *name, ids[name]) for name, target_id in names.items() if target_id is None]
    with file.open("w", encoding="utf-8", newline="") as out:
        write_csv_rows_guarding_formulas(out, [COLUMNS, *rows])
    targets = project.targets(SystemClock())
    with project.open_state_exclusively() as state:
        state.run_transaction(lambda tx: import_bindings(tx, file, targets, at=at))


class PrerequisiteRecords:
    """Creates records with the members that their resources need, and what these members refer to."""

    def __init__(self, platform: Profile) -> None:
        self._platform, self._number = platform, 0
        self._parents: dict[str, str] = {}

    def create(self, name: RecordName, target_id: str | None = None) -> str:
        """Create a record, with this id if one is given, and return its id."""
        resource, namespace, key = name
        self._number += 1
        body = self._members(resource, f"given-{self._number}")
        if resource != "invoice":
            body["externalId"] = make_platform_external_id(namespace, key)
        headers = {"content-type": "application/json"} | ({GIVEN_ID_HEADER: target_id} if target_id else {})
        with closing(PlatformTarget(self._platform).client()) as client:
            path = self._platform.resource_path(resource)
            answer = client.send("POST", path, body=exact_json.dumps(body), headers=headers)
        assert answer.status == 201, f"{resource} {key!r} cannot be created in the sandbox: status {answer.status}"
        created: str = exact_json.loads(answer.body)["id"]
        return created

    def _members(self, resource: str, code: str) -> dict[str, Any]:
        match resource:
            case "customer":
                return {"name": code}
            case "product":
                return {"sku": code, "name": code}
            case "warehouse_bin":
                return {"code": code, "warehouse": code}
            case "ledger_account":
                return {"code": code, "name": code, "type": "asset"}
            case "inventory_lot":
                product, place = self._shared_parent_id("product"), self._shared_parent_id("warehouse_bin")
                return {"productId": product, "binId": place, "lotNumber": code, "quantity": _PLENTY}
            case "order" | "invoice":
                line = {"productId": self._shared_parent_id("product"), "quantity": 1, "unitPrice": 1}
                sale = {"customerId": self._shared_parent_id("customer"), "currency": "EUR", "items": [line]}
                return sale | ({"placedAt": "2026-01-01T00:00:00Z"} if resource == "order" else {})
        raise SkipTest(f"the kit cannot create the {resource} that a record of the example needs")

    def _shared_parent_id(self, resource: str) -> str:
        """Return the id of the record that all records refer to which only need one."""
        if resource not in self._parents:
            self._parents[resource] = self.create((resource, "given", "parent"))
        return self._parents[resource]
