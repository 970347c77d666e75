"""New PostgreSQL databases over one connection: ``createdb`` would be a process for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

from crossdock.state import StateUrl, parse_database_url
from crossdock.testing.postgres_server import PostgresServer


@contextmanager
def new_databases(server: PostgresServer) -> Iterator[Callable[..., StateUrl]]:
    """A function that creates a database and returns its address: a copy of the given one, or else an empty one."""
    first, numbers = parse_database_url(server.create_database(), Path()), count(1)
    address = first.set(drivername="postgresql").render_as_string()

    def new(copied: StateUrl | None = None) -> StateUrl:
        name = f"new_{next(numbers)}"
        template = f" TEMPLATE {copied.database}" if copied else ""
        connection.execute(f"CREATE DATABASE {name}{template}".encode())
        return first.set(database=name)

    with psycopg.connect(address, autocommit=True) as connection:
        yield new
