"""The log of every request to the API, in memory: the latest in full, all of them as counts by status."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, get_args

from starlette.responses import JSONResponse, Response

from crossdock.sandbox.fault_injection import FaultName
from crossdock.sandbox.problem_errors import ProblemError
from crossdock.sandbox.query_parameters import (
    LOG_LIMITS,
    SEQUENCE_NUMBERS,
    raise_if_unknown_parameter,
    raise_unless_one_of,
    whole_number_parameter,
)

_EQUAL = ("method", "credential", "idempotencyKey")  # filters that compare for equality


class RequestLog:
    def __init__(self, kept: int = 20_000) -> None:
        self._latest: deque[dict[str, object]] = deque(maxlen=kept)
        self._by_status: Counter[int] = Counter()

    def add(self, status: int, **facts: object) -> None:
        """Add a request. *status* is 0 if the connection was broken without a response."""
        self._by_status[status] += 1
        self._latest.append({"seq": self._by_status.total(), "status": status, **facts})

    def answer_query(self, query: Mapping[str, str]) -> Response:
        matches = _request_filter(query)
        total, limit = self._by_status.total(), whole_number_parameter(query, "limit", 1000, LOG_LIMITS)
        skipped = max(0, whole_number_parameter(query, "after", 0, SEQUENCE_NUMBERS) - (total - len(self._latest)))
        data = list(islice(filter(matches, islice(self._latest, skipped, None)), limit))
        return JSONResponse({"data": data, "total": total, "byStatus": dict(sorted(self._by_status.items()))})


def _request_filter(query: Mapping[str, str]) -> Callable[[Mapping[str, Any]], bool]:
    raise_if_unknown_parameter(query, "after", "limit", "status", "path", "fault", *_EQUAL)
    raise_unless_one_of(query, "fault", get_args(FaultName))
    if not query.get("path", "/").startswith("/") or not query.get("method", "GET").isupper():
        raise ProblemError(400, "path must begin with '/', and method must be in capitals.")
    status = whole_number_parameter(query, "status", 0, range(600)) if "status" in query else None
    wanted = {name: query[name].strip('"') for name in _EQUAL if name in query}

    def matches(request: Mapping[str, Any]) -> bool:
        return (
            status in {None, request["status"]}
            and request["path"].startswith(query.get("path", ""))
            and ("fault" not in query or query["fault"] in request["faults"])
            and all((request[name] or "").strip('"') == value for name, value in wanted.items())
        )

    return matches
