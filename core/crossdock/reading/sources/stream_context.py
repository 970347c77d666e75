"""The context of a stream: its connection's settings, and what it may use while it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import GetPydanticSchema, model_validator

from crossdock.errors import ConnectorError
from crossdock.reading.sources.run_context import SourceContext
from crossdock.values.config_base_types import ConfigModel, Name, make_pydantic_error_at_key
from crossdock.values.web_address_checks import places_of_forbidden_addresses

if TYPE_CHECKING:
    from crossdock.reading.sources.api_declaration import Api
    from crossdock.reading.sources.paginated_api_client import ApiClient
    from crossdock.reading.transport.http_answers_and_errors import RefusedCredentials

# A text; Any for type checkers, of which pyright lets no field of type str be narrowed to a literal by a subclass.
_Narrowed = Annotated[Any, GetPydanticSchema(lambda _, handler: handler(str))]


class Settings(ConfigModel):
    """What one connection is configured with; a connector adds its own fields."""

    kind: _Narrowed
    namespace: Name | None = None
    """The scope in which this connection's record keys are unique; default: its name. Connections may share one."""

    @model_validator(mode="before")
    @classmethod
    def _raise_if_address_is_forbidden(cls, data: Any) -> Any:
        for place, fault in places_of_forbidden_addresses(data):
            raise make_pydantic_error_at_key(place, fault)
        return data

    @property
    def source_host(self) -> str | None:
        """The host that is read, as ``HOST`` or ``HOST:PORT``, or None. A fleet limits its runs by it."""
        return None


S = TypeVar("S", bound=Settings)
T = TypeVar("T")
_API = "crossdock.api"


@dataclass(frozen=True)  # without slots: ``Context[...](...)`` would fail
class Context(Generic[S]):
    """What a stream may use while it reads.

    Attributes:
        settings: The connection's settings.
        connection: The connection's name.
        run: What the run gives its sources: clock, progress, folders, intake log.
    """

    settings: S
    connection: str
    run: SourceContext
    _shared: dict[object, Any] = field(default_factory=dict)
    _declared_api: Callable[[S], Api] | None = None
    _tokens: Path | None = None
    _refused: RefusedCredentials | None = None

    @property
    def api(self) -> ApiClient:
        """The HTTP API that the connector declares, opened once in a run and shared by all streams of the connection.

        Raises:
            ConnectorError: If it declares none.
            ConfigError: If its address or a certificate cannot be used.
        """
        return self.shared(_API, self._open_api)

    def _open_api(self) -> ApiClient:
        from crossdock.reading.sources.api_declaration import declared_api  # noqa: PLC0415  most commands read no API
        from crossdock.reading.sources.paginated_api_client import ApiClient  # noqa: PLC0415

        if self._declared_api is None:
            raise ConnectorError(
                "the connector declares no API",
                hint="Connector(..., api=lambda settings: Api(...))",
                code="connector_invalid",
            )
        api = declared_api(self._declared_api, self.settings, self.connection, self._tokens, self._refused)
        client = ApiClient(api, self.run, self.connection)
        self.run.at_end.callback(self._store_usage_and_close, client)
        return client

    def _store_usage_and_close(self, client: ApiClient) -> None:
        if client.allowance.usage.requests:
            self.run.limits[self.connection] = client.allowance.bucket_state
            self.run.api_usage[self.connection] = client.allowance.usage
        client.close()

    def renew(self) -> None:
        """Discard what `shared` has kept, except the API: what is read next is read as it is then."""
        for name in self._shared.keys() - {_API}:
            del self._shared[name]

    def shared(self, name: object, make: Callable[[], T]) -> T:
        """Return the result of *make*, called once in a run and shared by all streams of the connection."""
        if name not in self._shared:
            self._shared[name] = make()
        value: T = self._shared[name]
        return value
