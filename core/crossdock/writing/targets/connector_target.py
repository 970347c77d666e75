"""The base of the targets of connectors: what their connection gives them."""

from __future__ import annotations

from collections.abc import Callable

from crossdock.platform.retry_settings import Retry
from crossdock.reading.sources.api import Api
from crossdock.values.clock import Clock
from crossdock.writing.targets.target import Target


class ConnectorTarget(Target):
    """Base class of connectors' targets. A subclass declares `resources` and makes the requests.

    It may set the attributes up to `settle_s`; `connect` sets those from `name` on.

    Attributes:
        resources: The resources by name, parents before those that refer to them.
        retry: How often a request is sent again, and after which pauses.
        in_flight: Most requests in flight, and thus most that can be in doubt after a crash.
        kept_s: Seconds for which the target keeps an idempotency key; a request is not resent after that.
        settle_s: Seconds after which an unanswered request has either taken effect or never will.
        is_of_author: Whether an author has written it, so that its code may fail.
        name: The name of the connection, in the state, in reports, and in ``to`` of streams.
        title: The words for the target in a sentence.
        account: The account whose data the requests change; part of idempotency keys.
        place: Its section in the config, for hints.
    """

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

    def reach(self) -> str:
        """Test whether the target can be reached, and return what that shows. Changes nothing.

        Raises:
            CrossdockError: If it cannot.
        """
        raise NotImplementedError
