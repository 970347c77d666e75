"""The platform as a source: its lists, read with the credentials with which the config writes.

Input: the platform of a config. Output: its records, as streams of a connection or page by page. It may import what
`crossdock.runs` may import, and imports no other module of that package.
"""

from crossdock.connector import Connector
from crossdock.runs.platform_source.settings import PlatformSourceSettings
from crossdock.runs.platform_source.streams import check, streams
from crossdock.runs.platform_source.webhooks import platform_webhooks

CONNECTOR = Connector(
    name="platform",
    title="The platform itself",
    settings=PlatformSourceSettings,
    streams=streams,
    check=check,
    api=PlatformSourceSettings.declared_api,
    webhooks=platform_webhooks,
)
