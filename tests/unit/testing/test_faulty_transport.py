"""A transport that answers some requests with faults."""

from __future__ import annotations

import httpx
import pytest

from crossdock.testing.httpx_test_transports import FAULTY_ANSWERS, RequestRecorder, transport_with_faults

GOOD = httpx.MockTransport(lambda request: httpx.Response(200, json=[1], headers={"link": "<x>"}))


@pytest.mark.parametrize("fault", FAULTY_ANSWERS)
def test_only_the_wanted_requests_fail(fault: str) -> None:
    """Those before and after have the proper answer, and every request reaches the transport."""
    recorded = RequestRecorder(GOOD)
    answers: list[httpx.Response | None] = []
    with httpx.Client(
        transport=transport_with_faults(recorded, fault, 1, 1, ["hunter22"]), base_url="https://a.example"
    ) as client:
        for _ in range(3):
            try:
                answers.append(client.get("/"))
            except httpx.RemoteProtocolError:
                answers.append(None)
    first, failed, last = answers
    assert first is not None
    assert last is not None
    assert first.json() == last.json() == [1]
    assert failed is None or (failed.status_code, failed.content) != (200, first.content)
    assert failed is None or failed.status_code < 400 or "hunter22" in failed.text
    assert len(recorded.requests) == 3
