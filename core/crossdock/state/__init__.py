"""What was delivered, and what is on its way: the checkpoint of every run (law 1)."""

from crossdock.state.backlog import Choice, DeadLetter, WaitingRecord
from crossdock.state.bindings import Accepted, Binding
from crossdock.state.buckets import SharedBucket
from crossdock.state.digests import Digests
from crossdock.state.engine import Pin, StateUrl, create
from crossdock.state.intake import FileFacts
from crossdock.state.intents import Attempt, Intent
from crossdock.state.nights import LeftOut, Night, Occasion
from crossdock.state.removals import Past, Removal
from crossdock.state.runs import Run
from crossdock.state.scopes import Scope
from crossdock.state.store import State, Transaction
from crossdock.state.url import parse_url

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
