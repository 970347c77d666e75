"""Reads all pages of a vendor of `tests.benchmarks.sources_server` with crossdock; prints how many there were.

The rate limit is kept in a file for the next run, as a run keeps it in its state.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from crossdock.reading.sources.api_declaration import Api
from crossdock.reading.sources.paginated_api_client import ApiClient
from crossdock.reading.sources.pagination import GraphQLConnection, LinkHeader
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.values.clock import SystemClock
from crossdock.values.run_progress_and_messages import SilentProgress

QUERY = "query($after: String) { orders(after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }"


def read(kind: str, port: str, kept: Path) -> int:
    run = SourceContext(SystemClock(), SilentProgress(), EmptyIntakeLog(), Path(), Path(), Path())
    if kept.exists():
        run.limits["shop"] = pickle.loads(kept.read_bytes())
    with ApiClient(Api(f"http://127.0.0.1:{port}"), run, "shop") as api:
        if kind == "graphql":
            pages = api.pages("/graphql", graphql=QUERY, paginator=GraphQLConnection("/data/orders"))
        else:
            pages = api.pages("/orders", paginator=LinkHeader())
        number = sum(1 for _ in pages)
        kept.write_bytes(pickle.dumps(api.allowance.bucket_state))
    return number


if __name__ == "__main__":
    print(read(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
