"""The systems that the promises of delivery are kept for: the platform, and a 3PL that is another target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.depot import open_depot, open_sandbox
from tests.chaos.exports import Exports
from tests.chaos.failing import FAILPOINTS
from tests.chaos.partner_depot import OrderExports, open_3pl, open_partner_depot
from tests.e2e.project_folder import LISTS


@dataclass(frozen=True, slots=True)
class System:
    """A target, its witness, and what is sent to it.

    Attributes:
        open: Opens an empty system in a folder; yields its witness.
        depot: Opens a warehouse whose records are sent to it; as `open_depot`.
        exports: Makes nights, and knows what must be there after them.
        streams: With files in every night.
        parents: Whether invoices wait for their customers, which are sent as well.
        path: Where invoices are sent.
        faults: The rate of each fault in `one_effect_each`.
        failpoints: At which its syncs are killed.
    """

    open: Callable[[Path], AbstractContextManager[Any]]
    depot: Callable[..., AbstractContextManager[Any]]
    exports: Callable[..., Exports]
    streams: int
    parents: bool
    path: str
    faults: Mapping[str, float]
    failpoints: Sequence[str]


PLATFORM = System(
    open=open_sandbox,
    depot=open_depot,
    exports=Exports,
    streams=3,  # customers, products, invoices
    parents=True,
    path=LISTS["invoice"],
    faults={"lost_answer": 0.05, "reset_before": 0.05, "cut_body": 0.03, "error_after_commit": 0.02},
    failpoints=list(FAILPOINTS),
)
PARTNER = System(
    open=open_3pl,
    depot=open_partner_depot,
    exports=OrderExports,
    streams=1,
    parents=False,
    path="/v1/orders",
    faults={"lost_answer": 0.08, "refused": 0.05, "unavailable": 0.02},
    failpoints=["intents_added", "committed", "sent", "settle_written", "settled", "run_finished"],  # on the way to it
)
