"""The base of the targets of connectors: what their connection gives them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from crossdock.platform.retry_and_in_flight_settings import Retry
from crossdock.values.clock import Clock
from crossdock.writing.targets.target import Target

if TYPE_CHECKING:
    from crossdock.reading.sources.api_declaration import Api


class ConnectorTarget(Target):
    """The base of `ApiTarget` and of targets that are no APIs, with the attributes of both."""

    retry = Retry()
    in_flight = 8
    kept_s: float = 86_400
    settle_s: float = 60.0

    def connect(self, connection: str, account: str, api: Callable[[], Api], clock: Clock) -> None:
        """Called by the engine before anything is sent. *api* declares the API of the connection, if it has one."""
        self.name = self.title = connection
        self.account, self.place = account, f"connections.{connection}"
        self._declared, self._clock = api, clock

    def advice(self, resource: str, status: int | None) -> str:  # noqa: ARG002  for subclasses
        return f"check {self.place}"

    @abstractmethod
    def reach(self) -> str:
        """Test whether the target can be reached, and return what that shows. Changes nothing.

        Raises:
            CrossdockError: If it cannot.
        """
