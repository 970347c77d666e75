"""Paged JSON APIs, read and written by a config alone."""

from crossdock import Connector
from crossdock_connectors.http_json.bulk_write_jobs import target
from crossdock_connectors.http_json.settings import HttpJsonSettings
from crossdock_connectors.http_json.streams import check, streams
from crossdock_connectors.http_json.webhooks import webhook_declaration

CONNECTOR = Connector(
    name="http_json",
    title="Paged JSON API",
    settings=HttpJsonSettings,
    streams=streams,
    check=check,
    api=HttpJsonSettings.declared_api,
    target=target,
    webhooks=lambda settings: None if settings.webhooks is None else webhook_declaration(settings.webhooks),
)
