"""Amazon Multi-Channel Fulfillment, by the Selling Partner API."""

from crossdock import Connector
from crossdock_connectors.threepl.amazon_mcf.settings import AmazonMcfSettings
from crossdock_connectors.threepl.amazon_mcf.streams import check, streams
from crossdock_connectors.threepl.amazon_mcf.target import AmazonTarget

CONNECTOR = Connector(
    name="amazon_mcf",
    title="Amazon Multi-Channel Fulfillment",
    settings=AmazonMcfSettings,
    streams=streams,
    check=check,
    api=AmazonMcfSettings.declared_api,
    target=lambda settings: AmazonTarget(settings.marketplace),
)
