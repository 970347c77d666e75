"""Telling people and programs how a night went. A notification that fails never fails the night."""

from __future__ import annotations

import ssl
import threading
import time
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from crossdock.clock import Clock
from crossdock.config_file import ConfigModel, Document
from crossdock.errors import ConfigError, CrossdockError, UnavailableError
from crossdock.notifications.events import Event, Message, RunOverdue, ScheduledRunEnded, kinds, notice
from crossdock.notifications.mail import Email, MailChannel
from crossdock.notifications.webhook import Webhook, WebhookChannel

__all__ = ["Event", "Notifier", "NotifyConfig", "RunOverdue", "ScheduledRunEnded", "kinds", "notify_config"]

Channel = WebhookChannel | MailChannel
ATTEMPT_S = 10.0


class NotifyConfig(ConfigModel):
    """Whom to tell how a night went."""

    when: Annotated[tuple[Literal["failed", "degraded", "recovered", "late"], ...], Field(min_length=1)] = (
        "failed",
        "degraded",
        "recovered",
    )
    """What is worth a message: ``failed`` (not done to its end), ``degraded`` (done, but something was rejected, waits
    or is in doubt), ``recovered`` (done after one that was not), ``late`` (expected to end after ``done_by``)."""
    webhook: Webhook | None = None
    """A program to post to."""
    email: Email | None = None
    """People to mail to."""

    @model_validator(mode="after")
    def _tells_somebody(self) -> Self:
        if self.webhook is None and self.email is None:
            raise ValueError("needs a webhook or an email, or leave notify out")
        return self


def notify_config(document: Document) -> NotifyConfig | None:
    """The section ``notify`` of a config file, None without one.

    Raises:
        ConfigError: With every finding and its place in the file.
    """
    facts = document.data.get("notify")
    return document.check(NotifyConfig, facts, ("notify",)) if facts is not None else None


class Notifier:
    """Tells what a `NotifyConfig` asks for. Secrets are read again for each message, so they can be changed.

    Args:
        tls: What is trusted to be the receiver; the system's certificates without it.
        attempt_s: Bound of one attempt. There are two at most, and `tell` takes two and a half times as long at most.

    Raises:
        ConfigError: If a secret cannot be read or used.
    """

    def __init__(
        self, config: NotifyConfig, clock: Clock, *, tls: ssl.SSLContext | None = None, attempt_s: float = ATTEMPT_S
    ) -> None:
        self._clock, self._attempt_s = clock, attempt_s
        self._when = frozenset(config.when)
        self._channels: list[Channel] = []
        if config.webhook is not None:
            self._channels.append(WebhookChannel(config.webhook, tls))
        if config.email is not None:
            self._channels.append(MailChannel(config.email, tls))
        for channel in self._channels:
            channel.check()

    def tell(self, event: Event) -> list[str]:
        """Send what is worth a message, over all channels at once, and say what failed: a sentence for each channel."""
        wanted = kinds(event) & self._when
        if not wanted:
            return []
        told = notice(event, wanted, self._clock.now())
        ends = time.monotonic() + 2.5 * self._attempt_s
        tellings = [_Delivery(channel, told, self._clock, self._attempt_s, ends) for channel in self._channels]
        for telling in tellings:
            telling.start()
        for telling in tellings:
            telling.join(max(0.0, ends - time.monotonic()))
        return [failure for telling in tellings if (failure := telling.failure)]


class _Delivery(threading.Thread):
    """One notice on its way over one channel; a thread, since nothing else bounds a look-up in the DNS.

    Attributes:
        failure: A sentence; None once the notice is delivered.
    """

    def __init__(self, channel: Channel, told: Message, clock: Clock, attempt_s: float, ends: float) -> None:
        super().__init__(name="notification", daemon=True)
        self._channel, self._told, self._clock = channel, told, clock
        self._attempt_s, self._ends = attempt_s, ends
        self.failure: str | None = f"{channel.name} did not answer in time"

    def run(self) -> None:
        name = self._channel.name
        try:
            self._try_twice()
            self.failure = None
        except ConfigError as error:
            self.failure = f"{name} cannot be told: {error.message}"
        except CrossdockError as error:
            self.failure = f"{name} {error.message}"
        except Exception as error:  # noqa: BLE001  a mistake here must not cost a night; its text may hold anything
            self.failure = f"{name} could not be told: {type(error).__name__}"

    def _try_twice(self) -> None:
        try:
            self._try()
        except UnavailableError:
            self._clock.sleep(self._attempt_s / 5)
            if time.monotonic() >= self._ends:
                raise
            self._try()

    def _try(self) -> None:
        self._channel.send(self._told, at=self._clock.now(), within_s=self._attempt_s)
