"""HTTP clients of httpx that many tests make: they share a TLS context, since reading all authorities takes 40 ms."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import httpx
import pytest


@contextmanager
def quick_tls() -> Iterator[None]:
    """Make all clients of this process so that trust the usual authorities; no test changes such a context."""

    def context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:
        if verify is not True or cert is not None:
            return httpx.create_ssl_context(verify, cert, trust_env)
        return _shared(trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx._transports.default.create_ssl_context", context)
        yield


@lru_cache(maxsize=4)
def _shared(trust_env: bool, _file: str | None, _folder: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=trust_env)
