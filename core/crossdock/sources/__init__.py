"""What connectors build on: files with their intake gates, and paged HTTP.

Each name is loaded when it is first used: who reads folders needs no SSH.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.addresses import HostName
    from crossdock.config_file import ConfigPath, Name
    from crossdock.errors import UnavailableError
    from crossdock.formats.delimited_files import DelimitedFormat
    from crossdock.sources.file_source import FileSource, StreamId
    from crossdock.sources.http_source import HttpSource, Page
    from crossdock.sources.late_files import Wait
    from crossdock.transport.file_store import FileStore, split_pattern
    from crossdock.transport.folder_store import FolderStore
    from crossdock.transport.sftp_store import SftpLogin, connect

_HOME_OF = {
    "ConfigPath": "crossdock.config_file",
    "DelimitedFormat": "crossdock.formats.delimited_files",
    "FileSource": "crossdock.sources.file_source",
    "FileStore": "crossdock.transport.file_store",
    "FolderStore": "crossdock.transport.folder_store",
    "HostName": "crossdock.addresses",
    "HttpSource": "crossdock.sources.http_source",
    "Name": "crossdock.config_file",
    "Page": "crossdock.sources.http_source",
    "StreamId": "crossdock.sources.file_source",
    "SftpLogin": "crossdock.transport.sftp_store",
    "UnavailableError": "crossdock.errors",
    "Wait": "crossdock.sources.late_files",
    "connect": "crossdock.transport.sftp_store",
    "split_pattern": "crossdock.transport.file_store",
}

__all__ = [
    "ConfigPath",
    "DelimitedFormat",
    "FileSource",
    "FileStore",
    "FolderStore",
    "HostName",
    "HttpSource",
    "Name",
    "Page",
    "SftpLogin",
    "StreamId",
    "UnavailableError",
    "Wait",
    "connect",
    "split_pattern",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'crossdock.sources' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
