"""The fixtures of the other folders that these tests need."""

from tests.chaos.conftest import platform
from tests.e2e.conftest import exports, fresh, openssh, site

__all__ = ["exports", "fresh", "openssh", "platform", "site"]
