"""SFTP, local folders and HTTP. In `crossdock.reading`, only this package imports paramiko and httpcore.

Input: settings of a connection, and paths or requests. Output: the bytes of files, and answers or failures of requests.
It may import errors and `crossdock.values`.
"""

from __future__ import annotations

import logging


def _is_not_response(record: logging.LogRecord) -> bool:
    """Filter the responses that httpcore logs at DEBUG: status lines and headers may repeat credentials."""
    message = record.getMessage()
    return " return_value=" not in message and " exception=" not in message


logging.getLogger("httpcore.http11").addFilter(_is_not_response)
logging.getLogger("httpx").addFilter(lambda _: False)  # httpx logs whole addresses, which may contain credentials
