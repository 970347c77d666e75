"""Legacy warehouses that export files to an SFTP server."""

from crossdock import Connector
from crossdock_connectors.sftp_warehouse.settings_streams_and_target import (
    SftpWarehouseSettings,
    check,
    streams,
    target,
)

CONNECTOR = Connector(
    name="sftp_warehouse",
    title="Warehouse with file exports on SFTP",
    settings=SftpWarehouseSettings,
    streams=streams,
    check=check,
    target=target,
)
