"""Legacy warehouses that export files to a local folder or a mounted share."""

from crossdock import Connector
from crossdock_connectors.folder_warehouse.settings_streams_and_target import (
    FolderWarehouseSettings,
    check,
    streams,
    target,
)

CONNECTOR = Connector(
    name="folder_warehouse",
    title="Warehouse with file exports in a folder",
    settings=FolderWarehouseSettings,
    streams=streams,
    check=check,
    target=target,
)
