"""Settings of a connection to an HTTP API."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from crossdock.addresses import endpoint
from crossdock.config_file import ConfigModel, ConfigPath
from crossdock.sources.api import Api
from crossdock.transport.httpcore_client import TOTAL_TIMEOUT_S


class HttpSettings(ConfigModel):
    """The address of an API, and how it is connected to."""

    base_url: Annotated[str, AfterValidator(endpoint)]
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Longest silence of the server."""
    total_timeout_s: Annotated[float, Field(gt=0, le=3600)] = TOTAL_TIMEOUT_S
    """Limit from the start of a request to the last byte of its answer."""
    ca_file: ConfigPath | None = None
    """PEM file of CA certificates to trust instead of the system's."""

    def api(self, **more: Any) -> Api:
        """The API with these settings; *more* are further attributes of it."""
        return Api(self.base_url, **self.model_dump(include=set(HttpSettings.model_fields) - {"base_url"}), **more)
