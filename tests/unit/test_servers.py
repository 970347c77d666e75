from __future__ import annotations

import pytest
from tests.servers import require


def test_a_missing_server_is_a_failure_in_continuous_integration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the test is skipped; an installed server is neither."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="a thing is missing"):
        require(False, "a thing")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="a thing is missing"):
        require(False, "a thing")
    require(True, "a thing")


def test_what_is_optional_may_be_missing_in_continuous_integration(monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails there as well, unless an environment variable permits the skip."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.delenv("A_THING_IS_OPTIONAL", raising=False)
    with pytest.raises(pytest.fail.Exception, match="must not skip without A_THING_IS_OPTIONAL=true"):
        require(False, "a thing", optional_by="A_THING_IS_OPTIONAL")
    monkeypatch.setenv("A_THING_IS_OPTIONAL", "true")
    with pytest.raises(pytest.skip.Exception, match="a thing is missing"):
        require(False, "a thing", optional_by="A_THING_IS_OPTIONAL")
