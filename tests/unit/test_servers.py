from __future__ import annotations

import pytest
from tests.servers import require


def test_a_missing_server_is_a_failure_in_continuous_integration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the test is skipped; an installed server is neither."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="a thing is missing"):
        require(False, "a thing")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="a thing is not installed"):
        require(False, "a thing")
    require(True, "a thing")
