"""Bytes and pages from elsewhere: SFTP, folders and HTTP; one door a library."""

from __future__ import annotations

import logging


def _quotes_nothing(record: logging.LogRecord) -> bool:
    """False for what httpcore logs of answers at DEBUG: status lines and headers, which may repeat credentials."""
    said = record.getMessage()
    return " return_value=" not in said and " exception=" not in said


logging.getLogger("httpcore.http11").addFilter(_quotes_nothing)
