"""The subscriptions of a connection at its vendor, for ``crossdock listen``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from msgspec import Struct, field

from crossdock.config.project.connections_and_bound_streams import Connection
from crossdock.config.project.project import Project
from crossdock.connector import Context
from crossdock.errors import ConfigError, CrossdockError, UnauthorizedError
from crossdock.reading.sources.run_context import SourceContext, create_run_folder
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.services.inbox.webhook_receiver_and_writer import WEBHOOK_PATH_PREFIX
from crossdock.services.inbox.webhook_verification_and_parsing import WEBHOOKS_EXAMPLE
from crossdock.values.author_code_errors import convert_author_errors
from crossdock.values.clock import Clock
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.webhooks import Subscription, SubscriptionApi, Webhooks


class RegistrationResult(Struct):
    subscriptions: list[Subscription] = field(default_factory=list)
    refused: dict[str, CrossdockError] = field(default_factory=dict)


class VendorSubscriptions:
    """The subscriptions of one connection. *address* receives its webhooks; it is empty if the config has none."""

    def __init__(self, api: SubscriptionApi[Any], webhooks: Webhooks[Any], context: Context[Any], address: str) -> None:
        self._api, self._webhooks, self._context, self._address = api, webhooks, context, address

    def subscriptions_at_vendor(self) -> Iterator[Subscription]:
        with self._convert_errors_of_author_method("listed"):
            for subscription in self._api.listed(self._context):
                yield _subscription_or_raise_type_error(subscription)

    def _convert_errors_of_author_method(self, method: str) -> AbstractContextManager[None]:
        return convert_author_errors(method, self._context.connection, code=self._api, settings=self._context.settings)

    def register(self) -> RegistrationResult:
        """Subscribe to each topic of the connection. An existing subscription is kept: see `SubscriptionApi.create`."""
        address, result = self._webhook_address_or_raise(), RegistrationResult()
        for topic in self._webhooks.topics:
            try:
                with self._convert_errors_of_author_method("create"):
                    result.subscriptions.append(
                        _subscription_or_raise_type_error(self._api.create(self._context, topic, address))
                    )
            except CrossdockError as error:
                result.refused[topic] = error
                if isinstance(error, UnauthorizedError):
                    break
        return result

    def remove_own_subscriptions(self) -> Iterator[Subscription]:
        """End the subscriptions to the address, and yield them."""
        address = self._webhook_address_or_raise()
        for subscription in list(self.subscriptions_at_vendor()):
            if subscription.address == address:
                with self._convert_errors_of_author_method("remove"):
                    self._api.remove(self._context, subscription)
                yield subscription

    def _webhook_address_or_raise(self) -> str:
        if not self._address:
            hint = "add listen: {public_url: https://...}, the address that the vendor reaches"
            raise ConfigError(
                "the config does not say where webhooks are received", hint=hint, code="webhooks_not_configured"
            )
        return self._address


def _subscription_or_raise_type_error(subscription: object) -> Subscription:
    if not isinstance(subscription, Subscription):
        raise TypeError(f"a subscription is a {type(subscription).__name__} instead of a Subscription")
    return subscription


@contextmanager
def open_subscriptions_of_connection(project: Project, name: str, clock: Clock) -> Iterator[VendorSubscriptions]:
    connection = _connection_named_or_raise(project, name)
    webhooks, where = connection.webhooks, f"{project.path}: connections.{name}"
    if webhooks is None:
        hint = f"add webhooks: to it, such as {WEBHOOKS_EXAMPLE}"
        raise ConfigError("the connection receives no webhooks", where=where, hint=hint, code="webhooks_not_configured")
    if webhooks.subscriptions is None:
        hint = f"enter the address in the system itself; it ends with {WEBHOOK_PATH_PREFIX}{name}"
        raise ConfigError(
            "its system has no API for subscriptions", where=where, hint=hint, code="webhooks_not_configured"
        )
    address = f"{project.listen.public_url.rstrip('/')}{WEBHOOK_PATH_PREFIX}{name}" if project.listen else ""
    with ExitStack() as stack:
        work = create_run_folder(stack, None)
        run = SourceContext(clock, SilentProgress(), EmptyIntakeLog(), work, work, work)
        stack.enter_context(run.at_end)
        yield VendorSubscriptions(webhooks.subscriptions, webhooks, connection.context(run), address)


def _connection_named_or_raise(project: Project, name: str) -> Connection:
    found = {connection.name: connection for connection in project.connections}
    if name not in found:
        known = ", ".join(found)
        raise ConfigError(
            f"there is no connection {name!r}",
            where=str(project.path),
            hint=f"known: {known}",
            code="connection_unknown",
        )
    return found[name]
