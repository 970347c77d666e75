"""Settings of connectors that read an HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from crossdock.connector import Settings
from crossdock.reading.transport.proxy_and_tls_settings import HttpConnection
from crossdock.values.config_base_types import MAX_S, BaseUrl

if TYPE_CHECKING:
    from crossdock.reading.sources.api_declaration import Api


class HttpSettings(HttpConnection, Settings):
    """What a connection to an HTTP API is configured with; a connector adds its own fields, such as a token.

    `api` makes the `Api` of the connection: ``Connector(..., api=lambda settings: settings.api(auth=...))``.
    """

    base_url: BaseUrl
    """The base URL of the API: https, or http on this machine, without a user, a password or a query."""
    timeout_s: Annotated[float, Field(gt=0, le=MAX_S)] = 30.0
    """Seconds that the server may be silent."""
    total_timeout_s: Annotated[float, Field(gt=0, le=MAX_S)] = 60.0
    """Seconds for a whole request, from connecting to the last byte of the answer."""

    @property
    def source_host(self) -> str | None:
        return urlsplit(self.base_url).netloc

    def api(self, **more: Any) -> Api:
        """Return the API with these settings. *more* are other arguments of `Api`, such as ``auth``."""
        from crossdock.reading.sources.api_declaration import Api  # noqa: PLC0415  most commands read no API

        own: dict[str, Any] = {"timeout_s": self.timeout_s, "total_timeout_s": self.total_timeout_s}
        return Api(self.base_url, **{**own, "connection": self, **more})
