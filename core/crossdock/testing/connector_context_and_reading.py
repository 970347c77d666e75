"""A context for the tests of a connector, and reading a stream with it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crossdock.config.project import project
from crossdock.config.project.connections_and_bound_streams import BoundStream, Connection
from crossdock.config.stream_configuration import check_and_complete_declaration
from crossdock.connector import Connector, Context, Settings
from crossdock.errors import ConfigError
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.platform.platform_config import ApiKey, Profile
from crossdock.reading.sources.run_context import SourceContext
from crossdock.runs.imported_file_log import EmptyIntakeLog
from crossdock.runs.stream_trial import Trial, try_bound_stream, try_stream
from crossdock.testing.manual_clock import ManualClock
from crossdock.values.clock import Clock
from crossdock.values.config_base_types import Secret
from crossdock.values.run_progress_and_messages import SilentProgress
from crossdock.writing.targets.platform_target import PlatformTarget

if TYPE_CHECKING:
    import httpx

S = TypeVar("S", bound=Settings)


def context(
    connector: Connector[S],
    settings: Mapping[str, Any] | S,
    *,
    transport: httpx.BaseTransport | None = None,
    folder: Path | None = None,
    clock: Clock | None = None,
) -> Context[S]:
    """Make a context for one connection of *connector*, without a state.

    Args:
        settings: Keys of a connection as in a config file; ``kind`` may be left out.
        transport: Replaces the network, such as an `httpx.MockTransport`.
        folder: Relative paths of *settings* start here, and temporary files are created below it; default: a temporary
            folder, removed when the process ends.
        clock: Default: a `ManualClock`, whose ``sleep`` returns at once.

    Raises:
        pydantic.ValidationError: If *settings* are wrong.
    """
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="crossdock-test-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if isinstance(settings, Mapping):
        data = {"kind": connector.name, **settings}
        settings = connector.settings.model_validate(data, context={"folder": folder})
    work = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    run = SourceContext(
        clock or ManualClock(),
        SilentProgress(),
        EmptyIntakeLog(),
        work / "spool",
        work,
        work / "spool",
        transport=_wrapped_so_that_errors_name_transport(transport),
    )
    atexit.register(run.at_end.close)
    return Context(settings, connector.name, run, _declared_api=connector.api)


def _wrapped_so_that_errors_name_transport(transport: httpx.BaseTransport | None) -> httpx.BaseTransport | None:
    """Return the transport of a test with errors that name it."""
    if transport is None:
        return None
    from crossdock.testing.httpx_test_transports import AuthorsTransport  # noqa: PLC0415  it imports httpx

    return AuthorsTransport(transport)


def _add_suppressed_transport_error(trial: Trial, transport: object) -> Trial:
    """Return *trial* with the error of the test's transport, also if the connector suppresses it."""
    if trial.error is None and transport is not None:
        from crossdock.testing.httpx_test_transports import first_error_of_authors_transport  # noqa: PLC0415  it imports httpx

        trial.error = first_error_of_authors_transport(transport)
    return trial


_NO_PLATFORM = Profile(
    base_url="http://localhost", tenant="test", auth=ApiKey(kind="api_key", token=Secret("env:UNUSED", Path()))
)


def bind_checked_stream(connector: Connector[S], ctx: Context[S], stream: str) -> BoundStream:
    """Return the stream of this name, checked as when a config is loaded.

    Raises:
        ConfigError: If there is no such stream, or its attributes are wrong.
    """
    connection = Connection(ctx.connection, connector, ctx.settings, tuple(connector.streams(ctx.settings)))
    for name, each in connection.enabled_streams_with_full_names():
        if each.name == stream:
            check_and_complete_declaration(name, each, {})
            return connection.bind_stream(name, each, {PLATFORM: PlatformTarget(_NO_PLATFORM)}, ctx)
    names = ", ".join(each.name for each in connection.streams)
    raise ConfigError(
        f"the connector {connector.name!r} has no stream {stream!r}; it has: {names}", code="stream_unknown"
    )


def read(connector: Connector[S], ctx: Context[S], stream: str, *, since: str | None = None, most: int = 1000) -> Trial:
    """Read the first *most* records of a stream and map them, as ``crossdock try`` does.

    Args:
        since: The cursor to continue from.

    Returns:
        The records, each with the members of its draft or its problem, and the error that ended the reading, if any.
    """
    return _add_suppressed_transport_error(
        try_bound_stream(bind_checked_stream(connector, ctx, stream), most, since=since), ctx.run.transport
    )


def read_config(
    config: Path | str, stream: str, *, most: int = 1000, transport: httpx.BaseTransport | None = None
) -> Trial:
    """Read the first *most* records of a stream of a config file, and map them; see `read`.

    Args:
        stream: ``CONNECTION.STREAM``.
        transport: Replaces the network, such as an `httpx.MockTransport`.

    Raises:
        ConfigError: If the config is wrong.
    """
    tomorrow = ManualClock(datetime.now(UTC) + timedelta(days=1))  # no file is so young that it may still grow
    named = _wrapped_so_that_errors_name_transport(transport)
    trial = try_stream(
        project.load(Path(config)), stream, most, clock=tomorrow, progress=SilentProgress(), transport=named
    )
    return _add_suppressed_transport_error(trial, named)
