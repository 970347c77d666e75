"""Test support for crossdock and for connector authors.

`context` builds what a stream reads with; `read` and `read_config` read and map a stream. `record` and `replay` are
transports that record and repeat the answers of an API. `crossdock.testing.contract`, `http_contract`, `acceptance`,
`target_contract` and `target_acceptance` have tests to inherit, `target_under_test` describes a target for them, and
`plugin` has fixtures for pytest. Other modules are private.

Input: a connector with examples of its records. Output: tests, and systems to run it against. It may import
`crossdock.runs`, the sandbox, and what is below them; only its plugin imports pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.testing.connector_context_and_reading import context, read, read_config
    from crossdock.testing.manual_clock import ManualClock
    from crossdock.testing.recording import record
    from crossdock.testing.replay_transport import NotRecordedError, replay

__all__ = ["ManualClock", "NotRecordedError", "context", "read", "read_config", "record", "replay"]

_HOME_OF = {
    "ManualClock": "manual_clock",
    "NotRecordedError": "replay_transport",
    "context": "connector_context_and_reading",
    "read": "connector_context_and_reading",
    "read_config": "connector_context_and_reading",
    "record": "recording",
    "replay": "replay_transport",
}


if not TYPE_CHECKING:  # type checkers would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module 'crossdock.testing' has no attribute {name!r}")
        return getattr(import_module(f"crossdock.testing.{_HOME_OF[name]}"), name)
