"""The servers against whatever bytes there are: ``pytest tests/long/test_serving.py``, some minutes."""

from __future__ import annotations

import pytest
from tests.integration.serving.test_guarded_connections import Web, limits, survive_anything, web

__all__ = ["web"]  # a fixture


@limits(header_s=5.0, body_s=5.0)
def test_no_bytes_break_a_server_for_long(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """As in the short form, with more sequences."""
    survive_anything(web, 20_000)
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []
