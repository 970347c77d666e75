"""What connectors build on: files with their intake gates, and paged HTTP."""

from crossdock.formats.delimited import DelimitedFormat
from crossdock.sources.files import FileSource, Reader
from crossdock.transport.sftp import SftpLogin, connect

__all__ = ["DelimitedFormat", "FileSource", "Reader", "SftpLogin", "connect"]
