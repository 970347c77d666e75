"""SFTP, local folders and HTTP; the only door to paramiko, httpcore and httpx."""

from __future__ import annotations

import logging


def _quotes_nothing(record: logging.LogRecord) -> bool:
    """False for what httpcore logs of responses at DEBUG: status lines and headers, which may repeat credentials."""
    message = record.getMessage()
    return " return_value=" not in message and " exception=" not in message


logging.getLogger("httpcore.http11").addFilter(_quotes_nothing)
logging.getLogger("httpx").addFilter(lambda _: False)  # it logs whole addresses, which may contain credentials
