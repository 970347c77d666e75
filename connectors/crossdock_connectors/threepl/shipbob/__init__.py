"""ShipBob, by its API of version 2026-01."""

from crossdock import Connector
from crossdock_connectors.threepl.shipbob.settings import ShipBobSettings
from crossdock_connectors.threepl.shipbob.streams import check, streams
from crossdock_connectors.threepl.shipbob.target import ShipBobTarget
from crossdock_connectors.threepl.shipbob.webhooks import webhook_declaration

CONNECTOR = Connector(
    name="shipbob",
    title="ShipBob",
    settings=ShipBobSettings,
    streams=streams,
    check=check,
    api=ShipBobSettings.declared_api,
    target=lambda settings: ShipBobTarget(settings.channel),
    webhooks=webhook_declaration,
)
