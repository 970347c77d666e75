"""The description of a connector for its tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from crossdock.connector import Connector, Context
from crossdock.testing.captured_output import captured
from crossdock.testing.connector_context import context, read

if TYPE_CHECKING:
    import httpx

    from crossdock.runs.stream_trial import Trial


class ConnectorUnderTest:
    """A connector with example data.

    Attributes:
        connector: The connector under test.
        settings: Keys of a connection, as in a config file; relative paths start in a temporary folder.
        environment: Variables that *settings* refer to as ``env:NAME``. Their values must never be shown.
    """

    connector: Connector[Any]
    settings: Mapping[str, Any]
    environment: Mapping[str, str] = {}

    def prepare(self, folder: Path) -> None:
        """Create what *settings* refer to in *folder*, such as files to read; nothing by default."""

    def network(self) -> httpx.BaseTransport | None:
        """Return the replacement of the network; None if the connector reads files."""
        return None

    @contextmanager
    def in_environment(self) -> Iterator[None]:
        """Set `environment` as variables of this process."""
        with mock.patch.dict(os.environ, self.environment):
            yield

    def no_secret_in(self, what: str, text: str) -> None:
        """Fail if *text* contains a value of `environment`."""
        for name, value in self.environment.items():
            if value in text:  # an assertion would show the value
                raise AssertionError(f"{what} contains the secret {name}")

    def no_secret_in_files(self, folder: Path) -> None:
        """Fail if a file that crossdock wrote in *folder* contains a value of `environment`."""
        for path in (path for path in folder.rglob("*") if path.is_file()):
            self.no_secret_in(f"the file {path.name}", path.read_bytes().decode("utf-8", "replace"))


class StreamUnderTest(ConnectorUnderTest):
    """One stream of a connector with example data.

    Attributes:
        stream: The stream's name.
    """

    stream: str

    def new_context(self) -> Context[Any]:
        """Make a context as in a new run."""
        with self.in_environment():
            ctx = context(self.connector, self.settings, transport=self.network())
        self.prepare(ctx.run.work.parent)
        return ctx

    def read(self, since: str | None = None) -> Trial:
        """Read and map the stream in a new run."""
        return self.read_in(self.new_context(), since)

    def read_in(self, ctx: Context[Any], since: str | None = None) -> Trial:
        """Read and map the stream with *ctx*. Fails if a value of `environment` is printed or logged."""
        with self.in_environment(), captured() as output:
            trial = read(self.connector, ctx, self.stream, since=since)
        self.no_secret_in("what the stream printed or logged", output.getvalue())
        self.no_secret_in("the error", str(trial.error or ""))
        for tried in trial.records:
            self.no_secret_in("the place of a record", tried.record.source)
            self.no_secret_in("the problem of a record", str(tried.problem or ""))
        return trial
