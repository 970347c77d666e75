"""Sends notifications about scheduled runs. A failed notification never fails the run."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial

from crossdock.config.notify_config import NotifyConfig
from crossdock.errors import ConfigError, CrossdockError, UnavailableError, add_code_to_first_line
from crossdock.services.notifications.mail import MailChannel, RecipientsRefusedError
from crossdock.services.notifications.run_events_and_messages import (
    Event,
    Message,
    compose_message,
    compose_message_of_several_events,
    kinds_of_event,
)
from crossdock.services.notifications.webhook_channel import WebhookChannel
from crossdock.values.clock import Clock

Channel = WebhookChannel | MailChannel


class ProblemOfSomeRecipients(str):
    """A sentence about recipients that a channel refuses for good. The others have the message, and get it once."""

    __slots__ = ()


def are_people_told(problems: Iterable[str]) -> bool:
    """Return whether each channel has accepted the message, given the *problems* of sending it."""
    return all(isinstance(each, ProblemOfSomeRecipients) for each in problems)


ATTEMPT_S = 10.0


class Notifier:
    """Sends the notifications that a `NotifyConfig` selects. Secrets are read for each message, so they can be rotated.

    A channel has at most two attempts of *attempt_s*. A secret that cannot be read or used is a ConfigError.
    """

    def __init__(
        self, config: NotifyConfig, clock: Clock, *, tls: ssl.SSLContext | None = None, attempt_s: float = ATTEMPT_S
    ) -> None:
        self._clock, self._attempt_s = clock, attempt_s
        self._when = frozenset(config.when)
        self._channels: list[Channel] = []
        if config.webhook is not None:
            self._channels.append(WebhookChannel(config.webhook))
        if config.email is not None:
            self._channels.append(MailChannel(config.email, tls))
        for channel in self._channels:
            channel.check_secrets()

    def notify(self, event: Event) -> list[str]:
        """Send *event* on all channels in parallel if it is selected, within 2.5 times *attempt_s*.

        Return a sentence for each channel that failed.
        """
        selected = kinds_of_event(event) & self._when
        return self._send_on_all_channels(compose_message(event, selected, self._clock.now())) if selected else []

    def is_event_selected(self, event: Event) -> bool:
        return bool(kinds_of_event(event) & self._when)

    def notify_of_several_events(self, events: Sequence[tuple[str, Event]], tenants: int) -> list[str]:
        """Send one message about at least one selected event, each with its tenant. The rest is as in `notify`."""
        return self._send_on_all_channels(compose_message_of_several_events(events, tenants, self._clock.now()))

    def _send_on_all_channels(self, message: Message) -> list[str]:
        deadline = time.monotonic() + 2.5 * self._attempt_s
        failures = {channel.name: f"{channel.name} did not answer in time" for channel in self._channels}
        threads = []
        for channel in self._channels:  # in threads, since nothing else bounds a DNS lookup
            task = partial(self._send_on_channel, channel, message, deadline, failures)
            threads.append(threading.Thread(target=task, name="notification", daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return list(failures.values())

    def _send_on_channel(self, channel: Channel, message: Message, deadline: float, failures: dict[str, str]) -> None:
        name = channel.name
        try:
            self._send_with_retry(channel, message, deadline)
            del failures[name]
        except ConfigError as error:
            failures[name] = add_code_to_first_line(f"{name} cannot be used: {error.message}", error.code)
        except RecipientsRefusedError as error:
            text = add_code_to_first_line(f"{name} {error.message}", "notification_failed")
            failures[name] = ProblemOfSomeRecipients(text)
        except CrossdockError as error:
            failures[name] = add_code_to_first_line(f"{name} {error.message}", "notification_failed")
        except Exception as error:  # noqa: BLE001  a defect here must not fail the run; its text may quote anything
            failures[name] = f"{name} failed: {type(error).__name__}"

    def _send_with_retry(self, channel: Channel, message: Message, deadline: float) -> None:
        send = partial(channel.send, message, within_s=self._attempt_s)
        try:
            send(at=self._clock.now())
        except UnavailableError:
            self._clock.sleep(self._attempt_s / 5)
            if time.monotonic() >= deadline:
                raise
            send(at=self._clock.now())
