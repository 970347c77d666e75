"""What was delivered, and what is on its way: the checkpoint of every run (law 1)."""

from crossdock.state.db.database_url import parse_url
from crossdock.state.db.engine import Pin, StateUrl, create
from crossdock.state.store import State, Transaction
from crossdock.state.tables.bindings import Accepted, Binding
from crossdock.state.tables.buckets import SharedBucket
from crossdock.state.tables.content_digests import Digests
from crossdock.state.tables.dead_letters import Choice, DeadLetter, WaitingRecord
from crossdock.state.tables.file_intake import FileFacts
from crossdock.state.tables.intents import Attempt, Intent
from crossdock.state.tables.run_history import Run
from crossdock.state.tables.scheduled_runs import LeftOut, Night, Occasion
from crossdock.state.tables.scopes import Scope
from crossdock.state.tables.snapshot_history import Past, Removal

__all__ = [
    "Accepted",
    "Attempt",
    "Binding",
    "Choice",
    "DeadLetter",
    "Digests",
    "FileFacts",
    "Intent",
    "LeftOut",
    "Night",
    "Occasion",
    "Past",
    "Pin",
    "Removal",
    "Run",
    "Scope",
    "SharedBucket",
    "State",
    "StateUrl",
    "Transaction",
    "WaitingRecord",
    "create",
    "parse_url",
]
