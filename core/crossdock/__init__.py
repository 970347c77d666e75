"""crossdock moves records from legacy warehouses, shops and 3PLs onto an enterprise platform.

A connector is written with the names of this module: `Connector`, `Stream`, `Settings`, `Context`, `RawBatch`, `Record`
and the drafts of the platform's resources; `crossdock.resources` has what is in them, such as `ShippingAddress` and
`Tracking`. `crossdock.sources` has files and paged HTTP, `crossdock.targets` what a target needs, `crossdock.testing`
servers to test with. `init`, `check`, `plan` and `run` do from another program what the commands of these names do;
`run` returns a `Report` and logs to ``crossdock.run``. `ScheduleTrigger` fires in an APScheduler of the program's own
when a `Schedule` is due; an `ExecutorKind` in the entry point group ``crossdock.executors`` runs the jobs of a fleet.
A name is imported when it is first used, so that commands start fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.config.schedules import Schedule
    from crossdock.config.stream_configuration import DeclaredStream, StreamConfig
    from crossdock.connector import Connector, Context, Finding, Settings, Stream
    from crossdock.errors import CrossdockError, RecordError, RefusedError
    from crossdock.mapping import convert
    from crossdock.mapping.row_order_and_cursors import OrderBy
    from crossdock.mapping.stream_declaration import FailureLimits, Filter, GoneLimits, Repair
    from crossdock.resources import (
        Address,
        CustomerDraft,
        InventoryLotDraft,
        InvoiceDraft,
        LedgerAccountDraft,
        LineDraft,
        OrderDraft,
        ProductDraft,
        Reference,
        WarehouseBinDraft,
    )
    from crossdock.runs.init_plan_run_for_programs import init, plan, run
    from crossdock.runs.plan_result import PlanListener, PlanResult
    from crossdock.runs.run_report import Report
    from crossdock.services.fleet.executor_kinds_by_entry_point import ExecutorKind
    from crossdock.services.scheduler.apscheduler_daemon import ScheduleTrigger
    from crossdock.services.system_check.tests_of_state_platform_and_connections import CheckResult, check
    from crossdock.values.config_base_types import ConfigModel, SecretRef
    from crossdock.values.raw_rows_and_records import RawBatch, Record
    from crossdock.values.run_progress_and_messages import Progress
    from crossdock.values.run_states_and_tally import Tally

_NAMES = {
    "values.config_base_types": "ConfigModel SecretRef",
    "connector": "Connector Context Finding Settings Stream",
    "mapping.stream_declaration": "FailureLimits Filter GoneLimits Repair",
    "config.stream_configuration": "DeclaredStream StreamConfig",
    "config.schedules": "Schedule",
    "errors": "CrossdockError RecordError RefusedError",
    "mapping": "convert",
    "mapping.row_order_and_cursors": "OrderBy",
    "values.raw_rows_and_records": "RawBatch Record",
    "runs.init_plan_run_for_programs": "init plan run",
    "runs.run_report": "Report",
    "runs.plan_result": "PlanListener PlanResult",
    "services.fleet.executor_kinds_by_entry_point": "ExecutorKind",
    "services.scheduler.apscheduler_daemon": "ScheduleTrigger",
    "services.system_check.tests_of_state_platform_and_connections": "CheckResult check",
    "values.run_progress_and_messages": "Progress",
    "values.run_states_and_tally": "Tally",
    "resources": "Address CustomerDraft InventoryLotDraft InvoiceDraft LedgerAccountDraft LineDraft OrderDraft"
    " ProductDraft Reference WarehouseBinDraft",
}
_HOME_OF = {name: f"crossdock.{home}" for home, names in _NAMES.items() for name in names.split()}
_RENAMED: dict[str, str] = {}
"""Former names, with what to use instead, such as ``crossdock.sources.Api``."""

__all__ = [
    "Address", "CheckResult", "ConfigModel", "Connector", "Context", "CrossdockError", "CustomerDraft",
    "DeclaredStream", "ExecutorKind", "FailureLimits", "Filter", "Finding", "GoneLimits", "InventoryLotDraft",
    "InvoiceDraft", "LedgerAccountDraft", "LineDraft", "OrderBy", "OrderDraft", "PlanListener", "PlanResult",
    "ProductDraft", "Progress", "RawBatch", "Record", "RecordError", "Reference", "RefusedError", "Repair", "Report",
    "Schedule", "ScheduleTrigger", "SecretRef", "Settings", "Stream", "StreamConfig", "Tally", "WarehouseBinDraft",
    "check", "convert", "init", "plan", "run",
]  # fmt: skip


if not TYPE_CHECKING:  # type checkers would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            return import_module("crossdock.values.deprecated_names").resolve_deprecated_name(__name__, name, _RENAMED)
        home = _HOME_OF[name]
        return import_module(f"{home}.convert") if name == "convert" else getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})  # also what was not used yet, for help() and completion
