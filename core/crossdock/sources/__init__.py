"""What connectors build on: files with their intake gates, and paged HTTP."""

from crossdock.errors import UnavailableError
from crossdock.formats.delimited import DelimitedFormat
from crossdock.sources.files import FileSource, Reader
from crossdock.sources.http import HttpSource, Page
from crossdock.sources.late import Wait
from crossdock.transport.files import FileStore
from crossdock.transport.sftp import SftpLogin, connect

__all__ = [
    "DelimitedFormat",
    "FileSource",
    "FileStore",
    "HttpSource",
    "Page",
    "Reader",
    "SftpLogin",
    "UnavailableError",
    "Wait",
    "connect",
]
