"""A process that spends a shared bucket, with the arguments URL FOLDER LOG WANTED; each grant is a line of its log."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from crossdock.clock import SystemClock
from crossdock.pacing.limit_estimate import LimitEstimate
from crossdock.state import SharedBucket, parse_url

RATE, BURST = 400.0, 200


def known(earlier: LimitEstimate | None) -> LimitEstimate:
    return earlier or LimitEstimate(RATE, "set", BURST, "set")


def spend(url: str, folder: Path, log: Path, wanted: int) -> None:
    with closing(SharedBucket(parse_url(url, folder), SystemClock(), "bucket", known)) as bucket, log.open("a") as out:
        while wanted > 0:
            grant = bucket.take(min(wanted, 20), 2)
            if grant.count:
                out.write(f"{grant.now!r} {grant.count}\n")
                out.flush()
            wanted -= grant.count
            time.sleep(grant.bucket_state.wait_s(grant.now, 2))


if __name__ == "__main__":
    spend(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
