"""A process that spends a shared bucket, with the arguments URL FOLDER LOG WANTED; LOG gets a line for each taking."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path

from crossdock.pacing.token_bucket import LimitEstimate
from crossdock.state import SharedBucket, parse_database_url
from crossdock.values.clock import SystemClock

RATE, BURST = 400.0, 200


def estimate(earlier: LimitEstimate | None) -> LimitEstimate:
    return earlier or LimitEstimate(RATE, "set", BURST, "set")


def spend(url: str, folder: Path, log: Path, wanted: int) -> None:
    with (
        closing(SharedBucket(parse_database_url(url, folder), SystemClock(), "bucket", estimate)) as bucket,
        log.open("a") as out,
    ):
        while wanted > 0:
            taken = bucket.take_available(min(wanted, 20), 2)
            if taken.count:
                out.write(f"{taken.now!r} {taken.count}\n")
                out.flush()
            wanted -= taken.count
            time.sleep(taken.bucket_state.wait_s(taken.now, 2))


if __name__ == "__main__":
    spend(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
