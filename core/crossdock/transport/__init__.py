"""Bytes from other systems by SFTP, folders and HTTP; only this package imports paramiko and httpcore."""

from __future__ import annotations

import logging


def _without_answers(record: logging.LogRecord) -> bool:
    """Drop what httpcore logs of answers at DEBUG: status lines and headers may repeat credentials."""
    text = record.getMessage()
    return " return_value=" not in text and " exception=" not in text


logging.getLogger("httpcore.http11").addFilter(_without_answers)
