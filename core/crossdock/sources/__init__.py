"""What connectors build on: files with their intake gates, and paged HTTP.

Each name is loaded when it is first used: who reads folders needs no SSH.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossdock.addresses import HostName
    from crossdock.config import ConfigPath, Name
    from crossdock.errors import UnavailableError
    from crossdock.formats.delimited import DelimitedFormat
    from crossdock.sources.files import FileSource, Reader
    from crossdock.sources.http import HttpSource, Page
    from crossdock.sources.late import Wait
    from crossdock.transport.files import FileStore, split_pattern
    from crossdock.transport.folder import FolderStore
    from crossdock.transport.sftp import SftpLogin, connect

_HOME_OF = {
    "ConfigPath": "crossdock.config",
    "DelimitedFormat": "crossdock.formats.delimited",
    "FileSource": "crossdock.sources.files",
    "FileStore": "crossdock.transport.files",
    "FolderStore": "crossdock.transport.folder",
    "HostName": "crossdock.addresses",
    "HttpSource": "crossdock.sources.http",
    "Name": "crossdock.config",
    "Page": "crossdock.sources.http",
    "Reader": "crossdock.sources.files",
    "SftpLogin": "crossdock.transport.sftp",
    "UnavailableError": "crossdock.errors",
    "Wait": "crossdock.sources.late",
    "connect": "crossdock.transport.sftp",
    "split_pattern": "crossdock.transport.files",
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
    "Reader",
    "SftpLogin",
    "UnavailableError",
    "Wait",
    "connect",
    "split_pattern",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'crossdock.sources' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
