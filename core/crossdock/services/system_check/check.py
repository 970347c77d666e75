"""`crossdock.check`: whether a config can be used, for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crossdock.connector import Finding
from crossdock.runs.init_plan_and_run import Config, load
from crossdock.services.system_check.findings import findings_of


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What `check` found.

    Attributes:
        findings: In the order of the tests, each with its subject: ``state``, ``platform`` or the name of a connection.
    """

    findings: Sequence[tuple[str, Finding]]

    @property
    def ok(self) -> bool:
        return all(finding.ok for _, finding in self.findings)


def check(config: Config) -> CheckResult:
    """Test the state, the platform, the credentials and the sources, as ``crossdock check`` does. Nothing is changed.

    Args:
        config: As for `crossdock.run`.

    Raises:
        ConfigError: If the config is invalid.
    """
    return CheckResult(list(findings_of(load(config))))
