"""One planted bug: what it is, and which test must find it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import SkipTest

from crossdock.errors import CrossdockError
from crossdock.testing.connector_under_test import ConnectorUnderTest

SLOW = "test_keys_and_drafts_are_the_same_in_every_process"


@dataclass(frozen=True)
class Bug:
    """A case with one bug.

    Attributes:
        what: What is wrong; bugs of several kinds of connectors may share it.
        kind: The kind of connector.
        case: The tests of the connector with the bug.
        test: The test that finds it, without ``test_``.
        says: What the message must contain: the method or the member.
        stated: Whether no other test finds it, so that only `expects` does.
    """

    what: str
    kind: str
    case: type[ConnectorUnderTest]
    test: str
    says: str
    stated: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.what} ({self.says})"


def failures(case: type[ConnectorUnderTest], tests: Sequence[str]) -> Mapping[str, str]:
    """Return what *tests* say against a case."""
    found: dict[str, Any] = {}
    for name in tests:
        try:
            getattr(case(), f"test_{name}")()
        except SkipTest:
            continue
        except (AssertionError, CrossdockError) as error:
            found[name] = str(error)
    return found


def quick_tests(case: type[ConnectorUnderTest]) -> list[str]:
    return [name.removeprefix("test_") for name in dir(case) if name.startswith("test_") and name != SLOW]
