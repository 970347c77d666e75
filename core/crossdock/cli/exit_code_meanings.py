"""The meanings of exit codes for scripts and schedulers, from which the documentation is made."""

from __future__ import annotations

MEANINGS = {
    0: "everything is delivered or unchanged",
    1: (
        "finished, but records of the run's streams are open: rejected, waiting, pending or in doubt, whichever run"
        " read them; of `try`: some of the records it read were rejected; of `migrate rehearse`: some would be"
        " rejected, wait or need a decision"
    ),
    2: "invalid usage or config",
    3: (
        "could not run or finish: unreachable, unauthorized, locked, no state, the state of another platform, or an"
        " expected file is missing"
    ),
    4: (
        "refused for safety: a short, stale, growing or damaged file; too many removals or updates; a mapping that"
        " fails too often; a restored state; an outdated plan; of `migrate`: a closed gate, a source that has changed"
        " since the rehearsal or during a freeze check, a sign-off for which a fact is missing, a report that was"
        " changed"
    ),
    10: "`plan --detailed-exitcode` only: there is something to do",
    70: "a defect, or a tally that does not balance",
    130: "interrupted",
}
