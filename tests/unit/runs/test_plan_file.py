"""Plan files: what is read of them before anything is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from crossdock.errors import ConfigError
from crossdock.runs.plan_and_apply import PlanFile
from crossdock.values import exact_json

PLAN = PlanFile(
    base_url="http://127.0.0.1:9", tenant="acme", selection=(), operations={"create": 1}, decisions="d", sources={}
)


@pytest.mark.parametrize(
    "number", ["1e400000000", "1e-400000000", "9" * 5000, "1" + "0" * 1001, "[" * 100_000, "[" * 65 + "]" * 65]
)
def test_a_number_that_takes_gigabytes_is_no_plan(tmp_path: Path, number: str) -> None:
    """A changed file is refused before any of its numbers is expanded, and so is one of too many levels."""
    path = tmp_path / "plan"
    PLAN.save(path)
    assert PlanFile.load(path) == PLAN
    path.write_bytes(
        exact_json.dumps(PLAN.model_dump(mode="json")).replace(b'"create":1', b'"create":' + number.encode())
    )
    with pytest.raises(ConfigError, match="is not a plan file"):
        PlanFile.load(path)
